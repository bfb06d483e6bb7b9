"""Rows that come from users: recognised if they need no conversion, checked and converted otherwise."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher._utils.checks import LARGEST, within

Floats = NDArray[np.float64]
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
        and within(X, LARGEST[dtype])
        and within(y, LARGEST[FLOAT64])
    )
