"""Coefficients that are trusted only as far as there are rows to carry them.

Least squares on the kept features takes every coefficient at face value, also one that rests on a single row, as that
of a rare level does, or one that was kept because noise made it look larger. So ROWS more rows speak against every
feature, in proportion to how much it has of its own beside the other kept ones. They weigh this share of that:

    ROWS / (max(m, min(t^2, m^2)) + (t / SURE)^2)

Here m is the number of rows that carry the feature, its sum of squares over its largest square, and t is the
coefficient in standard errors. So a coefficient is shrunk by ROWS in m, as if these rows had been seen. Where more than
t rows carry it, it is shrunk by no more than ROWS in t^2, which is at most ROWS / t standard errors; and not at all
where there is no noise.
"""

import numpy as np
from numpy.typing import NDArray

from thresher.kernels._compile import compiled, compiled_sums
from thresher.kernels.factor import own_share
from thresher.kernels.gram import (
    CROSS,
    HIGH,
    LOW,
    N_BUFFERED,
    N_MOMENTS,
    SHIFT_X,
    SHIFT_Y,
    SUM_X,
    SUM_Y,
    SUM_YY,
    WEIGHT,
    Floats,
    GramArrays,
    Integers,
)
from thresher.kernels.problem import variance

# How many rows speak against every feature, and effects of how many standard deviations of the noise, over the reach of
# a feature, they do not prevail against.
ROWS, SURE = 4.0, 10.0
# A share below this changes no digit that matters.
NOTHING = 1e-12


@compiled
def rows_behind(gram: GramArrays, j: int, centred: bool) -> float:
    """How many rows carry feature j: its sum of squares over the largest square. Infinity if that is not known."""
    moments, weight = gram.moments, gram.totals[WEIGHT]
    away = moments[SUM_X, j] / weight if centred else -moments[SHIFT_X, j]
    reach = max(moments[HIGH, j] - away, away - moments[LOW, j])
    if not (reach > 0.0 and reach < np.inf):
        return np.inf
    return float(weight * (variance(moments, gram.totals, j, centred) / reach / reach))


@compiled
def _fill_moments(gram: GramArrays, features: Integers, centred: bool, matrix: Floats, vector: Floats) -> float:
    """G and h of these features, and the second moment of y, all as sums over the rows."""
    scatter, moments, totals, weight = gram.scatter, gram.moments, gram.totals, gram.totals[WEIGHT]
    n, n_rows = features.shape[0], gram.counts[N_BUFFERED]
    rows = np.empty((n_rows, n))
    for i in range(n_rows):
        for a in range(n):
            rows[i, a] = gram.buffer[i, features[a]]
    matrix[:] = np.dot(rows.T, rows)
    sum_y, shift_y = totals[SUM_Y], totals[SHIFT_Y]
    along_y, along_shift_y = (-sum_y / weight, 0.0) if centred else (shift_y, sum_y + weight * shift_y)
    for a in range(n):
        j = features[a]
        sum_x, shift = moments[SUM_X, j], moments[SHIFT_X, j]
        along_sum, along_shift = (-sum_x / weight, 0.0) if centred else (shift, sum_x + weight * shift)
        vector[a] = moments[CROSS, j] + sum_x * along_y + shift * along_shift_y
        for b in range(n):
            k = features[b]
            matrix[a, b] += (
                scatter[min(j, k), max(j, k)] + along_sum * moments[SUM_X, k] + along_shift * moments[SHIFT_X, k]
            )
        matrix[a, a] = weight * variance(moments, totals, j, centred)
    if centred:
        return float(totals[SUM_YY] - sum_y * (sum_y / weight))
    return float(totals[SUM_YY] + (sum_y + along_shift_y) * shift_y)


@compiled_sums
def _solve_lower(lower: NDArray[np.floating], vector: Floats, first: int) -> float:
    """Vector <- L^-1 vector, zero before its place `first`; returns its squared length."""
    length = 0.0
    for k in range(first, vector.shape[0]):
        total = vector[k]
        for m in range(first, k):
            total -= lower[k, m] * vector[m]
        vector[k] = total / lower[k, k]
        length += vector[k] * vector[k]
    return length


@compiled_sums
def _solve_upper(lower: NDArray[np.floating], vector: Floats) -> None:
    """Vector <- L'^-1 vector."""
    for k in range(vector.shape[0] - 1, -1, -1):
        vector[k] /= lower[k, k]
        for m in range(k):
            vector[m] -= lower[k, m] * vector[k]


@compiled
def fill_caution(gram: GramArrays, features: Integers, centred: bool, out: Floats) -> None:
    """By how much prudence moves the least-squares coefficients of these features, in their order.

    Nothing if the features are collinear, or if nothing is known of their reach. Raises LinAlgError if they are so much
    so that there is no factor. O(s^3), and O(b s^2) for the b rows that are not yet folded.
    """
    out[:] = 0.0
    n, weight = features.shape[0], gram.totals[WEIGHT]
    if n == 0 or not weight > 0.0 or gram.moments.shape[0] < N_MOMENTS:
        return
    matrix, vector, unit = np.empty((n, n)), np.empty(n), np.empty(n)
    total = _fill_moments(gram, features, centred, matrix, vector)
    for a in range(n):
        if not matrix[a, a] > 0.0:
            return
        unit[a] = 1.0 / np.sqrt(matrix[a, a])
    for a in range(n):
        vector[a] *= unit[a]
        for b in range(n):
            matrix[a, b] = matrix[a, b] * unit[a] * unit[b] if a != b else 1.0
    lower = np.linalg.cholesky(matrix)
    for a in range(n):
        if not lower[a, a] * lower[a, a] > own_share(gram.scatter):
            return
    coef, column = vector.copy(), np.empty(n)
    noise = max(total - _solve_lower(lower, coef, 0), 0.0) / weight
    _solve_upper(lower, coef)
    added = 0.0
    for a in range(n):
        column[a:] = 0.0
        column[a] = 1.0
        own = 1.0 / _solve_lower(lower, column, a)  # what the feature has of its own, as a share of its sum of squares
        carried = rows_behind(gram, features[a], centred)
        if noise > 0.0 and carried < np.inf:
            squared = coef[a] * (coef[a] * own / noise)
            share = ROWS / (max(carried, min(squared, carried * carried)) + squared / (SURE * SURE))
            matrix[a, a] += share * own
            added = max(added, share)
    if added < NOTHING:
        return
    lower = np.linalg.cholesky(matrix)
    _solve_lower(lower, vector, 0)
    _solve_upper(lower, vector)
    for a in range(n):
        out[a] = unit[a] * (vector[a] - coef[a])
