"""Columns of the second moments of a Gram, kept up to date for a few features at O(d) each per row.

The moments are totals, about the mean (`centred`) or about zero. A new row adds a rank-one term to them,

    M += share v v',    v = x - mean of the rows before,    share = n / (n + 1)        (centred; Chan et al., 1983)
    M += v v',          v = x                                                          (not centred)

so a column that is kept needs no product with the rows in the buffer; one that is not is read from the Gram once.
"""

import numpy as np
from numpy.typing import NDArray

from thresher._utils.compile import compiled
from thresher.online._gram import SHIFT_X, SHIFT_Y, SUM_X, SUM_XX, SUM_Y, WEIGHT, Floats, Integers

# The place of a feature whose column is not kept.
ABSENT = -1


@compiled
def deviation(
    X: Floats, y: Floats, i: int, moments: Floats, totals: Floats, centred: bool, v: Floats
) -> tuple[float, float]:
    """Put v of row i, which the Gram has not absorbed yet, in place; return the same for y, and the share."""
    d, weight = v.shape[0], totals[WEIGHT]
    if not centred:
        for j in range(d):
            v[j] = X[i, j]
        return y[i], 1.0
    if weight == 0.0:  # one row alone says nothing about deviations
        v[:] = 0.0
        return 0.0, 0.0
    for j in range(d):
        v[j] = (X[i, j] - moments[SHIFT_X, j]) - moments[SUM_X, j] / weight
    return (y[i] - totals[SHIFT_Y]) - totals[SUM_Y] / weight, weight / (weight + 1.0)


@compiled
def add_row(values: Floats, features: Integers, n_kept: int, v: Floats, share: float) -> None:
    """Bring the columns that are kept up to date."""
    for k in range(n_kept):
        factor = share * v[features[k]]
        if factor != 0.0:
            for j in range(v.shape[0]):
                values[k, j] += factor * v[j]


@compiled
def read_column(
    scatter: NDArray[np.floating],
    buffer: Floats,
    n_buffered: int,
    moments: Floats,
    totals: Floats,
    j: int,
    centred: bool,
    out: Floats,
) -> None:
    """Column j of the moments of all rows that the Gram has absorbed."""
    d = out.shape[0]
    for i in range(j):
        out[i] = scatter[i, j]
    for i in range(j, d):
        out[i] = scatter[j, i]
    for b in range(n_buffered):
        factor = buffer[b, j]
        for i in range(d):
            out[i] += factor * buffer[b, i]
    out[j] = moments[SUM_XX, j]
    weight = totals[WEIGHT]
    if centred:
        share = moments[SUM_X, j] / weight
        for i in range(d):
            out[i] -= share * moments[SUM_X, i]
        return
    half = moments[SUM_X, j] + 0.5 * weight * moments[SHIFT_X, j]
    for i in range(d):
        out[i] += moments[SHIFT_X, j] * (moments[SUM_X, i] + 0.5 * weight * moments[SHIFT_X, i])
        out[i] += half * moments[SHIFT_X, i]


@compiled
def with_room(values: Floats, features: Integers, n_kept: int) -> tuple[Floats, Integers]:
    """The same arrays, or larger ones if there is no room for another column."""
    capacity, d = values.shape
    if n_kept < capacity:
        return values, features
    more = min(2 * capacity, d)
    larger, longer = np.zeros((more, d)), np.zeros(more, np.int64)
    larger[:capacity] = values
    longer[:capacity] = features
    return larger, longer


@compiled
def drop_idle(values: Floats, features: Integers, place: Integers, n_kept: int, coef: Floats) -> int:
    """Forget the columns of features whose coefficient is zero; returns how many are left."""
    left = 0
    for k in range(n_kept):
        feature = features[k]
        if coef[feature] == 0.0:
            place[feature] = ABSENT
            continue
        if left < k:
            values[left] = values[k]
            features[left] = feature
            place[feature] = left
        left += 1
    return left
