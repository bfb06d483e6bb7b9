"""What methods that look at one row at a time share: its residual, and when to stop."""

import numpy as np

from thresher.kernels._compile import compiled, compiled_sums
from thresher.kernels.gram import Floats

# Places in the totals of a stream of single rows.
N_ROWS, SUM_YY, LENGTH = 0, 1, 2
N_TOTALS = 3

# An estimate has diverged when a prediction is this many times larger than the root mean square of the responses.
ABSURD = 1e8


@compiled_sums
def along(X: Floats, i: int, coef: Floats) -> float:
    """Row i of X times coef."""
    total = 0.0
    for j in range(coef.shape[0]):
        total += X[i, j] * coef[j]
    return total


@compiled
def take_row(X: Floats, y: Floats, i: int, coef: Floats, totals: Floats) -> float:
    """Count row i and return its residual x'coef - y; NaN, and nothing is counted, if the estimate has diverged.

    The squared length of the first row that is not zero is kept, as the scale by which step sizes are chosen.
    """
    prediction = along(X, i, coef)
    squares = totals[SUM_YY] + y[i] * y[i]
    if not prediction * prediction * (totals[N_ROWS] + 1.0) <= ABSURD * ABSURD * squares:
        return np.nan
    if totals[LENGTH] == 0.0:
        for j in range(X.shape[1]):
            totals[LENGTH] += X[i, j] * X[i, j]
    totals[N_ROWS] += 1.0
    totals[SUM_YY] = squares
    return float(prediction - y[i])
