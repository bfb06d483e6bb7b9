"""Small things with arrays."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class NamedRows(NamedTuple):
    """Rows whose sender has checked that their columns have these names: what a data frame is, without one."""

    names: NDArray[Any]
    values: Floats


def add_outer(matrix: Floats, a: Floats, b: Floats) -> Floats:
    """Matrix += a b', in place and without a temporary of its size."""
    for start in range(0, len(a), 256):
        matrix[start : start + 256] += np.outer(a[start : start + 256], b)
    return matrix


def padded(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """The array with zeros appended along its axes, as a new one."""
    result = np.zeros(shape, array.dtype)
    result[tuple(map(slice, array.shape))] = array
    return result


def read_only(array: Floats) -> Floats:
    """A view that cannot be written to: for kernels that is a type of its own, so give them only one."""
    view = array.view()
    view.flags.writeable = False
    return view


# What kernels take for weights of one.
NO_WEIGHTS = read_only(np.empty(0))
