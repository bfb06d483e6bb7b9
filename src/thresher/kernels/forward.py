"""Forward selection from a Gram: the features one after another, each time the one that lowers the loss most.

With G the second moments of the problem and h those with y, the chosen features have a Cholesky factor U of G_SS, and
the rows W_k of U'^-1 G_S: are kept for all d features. What is left of feature j beside the chosen ones is
G_jj - sum_k W_kj^2, and of its moment with y it is h_j - sum_k W_kj t_k, t = U'^-1 h_S; the residual sum of squares
falls by the square of the latter over the former. Adding a feature costs O(d k), a path of length s O(d s^2).
"""

from typing import NamedTuple

import numpy as np

from thresher.kernels._compile import compiled
from thresher.kernels.certificate import TIE
from thresher.kernels.factor import own_share
from thresher.kernels.gram import (
    CROSS,
    N_BUFFERED,
    SHIFT_X,
    SHIFT_Y,
    SUM_X,
    SUM_Y,
    WEIGHT,
    Floats,
    GramArrays,
    Integers,
)
from thresher.kernels.problem import PERFECT, variance

# Room for so many features to begin with; twice as many when it is full. Most paths end long before their limit.
FIRST_ROOM = 32


class Found(NamedTuple):
    """Features in an order, the Cholesky factor U of their moments G = U'U, and t = U'^-1 h."""

    order: Integers
    upper: Floats
    rhs: Floats


@compiled
def _grown(matrix: Floats, n_rows: int, n_columns: int) -> Floats:
    """A matrix with zeros appended."""
    result = np.zeros((n_rows, n_columns))
    result[: matrix.shape[0], : matrix.shape[1]] = matrix
    return result


@compiled
def fill_column(gram: GramArrays, j: int, centred: bool, out: Floats) -> None:
    """Column j of G, summed over the rows."""
    scatter, buffer, moments, weight = gram.scatter, gram.buffer, gram.moments, gram.totals[WEIGHT]
    d = out.shape[0]
    for k in range(j):
        out[k] = scatter[k, j]
    for k in range(j, d):
        out[k] = scatter[j, k]
    for i in range(gram.counts[N_BUFFERED]):
        z = buffer[i, j]
        for k in range(d):
            out[k] += z * buffer[i, k]
    sum_x, shift = moments[SUM_X, j], moments[SHIFT_X, j]
    along_sum, along_shift = (-sum_x / weight, 0.0) if centred else (shift, sum_x + weight * shift)
    for k in range(d):
        out[k] += along_sum * moments[SUM_X, k] + along_shift * moments[SHIFT_X, k]
    out[j] = weight * variance(moments, gram.totals, j, centred)


@compiled
def forward_path(
    gram: GramArrays,
    centred: bool,
    total: float,
    penalty: Floats,
    patience: int,
) -> Found:
    """Choose up to len(penalty) - 1 features.

    `total` is the second moment of y, `penalty[k]` what k features cost in weight log(residual) + penalty. The path
    ends when that has not fallen below its minimum for `patience` features and half of those at the minimum, when
    nothing is left to explain, or when no feature is independent of those chosen.
    """
    moments, totals = gram.moments, gram.totals
    d, n_most, weight = moments.shape[1], penalty.shape[0] - 1, totals[WEIGHT]
    room = min(FIRST_ROOM, n_most)
    order, rhs = np.zeros(n_most, np.int64), np.zeros(n_most)
    upper, rows = np.zeros((room, room)), np.zeros((room, d))
    whole, left, pull = np.empty(d), np.empty(d), np.empty(d)
    open_ = np.ones(d, np.bool_)
    along_y, along_shift = totals[SHIFT_Y], totals[SUM_Y] + weight * totals[SHIFT_Y]
    if centred:
        along_y, along_shift = -totals[SUM_Y] / weight, 0.0
    for j in range(d):
        whole[j] = weight * variance(moments, totals, j, centred)
        left[j] = whole[j]
        pull[j] = moments[CROSS, j] + moments[SUM_X, j] * along_y + moments[SHIFT_X, j] * along_shift
    residual, smallest = total, own_share(gram.scatter)
    best, n_best = weight * np.log(max(residual, PERFECT * total)) + penalty[0], 0
    n = 0
    while n < n_most and residual > PERFECT * total:
        chosen, gain = -1, 0.0
        for j in range(d):
            if open_[j] and left[j] > smallest * whole[j]:
                fall = pull[j] * (pull[j] / left[j])
                if fall > gain * (1.0 + TIE):
                    chosen, gain = j, fall
        if chosen < 0:
            break
        if n == room:
            room = min(2 * room, n_most)
            upper, rows = _grown(upper, room, room), _grown(rows, room, d)
        line = rows[n]
        fill_column(gram, chosen, centred, line)
        for m in range(n):
            factor, above = rows[m, chosen], rows[m]
            for j in range(d):
                line[j] -= factor * above[j]
        pivot = np.sqrt(left[chosen])
        for j in range(d):
            line[j] /= pivot
        line[chosen] = pivot
        for m in range(n):
            upper[m, n] = rows[m, chosen]
        upper[n, n] = pivot
        order[n], rhs[n], open_[chosen] = chosen, pull[chosen] / pivot, False
        for j in range(d):
            pull[j] -= rhs[n] * line[j]
            left[j] -= line[j] * line[j]
        residual -= gain
        n += 1
        value = weight * np.log(max(residual, PERFECT * total)) + penalty[n]
        if value < best:
            best, n_best = value, n
        if n >= n_best + n_best // 2 + patience:
            break
    return Found(order[:n].copy(), upper[:n, :n].copy(), rhs[:n].copy())
