"""Coefficients that follow a stream which changes: an adaptive filter on the residuals, and the evidence for it.

The estimate fits all rows alike. With e what it leaves of the next row before it has seen it, z the kept features of
that row in units of their scales, and a one for the intercept, the normalised least-mean-squares filter

    delta <- (1 - LEAK) delta + RATE (e - p) z / (1 + |z|^2),    p = z' delta,

predicts e from what was left of the rows just before. If nothing changes, e has the mean zero whatever came before, and
the filter loses: the gain in squared error of a row, e^2 - (e - p)^2 = p (2 e - p), has the mean -p^2, whatever the
distribution of e. So the filter is used when the sum of gains is many times the root of the sum of their squares, to
which no single row adds more than one, and until the recent gains sum to less than nothing.

B. Widrow and S. D. Stearns (1985). Adaptive Signal Processing. Chapter 6.
V. H. de la Pena, T. L. Lai and Q.-M. Shao (2009). Self-Normalized Processes. Springer.
"""

from typing import NamedTuple

import numpy as np

from thresher.kernels._compile import compiled
from thresher.kernels.gram import SHIFT_X, SHIFT_Y, SUM_X, SUM_Y, SUM_YY, WEIGHT, Floats, Integers
from thresher.kernels.problem import PERFECT, TINY, variance

# How fast the filter goes, and how fast it forgets what is not confirmed. Recent gains are those of 1 / LEAK rows.
RATE, LEAK = 1.0 / 16.0, 1.0 / 1024.0
# How fast the evidence is forgotten, and how many times the root of the squares it takes, to which doubts are added as
# if there had been so many rows before: a few rows in which something rare does not happen look like a change.
SLOW, ENOUGH, DOUBT = 1.0 / 8192.0, 5.0, 1000.0
# Errors beyond so many times their usual size count as that, so that no single row sets the course for long.
LARGEST = 8.0
# Larger residuals have squares that cannot be summed.
BEYOND = 1e150
# The estimate moves by what so many rows say at once: the filter has learned the same from them.
LONG = 64

# Places in Drift.numbers
LEVEL, USUAL, SEEN, GAIN, SQUARES, RECENT, FOLLOWS = 0, 1, 2, 3, 4, 5, 6


class Drift(NamedTuple):
    """The filter. Empty arrays follow nothing."""

    delta: Floats  # (d,), in units of the scales; of features that were kept at the last turn
    turn: Integers  # (d,), the last turn at which each feature was kept
    units: Floats  # (d,), the row in units of the scales, for kept features
    listed: Integers  # (d,), room to list features
    numbers: Floats  # (7,): intercept of the filter, mean square of e, its rows, three sums of gains, in use or not
    turns: Integers  # (1,), rows seen


def no_drift(n_features: int) -> Drift:
    """A filter that has seen nothing; of no features, it never will."""
    d = n_features
    return Drift(
        delta=np.zeros(d),
        turn=np.full(d, -1),
        units=np.zeros(d),
        listed=np.zeros(d, np.int64),
        numbers=np.zeros(7),
        turns=np.zeros(1, np.int64),
    )


