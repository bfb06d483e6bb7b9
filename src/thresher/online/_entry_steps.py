"""One pass over a matrix of counts and sums each: the steps of a completion."""

import numpy as np

from thresher._utils.compile import compiled, compiled_sums
from thresher.online._gram import Floats


@compiled_sums
def aim(counts: Floats, sums: Floats, theta: Floats, rows: Floats, cols: Floats, step: float, target: Floats) -> float:
    """Target = theta - step (counts (theta + offsets) - sums). Returns its squared norm.

    The offset of entry (i, j) is rows[i] + cols[j].
    """
    total = 0.0
    for i in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            fitted = theta[i, j] + (rows[i] + cols[j])
            value = theta[i, j] - step * (counts[i, j] * fitted - sums[i, j])
            target[i, j] = value
            total += value * value
    return total


@compiled_sums
def measure_move(
    counts: Floats, sums: Floats, theta: Floats, rows: Floats, cols: Floats, projected: Floats
) -> tuple[float, float, float]:
    """Squared length, slope and curvature of the move from theta to projected, times the total weight."""
    length, slope, bend = 0.0, 0.0, 0.0
    for i in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            move = projected[i, j] - theta[i, j]
            fitted = theta[i, j] + (rows[i] + cols[j])
            length += move * move
            slope += move * (counts[i, j] * fitted - sums[i, j])
            bend += counts[i, j] * (move * move)
    return length, slope, bend


@compiled_sums
def squared_residuals(
    counts: Floats, sums: Floats, theta: Floats, rows: Floats, cols: Floats, sum_squares: float
) -> float:
    """The weighted sum of squared residuals."""
    total = sum_squares
    for i in range(theta.shape[0]):
        for j in range(theta.shape[1]):
            fitted = theta[i, j] + (rows[i] + cols[j])
            total += fitted * (counts[i, j] * fitted - 2.0 * sums[i, j])
    return total


@compiled
def fit_offsets(counts: Floats, sums: Floats, theta: Floats, rows: Floats, cols: Floats) -> None:
    """Least squares for the row offsets given the column offsets, then the other way round.

    Rows and columns without observations keep offset zero.
    """
    d1, d2 = theta.shape
    for i in range(d1):
        weight, total = 0.0, 0.0
        for j in range(d2):
            weight += counts[i, j]
            total += sums[i, j] - counts[i, j] * (theta[i, j] + cols[j])
        rows[i] = total / weight if weight > 0.0 else 0.0
    weights, totals = np.zeros(d2), np.zeros(d2)
    for i in range(d1):
        for j in range(d2):
            weights[j] += counts[i, j]
            totals[j] += sums[i, j] - counts[i, j] * (theta[i, j] + rows[i])
    for j in range(d2):
        cols[j] = totals[j] / weights[j] if weights[j] > 0.0 else 0.0


@compiled_sums
def weigh(counts: Floats, mode: Floats) -> tuple[float, float]:
    """Mode <- counts mode, entry by entry. Returns mode' mode and mode' counts mode of before."""
    length, bend = 0.0, 0.0
    for i in range(mode.shape[0]):
        for j in range(mode.shape[1]):
            value = mode[i, j]
            mode[i, j] = counts[i, j] * value
            length += value * value
            bend += counts[i, j] * (value * value)
    return length, bend


@compiled_sums
def distance(a: Floats, b: Floats) -> float:
    """|a - b|."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += (a[i, j] - b[i, j]) * (a[i, j] - b[i, j])
    return float(np.sqrt(total))
