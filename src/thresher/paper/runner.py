"""Cells are run side by side, and kept one by one."""

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from thresher._progress import Progress
from thresher.paper.cells import Cell
from thresher.paper.machine import machine, software
from thresher.paper.running import run_together
from thresher.paper.store import Finished, Store


class FailedCellsError(RuntimeError):
    """Some cells could not be run; all others are kept."""


def run_cells(
    cells: Sequence[Cell], directory: Path, n_jobs: int | None = None, progress: bool | None = None
) -> list[Finished]:
    """Run those cells that the directory does not have yet, and return all of them in the order given.

    Whatever ends it, finished cells stay, and the same call goes on with the others. Cells that are run together are
    also run together when one of them is missing, so that the results do not depend on interruptions.

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
    groups = [group for group in _groups(cells) if any(store.read(cell) is None for cell in group)]
    n_due, due = sum(map(len, groups)), sum(cost(cell) for group in groups for cell in group)
    n_jobs = max(1, min(n_jobs or os.cpu_count() or 1, len(groups)))
    total = sum(map(cost, cells))
    failures: dict[str, Exception] = {}
    with Progress(len(cells) - n_due, len(cells), progress, total - due, total, pace=1.0 / n_jobs) as shown:
        run = _in_processes(groups, store, n_jobs) if n_jobs > 1 else _in_this_process(groups, store)
        for group, failure in run:
            shown.advance(_names(group), sum(map(cost, group)), len(group))
            if failure is not None:
                failures[_names(group)] = failure
    if failures:
        told = "; ".join(f"{names}: {type(error).__name__}: {error}" for names, error in failures.items())
        raise FailedCellsError(f"Not all cells could be run. {told}") from next(iter(failures.values()))
    return [finished for cell in cells if (finished := store.read(cell))]


def _names(group: Sequence[Cell]) -> str:
    return group[0].key if len(group) == 1 else f"{group[0].key} and {len(group) - 1} more"


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
    ordered = sorted(groups.values(), key=lambda group: sum(map(cost, group)), reverse=True)
    # One of each kind goes first: on a new machine they compile different functions, once instead of everywhere.
    kinds = [group[0].design["matrix"] for group in ordered]
    first = sorted({kinds.index(kind) for kind in kinds})
    return [ordered[i] for i in first] + [group for i, group in enumerate(ordered) if i not in first]


def _in_this_process(groups: Sequence[list[Cell]], store: Store) -> Iterator[tuple[list[Cell], Exception | None]]:
    for group in groups:
        failure = None
        try:
            _run_and_keep(group, store)
        except Exception as error:
            failure = error
        yield group, failure


def _in_processes(
    groups: Sequence[list[Cell]], store: Store, n_jobs: int
) -> Iterator[tuple[list[Cell], Exception | None]]:
    pool = ProcessPoolExecutor(n_jobs, multiprocessing.get_context("spawn"), _leave_with_the_parent)
    try:
        running = {pool.submit(_run_and_keep, group, store): group for group in groups}
        while running:
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                failure = done.exception()
                if isinstance(failure, BrokenProcessPool):
                    raise failure
                yield running.pop(done), failure if isinstance(failure, Exception) else None
    except BaseException:
        # Cells take minutes: whoever interrupts does not want to wait for those under way.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _run_and_keep(group: Sequence[Cell], store: Store) -> None:
    began = time.time()
    with warnings.catch_warnings():
        # A lasso on a batch of twenty rows is what the paper's baseline is made of, converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = run_together(group)
    share = (time.time() - began) / sum(map(cost, group))
    for cell, results in zip(group, found, strict=True):
        # Of the time they took together, each is given its part.
        ended = began + share * cost(cell)
        store.write(Finished(cell, results, began, ended, machine(), software()))
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
