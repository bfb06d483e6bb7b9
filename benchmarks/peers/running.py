"""All measurements that are not there yet, one after the other."""

import tuning
from designs import SEEDS
from measuring import measure
from problems import PROBLEMS
from real import block_size, prequential, takes_part
from real_data import DATA_SETS
from registry import METHODS

from thresher._progress import Progress

# The small ones.
QUICK = ("Toeplitz 0.5, d = 200", "20 responses, 200 features, rank 4", "diabetes", "tecator")
# Rows of the real data that have more than the block of one row, for settling who takes part before they are read.
LONG = ("diamonds", "flights")


def wanted_cells(quick):
    """(problem, method, seed, setting) of every measurement; streams in the outer loop, so that each is drawn once."""
    scores = tuning.read()
    for problem in PROBLEMS.values():
        for seed in SEEDS[:1] if quick else SEEDS:
            for method in problem.methods.values():
                if not quick or problem.name in QUICK:
                    yield problem.name, method, seed, tuning.best(scores, problem, method)
    for name in DATA_SETS:
        for method in METHODS.values():
            if (not quick or name in QUICK) and takes_part(method, 10**5 if name in LONG else 0):
                yield name, method, "real", tuning.best_on(scores, name, method)


def run(store, quick):
    """Measure what is missing, with one BLAS thread and one method at a time, since times are compared."""
    wanted = list(wanted_cells(quick))
    missing = [(name, m, *rest) for name, m, *rest in wanted if store.read(name, m.name, *rest) is None]
    drawn = (None, None)
    with Progress(len(wanted) - len(missing), len(wanted), True) as progress:
        for name, method, seed, setting in missing:
            if drawn[0] != (name, seed):
                drawn = (name, seed), DATA_SETS[name]() if seed == "real" else PROBLEMS[name].draw(seed)
            if seed == "real":
                X, y = drawn[1].X, drawn[1].y
                records = [prequential(method, setting, X, y, block_size(len(y)))]
            else:
                records = measure(method, setting, *drawn[1], checkpoints=PROBLEMS[name].checkpoints)
            store.write(name, method.name, seed, setting, records)
            progress.advance(f"{name}, {method.name}")
