"""Columns that appear while a stream goes on: the sums of a Gram that had seen zeros for them all along.

A column of zeros has a shift of zero, which a mean of zero never leaves, and adds nothing but zeros to every sum. So
appending columns is appending zeros, and the sums of the other columns stay as they are, bit for bit.
"""

import numpy as np

from thresher.kernels.gram import N_BUFFERED, N_SAMPLES, GramArrays

# When the matrix has to be copied, room is made for one more column in so many: thousands of columns that come one at a
# time then cost a few copies, for a quarter more memory. Folding goes over the spare columns, too.
COLUMNS_PER_SPARE = 8


def room_for(arrays: GramArrays, n_features: int) -> int:
    """How wide the matrix must be to hold so many columns, and some spare ones if it has to be copied."""
    room = len(arrays.scatter)
    return room if room >= n_features else n_features + n_features // COLUMNS_PER_SPARE


def widened(arrays: GramArrays, n_features: int, room: int, block: int) -> GramArrays:
    """The sums with columns of zeros appended, in a matrix with this much room; blocks are not shorter than `block`.

    What does not depend on the number of columns is shared with the old arrays, and so is the matrix if it has room:
    only one of the two may go on. Columns of it beyond `n_features` are zero.
    """
    before, n = arrays.moments.shape[1], int(arrays.counts[N_BUFFERED])
    scatter = arrays.scatter
    if len(scatter) != room:
        scatter = np.zeros((room, room), scatter.dtype)
        if arrays.counts[N_SAMPLES] > n:  # before the first fold there is nothing to copy
            scatter[:before, :before] = arrays.scatter[:before, :before]
    length = max(len(arrays.buffer), block)
    buffer, buffer_y = np.zeros((length, n_features)), np.zeros(length)
    buffer[:n, :before], buffer_y[:n] = arrays.buffer[:n], arrays.buffer_y[:n]
    moments = np.zeros((len(arrays.moments), n_features))
    moments[:, :before] = arrays.moments
    return arrays._replace(scatter=scatter, buffer=buffer, buffer_y=buffer_y, moments=moments)
