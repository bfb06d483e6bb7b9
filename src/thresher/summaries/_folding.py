"""The buffer of a Gram: how many rows it holds, how they become co-moments, and whether both would fit."""

from typing import Any

import numpy as np
from scipy.linalg import blas

from thresher._memory import require_bytes
from thresher.kernels.gram import N_BUFFERED, GramArrays


def block_rows(n_features: int, hold_rows: bool = False) -> int:
    """Rows per fold: enough for BLAS-3 speed, at most an eighth of the Gram's own memory if it is large.

    Where rows are held, products with all moments are frequent, and each goes over the buffer: a shorter one.
    """
    if hold_rows:
        return 64
    return min(max((n_features // 8 + 15) // 16 * 16, 128), 256)


def require_room(n_features: int, block: int, storage: np.dtype[Any]) -> None:
    """Raise MemoryError if there is no room for the co-moments of so many columns, and a buffer of `block` rows."""
    require_bytes(
        n_features * n_features * storage.itemsize + 8 * n_features * (block + 8),
        f"A Gram of {n_features:,} features in {storage}",
        "Use fewer features."
        if storage == np.float32
        else "dtype=numpy.float32 halves it; otherwise use fewer features.",
    )


def fold(arrays: GramArrays) -> None:
    """Add the outer products of the buffered rows to the scatter matrix, and empty the buffer."""
    scatter, n = arrays.scatter, arrays.counts[N_BUFFERED]
    syrk = blas.dsyrk if scatter.dtype == np.float64 else blas.ssyrk
    rows = arrays.buffer[:n].astype(scatter.dtype, copy=False)
    if rows.shape[1] < len(scatter):  # which has room for columns to come
        rows = np.pad(rows, ((0, 0), (0, len(scatter) - rows.shape[1])))
    # In place: the transposes are Fortran-ordered, and their lower triangle is our upper one.
    syrk(1.0, rows.T, beta=1.0, c=scatter.T, lower=1, overwrite_c=1)
    arrays.counts[N_BUFFERED] = 0
