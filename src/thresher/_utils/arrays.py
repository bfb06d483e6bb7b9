"""Small things with arrays."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class NamedRows(NamedTuple):
    """Rows whose sender has checked that their columns have these names: what a data frame is, without one."""

    names: NDArray[Any]
    values: Floats


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
