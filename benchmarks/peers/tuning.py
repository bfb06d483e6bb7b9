"""The best setting of every method: the least error on streams that are not reported.

    python benchmarks/peers tune        # hours; goes on where it was, and writes tuned.json

For synthetic data, the score is the geometric mean of the squared errors at the last two checkpoints, over two streams
(one for the slow methods). For real data it is R2 on the stream itself: all for quick methods, the first 5000 rows
for the others. Where the best setting lies at an end of the grid, the grid is continued there.
"""

import json
import math
from pathlib import Path

from designs import TUNING_SEEDS
from grids import complete
from measuring import measure
from problems import PROBLEMS
from real import TUNING_ROWS, block_size, prequential, takes_part
from real_data import DATA_SETS
from registry import METHODS

PATH = Path(__file__).with_name("tuned.json")
DIVERGED = 1e300


def read(path=PATH):
    return json.loads(path.read_text()) if path.exists() else {}


# -- drawn rows ----------------------------------------------------------------------------------------------


def tune(problems=tuple(PROBLEMS), methods=None, path=PATH):
    """Complete the file of scores."""
    scores = read(path)
    for problem in (PROBLEMS[name] for name in problems):
        data = {}
        for method in problem.methods.values():
            if len(method.settings()) == 1 or method.like or (methods and method.name not in methods):
                continue
            if tuned_on(problem, method) != problem.name:
                continue
            by_seed = scores.setdefault(problem.name, {}).setdefault(method.name, {})
            for seed in TUNING_SEEDS[: 1 if method.slow else None]:
                by_seed.setdefault(str(seed), {})

            def score(setting, problem=problem, method=method, by_seed=by_seed, data=data):
                for seed, done in by_seed.items():
                    if json.dumps(setting) not in done:
                        data[seed] = data.get(seed) or problem.draw(int(seed))
                        records = measure(method, setting, *data[seed], checkpoints=problem.checkpoints, window=1)
                        errors = [record["squared_error"] for record in records[-2:]]
                        error = math.exp(sum(map(math.log, errors)) / len(errors))
                        keep(done, setting, error if math.isfinite(error) else DIVERGED, scores, path)
                        print(f"{problem.name}  {method.name}  {seed}  {setting}  {error:.5g}", flush=True)

            complete(
                method.settings(),
                lambda by_seed=by_seed: scored(by_seed),
                score,
                lambda problem=problem, method=method: best(scores, problem, method),
            )


def keep(done, setting, value, scores, path):
    done[json.dumps(setting)] = value
    path.write_text(json.dumps(scores, indent=1) + "\n")


def scored(by_seed):
    """Keys of the settings that were scored on all streams, in the order in which they were."""
    first, *others = by_seed.values()
    return [key for key in first if all(key in other for other in others)]


def tuned_on(problem, method):
    return problem.name if method.takes_steps else problem.tuned_on


def known(scores, name, method):
    """The scores of a method on a problem."""
    found = scores.get(name, {}).get(method.name)
    if not found:
        raise SystemExit(f"{method.name!r} is not tuned on {name!r}; run: python benchmarks/peers tune")
    return found


def best(scores, problem, method):
    """The setting of a method for a problem."""
    if method.like:
        return best(scores, problem, problem.methods[method.like])
    if len(method.settings()) == 1:
        return method.settings()[0]
    by_seed = known(scores, tuned_on(problem, method), method)
    return json.loads(min(scored(by_seed), key=lambda key: sum(math.log(done[key]) for done in by_seed.values())))


# -- real data -----------------------------------------------------------------------------------------------


def tune_on(names=tuple(DATA_SETS), methods=None, path=PATH):
    """The same for real data."""
    scores = read(path)
    for name in names:
        data = DATA_SETS[name]()
        block = block_size(len(data.y))
        for method in METHODS.values():
            if len(method.settings(real=True)) == 1 or method.like or not takes_part(method, len(data.y)):
                continue
            if methods and method.name not in methods:
                continue
            done = scores.setdefault(name, {}).setdefault(method.name, {})

            n = len(data.y) if method.quick else TUNING_ROWS

            def score(setting, name=name, method=method, done=done, rows=(data.X[:n], data.y[:n], block)):
                r2 = prequential(method, setting, *rows)["r2"]
                keep(done, setting, r2 if math.isfinite(r2) else -DIVERGED, scores, path)
                print(f"{name}  {method.name}  {setting}  {r2:.5g}", flush=True)

            complete(
                method.settings(real=True),
                lambda done=done: list(done),
                score,
                lambda name=name, method=method: best_on(scores, name, method),
            )


def best_on(scores, name, method):
    """The setting of a method for real data."""
    if method.like:
        return best_on(scores, name, METHODS[method.like])
    if len(method.settings(real=True)) == 1:
        return method.settings(real=True)[0]
    done = known(scores, name, method)
    return json.loads(max(done, key=done.__getitem__))
