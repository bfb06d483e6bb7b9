"""Coefficients that follow a stream which changes: an adaptive filter on the residuals, and proof that it helps.

The estimate fits all rows alike. With e what it leaves of the next row before it has seen it, and z the kept features
of that row in units of their scales, and a one for the intercept, the normalised least-mean-squares filter

    delta <- (1 - LEAK) delta + RATE (e - z' delta) z / (1 + |z|^2)

predicts e from what was left of the rows just before. If nothing changes, z' delta is noise, and worse than nothing.
So both are compared on every row before it is learned, by the likelihood of their errors, and the filter is used only
while the evidence for it is overwhelming.

B. Widrow and S. D. Stearns (1985). Adaptive Signal Processing. Chapter 6.
E. S. Page (1954). Continuous inspection schemes. Biometrika 41, 100-115.
"""

from typing import NamedTuple

import numpy as np

from thresher.kernels._compile import compiled
from thresher.kernels.gram import SHIFT_X, SHIFT_Y, SUM_X, SUM_Y, SUM_YY, WEIGHT, Floats, Integers
from thresher.kernels.problem import PERFECT, TINY, variance

# How fast the filter goes, and how fast it forgets what is not confirmed.
RATE, LEAK = 1.0 / 16.0, 1.0 / 1024.0
# Errors beyond so many times their usual size count as that, so that no single row sets the course.
LARGEST = 3.0
# Likelihoods are those of Student's t with so many degrees of freedom, since errors have heavy tails.
FREEDOM = 4.0
# The logarithm of the odds at which following begins; it ends when they are even. More than twice is not accumulated.
ENOUGH = np.log(1e6)

# Places in Drift.numbers
LEVEL, SCALE, EVIDENCE, FOLLOWS = 0, 1, 2, 3


class Drift(NamedTuple):
    """The filter. Empty arrays follow nothing."""

    delta: Floats  # (d,), in units of the scales; of features that were kept at the last turn
    turn: Integers  # (d,), the last turn at which each feature was kept
    units: Floats  # (d,), the row in units of the scales, for kept features
    listed: Integers  # (d,), room to list features
    numbers: Floats  # (4,): the filter's intercept, mean square of e, evidence, whether it is used
    turns: Integers  # (1,), rows seen


def no_drift(n_features: int) -> Drift:
    """A filter that has seen nothing; of no features, it never will."""
    d = n_features
    return Drift(
        delta=np.zeros(d),
        turn=np.zeros(d, np.int64),
        units=np.zeros(d),
        listed=np.zeros(d, np.int64),
        numbers=np.zeros(4),
        turns=np.zeros(1, np.int64),
    )


@compiled
def follow_residual(
    drift: Drift,
    moments: Floats,
    totals: Floats,
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
    """Learn from what the estimate leaves of row i, which the sums have not seen yet. O(s)."""
    weight, total = (w[i] if w.shape[0] else 1.0), totals[WEIGHT]
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
        spread = variance(moments, totals, j, centred)
        mean = moments[SHIFT_X, j] + moments[SUM_X, j] / total if centred else 0.0
        units[j] = (X[i, j] - mean) / np.sqrt(spread) if spread > TINY else 0.0
        predicted += delta[j] * units[j]
        squares += units[j] * units[j]
    drift.turns[0] = now + 1
    if not np.isfinite(error * error + squares):  # a row so far away that it says nothing
        for k in range(n_kept):
            turn[kept[k]] = now + 1
        return
    spread_y = totals[SUM_YY] / total
    if centred:
        spread_y -= (totals[SUM_Y] / total) ** 2
    else:
        spread_y += (2.0 * totals[SUM_Y] / total + totals[SHIFT_Y]) * totals[SHIFT_Y]
    usual = max(numbers[SCALE], PERFECT * spread_y, TINY)
    left = error - predicted
    gain = 0.5 * (FREEDOM + 1.0) * np.log((FREEDOM * usual + error * error) / (FREEDOM * usual + left * left))
    numbers[EVIDENCE] = min(max(numbers[EVIDENCE] + weight * gain, 0.0), 2.0 * ENOUGH)
    if numbers[EVIDENCE] >= ENOUGH:
        numbers[FOLLOWS] = 1.0
    elif numbers[EVIDENCE] == 0.0:
        numbers[FOLLOWS] = 0.0
    bound = LARGEST * np.sqrt(usual)
    left = min(max(left, -bound), bound)
    # A weight of w is w turns with this row: after each, 1 - RATE |z|^2 / (1 + |z|^2) of its error is left.
    learned, kept_share = 0.0, (1.0 - LEAK) ** weight
    if squares > 0.0:
        learned = left * (1.0 - (1.0 - RATE * squares / (1.0 + squares)) ** weight) / squares
    for k in range(n_kept):
        j = kept[k]
        delta[j] = kept_share * delta[j] + learned * units[j]
        turn[j] = now + 1
    if centred:
        numbers[LEVEL] = kept_share * numbers[LEVEL] + learned
    numbers[SCALE] += max(1.0 - kept_share, 1.0 / (now + 1.0)) * (error * error - numbers[SCALE])


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
