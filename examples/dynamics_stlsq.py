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
SEEDS = range(9000, 9003)
# Derivatives and states from PySINDy's SmoothedFiniteDifference, or the weak form as in its WeakPDELibrary (the same
# test function; its integrals over thousands of windows would take an hour here); windows in samples.
PREPARATIONS = [("smoothed", w) for w in (7, 11, 21, 31, 51)] + [("weak", w) for w in (24, 50, 100, 200, 300)]
THRESHOLDS = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # thresholds for normalised columns, in units of the norm of dx/dt
ALPHAS = (1e-10, 0.05)  # the ridge; 0.05 is PySINDy's default


# As PySINDy has it, with its smoothing.
DEFAULTS = {"kind": "smoothed", "window": 11, "alpha": 0.05, "normalize": False, "threshold": 0.1}


def prepare(system, samples, kind, window):
    """The library and the rates, reduced to an upper triangle and what belongs to it.

    STLSQ is a sequence of least squares problems in the library Theta = Q R. Those in R and Q' rates have the same
    solutions, and take no time.
    """
    if kind == "weak":
        n = len(samples) // window * window
        theta, rates = Dynamics(len(system.names), system.degree, system.dt, window).rows(samples[:n])
    else:
        smooth = pysindy.SmoothedFiniteDifference(smoother_kws={"window_length": window, "polyorder": 3})
        rates = np.asarray(smooth._differentiate(samples, system.dt))
        theta = Library(len(system.names), system.degree)(np.asarray(smooth.smoothed_x_))
    q, r = np.linalg.qr(theta)
    return r, q.T @ rates


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


def grid():
    for kind, window in PREPARATIONS:
        for alpha in ALPHAS:
            for normalize, values in ((False, THRESHOLDS), (True, SHARES)):
                for value in values:
                    yield {
                        "kind": kind, "window": window, "alpha": alpha, "normalize": normalize, "threshold": value
                    }  # fmt: skip


def best_setting(system, noise, clean, kind):
    """Most exact equations over the seeds for tuning, then the least median error of the coefficients."""
    scores = {}
    for seed, trajectory in zip(SEEDS, clean, strict=True):
        samples, prepared = observe(trajectory, noise, seed), {}
        for i, setting in enumerate(grid()):
            if setting["kind"] != kind:
                continue
            if setting["window"] not in prepared:
                prepared = {setting["window"]: prepare(system, samples, kind, setting["window"])}
            scores.setdefault(i, []).append(
                judge(threshold(system, prepared[setting["window"]], setting), system.truth)
            )
    best = min(scores, key=lambda i: (-sum(s.right for s in scores[i]), np.median([s.error for s in scores[i]])))
    right, error = sum(s.right for s in scores[best]), float(np.median([s.error for s in scores[best]]))
    return {**list(grid())[best], "right": right, "error": round(error, 4)}


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
