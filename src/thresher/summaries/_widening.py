"""Columns that appear while a stream goes on: the sums of a Gram that had seen zeros for them all along.

A column of zeros has a shift of zero, which a mean of zero never leaves, and adds nothing but zeros to every sum. So
appending columns is appending zeros, and the sums of the other columns stay as they are, bit for bit.
"""

from copy import copy
from dataclasses import replace

import numpy as np

from thresher._utils.arrays import padded
from thresher.summaries._shifted import State

# When the matrix has to be copied, room is made for one more column in so many: thousands of columns that appear one at
# a time then cost a few copies, for a quarter more memory. Folding goes over the spare columns, too.
COLUMNS_PER_SPARE = 8


def room_for(state: State, n_features: int) -> int:
    """How wide the matrix must be to hold so many columns, and some spare ones if it has to be copied."""
    room = len(state.scatter)
    return room if room >= n_features else n_features + n_features // COLUMNS_PER_SPARE


def widened(state: State, n_features: int, room: int, block: int) -> State:
    """The sums with columns of zeros appended, in a matrix with this much room; blocks are not shorter than `block`.

    What does not depend on the number of columns is shared with the old state, and so is the matrix if it has room:
    only one of the two may go on. Columns of it beyond `n_features` are zero.
    """
    before, n, result = len(state.sum_x), state.n_buffered, copy(state)
    if len(state.scatter) != room:
        result.scatter = np.zeros((room, room), state.scatter.dtype)
        if state.n_samples > n:  # before the first fold there is nothing to copy
            result.scatter[:before, :before] = state.scatter[:before, :before]
    length = max(len(state.buffer), block)
    result.buffer = np.zeros((length, n_features))
    result.buffer[:n, :before] = state.buffer[:n]
    result.buffer_y, result.buffer_root = padded(state.buffer_y, length), padded(state.buffer_root, length)
    if state.decay is not None:
        result.decay = replace(state.decay, factors=padded(state.decay.factors, length))
    for name in ("shift_x", "sum_x", "sum_xx", "cross"):
        setattr(result, name, padded(getattr(state, name), n_features))
    return result
