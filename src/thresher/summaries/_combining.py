"""Sums of other streams from the sums of these: copying, merging and subtracting Grams."""

from copy import copy

import numpy as np
from numpy.typing import NDArray

from thresher.summaries._decay import align
from thresher.summaries._shifted import State, mean_left_shift, recentre_shift, sums, translate

# A summary is not part of another if taking it away leaves a sum of squares this far on the wrong side.
ROUNDING_SHARE = 1e-8


def check_part(before: NDArray[np.float64], after: NDArray[np.float64], nothing_left: bool) -> None:
    """Raise if sums of squares after a subtraction show that the other summary was not part of this one."""
    wrong = (after < -ROUNDING_SHARE * before) | (nothing_left & (after > ROUNDING_SHARE * before))
    if wrong.any():
        raise ValueError(
            f"Cannot subtract: what would be left of column {int(np.argmax(wrong))} has a negative sum of squares, "
            "or no rows but a positive one, so the other summary is not part of this one."
        )


def copied(state: State, scatter: NDArray[np.floating]) -> State:
    """The same sums in arrays of their own; `scatter`, of zeros, has no room for columns to come."""
    result, d = copy(state), len(state.sum_x)
    if state.n_samples > state.n_buffered:
        scatter[...] = state.scatter[:d, :d]
    result.scatter = scatter
    for name in ("buffer_y", "buffer_root", "shift_x", "sum_x", "sum_xx", "cross"):
        setattr(result, name, getattr(state, name).copy())
    # The first buffer may be long and nearly empty: what was not written to must not be.
    result.buffer = np.zeros(state.buffer.shape)
    result.buffer[: state.n_buffered] = state.buffer[: state.n_buffered]
    result.decay = None if state.decay is None else state.decay.copy()
    return result


def add(ours: State, theirs: State, sign: float) -> None:
    """Ours += sign theirs, about our shift. Both buffers must be empty; theirs is changed too."""
    align(ours, theirs)
    if ours.decay is not None and theirs.decay is not None:
        ours.decay.squared += sign * theirs.decay.squared
        ours.decay.sum_factors += sign * theirs.decay.sum_factors
        ours.decay.sum_factors_squared += sign * theirs.decay.sum_factors_squared
    if theirs.weight > 0.0:
        translate(theirs, ours.shift_x - theirs.shift_x, ours.shift_y - theirs.shift_y)
        ours.scatter += theirs.scatter if sign == 1.0 else sign * theirs.scatter
        ours.sum_x = ours.sum_x + sign * theirs.sum_x
        ours.sum_xx = ours.sum_xx + sign * theirs.sum_xx
        ours.cross = ours.cross + sign * theirs.cross
        ours.weight += sign * theirs.weight
        ours.sum_y += sign * theirs.sum_y
        ours.sum_yy += sign * theirs.sum_yy
    ours.n_samples += int(sign) * theirs.n_samples
    if ours.weight > 0.0 and mean_left_shift(ours):
        recentre_shift(ours)


def make_constant(state: State, columns: NDArray[np.intp]) -> None:
    """Let columns whose variance is no more than rounding be exactly constant. The buffer must be empty."""
    u, d = sums(state).centring(), len(state.sum_x)  # u u' is what is taken off again when sums are centred
    for j in columns:
        product = u[j] * u
        state.scatter[j, j:d], state.scatter[:j, j] = product[j:], product[:j]
        state.sum_xx[j] = product[j]
        state.cross[j] = state.sum_y / np.sqrt(state.weight) * u[j]
