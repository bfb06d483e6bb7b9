"""The best setting of every method: the least error on streams that are not reported.

    python benchmarks/peers tune        # hours; goes on where it was, and writes tuned.json

For synthetic data, the score is the geometric mean of the squared errors at the last two checkpoints, over two streams
(one for the slow methods). For real data it is R2 over the first 5000 rows of the stream itself.
"""

import json
import math
from pathlib import Path

from designs import TUNING_SEEDS
from measuring import measure
from problems import PROBLEMS
from real import TUNING_ROWS, block_size, prequential, takes_part
from real_data import DATA_SETS
from registry import METHODS

PATH = Path(__file__).with_name("tuned.json")
DIVERGED = 1e300


def read(path=PATH):
    return json.loads(path.read_text()) if path.exists() else {}


def tune(problems=tuple(PROBLEMS), methods=None, path=PATH):
    """Complete the file of scores."""
    scores = read(path)
    for problem in (PROBLEMS[name] for name in problems):
        for seed in TUNING_SEEDS:
            data = None
            for method in problem.methods.values():
                if len(method.settings()) == 1 or method.like or (method.slow and seed != TUNING_SEEDS[0]):
                    continue
                if (methods and method.name not in methods) or tuned_on(problem, method) != problem.name:
                    continue
                done = scores.setdefault(problem.name, {}).setdefault(method.name, {}).setdefault(str(seed), {})
                for setting in method.settings():
                    key = json.dumps(setting)
                    if key in done:
                        continue
                    data = data or problem.draw(seed)
                    records = measure(method, setting, *data, checkpoints=problem.checkpoints, window=1)
                    errors = [r["squared_error"] for r in records[-2:]]
                    score = math.exp(sum(map(math.log, errors)) / len(errors))
                    done[key] = score if math.isfinite(score) else DIVERGED
                    print(f"{problem.name}  {method.name}  {seed}  {key}  {done[key]:.5g}", flush=True)
                    path.write_text(json.dumps(scores, indent=1) + "\n")


def tuned_on(problem, method):
    return problem.name if method.takes_steps else problem.tuned_on


def best(scores, problem, method):
    """The setting of a method for a problem."""
    if method.like:
        return best(scores, problem, problem.methods[method.like])
    if len(method.settings()) == 1:
        return method.settings()[0]
    by_seed = scores[tuned_on(problem, method)][method.name].values()
    return min(method.settings(), key=lambda setting: sum(math.log(seed[json.dumps(setting)]) for seed in by_seed))


def tune_on(names=tuple(DATA_SETS), methods=None, path=PATH):
    """The same for real data."""
    scores = read(path)
    for name in names:
        data = DATA_SETS[name]()
        X, y, block = data.X[:TUNING_ROWS], data.y[:TUNING_ROWS], block_size(len(data.y))
        for method in METHODS.values():
            if len(method.settings(real=True)) == 1 or method.like or not takes_part(method, len(data.y)):
                continue
            if methods and method.name not in methods:
                continue
            done = scores.setdefault(name, {}).setdefault(method.name, {})
            for setting in method.settings(real=True):
                key = json.dumps(setting)
                if key not in done:
                    r2 = prequential(method, setting, X, y, block)["r2"]
                    done[key] = r2 if math.isfinite(r2) else -DIVERGED
                    print(f"{name}  {method.name}  {key}  {done[key]:.5g}", flush=True)
                    path.write_text(json.dumps(scores, indent=1) + "\n")


def best_on(scores, name, method):
    """The setting of a method for real data."""
    if method.like:
        return best_on(scores, name, METHODS[method.like])
    if len(method.settings(real=True)) == 1:
        return method.settings(real=True)[0]
    return max(method.settings(real=True), key=lambda setting: scores[name][method.name][json.dumps(setting)])
