"""Types of arrays, under names that are short in signatures, and small things with arrays."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray


class Alias:
    """The name of a type, which ``help`` shows in signatures instead of what it stands for.

    Type checkers see the type itself. (Python 3.12 has a ``type`` statement for this.)

    Examples
    --------
    >>> Alias("Floats") | None
    Floats | None
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __or__(self, other: Any) -> "Alias":
        return Alias(f"{self} | {_shown(other)}")

    def __ror__(self, other: Any) -> "Alias":
        return Alias(f"{_shown(other)} | {self}")


def _shown(kind: Any) -> str:
    return "None" if kind is None else kind.__name__ if isinstance(kind, type) else repr(kind)


if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
    from numpy.typing import DTypeLike as DTypeLike

    Floats = NDArray[np.float64]
    Integers = NDArray[np.intp]
else:
    ArrayLike, DTypeLike = Alias("ArrayLike"), Alias("DTypeLike")
    Floats, Integers = Alias("Floats"), Alias("Integers")


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
