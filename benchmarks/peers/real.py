"""Real data, test then train: every method predicts the next rows before it learns them."""

import warnings
from time import process_time

import numpy as np
from measuring import warm_up
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

# Methods are tuned on so many rows from the beginning of the stream.
TUNING_ROWS = 5000
# Predictions count from here on; before, a method may find its feet.
FIRST = 100
# Beyond so many rows a method takes minutes for every fit.
MOST_ROWS = {"skscope refit": 20_000, "abess refit, automatic": 100_000}
# Of short streams in no order of their own, the median over so many orders counts.
N_ORDERS = {"diabetes": 5, "tecator": 5, "ames": 5}


def orders(name):
    return [f"order {k}" for k in range(N_ORDERS.get(name, 1))]


def reordered(data, order):
    """Rows and responses: as they are in the first order, shuffled in the others."""
    k = int(order.split()[-1])
    rows = np.random.default_rng(k).permutation(len(data.y)) if k else slice(None)
    return data.X[rows], data.y[rows]


def block_size(n_rows):
    """Rows that are predicted together, and then learned."""
    return 1 if n_rows <= 1000 else 10 if n_rows <= 20_000 else 100


def takes_part(method, n_rows):
    """Whether a method runs on a stream of this length.

    Calls of another size give the same predictions, or nearly, and some take minutes per fit on long streams.
    """
    return not method.name.endswith(("row by row", "in blocks")) and n_rows <= MOST_ROWS.get(method.name, n_rows)


def prequential(method, setting, X, y, block):
    """R2 over the stream and features used; refitting methods refit whenever rows have doubled.

    One row far from all others makes any linear model predict what nobody would believe, and one such prediction is all
    that R2 then shows. So predictions of all methods are clipped to the range of the responses so far.
    """
    predicted, baseline = np.zeros(len(y)), np.zeros(len(y))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # pursuit ends early, gradients overflow
        warm_up(method, X, y, real=True, **setting)
        learner, total, next_fit, ready = method.make(X.shape[1], real=True, **setting), 0.0, 25, False
        began = process_time()
        for start in range(0, len(y), block):
            rows = slice(start, start + block)
            baseline[rows] = total / start if start else 0.0
            if ready:  # within what has been seen, as Vowpal Wabbit does by itself
                predicted[rows] = np.clip(learner.predict(X[rows]), y[:start].min(), y[:start].max())
            else:
                predicted[rows] = baseline[rows]
            learner.learn_block(X[rows], y[rows])
            total += y[rows].sum()
            seen = min(start + block, len(y))
            if method.estimates != "checkpoint":
                ready = True
            elif seen >= next_fit:
                learner.estimate()
                ready, next_fit = True, 2 * seen
        seconds = process_time() - began - learner.seconds_formatting
        learner.estimate()
    counted = slice(FIRST, None)
    residual, spread = (y - predicted)[counted], (y - baseline)[counted]
    return {
        "r2": float(1.0 - (residual @ residual) / (spread @ spread)),
        "nonzeros": int(np.count_nonzero(learner.coef)),
        "microseconds_per_row": 1e6 * seconds / len(y),
        "state_bytes": learner.state_bytes(),
    }
