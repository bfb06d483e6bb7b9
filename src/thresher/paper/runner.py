"""Cells are run side by side, and kept one by one."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from thresher._progress import Progress
from thresher.paper.cells import Cell
from thresher.paper.running import run_together
from thresher.paper.store import Finished, Store


def run_cells(
    cells: Sequence[Cell], directory: Path, n_jobs: int | None = None, progress: bool | None = None
) -> list[Finished]:
    """Run those cells that the directory does not have yet, and return all of them in the order given.

    Whatever ends it, finished cells stay, and the same call goes on with the others.

    Parameters
    ----------
    cells : sequence of Cell
        With different digests.
    directory : Path
    n_jobs : int, optional
        Processes; by default as many as there are processors.
    progress : bool, optional
        By default shown on terminals only.
    """
    store = Store(directory)
    due = [cell for cell in cells if store.read(cell) is None]
    groups = _groups(due)
    total = sum(map(cost, cells))
    n_jobs = min(n_jobs or os.cpu_count() or 1, len(groups))
    with Progress(len(cells) - len(due), len(cells), progress, total - sum(map(cost, due)), total) as shown:
        if n_jobs > 1:
            _run_in_processes(groups, store, n_jobs, shown)
        else:
            for group in groups:
                _run_and_keep(group, store)
                _advance(shown, group)
    return [finished for cell in cells if (finished := store.read(cell))]


def cost(cell: Cell) -> float:
    """About how many seconds it takes, on some processor."""
    design, n = cell.design, cell.n_rows
    d1, d2 = design["shape"] if design["matrix"] else (design["n_features"], 1)
    d = d1 * d2
    step = 60e-6 + 1e-10 * d**2 if design["matrix"] else 1e-6 + 1e-9 * d
    seconds = n * 1e-11 * d**2
    for method in cell.methods:
        if method.kind == "default":
            seconds += method.times[-1] * (d**2 * 1e-10 + (20 * step if design["matrix"] else 0.0))
        elif method.kind == "os_lasso":
            seconds += 1e-5 * method.t0 * d + n * (1e-5 + 1e-6 * method.n_steps)
        else:
            seconds += method.n_steps * (method.times[-1] - method.t0) * step
    return float(seconds)


def _groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Cells to be run together, the longest first, lest one of them runs alone at the end.

    Those of matrices that see the same rows save more by that than by running side by side.
    """
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        together = cell.design["matrix"] and all(method.kind == "oht" for method in cell.methods)
        groups.setdefault((cell.data_seed, cell.n_rows) if together else cell.key, []).append(cell)
    return sorted(groups.values(), key=lambda group: sum(map(cost, group)), reverse=True)


def _advance(shown: Progress, group: Sequence[Cell]) -> None:
    for cell in group:
        shown.advance(cell.key, cost(cell))


def _run_in_processes(groups: Sequence[list[Cell]], store: Store, n_jobs: int, shown: Progress) -> None:
    pool = ProcessPoolExecutor(n_jobs, multiprocessing.get_context("spawn"), _leave_with_the_parent)
    try:
        running = {pool.submit(_run_and_keep, group, store): group for group in groups}
        while running:
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                done.result()
                _advance(shown, running.pop(done))
    except BaseException:
        # Cells take minutes: whoever interrupts does not want to wait for those under way.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _run_and_keep(group: Sequence[Cell], store: Store) -> None:
    began = time.time()
    found = run_together(group)
    share = (time.time() - began) / sum(map(cost, group))
    for cell, results in zip(group, found, strict=True):
        # Of the time they took together, each is given its part.
        ended = began + share * cost(cell)
        store.write(Finished(cell, results, began, ended))
        began = ended


def _leave_with_the_parent() -> None:
    """Let the parent decide about Ctrl-C, and end with it, however it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
