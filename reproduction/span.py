"""Products of a matrix with vectors that hardly leave a space of few dimensions."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# What is left of a vector outside the space is dropped below so many units of rounding: 4e-5 of the vector in float32.
DROPPED = 300.0


class Span:
    """Products of one symmetric matrix with several sequences of vectors, each within its own span where that suffices.

    The moves of a round of Algorithm 1 with short steps are nearly polynomials of low degree in the moments, applied to
    the first move: twenty moves hardly leave three dimensions. So the matrix is only multiplied with what is new in a
    vector, and the rest of its product is combined from earlier ones. What is dropped is at most the share
    ``300 * eps`` of the vector. Rounds compute their gradient afresh after moves of 1 % of the estimate in all, so
    gradients are off by 4e-7 of the estimate at most, times the largest eigenvalue of the moments, in float32.

    Parameters
    ----------
    product : callable
        Vectors of length one, as rows, to their products with the matrix.
    n_sequences, n_vectors, n_features : int
        How many sequences, how many vectors each has at most, and their length.
    dtype : dtype
        Precision of the vectors that are multiplied.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.span import Span
    >>> rows_multiplied = []
    >>> def product(vectors):
    ...     rows_multiplied.append(len(vectors))
    ...     return vectors @ np.diag([1.0, 2.0, 3.0])
    >>> span = Span(product, 2, 3, 3, np.dtype(float))
    >>> span.multiply(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])).tolist()
    [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    >>> span.multiply(np.array([[4.0, 0.0, 0.0], [0.0, 1.0, 1.0]])).tolist()
    [[4.0, 0.0, 0.0], [0.0, 2.0, 3.0]]
    >>> rows_multiplied
    [2, 1]
    """

    def __init__(
        self,
        product: Callable[[NDArray[np.floating]], Floats],
        n_sequences: int,
        n_vectors: int,
        n_features: int,
        dtype: "np.dtype[Any]",
    ) -> None:
        self._product = product
        self._share = DROPPED * float(np.finfo(dtype).eps)
        shape = n_sequences, n_vectors, n_features
        # An orthonormal basis for each sequence, with zeros where it needed no more vectors, and its products.
        self._basis, self._images = np.empty(shape, dtype), np.empty(shape)
        self._n = 0

    def clear(self) -> None:
        """Begin again, with another matrix."""
        self._n = 0

    def multiply(self, vectors: Floats) -> Floats:
        """The next vector of each of the first sequences, as rows, to its product with the matrix."""
        n_active = len(vectors)
        size = np.linalg.norm(vectors, axis=1, keepdims=True)
        per = np.divide(1.0, size, out=np.zeros_like(size), where=(size > 0.0) & np.isfinite(size))
        units = (per * vectors).astype(self._basis.dtype)
        basis = self._basis[:n_active, : self._n]
        along = _along(basis, units)
        rest = units - _combined(along, basis)
        length = np.linalg.norm(rest, axis=1)
        new = np.flatnonzero(length > self._share)
        if len(new):
            fresh, others = rest[new] / length[new, None], basis[new]
            fresh -= _combined(_along(others, fresh), others)  # twice is enough
            fresh /= np.linalg.norm(fresh, axis=1, keepdims=True)
            self._basis[:, self._n], self._images[:, self._n] = 0.0, 0.0
            self._basis[new, self._n], self._images[new, self._n] = fresh, self._product(fresh)
            along = np.c_[along, np.vecdot(self._basis[:n_active, self._n], units)]
            self._n += 1
        return np.asarray(size * _combined(along.astype(np.float64), self._images[:n_active, : self._n]))


def _along(basis: NDArray[np.floating], vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Inner products of each vector with its own basis."""
    return np.asarray(np.matmul(basis, vectors[:, :, None])[:, :, 0])


def _combined(along: NDArray[np.floating], basis: NDArray[np.floating]) -> NDArray[np.floating]:
    """Sums of the vectors of each basis with these coefficients."""
    return np.asarray(np.matmul(along[:, None], basis)[:, 0])
