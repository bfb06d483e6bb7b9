"""Small things with arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]


def padded(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """The array with zeros appended along its axes, as a new one."""
    result = np.zeros(shape, array.dtype)
    result[tuple(map(slice, array.shape))] = array
    return result


def running_sum(start: float, terms: Floats) -> float:
    """Start plus the terms one after the other: the same bits however the terms are cut into calls."""
    return float(np.add.accumulate(np.concatenate([[start], terms]))[-1])


def read_only(array: Floats) -> Floats:
    """A view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
