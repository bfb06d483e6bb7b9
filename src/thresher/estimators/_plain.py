"""Rows that need no conversion, recognised in one pass."""

from typing import Any

import numpy as np

from thresher._arrays import read_only
from thresher._checks import LARGEST
from thresher.kernels.gram import all_within


def is_plain(X: Any, y: Any, n_features: int | None, dtype: np.dtype[Any], multi_output: bool = False) -> bool:
    """Whether X and y are arrays of numbers in range that validate_data would pass on unchanged.

    Row by row, asking validate_data would cost most of the time.
    """
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype == y.dtype == np.float64
        and X.ndim == 2
        and X.size > 0
        and y.ndim in ((1, 2) if multi_output else (1,))
        and y.shape[:1] == X.shape[:1]
        and y.size > 0
        and n_features in (None, X.shape[1])
        and X.flags.c_contiguous
        and y.flags.c_contiguous
        and bool(all_within(read_only(X), LARGEST[dtype]))
        and bool(all_within(read_only(y.reshape(len(y), -1)), LARGEST[np.dtype(np.float64)]))
    )
