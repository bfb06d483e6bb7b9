"""The arithmetic of a buffered, shifted Gram summary, on bare arrays.

Every sum is taken about a *shift* (c, c_y) instead of about zero: with z = x - c and v = y - c_y,

    scatter = sum w z z'    cross = sum w z v    sum_x = sum w z    sum_xx = sum w z^2

The shift starts at the first row and follows the mean when the mean leaves it (see `recentre`),
so centred co-moments, scatter - sum_x sum_x' / weight, never cancel.

`scatter` holds the rows that were folded, in its upper triangle; the newest rows wait in `buffer` as
sqrt(w) z and `buffer_y` as sqrt(w) v. Everything else covers all rows. The largest and the smallest z of each column
are kept, too, those of rows with a weight below one times its root; they are infinite where they are not known.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.kernels._compile import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Rows of GramArrays.moments
SHIFT_X, SUM_X, SUM_XX, CROSS, HIGH, LOW = 0, 1, 2, 3, 4, 5
N_MOMENTS = 6
# Places in GramArrays.totals
WEIGHT, SHIFT_Y, SUM_Y, SUM_YY = 0, 1, 2, 3
# Places in GramArrays.counts
N_SAMPLES, N_BUFFERED = 0, 1

# The shift moves when the mean is further from it than this share of the second moment about it.
DRIFT_SHARE = 0.1


class GramArrays(NamedTuple):
    """The mutable state of a Gram summary; d features, blocks of B rows."""

    scatter: NDArray[np.floating]  # (d, d), upper triangle, folded rows
    buffer: Floats  # (B, d)
    buffer_y: Floats  # (B,)
    moments: Floats  # (6, d): shift, sum w z, sum w z^2, sum w z v, max z, min z; in old files without the last two
    totals: Floats  # (4,): weight, shift of y, sum w v, sum w v^2
    counts: Integers  # (2,): rows, rows in the buffer


@compiled
def absorb_row(
    buffer: Floats,
    buffer_y: Floats,
    moments: Floats,
    totals: Floats,
    counts: Integers,
    X: Floats,
    y: Floats,
    w: Floats,
    i: int,
) -> None:
    """Add row i to the buffer and to every O(d) sum; the buffer must have room.

    An empty `w` means weights of one.
    """
    weight = w[i] if w.shape[0] else 1.0
    d = X.shape[1]
    if totals[WEIGHT] == 0.0 and weight > 0.0:
        for j in range(d):
            moments[SHIFT_X, j] = X[i, j]
        totals[SHIFT_Y] = y[i]
    slot = counts[N_BUFFERED]
    counts[N_SAMPLES] += 1
    counts[N_BUFFERED] += 1
    if weight == 0.0:  # a row that does not count may be so far away that zero times it is not zero
        for j in range(d):
            buffer[slot, j] = 0.0
        buffer_y[slot] = 0.0
        return
    root = np.sqrt(weight)
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
    if moments.shape[0] == N_MOMENTS:
        part = min(root, 1.0)
        for j in range(d):
            z = part * (X[i, j] - moments[SHIFT_X, j])
            high, low = moments[HIGH, j], moments[LOW, j]
            moments[HIGH, j] = z if z > high else high
            moments[LOW, j] = z if z < low else low


@compiled
def absorb_rows(gram: GramArrays, X: Floats, y: Floats, w: Floats) -> None:
    """Absorb rows that all fit in the buffer."""
    _, buffer, buffer_y, moments, totals, counts = gram
    for i in range(X.shape[0]):
        absorb_row(buffer, buffer_y, moments, totals, counts, X, y, w, i)


@compiled
def mean_left_shift(gram: GramArrays) -> bool:
    """Whether some column's mean is too far from its shift for cheap, accurate centring."""
    weight, moments = gram.totals[WEIGHT], gram.moments
    n_far = 0
    for j in range(moments.shape[1]):
        squared = moments[SUM_X, j] * (moments[SUM_X, j] / weight)
        n_far += squared > DRIFT_SHARE * moments[SUM_XX, j]
    return n_far > 0


@compiled
def recentre(gram: GramArrays) -> None:
    """Move the shift to the mean; the buffer must be empty."""
    moments, totals = gram.moments, gram.totals
    weight = totals[WEIGHT]
    move = np.empty(moments.shape[1])
    for j in range(moments.shape[1]):
        shift = moments[SHIFT_X, j] + moments[SUM_X, j] / weight
        move[j] = shift - moments[SHIFT_X, j]  # what the rounded shift really moved by
        moments[SHIFT_X, j] = shift
    shift_y = totals[SHIFT_Y] + totals[SUM_Y] / weight
    move_y = shift_y - totals[SHIFT_Y]
    totals[SHIFT_Y] = shift_y
    translate(gram, move, move_y)


@compiled
def translate(gram: GramArrays, move: Floats, move_y: float) -> None:
    """Rewrite every sum for a shift that moved by (move, move_y); the buffer must be empty.

    scatter <- scatter - sum_x move' - move sum_x' + weight move move', and alike for the others.
    """
    scatter, moments, totals = gram.scatter, gram.moments, gram.totals
    d = move.shape[0]
    weight, sum_y = totals[WEIGHT], totals[SUM_Y]
    for i in range(d):
        a = moments[SUM_X, i] - weight * move[i]
        for j in range(i, d):
            scatter[i, j] -= a * move[j] + move[i] * moments[SUM_X, j]
    for j in range(d):
        sum_x = moments[SUM_X, j]
        moments[CROSS, j] -= sum_x * move_y + (sum_y - weight * move_y) * move[j]
        moments[SUM_XX, j] -= (2.0 * sum_x - weight * move[j]) * move[j]
        moments[SUM_X, j] -= weight * move[j]
    for place in range(HIGH, moments.shape[0]):
        for j in range(d):
            moments[place, j] -= move[j]
    totals[SUM_YY] -= (2.0 * sum_y - weight * move_y) * move_y
    totals[SUM_Y] -= weight * move_y


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


@compiled
def symmetric_copy(scatter: NDArray[np.floating], out: Floats) -> None:
    """Fill `out` with the full symmetric matrix, tile by tile to stay in cache."""
    d = out.shape[0]
    tile = 32
    for i0 in range(0, d, tile):
        for j0 in range(i0, d, tile):
            for i in range(i0, min(i0 + tile, d)):
                for j in range(max(i, j0), min(j0 + tile, d)):
                    out[i, j] = scatter[i, j]
                    out[j, i] = scatter[i, j]


@compiled
def all_within(X: Floats, limit: float) -> bool:
    """Whether every entry is a number of size at most `limit`, in one pass."""
    n_beyond = 0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            n_beyond += not abs(X[i, j]) <= limit
    return n_beyond == 0
