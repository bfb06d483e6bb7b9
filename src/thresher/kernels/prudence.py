"""Coefficients that are trusted only as far as there are rows to carry them.

Least squares on the kept features takes every coefficient at face value, also one that rests on a single row, as that
of a rare level does, or one that was kept because noise made it look larger. So ROWS more rows speak against every
feature: theta with G theta = h becomes that with (G + D) theta = h. They weigh, in D, this share of what the feature
has of its own beside the other kept ones, 1 / (G^-1)_jj:

    ROWS / (max(m, min(t^2, m^2)) + (t / SURE)^2)

Here m is the number of rows that carry the feature, its sum of squares over its largest square, and t is the
coefficient in standard errors. So a coefficient is shrunk by ROWS in m, as if these rows had been seen. Where more than
t rows carry it, it is shrunk by no more than ROWS in t^2, which is less than ROWS / t standard errors; and not at all
where there is no noise. Correlated features share what is taken from each of them.
"""

import numpy as np

from thresher.kernels._compile import compiled, compiled_sums
from thresher.kernels.factor import Factor, own_share
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
def _fill_moments(gram: GramArrays, features: Integers, centred: bool, matrix: Floats) -> None:
    """The lower triangle of G for these features, as sums over the rows."""
    scatter, moments, totals, weight = gram.scatter, gram.moments, gram.totals, gram.totals[WEIGHT]
    n, row = features.shape[0], np.empty(features.shape[0])
    for a in range(n):
        j = features[a]
        sum_x, shift = moments[SUM_X, j], moments[SHIFT_X, j]
        along_sum, along_shift = (-sum_x / weight, 0.0) if centred else (shift, sum_x + weight * shift)
        for b in range(a + 1):
            k = features[b]
            matrix[a, b] = scatter[min(j, k), max(j, k)]
            matrix[a, b] += along_sum * moments[SUM_X, k] + along_shift * moments[SHIFT_X, k]
    for i in range(gram.counts[N_BUFFERED]):
        for a in range(n):
            row[a] = gram.buffer[i, features[a]]
        _add_outer(row, matrix, 0)
    for a in range(n):
        matrix[a, a] = weight * variance(moments, totals, features[a], centred)


@compiled_sums
def _add_outer(row: Floats, matrix: Floats, first: int) -> None:
    """Matrix += row row', in the lower triangle from a place on."""
    for a in range(first, row.shape[0]):
        for b in range(first, a + 1):
            matrix[a, b] += row[a] * row[b]


@compiled
def _fill_from_factor(factor: Factor, centred: bool, matrix: Floats) -> None:
    """The same for the members of a factor, in their order: U'U, without the row of the constant if there is one."""
    n, first = matrix.shape[0], 1 if centred else 0
    matrix[:] = 0.0
    for k in range(n):
        _add_outer(factor.upper[first + k, first : first + n], matrix, k)


@compiled
def _left_over(
    gram: GramArrays, features: Integers, coef: Floats, centred: bool, matrix: Floats
) -> tuple[float, float]:
    """The residual sum of squares with these coefficients, and that of zero."""
    moments, totals, weight = gram.moments, gram.totals, gram.totals[WEIGHT]
    sum_y, shift_y = totals[SUM_Y], totals[SHIFT_Y]
    along_y, along_shift = (-sum_y / weight, 0.0) if centred else (shift_y, sum_y + weight * shift_y)
    total = totals[SUM_YY] + (sum_y * along_y if centred else (sum_y + along_shift) * shift_y)
    left = total
    for a in range(features.shape[0]):
        j = features[a]
        left -= 2.0 * coef[a] * (moments[CROSS, j] + moments[SUM_X, j] * along_y + moments[SHIFT_X, j] * along_shift)
        left += coef[a] * (matrix[a, a] * coef[a])
        for b in range(a):
            left += 2.0 * coef[a] * matrix[a, b] * coef[b]
    return left, total


@compiled_sums
def _factorise(matrix: Floats, lower: Floats, least: float) -> bool:
    """The Cholesky factor from the lower triangle. False if a pivot is not larger than `least`.

    Not that of LAPACK, for which these matrices are too small: its threads take longer to wake.
    """
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            if j < i:
                lower[i, j] = total / lower[j, j]
            elif total > least:
                lower[i, i] = np.sqrt(total)
            else:
                return False
    return True


@compiled_sums
def _solve_lower(lower: Floats, vector: Floats, first: int) -> float:
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
def _solve_upper(lower: Floats, vector: Floats) -> None:
    """Vector <- L'^-1 vector."""
    for k in range(vector.shape[0] - 1, -1, -1):
        vector[k] /= lower[k, k]
        for m in range(k):
            vector[m] -= lower[k, m] * vector[k]


@compiled
def add_caution(gram: GramArrays, factor: Factor, fresh: bool, coef: Floats, centred: bool) -> float:
    """Move coefficients, least squares as of the last round, by -(G + D)^-1 D coef; returns how the intercept moves.

    `fresh` says that the factor knows all rows, and that its members are the support. Nothing moves if the features are
    collinear, there is no noise, or nothing is known of their reach. O(d + s^3), and O(b s^2) for the b rows that are
    not yet folded if there is no such factor.
    """
    features = factor.members[: factor.counts[0]] if fresh else np.flatnonzero(coef)
    moves = np.zeros(features.shape[0])
    _fill_moves(gram, factor, fresh, features, coef[features], centred, moves)
    moments, intercept = gram.moments, 0.0
    for a in range(features.shape[0]):
        j = features[a]
        coef[j] += moves[a]
        if centred:
            intercept -= moves[a] * (moments[SHIFT_X, j] + moments[SUM_X, j] / gram.totals[WEIGHT])
    return intercept


@compiled
def _fill_moves(
    gram: GramArrays, factor: Factor, fresh: bool, features: Integers, coef: Floats, centred: bool, out: Floats
) -> None:
    """By how much these coefficients move; `out` is zero."""
    n, weight = features.shape[0], gram.totals[WEIGHT]
    if n == 0 or not weight > 0.0 or gram.moments.shape[0] < N_MOMENTS:
        return
    matrix, lower, root = np.empty((n, n)), np.zeros((n, n)), np.empty(n)
    if fresh:
        _fill_from_factor(factor, centred, matrix)
    else:
        _fill_moments(gram, features, centred, matrix)
    left, total = _left_over(gram, features, coef, centred, matrix)
    for a in range(n):
        if not matrix[a, a] > 0.0:
            return
        root[a] = np.sqrt(matrix[a, a])
    for a in range(n):
        for b in range(a):
            matrix[a, b] /= root[a] * root[b]
        matrix[a, a] = 1.0
    least = own_share(gram.scatter)
    if not left > least * total or not _factorise(matrix, lower, least):
        return
    column = np.empty(n)
    for a in range(n):
        column[a:] = 0.0
        column[a] = 1.0
        own = 1.0 / _solve_lower(lower, column, a)
        carried, size = rows_behind(gram, features[a], centred), root[a] * coef[a]
        squared = size * (size * own) * (weight / left)
        share = ROWS / (max(carried, min(squared, carried * carried)) + squared / (SURE * SURE))
        matrix[a, a] += share * own
        out[a] = -share * own * size
    if not _factorise(matrix, lower, 0.0):
        out[:] = 0.0
        return
    _solve_lower(lower, out, 0)
    _solve_upper(lower, out)
    for a in range(n):
        out[a] /= root[a]
