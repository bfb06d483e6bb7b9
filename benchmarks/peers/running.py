"""All measurements that are not there yet, in two processes: rows of numbers in one, everything else in the other."""

from concurrent.futures import ProcessPoolExecutor, wait
from itertools import groupby
from multiprocessing import get_context

import tuning
from designs import DESIGNS, seeds
from measuring import measure
from problems import PROBLEMS
from real import block_size, prequential, takes_part
from real_data import DATA_SETS
from registry import METHODS

from thresher._progress import Progress

# The small ones.
QUICK = ("Toeplitz 0.5, d = 200", "20 responses, 200 features, rank 4", "diabetes", "tecator")
# Real data with more than 20,000 rows.
LONG = ("diamonds", "flights")


def wanted_cells(quick):
    """(problem, method, seed, setting) of every measurement; streams in the outer loop, so that each is drawn once."""
    scores = tuning.read()
    for problem in PROBLEMS.values():
        for seed in seeds(problem.name)[: 1 if quick else None]:
            for method in problem.methods.values():
                if not quick or problem.name in QUICK:
                    yield problem.name, method, seed, tuning.best(scores, problem, method)
    for name in DATA_SETS:
        for method in METHODS.values():
            if (not quick or name in QUICK) and takes_part(method, 10**5 if name in LONG else 0):
                yield name, method, "real", tuning.best_on(scores, name, method)


def missing_cells(store, quick):
    return [(name, m, *rest) for name, m, *rest in wanted_cells(quick) if store.read(name, m.name, *rest) is None]


def run(store, quick):
    """Measure what is missing; times are compared within a process, which has one thread."""
    n_wanted, left = len(list(wanted_cells(quick))), len(missing_cells(store, quick))
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        Progress(n_wanted - left, n_wanted, True) as progress,
    ):
        lanes = [pool.submit(run_lane, store, quick, vectors) for vectors in (True, False)]
        while left:
            done = wait(lanes, timeout=2.0).done
            still = missing_cells(store, quick)
            if len(still) < left:
                progress.advance(f"next: {still[0][0]}" if still else "done", left - len(still), left - len(still))
            left = len(still)
            if len(done) == len(lanes):
                break
        for lane in lanes:
            lane.result()  # raises what went wrong


def run_lane(store, quick, vectors):
    """One half of the measurements, one after the other."""
    cells = [cell for cell in missing_cells(store, quick) if (cell[0] in DESIGNS) == vectors]
    for (name, seed), group in groupby(cells, key=lambda cell: (cell[0], cell[2])):
        data = DATA_SETS[name]() if seed == "real" else PROBLEMS[name].draw(seed)
        for _, method, _, setting in group:
            if seed == "real":
                records = [prequential(method, setting, data.X, data.y, block_size(len(data.y)))]
            else:
                records = measure(method, setting, *data, checkpoints=PROBLEMS[name].checkpoints)
            store.write(name, method.name, seed, setting, records)
