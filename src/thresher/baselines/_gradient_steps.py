"""Batches of proximal gradient steps for several penalties and columns at once, on bare arrays."""

import numpy as np
from numpy.typing import NDArray

from thresher._utils.compile import compiled, compiled_sums
from thresher.baselines._single_rows import is_sane, squared_length
from thresher.baselines._soft_threshold import soft

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Places in the counts: rows that wait for a batch, batches, the chosen penalty.
WAITING, BATCHES, CHOSEN = 0, 1, 2
N_COUNTS = 3
# Places in the totals: sum of squared residuals, their number, the largest squared length of a row.
SQUARES, N_ROWS, LENGTH = 0, 1, 2
N_TOTALS = 3
# Columns of the sums of an inferred column: of z x_r, z y and z^2, with z what the others leave of it.
ZX, ZY, ZZ = 0, 1, 2
N_SUMS = 3


@compiled
def run(
    X: Floats,
    y: Floats,
    waiting: Floats,
    waiting_y: Floats,
    counts: Integers,
    totals: Floats,
    grid: Floats,
    index: Integers,
    iterates: Floats,
    scales: Floats,
    averages: Floats,
    sums: Floats,
    products: Floats,
    step_size: float,
    power: float,
) -> int:
    """Learn from rows; returns their number, or how many came before the one whose batch had absurd predictions.

    There is a problem (a row of `iterates`) for each penalty, then one for each inferred column; in `scales` and
    `averages` the first row stands for the response, the others for the inferred columns. A step size of zero stands
    for "auto".
    """
    batch_size, d = waiting.shape
    n_penalties, n_problems = grid.shape[0], iterates.shape[0]
    gradient, residuals = np.empty(d), np.empty((n_problems, batch_size))
    for i in range(X.shape[0]):
        slot = counts[WAITING]
        for j in range(d):
            waiting[slot, j] = X[i, j]
        waiting_y[slot] = y[i]
        counts[WAITING] = (slot + 1) % batch_size
        if slot + 1 < batch_size:
            continue
        if not _residuals(waiting, waiting_y, counts, totals, grid, index, iterates, scales, residuals):
            return i
        counts[BATCHES] += 1
        t, chosen = float(counts[BATCHES]), counts[CHOSEN]
        step = step_size / t**power
        if step_size == 0.0 and totals[LENGTH] > 0.0:
            step = 1.0 / (totals[LENGTH] * (1.0 + t / d) ** power)
        for problem in range(n_problems):
            own = -1 if problem < n_penalties else index[problem - n_penalties]
            penalty = grid[problem] if problem < n_penalties else grid[chosen]
            _mean_gradient(waiting, residuals, problem, gradient)
            _proximal_step(gradient, iterates, problem, own, penalty, step)
        for place in range(averages.shape[0]):
            problem = chosen if place == 0 else n_penalties + place - 1
            for j in range(d):
                averages[place, j] += (iterates[problem, j] - averages[place, j]) / t
        _add_to_sums(waiting, waiting_y, index, averages, totals, sums, products)
    return len(X)


@compiled_sums
def _along(X: Floats, i: int, coefs: Floats, k: int) -> float:
    """Row i of X times row k of coefs."""
    total = 0.0
    for j in range(X.shape[1]):
        total += X[i, j] * coefs[k, j]
    return total


@compiled
def _residuals(
    X: Floats,
    y: Floats,
    counts: Integers,
    totals: Floats,
    grid: Floats,
    index: Integers,
    iterates: Floats,
    scales: Floats,
    residuals: Floats,
) -> bool:
    """Residuals of all problems before the update, and the penalty that predicts best. False if one has diverged."""
    n = X.shape[0]
    for i in range(n):
        totals[LENGTH] = max(totals[LENGTH], squared_length(X, i))
        scales[0] += y[i] * y[i]
        for k in range(index.shape[0]):
            scales[1 + k] += X[i, index[k]] * X[i, index[k]]
    n_rows = (counts[BATCHES] + 1.0) * n
    least = np.inf
    for problem in range(iterates.shape[0]):
        place = problem - grid.shape[0]
        squares = 0.0
        for i in range(n):
            prediction = _along(X, i, iterates, problem)
            if not is_sane(prediction, n_rows, scales[max(place + 1, 0)], 0.0):
                return False
            residual = prediction - (y[i] if place < 0 else X[i, index[place]])
            residuals[problem, i] = residual
            squares += residual * residual
        if place < 0 and squares < least:
            least = squares
            counts[CHOSEN] = problem
    return True


@compiled
def _mean_gradient(X: Floats, residuals: Floats, problem: int, gradient: Floats) -> None:
    n = X.shape[0]
    for j in range(X.shape[1]):
        gradient[j] = residuals[problem, 0] * X[0, j]
    for i in range(1, n):
        for j in range(X.shape[1]):
            gradient[j] += residuals[problem, i] * X[i, j]
    for j in range(X.shape[1]):
        gradient[j] /= n


@compiled
def _proximal_step(gradient: Floats, iterates: Floats, problem: int, own: int, penalty: float, step: float) -> None:
    threshold = step * penalty
    for j in range(gradient.shape[0]):
        iterates[problem, j] = soft(iterates[problem, j] - step * gradient[j], threshold)
    if own >= 0:
        iterates[problem, own] = 0.0


@compiled
def _add_to_sums(
    X: Floats, y: Floats, index: Integers, coefs: Floats, totals: Floats, sums: Floats, products: Floats
) -> None:
    """Add a batch to the noise, judged by the first row of `coefs`, and to the sums of each inferred column."""
    for i in range(X.shape[0]):
        residual = y[i] - _along(X, i, coefs, 0)
        totals[SQUARES] += residual * residual
        totals[N_ROWS] += 1.0
        for k in range(index.shape[0]):
            own = X[i, index[k]]
            left = own - _along(X, i, coefs, k + 1)
            sums[k, ZX] += left * own
            sums[k, ZY] += left * y[i]
            sums[k, ZZ] += left * left
            for j in range(X.shape[1]):
                products[k, j] += left * X[i, j]
