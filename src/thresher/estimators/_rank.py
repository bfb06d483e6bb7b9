"""The rank and shape that a user asks for, checked."""

from collections.abc import Sequence
from numbers import Integral

# Used for any matrix, so it may exceed the sides of a small one.
DEFAULT_RANK = 5


def checked_rank(rank: int, side: int) -> int:
    """The rank to use for a matrix whose smaller side is `side`; an error if it asks for more."""
    if rank > side and rank != DEFAULT_RANK:
        raise ValueError(f"rank={rank} exceeds the smaller side of the matrix; use at most {side}.")
    return int(min(rank, side))


def checked_shape(shape: Sequence[int] | None) -> tuple[int, int] | None:
    """Two positive integers, or None if none are asked for."""
    if shape is None:
        return None
    sides = [int(side) for side in shape if isinstance(side, Integral) and side >= 1]
    if len(shape) != 2 or len(sides) != 2:
        raise ValueError(f"shape must be two positive integers (d1, d2), got {shape!r}")
    return sides[0], sides[1]
