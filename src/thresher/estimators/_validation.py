"""What comes from users: rows that need no conversion, and shapes."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from thresher._utils.checks import LARGEST, SMALLEST
from thresher.summaries._buffer import all_within

FLOAT64 = np.dtype(np.float64)


def is_plain(X: Any, y: Any, n_features: int | None, dtype: np.dtype[Any], multi_output: bool = False) -> bool:
    """Whether X and y are arrays of numbers in range that validate_data would pass on unchanged.

    Row by row, asking validate_data would cost most of the time.
    """
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype == y.dtype == FLOAT64
        and X.ndim == 2
        and X.size > 0
        and y.ndim in ((1, 2) if multi_output else (1,))
        and y.shape[:1] == X.shape[:1]
        and y.size > 0
        and n_features in (None, X.shape[1])
        and X.flags.c_contiguous
        and y.flags.c_contiguous
        and all_within(X.ravel(), LARGEST[dtype])
        and all_within(y.ravel(), LARGEST[FLOAT64])
        and (len(y) == 1 or not (all_within(X.ravel(), SMALLEST) or all_within(y.ravel(), SMALLEST)))
    )


def checked_shape(shape: Sequence[int] | None) -> tuple[int, int] | None:
    """Two positive integers, or None if none are asked for."""
    if shape is None:
        return None
    sides = [int(side) for side in shape if isinstance(side, Integral) and side >= 1]
    if len(shape) != 2 or len(sides) != 2:
        raise ValueError(f"shape must be two positive integers (d1, d2), got {shape!r}")
    return sides[0], sides[1]
