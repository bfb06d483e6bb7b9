"""PySINDy's sequentially thresholded least squares (STLSQ) on the same samples, each of its settings at its best.

Run as a script, it tries every setting of the grid below on streams of other seeds, with the true equations in
hand, and keeps the best for each system and noise level in docs/benchmarks/dynamics_stlsq.json. Some minutes; needs
PySINDy:

    pip install pysindy==2.1.0
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from dynamics_learner import Dynamics, Equation, Library, judge
from dynamics_systems import NOISES, lorenz, lorenz96, observe, trajectories

try:
    import pysindy
except ImportError:
    pysindy = None

TUNED = Path(__file__).parents[1] / "docs" / "benchmarks" / "dynamics_stlsq.json"
SEEDS = range(9000, 9004)
# Derivatives and states from PySINDy's SmoothedFiniteDifference, or rows of the weak form with the test function of its
# WeakPDELibrary; ours tile the stream, while PySINDy's windows are drawn at random and overlap. Windows in samples.
PREPARATIONS = [("smoothed", w) for w in (11, 21, 31)] + [("weak", w) for w in (50, 100, 200, 300)]
THRESHOLDS = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # thresholds for normalised columns, in units of the norm of dx/dt


# As PySINDy has it, with its smoothing.
DEFAULTS = {"kind": "smoothed", "window": 11, "alpha": 0.05, "normalize": False, "threshold": 0.1}


def prepare(system, samples, kind, window, block=12_000):
    """The library and the rates, reduced to an upper triangle and what belongs to it.

    STLSQ is a sequence of least squares problems in the library Theta = Q R. Those in R and Q' rates have the same
    solutions, and take no time. Both are in the triangle of (Theta, rates), which is found block by block.
    """
    n = len(system.names)
    if kind == "weak":
        model = Dynamics(n, system.degree, system.dt, window)
        step = block // window * window
        whole = len(samples) // window * window
        parts = (model.rows(samples[i : min(i + step, whole)]) for i in range(0, whole, step))
    else:
        smooth = pysindy.SmoothedFiniteDifference(smoother_kws={"window_length": window, "polyorder": 3})
        rates = np.asarray(smooth._differentiate(samples, system.dt))
        states, library = np.asarray(smooth.smoothed_x_), Library(n, system.degree)
        parts = ((library(states[i : i + block]), rates[i : i + block]) for i in range(0, len(states), block))
    triangle = np.empty((0, len(Library(n, system.degree).terms) + n))
    for part in parts:
        triangle = np.linalg.qr(np.vstack([triangle, np.hstack(part)]), mode="r")
    return triangle[:, :-n], triangle[:, -n:]


def threshold(system, prepared, setting):
    """STLSQ with a setting of the grid."""
    r, rates = prepared
    how = {"threshold": setting["threshold"], "alpha": setting["alpha"], "normalize_columns": setting["normalize"]}
    if setting["normalize"]:
        how["threshold"] *= float(np.linalg.norm(rates, axis=0).mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where nothing is left
        coef = pysindy.STLSQ(**how).fit(r, rates).coef_
    terms = Library(len(system.names), system.degree).terms
    return [Equation([terms[j] for j in np.flatnonzero(row)], row[row != 0.0]) for row in coef]


def grid(kind):
    """All settings, thresholds in ascending order within each family of the others.

    The ridge is PySINDy's default, 0.05; with normalised columns that would be far too much, and there is next to none.
    """
    for window in (window for name, window in PREPARATIONS if name == kind):
        for normalize, alpha, values in ((False, 0.05, THRESHOLDS), (True, 1e-10, SHARES)):
            family = {"kind": kind, "window": window, "alpha": alpha, "normalize": normalize}
            yield [{**family, "threshold": value} for value in values]


def best_setting(system, noise, clean, kind):
    """Most exact equations with the threshold and the two next to it, then the least median error.

    The neighbours are there because the least threshold that does well on a few streams is close to failing on others.
    """
    prepared = {}
    for seed, trajectory in zip(SEEDS, clean, strict=True):
        samples = observe(trajectory, noise, seed)
        for window in (window for name, window in PREPARATIONS if name == kind):
            prepared[seed, window] = prepare(system, samples, kind, window)
    ranked = []
    for family in grid(kind):
        verdicts = [
            [judge(threshold(system, prepared[seed, setting["window"]], setting), system.truth) for seed in SEEDS]
            for setting in family
        ]
        right = np.array([sum(verdict.right for verdict in row) for row in verdicts])
        errors = [float(np.median([verdict.error for verdict in row])) for row in verdicts]
        around = right + np.r_[0, right[:-1]] + np.r_[right[1:], 0]
        ranked += [
            (-around[i], errors[i], {**setting, "right": int(right[i]), "error": round(errors[i], 5)})
            for i, setting in enumerate(family)
        ]
    return min(ranked, key=lambda entry: entry[:2])[2]


def tuned(system, noise, kind):
    """The saved setting, or None."""
    if kind == "default":
        return DEFAULTS
    return json.loads(TUNED.read_text()).get(f"{system.name} {noise:g} {kind}") if TUNED.exists() else None


def stlsq(system, samples, noise, kind):
    """The equations by STLSQ at its best for this noise level."""
    setting = tuned(system, noise, kind)
    return threshold(system, prepare(system, samples, setting["kind"], setting["window"]), setting)


def main():
    if pysindy is None:
        sys.exit(__doc__)
    chosen = {}
    for system in (lorenz(), lorenz96()):
        clean = trajectories(system, SEEDS)
        for noise in NOISES:
            for kind in ("smoothed", "weak"):
                key = f"{system.name} {noise:g} {kind}"
                chosen[key] = best_setting(system, noise, clean, kind)
                print(key, chosen[key], flush=True)
    TUNED.write_text(json.dumps({"pysindy": pysindy.__version__, **chosen}, indent=1) + "\n")


if __name__ == "__main__":
    main()
