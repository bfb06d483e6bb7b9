"""What methods that look at one row at a time share: its residual, the scale of rows, and when to stop."""

import numpy as np

from thresher._utils.compile import compiled, compiled_sums
from thresher.online._gram import Floats

# Places in the totals of a stream of single rows: how many there were, sums of squares of the responses and of the
# errors of one-step-ahead predictions, the largest squared length of a row.
N_ROWS, SUM_YY, SUM_ERRORS, LENGTH = 0, 1, 2, 3
N_TOTALS = 4

# An estimate has diverged when a prediction is so many times larger than the root mean square of the responses, ...
ABSURD = 1e4
# ... or when predictions have been, in the mean square, so many times worse than zeros.
HOPELESS = 1e4


@compiled_sums
def along(X: Floats, i: int, coef: Floats) -> float:
    """Row i of X times coef."""
    total = 0.0
    for j in range(coef.shape[0]):
        total += X[i, j] * coef[j]
    return total


@compiled_sums
def squared_length(X: Floats, i: int) -> float:
    """The squared length of row i."""
    total = 0.0
    for j in range(X.shape[1]):
        total += X[i, j] * X[i, j]
    return total


@compiled
def is_sane(prediction: float, n_rows: float, squares: float, errors: float) -> bool:
    """Whether an estimate that predicts this, after such sums of squares over `n_rows` rows, has not diverged."""
    return bool(abs(prediction) * np.sqrt(n_rows) <= ABSURD * np.sqrt(squares) and errors <= HOPELESS * squares)


@compiled
def take_row(X: Floats, y: Floats, i: int, coef: Floats, totals: Floats) -> float:
    """Count row i and return its residual x'coef - y; NaN, and nothing is counted, if the estimate has diverged.

    So it does if the square of the gradient would overflow.
    """
    prediction, length = along(X, i, coef), squared_length(X, i)
    error = float(prediction - y[i])
    n_rows, squares, errors = totals[N_ROWS] + 1.0, totals[SUM_YY] + y[i] * y[i], totals[SUM_ERRORS] + error * error
    if not (is_sane(prediction, n_rows, squares, errors) and error * error * length < np.inf):
        return np.nan
    totals[N_ROWS], totals[SUM_YY], totals[SUM_ERRORS] = n_rows, squares, errors
    totals[LENGTH] = max(totals[LENGTH], length)
    return error
