"""All measurements that are not there yet, in two processes that take one stream after another."""

from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from itertools import groupby
from multiprocessing import get_context

import tuning
from designs import seeds
from measuring import measure
from problems import PROBLEMS
from real import block_size, orders, prequential, reordered, takes_part
from real_data import DATA_SETS
from registry import METHODS

from thresher._progress import Progress

# The small ones.
QUICK = ("Toeplitz 0.5, d = 200", "20 responses, 200 features, rank 4", "diabetes", "tecator")
# Real data with more than 20,000 rows.
LONG = ("diamonds", "flights")
# Streams that take minutes, the longest first.
LONGEST = ("Toeplitz 0.5, d = 4000", "diamonds", "flights", "hotel", "electricity")


def wanted_cells(quick):
    """(problem, method, seed, setting) of every measurement; streams in the outer loop, so that each is drawn once."""
    scores = tuning.read()
    for problem in PROBLEMS.values():
        for seed in seeds(problem.name)[: 1 if quick else None]:
            for method in problem.methods.values():
                if not quick or problem.name in QUICK:
                    yield problem.name, method, seed, tuning.best(scores, problem, method)
    for name in DATA_SETS:
        for order in orders(name)[: 1 if quick else None]:
            for method in METHODS.values():
                if (not quick or name in QUICK) and takes_part(method, 10**5 if name in LONG else 0):
                    yield name, method, order, tuning.best_on(scores, name, method)


def missing_cells(store, quick):
    return [(name, m, *rest) for name, m, *rest in wanted_cells(quick) if store.read(name, m.name, *rest) is None]


def run(store, quick):
    """Measure what is missing; every process has one thread, and all methods on a stream run in the same process."""
    missing = missing_cells(store, quick)
    n_wanted, left = len(list(wanted_cells(quick))), len(missing)
    streams = [list(cells) for _, cells in groupby(missing, key=lambda cell: (cell[0], cell[2]))]
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        Progress(n_wanted - left, n_wanted, True) as progress,
    ):
        # The long ones first, so that no process is left alone with one at the end.
        streams.sort(key=lambda cells: LONGEST.index(cells[0][0]) if cells[0][0] in LONGEST else len(LONGEST))
        tasks = [
            pool.submit(run_stream, store, *s[0][::2], [(m.name, setting) for _, m, _, setting in s]) for s in streams
        ]
        while left:
            done = wait(tasks, timeout=2.0, return_when=FIRST_EXCEPTION).done
            still = missing_cells(store, quick)
            if len(still) < left:
                progress.advance(f"{len(still)} to go", left - len(still), left - len(still))
            left = len(still)
            if len(done) == len(tasks) or any(task.exception() for task in done):
                break
        for task in tasks:
            task.cancel()
        for task in tasks:
            if not task.cancelled():
                task.result()  # raises what went wrong


def run_stream(store, name, seed, wanted):
    """The measurements of some methods, by name, with their settings, on one stream, one after the other."""
    real = name in DATA_SETS
    methods = METHODS if real else PROBLEMS[name].methods
    data = reordered(DATA_SETS[name](), seed) if real else PROBLEMS[name].draw(seed)
    for method, setting in ((methods[method], setting) for method, setting in wanted):
        if real:
            records = [prequential(method, setting, *data, block_size(len(data[1])))]
        else:
            records = measure(method, setting, *data, checkpoints=PROBLEMS[name].checkpoints)
        store.write(name, method.name, seed, setting, records)
