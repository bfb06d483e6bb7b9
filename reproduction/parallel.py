"""Cells are run in parallel processes, and each is saved when it is finished."""

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

from sklearn.exceptions import ConvergenceWarning

from reproduction.cells import Cell
from reproduction.machine import machine, software
from reproduction.run_cell import run_together
from reproduction.store import Finished, Store
from thresher._utils.run_progress import Progress


class FailedCellsError(RuntimeError):
    """Some cells could not be run; all others are saved."""


def run_cells(
    cells: Sequence[Cell], directory: Path, n_jobs: int | None = None, progress: bool | None = None
) -> list[Finished]:
    """Run those cells that the directory does not have yet, and return all of them in the order given.

    Finished cells are saved one by one, so an interrupted call can be repeated and runs only the others. Cells that are
    run together are also run together when only one of them is missing, so results do not depend on interruptions.

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
    n_left, left = sum(map(len, groups)), sum(cost(cell) for group in groups for cell in group)
    n_jobs = max(1, min(n_jobs or os.cpu_count() or 1, len(groups)))
    total = sum(map(cost, cells))
    failures: dict[str, Exception] = {}
    with Progress(len(cells) - n_left, len(cells), progress, total - left, total, pace=1.0 / n_jobs) as shown:
        run = _in_processes(groups, store, n_jobs) if n_jobs > 1 else _in_this_process(groups, store)
        for group, failure in run:
            shown.advance(_names(group), sum(map(cost, group)), len(group))
            if failure is not None:
                failures[_names(group)] = failure
    if failures:
        listed = "; ".join(f"{names}: {type(error).__name__}: {error}" for names, error in failures.items())
        raise FailedCellsError(f"Some cells failed. {listed}") from next(iter(failures.values()))
    return [finished for cell in cells if (finished := store.read(cell))]


def _names(group: Sequence[Cell]) -> str:
    return group[0].key if len(group) == 1 else f"{group[0].key} and {len(group) - 1} more"


def cost(cell: Cell) -> float:
    """Roughly how many seconds it takes on one processor."""
    design, n = cell.design, cell.n_rows
    d1, d2 = design["shape"] if design["matrix"] else (design["n_features"], 1)
    d = d1 * d2
    step = 60e-6 + 1e-10 * d**2 if design["matrix"] else 1e-6 + 1e-9 * d
    seconds = n * 1e-11 * d**2
    for method in cell.methods:
        if method.kind == "default":
            seconds += method.times[-1] * (d**2 * 1e-10 + (20 * step if design["matrix"] else 0.0))
        elif method.kind == "l1":
            seconds += method.n_steps * n * d**2 * 1e-9
        elif method.kind == "offline":
            seconds += len(method.times) * (0.01 + d**2 * 1e-8)
        elif method.kind == "os_lasso":
            seconds += 1e-5 * method.t0 * d + n * (1e-5 + 1e-6 * method.n_steps)
        else:
            seconds += method.n_steps * (method.times[-1] - method.t0) * step
    return float(seconds)


def _groups(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Group cells that are run together, vectors first and seed by seed, and then the longest groups first.

    So an interrupted run leaves what is complete for the first seeds. Cells of matrices that see the same rows are
    faster together than in parallel.
    """
    groups: dict[tuple[int, int] | str, list[Cell]] = {}
    for cell in cells:
        together = cell.design["matrix"] and all(method.kind == "oht" for method in cell.methods)
        groups.setdefault((cell.data_seed, cell.n_rows) if together else cell.key, []).append(cell)
    return sorted(groups.values(), key=lambda group: (group[0].design["matrix"], group[0].seed, -sum(map(cost, group))))


def _in_this_process(groups: Sequence[list[Cell]], store: Store) -> Iterator[tuple[list[Cell], Exception | None]]:
    for group in groups:
        failure = None
        try:
            _run_and_save(group, store)
        except Exception as error:
            failure = error
        yield group, failure


def _in_processes(
    groups: Sequence[list[Cell]], store: Store, n_jobs: int
) -> Iterator[tuple[list[Cell], Exception | None]]:
    pool = ProcessPoolExecutor(n_jobs, multiprocessing.get_context("spawn"), _end_with_parent)
    try:
        running = {pool.submit(_run_and_save, group, store): group for group in groups}
        while running:
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                failure = done.exception()
                if isinstance(failure, BrokenProcessPool):
                    raise failure
                yield running.pop(done), failure if isinstance(failure, Exception) else None
    except BaseException:
        # Cells take minutes: an interrupt does not wait for those that are running.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _run_and_save(group: Sequence[Cell], store: Store) -> None:
    began = time.time()
    with warnings.catch_warnings():
        # The paper's baseline fits a lasso to as few as twenty rows, which need not converge.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = run_together(group)
    share = (time.time() - began) / sum(map(cost, group))
    for cell, results in zip(group, found, strict=True):
        # The time is divided among the cells in proportion to their cost.
        ended = began + share * cost(cell)
        store.write(Finished(cell, results, began, ended, machine(), software()))
        began = ended


def _end_with_parent() -> None:
    """Leave Ctrl-C to the parent, and end when it ends, for whatever reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
