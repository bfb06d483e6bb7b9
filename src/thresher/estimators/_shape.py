"""The shape that a user asks for, checked."""

from collections.abc import Sequence
from numbers import Integral


def checked_shape(shape: Sequence[int] | None) -> tuple[int, int] | None:
    """Two positive integers, or None if none are asked for."""
    if shape is None:
        return None
    sides = [int(side) for side in shape if isinstance(side, Integral) and side >= 1]
    if len(shape) != 2 or len(sides) != 2:
        raise ValueError(f"shape must be two positive integers (d1, d2), got {shape!r}")
    return sides[0], sides[1]
