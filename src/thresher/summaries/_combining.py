"""Sums of other streams from sums at hand: what merging, subtracting and selecting columns of Grams comes down to."""

import numpy as np
from numpy.typing import NDArray

from thresher.kernels import gram as kernel
from thresher.kernels.gram import (
    CROSS,
    HIGH,
    LOW,
    N_BUFFERED,
    N_SAMPLES,
    SHIFT_X,
    SHIFT_Y,
    SUM_X,
    SUM_XX,
    SUM_Y,
    SUM_YY,
    WEIGHT,
    GramArrays,
)

# A summary is not part of another if taking it away leaves a sum of squares this far on the wrong side.
ROUNDING_SHARE = 1e-8
# The extremes of columns of which nothing is known.
UNKNOWN = np.array([[np.inf], [-np.inf]])


def check_part(before: NDArray[np.float64], after: NDArray[np.float64], nothing_left: bool) -> None:
    """Raise if sums of squares after a subtraction show that the other summary was not part of this one."""
    wrong = (after < -ROUNDING_SHARE * before) | (nothing_left & (after > ROUNDING_SHARE * before))
    if wrong.any():
        raise ValueError(
            f"Cannot subtract: what would be left of column {int(np.argmax(wrong))} has a negative sum of squares, "
            "or no rows but a positive one, so the other summary is not part of this one."
        )


def copied(arrays: GramArrays, scatter: NDArray[np.floating]) -> GramArrays:
    """A copy that keeps its co-moments in `scatter`, which must be zero."""
    folded = arrays.counts[N_SAMPLES] > arrays.counts[N_BUFFERED]
    if folded:
        scatter[...] = arrays.scatter[: len(scatter), : len(scatter)]  # without room for columns to come
    # Before the first fold the buffer may be long and nearly empty: what was not written to must not be.
    buffer = np.zeros(arrays.buffer.shape)
    n_written = len(buffer) if folded else arrays.counts[N_BUFFERED]
    buffer[:n_written] = arrays.buffer[:n_written]
    return GramArrays(
        scatter=scatter,
        buffer=buffer,
        buffer_y=arrays.buffer_y.copy(),
        moments=arrays.moments.copy(),
        totals=arrays.totals.copy(),
        counts=arrays.counts.copy(),
    )


def selected(arrays: GramArrays, index: NDArray[np.intp], into: GramArrays) -> None:
    """Put the sums of the columns `index` alone, all rows folded, into arrays that must be empty."""
    low, high = np.minimum.outer(index, index), np.maximum.outer(index, index)
    rows = arrays.buffer[: arrays.counts[N_BUFFERED], index]
    into.scatter[...] = arrays.scatter[low, high] + rows.T @ rows
    into.moments[HIGH:] = UNKNOWN
    into.moments[: len(arrays.moments)] = arrays.moments[:, index]
    np.fill_diagonal(into.scatter, into.moments[SUM_XX])  # float64 whatever the storage
    into.totals[...] = arrays.totals
    into.counts[N_SAMPLES] = arrays.counts[N_SAMPLES]


def add(ours: GramArrays, theirs: GramArrays, sign: float) -> None:
    """Ours += sign theirs, about our shift. Both buffers must be empty; theirs is changed too."""
    if theirs.totals[WEIGHT] > 0.0:
        kernel.translate(
            theirs,
            ours.moments[SHIFT_X] - theirs.moments[SHIFT_X],
            ours.totals[SHIFT_Y] - theirs.totals[SHIFT_Y],
        )
        ours.scatter[...] += sign * theirs.scatter
        ours.moments[SUM_X:HIGH] += sign * theirs.moments[SUM_X:HIGH]
        if len(ours.moments) > HIGH:
            high, low = theirs.moments[HIGH:] if len(theirs.moments) > HIGH else UNKNOWN
            if sign < 0.0:  # an extreme may be that of a row that goes; then the next one is not known
                margin = ROUNDING_SHARE * (ours.moments[HIGH] - ours.moments[LOW])
                high = np.where(high >= ours.moments[HIGH] - margin, np.inf, -np.inf)
                low = np.where(low <= ours.moments[LOW] + margin, -np.inf, np.inf)
            np.maximum(ours.moments[HIGH], high, out=ours.moments[HIGH])
            np.minimum(ours.moments[LOW], low, out=ours.moments[LOW])
        for place in (WEIGHT, SUM_Y, SUM_YY):
            ours.totals[place] += sign * theirs.totals[place]
    ours.counts[N_SAMPLES] += int(sign) * theirs.counts[N_SAMPLES]
    if ours.totals[WEIGHT] > 0.0 and kernel.mean_left_shift(ours):
        kernel.recentre(ours)


def make_constant(arrays: GramArrays, columns: NDArray[np.intp]) -> None:
    """Let columns whose variance is no more than rounding be exactly constant. The buffer must be empty."""
    moments, totals, scatter = arrays.moments, arrays.totals, arrays.scatter
    share = moments[SUM_X] / totals[WEIGHT]
    for j in columns:
        product = moments[SUM_X, j] * share
        scatter[j, j:], scatter[:j, j] = product[j:], product[:j]
        moments[SUM_XX, j] = moments[SUM_X, j] * share[j]
        moments[CROSS, j] = totals[SUM_Y] * share[j]
