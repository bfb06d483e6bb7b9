"""The sums of a Gram as kernels see them: kept up to date row by row, those of rows in the buffer included.

With z = x - shift and v = y - shift_y as in `summaries._shifted`, `moments` and `totals` cover all rows, while
`scatter` covers those that were folded.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher._utils.compile import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Rows of GramArrays.moments
SHIFT_X, SUM_X, SUM_XX, CROSS = 0, 1, 2, 3
# Places in GramArrays.totals
WEIGHT, SHIFT_Y, SUM_Y, SUM_YY = 0, 1, 2, 3
# Places in GramArrays.counts
N_SAMPLES, N_BUFFERED = 0, 1


class GramArrays(NamedTuple):
    """What kernels read and write; d features, blocks of B rows."""

    scatter: NDArray[np.floating]  # (d, d), upper triangle, folded rows
    buffer: Floats  # (B, d): sqrt(w) z
    buffer_y: Floats  # (B,): sqrt(w) v
    buffer_root: Floats  # (B,): sqrt(w)
    moments: Floats  # (4, d): shift, sum w z, sum w z^2, sum w z v
    totals: Floats  # (4,): weight, shift of y, sum w v, sum w v^2
    counts: Integers  # (2,): rows, rows in the buffer


@compiled
def absorb_row(
    buffer: Floats,
    buffer_y: Floats,
    buffer_root: Floats,
    moments: Floats,
    totals: Floats,
    counts: Integers,
    X: Floats,
    y: Floats,
    w: Floats,
    i: int,
) -> None:
    """Add row i to the buffer and to every O(d) sum; the buffer must have room, and the shift must be set.

    An empty `w` means weights of one.
    """
    weight = w[i] if w.shape[0] else 1.0
    d = X.shape[1]
    slot = counts[N_BUFFERED]
    counts[N_SAMPLES] += 1
    counts[N_BUFFERED] += 1
    root = np.sqrt(weight)
    buffer_root[slot] = root
    if weight == 0.0:  # a row that does not count may be so far away that zero times it is not zero
        for j in range(d):
            buffer[slot, j] = 0.0
        buffer_y[slot] = 0.0
        return
    v = y[i] - totals[SHIFT_Y]
    buffer_y[slot] = root * v
    weighted_v = weight * v
    for j in range(d):
        z = X[i, j] - moments[SHIFT_X, j]
        buffer[slot, j] = root * z
        moments[SUM_X, j] += weight * z
        moments[SUM_XX, j] += weight * z * z
        moments[CROSS, j] += weighted_v * z
    totals[WEIGHT] += weight
    totals[SUM_Y] += weight * v
    totals[SUM_YY] += weight * v * v


@compiled
def absorb_rows(gram: GramArrays, X: Floats, y: Floats, w: Floats) -> None:
    """Absorb rows that all fit in the buffer."""
    _, buffer, buffer_y, buffer_root, moments, totals, counts = gram
    for i in range(X.shape[0]):
        absorb_row(buffer, buffer_y, buffer_root, moments, totals, counts, X, y, w, i)


@compiled
def add_scatter_product(scatter: NDArray[np.floating], vector: Floats, out: Floats) -> None:
    """Out += scatter @ vector, fast for a vector with few nonzeros.

    Reads only the upper triangle: row i from the diagonal on, and column i above it.
    """
    d, n = vector.shape[0], 0
    index = np.empty(d, np.int64)
    for j in range(d):
        if vector[j] != 0.0:
            index[n] = j
            n += 1
    for a in range(n):
        i = index[a]
        for j in range(i, d):
            out[j] += vector[i] * scatter[i, j]
    first = 0  # the entries index[first:n] lie strictly right of the diagonal in row j
    for j in range(d):
        while first < n and index[first] <= j:
            first += 1
        total = 0.0
        for a in range(first, n):
            total += scatter[j, index[a]] * vector[index[a]]
        out[j] += total