@compiled
def follow_residual(
    drift: Drift,
    moments: Floats,
    totals: Floats,
    n_rows: int,
    coef: Floats,
    intercept: float,
    kept: Integers,
    n_kept: int,
    X: Floats,
    y: Floats,
    w: Floats,
    i: int,
    centred: bool,
) -> None:
    """Learn from what the estimate leaves of row i, which the sums, of `n_rows` rows, have not seen yet. O(s).

    A row that weighs less than the average counts for less; one that weighs more is still a single row.
    """
    total = totals[WEIGHT]
    weight = min(w[i] * (n_rows / total), 1.0) if w.shape[0] and total > 0.0 else 1.0
    if weight == 0.0 or total == 0.0:
        return
    delta, turn, units, numbers = drift.delta, drift.turn, drift.units, drift.numbers
    now = drift.turns[0]
    error, predicted, squares = y[i] - intercept, 0.0, 0.0
    if centred:
        predicted, squares = numbers[LEVEL], 1.0
    for k in range(n_kept):
        j = kept[k]
        error -= coef[j] * X[i, j]
        if turn[j] != now:
            delta[j] = 0.0
        turn[j] = now + 1
        spread = variance(moments, totals, j, centred)
        mean = moments[SHIFT_X, j] + moments[SUM_X, j] / total if centred else 0.0
        units[j] = (X[i, j] - mean) / np.sqrt(spread) if spread > TINY else 0.0
        predicted += delta[j] * units[j]
        squares += units[j] * units[j]
    drift.turns[0] = now + 1
    if not abs(error) + squares < BEYOND:  # so far away that it says nothing
        return
    usual, rounding = numbers[USUAL], max(PERFECT * _spread_of_y(totals, centred), TINY)
    if usual > rounding:
        bound = LARGEST * np.sqrt(usual)
        error = min(max(error, -bound), bound)
    numbers[SEEN] += weight
    numbers[USUAL] += max(LEAK * weight, weight / numbers[SEEN]) * (error * error - usual)
    if usual <= rounding:
        return
    gain = weight * (predicted * (2.0 * error - predicted) / usual)
    numbers[SQUARES] = (1.0 - SLOW) * numbers[SQUARES] + gain * gain
    root = np.sqrt(DOUBT + numbers[SQUARES])
    numbers[GAIN] = max((1.0 - SLOW) * numbers[GAIN] + gain, -root)  # a change may come late
    numbers[RECENT] = (1.0 - LEAK) * numbers[RECENT] + gain
    if numbers[RECENT] <= 0.0:
        numbers[FOLLOWS] = 0.0
    elif numbers[GAIN] >= ENOUGH * root:
        numbers[FOLLOWS] = 1.0
    learned, stays = weight * RATE * (error - predicted) / (1.0 + squares), 1.0 - LEAK * weight
    for k in range(n_kept):
        delta[kept[k]] = stays * delta[kept[k]] + learned * units[kept[k]]
    if centred:
        numbers[LEVEL] = stays * numbers[LEVEL] + learned


@compiled
def note_estimate(drift: Drift, moments: Floats, totals: Floats, coef: Floats, kept: Integers, n_kept: int) -> float:
    """Remember coefficients before they move, and return what they make of the mean row."""
    fitted = 0.0
    for k in range(n_kept):
        j = kept[k]
        drift.units[j] = coef[j]
        fitted += coef[j] * (moments[SHIFT_X, j] + moments[SUM_X, j] / totals[WEIGHT])
    return fitted


@compiled
def follow_move(
    drift: Drift,
    moments: Floats,
    totals: Floats,
    coef: Floats,
    risen: float,
    kept: Integers,
    n_kept: int,
    centred: bool,
) -> None:
    """Move the filter back by as much as the estimate has moved in a long round, which has learned the same rows. O(s).

    `risen` is by how much the estimate for the mean row has risen.
    """
    for k in range(n_kept):
        j = kept[k]
        spread = variance(moments, totals, j, centred)
        if drift.turn[j] == drift.turns[0] and spread > TINY:
            drift.delta[j] += (drift.units[j] - coef[j]) * np.sqrt(spread)
    if centred:
        drift.numbers[LEVEL] -= risen


@compiled
def _spread_of_y(totals: Floats, centred: bool) -> float:
    """Mean square of y, about its mean or about zero."""
    mean = totals[SUM_Y] / totals[WEIGHT]
    square = totals[SUM_YY] / totals[WEIGHT]
    return float(square - mean * mean if centred else square + (2.0 * mean + totals[SHIFT_Y]) * totals[SHIFT_Y])


@compiled
def add_drift(
    drift: Drift, moments: Floats, totals: Floats, coef: Floats, intercept: float, centred: bool, out: Floats
) -> float:
    """Fill the coefficients with what follows the stream added, and return the intercept."""
    total = totals[WEIGHT]
    if centred:
        intercept += drift.numbers[LEVEL]
    for j in range(coef.shape[0]):
        out[j] = coef[j]
        if coef[j] != 0.0 and drift.turn[j] == drift.turns[0]:
            spread = variance(moments, totals, j, centred)
            if spread > TINY:
                move = drift.delta[j] / np.sqrt(spread)
                out[j] += move
                if centred:
                    intercept -= move * (moments[SHIFT_X, j] + moments[SUM_X, j] / total)
    return intercept
