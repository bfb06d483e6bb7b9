"""One method on one synthetic stream: error, time and memory at the checkpoints."""

import warnings
from time import process_time

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

# Consecutive rows that are timed before a checkpoint if a method can skip the others.
WINDOW = 100
# Rows from which a method learns before it is timed.
WARM_UP = 600
# Larger coefficients are on their way to infinity, and no two programs agree on them.
DIVERGED = 1e3


def measure(method, setting, X, y, truth, new=None, *, checkpoints, window=WINDOW):
    """A record for each checkpoint; `new` are rows to predict.

    Where rows can be skipped without changing later estimates, the last `window` rows before a checkpoint are
    learned one by one and timed, and stand for the others since the checkpoint before. Times are processor time, which
    other programs on the machine disturb least.
    """
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # pursuit ends early, gradients overflow
        warm_up(method, X, y, **setting)
        learner, seconds, formatting, start, records = method.make(X.shape[1], **setting), 0.0, 0.0, 0, []
        for stop in checkpoints:
            first = max(start, stop - window) if learner.can_skip else start
            if first > start:
                learner.skip(X[start:first], y[start:first])
            elsewhere, began = learner.seconds_formatting, process_time()
            learner.learn(X[first:stop], y[first:stop])
            learned = process_time()
            learner.estimate()
            estimated = process_time()
            elsewhere = learner.seconds_formatting - elsewhere
            per_row = (learned - began - elsewhere) / (stop - first)
            refit = estimated - learned if method.estimates == "checkpoint" else 0.0
            seconds += per_row * (stop - start) + refit
            formatting += elsewhere / (stop - first) * (stop - start)
            if hasattr(learner, "catch_up"):
                apart, size = learner.catch_up(X[first:stop], y[first:stop]), np.abs(learner.coef).max()
                assert apart <= 1e-7 * max(size, 1.0) or size > DIVERGED, f"{method.name}: {apart} from its twin"
            records.append(
                record(learner, truth, new)
                | {
                    "t": stop,
                    "seconds": seconds,
                    "microseconds_per_row": 1e6 * seconds / stop,
                    "formatting_per_row": 1e6 * formatting / stop,
                    "state_bytes": learner.state_bytes(),
                }
            )
            start = stop
    return records


def warm_up(method, X, y, **setting):
    """Compile and import, so that it is not timed."""
    learner = method.make(X.shape[1], **setting)
    learner.learn_block(X[:WARM_UP], y[:WARM_UP])
    learner.learn(X[WARM_UP : WARM_UP + 20], y[WARM_UP : WARM_UP + 20])
    learner.estimate()


def record(learner, truth, new=None):
    """How close the estimate and its predictions are, and which features it uses, or its rank."""
    error = float(((learner.coef - truth) ** 2).sum())
    if truth.ndim == 2:
        return {"squared_error": error, "rank": int(np.linalg.matrix_rank(learner.coef))}
    found, true = np.flatnonzero(learner.coef), np.flatnonzero(truth)
    hits = len(np.intersect1d(found, true))
    predicted = {} if new is None else {"prediction_error": float(((new @ (learner.coef - truth)) ** 2).mean())}
    return {
        "squared_error": error,
        **predicted,
        "nonzeros": len(found),
        "precision": hits / len(found) if len(found) else 1.0,
        "recall": hits / len(true) if len(true) else 1.0,
    }
