"""All measurements that are not there yet, in processes that take one stream after another."""

import signal
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import groupby
from multiprocessing import get_context

import tuning
from designs import seeds
from measuring import measure
from problems import PROBLEMS
from real import block_size, orders, prequential, reordered, takes_part
from real_data import DATA_SETS
from registry import METHODS

from thresher._utils.run_progress import Progress

# The small ones.
QUICK = ("Toeplitz 0.5, d = 200", "20 responses, 200 features, rank 4", "diabetes", "tecator")
# Rows of the real data with more than 20,000.
LONG = {"diamonds": 53_920, "flights": 327_346}
# Seconds between looks at what is finished, which take a while.
POLL = 20.0
# Seconds for each method on streams that take minutes, and on the others, roughly: for the order and the time left.
SECONDS, OTHERS = {"Toeplitz 0.5, d = 4000": 20, "diamonds": 11, "flights": 50, "hotel": 11, "electricity": 9}, 2


def wanted_cells(quick, problems=None, methods=None):
    """(problem, method, seed, setting) of every measurement; streams in the outer loop, so that each is drawn once.

    `problems` and `methods` are names, None for all; the method "ours" stands for all of ours.
    """
    scores = tuning.read()

    def takes(problem, method):
        own = methods is not None and "ours" in methods and method.name.startswith("thresher")
        return (problems is None or problem in problems) and (methods is None or own or method.name in methods)

    for problem in PROBLEMS.values():
        for seed in seeds(problem.name)[: 1 if quick else None]:
            for method in problem.methods.values():
                if (not quick or problem.name in QUICK) and takes(problem.name, method):
                    yield problem.name, method, seed, tuning.best(scores, problem, method)
    for name in DATA_SETS:
        for order in orders(name)[: 1 if quick else None]:
            for method in METHODS.values():
                if (not quick or name in QUICK) and takes_part(method, LONG.get(name, 0)) and takes(name, method):
                    yield name, method, order, tuning.best_on(scores, name, method)


def missing(store, cells):
    return [(name, m, *rest) for name, m, *rest in cells if store.read(name, m.name, *rest) is None]


def work(cells):
    """About how many seconds they take."""
    return sum(SECONDS.get(name, OTHERS) for name, *_ in cells)


def run(store, wanted, n_processes=2):
    """Measure what is missing; every process has one thread, and all methods on a stream run in the same process."""
    left, total = missing(store, wanted), work(wanted)
    streams = [list(cells) for _, cells in groupby(left, key=lambda cell: (cell[0], cell[2]))]
    # The long ones first, so that no process is left alone with one at the end.
    streams.sort(key=work, reverse=True)
    failures = []
    pool = ProcessPoolExecutor(n_processes, mp_context=get_context("spawn"), initializer=die_when_interrupted)
    with Progress(len(wanted) - len(left), len(wanted), True, total - work(left), total) as progress:
        try:
            tasks = [
                pool.submit(
                    run_stream, store, *cells[0][::2], [(method.name, setting) for _, method, _, setting in cells]
                )
                for cells in streams
            ]
            while tasks:
                done, tasks = wait(tasks, timeout=POLL, return_when=FIRST_COMPLETED)
                failures += [failure for task in done for failure in task.result()]
                still = missing(store, wanted)
                if len(still) < len(left):
                    progress.advance(f"{len(still)} to go", work(left) - work(still), len(left) - len(still))
                left = still
        finally:
            pool.shutdown(cancel_futures=True)
    if failures:
        raise SystemExit("\n".join(["These failed; the others are kept:", *failures]))


def die_when_interrupted():
    """Ctrl-C ends a worker at once: what is finished is on disk."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_stream(store, name, seed, wanted):
    """Measure some methods, by name, with their settings, on one stream, one after the other. Returns what failed."""
    real = name in DATA_SETS
    methods = METHODS if real else PROBLEMS[name].methods
    data = reordered(DATA_SETS[name](), seed) if real else PROBLEMS[name].draw(seed)
    failures = []
    for method, setting in ((methods[method], setting) for method, setting in wanted):
        try:
            if real:
                records = [prequential(method, setting, *data, block_size(len(data[1])))]
            else:
                records = measure(method, setting, *data, checkpoints=PROBLEMS[name].checkpoints)
        except Exception as error:
            failures.append(f"{name}, {seed}, {method.name}, {setting}: {error!r}")
        else:
            store.write(name, method.name, seed, setting, records)
    return failures
