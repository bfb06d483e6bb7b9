"""Sparsity of a matrix: few singular values different from zero."""

from dataclasses import dataclass

import numpy as np

from thresher._utils.arrays import ArrayLike, Floats
from thresher._utils.checks import check_positive_integer
from thresher.io.schema import Count, Schema, Tuple
from thresher.sparsity._common import relative_concavity


@dataclass(frozen=True)
class Rank:
    r"""The set of matrices of rank at most r, and the projection onto it.

    ``project`` solves :math:`\min_\Phi \|\Phi - \Theta\|_F` over the set: it keeps the r largest singular
    triplets (Eckart and Young). One full singular value decomposition: O(d1 d2 min(d1, d2)).

    Parameters
    ----------
    r : int
        Rank to keep; the whole matrix, if its smaller side is shorter.
    shape : tuple of int, optional
        Shape (d1, d2) of matrices that are given as vectors, row after row.

    References
    ----------
    Online Generalized Sparse Regression, Section 3.2: :math:`U_r U_r^\top \Theta`.

    Examples
    --------
    >>> from thresher import Rank
    >>> Rank(1).project([[3.0, 0.0], [0.0, 2.0]])
    array([[3., 0.],
           [0., 0.]])
    >>> Rank(1, shape=(2, 2)).project([3.0, 0.0, 0.0, 2.0])
    array([3., 0., 0., 0.])
    >>> Rank(2).measure([[1.0, 2.0], [2.0, 4.0]])
    1
    """

    _schema = Schema(r=Count(1), shape=Tuple(Count(1), Count(1)) | None)
    r: int
    shape: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        check_positive_integer(self.r, "r")

    @property
    def s(self) -> int:
        """The rank, by the name that the size of a set has in the paper."""
        return self.r

    def project(self, theta: ArrayLike) -> Floats:
        """The closest matrix of rank at most r, as a new array of the same shape."""
        theta = np.asarray(theta, np.float64)
        u, s, vt = self.factors(theta)
        return ((u * s) @ vt).reshape(theta.shape)

    def factors(self, theta: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """U, singular values and V' of the projection, with the signs of `fix_signs`; U S V' is the projection."""
        matrix = self._matrix(np.asarray(theta, np.float64))
        u, s, vt = np.linalg.svd(matrix, full_matrices=False)
        return fix_signs(u[:, : self.r], s[: self.r], vt[: self.r])

    def restrict(self, direction: ArrayLike, theta: ArrayLike) -> Floats:
        """The part of `direction` along which theta can move without leaving the set: that in its column space.

        At theta = 0 the best approximation of the direction is taken.
        """
        direction, theta = np.asarray(direction, np.float64), np.asarray(theta, np.float64)
        if not theta.any():
            return self.project(direction)
        u, s, _ = self.factors(theta)
        u = u[:, s > s[0] * np.finfo(np.float64).eps]
        return (u @ (u.T @ self._matrix(direction))).reshape(direction.shape)

    def measure(self, theta: ArrayLike) -> int:
        """The number of singular values different from zero, to rounding."""
        matrix = self._matrix(np.asarray(theta, np.float64))
        return int(np.linalg.matrix_rank(matrix)) if matrix.size else 0

    def concavity(self, s_star: int) -> float:
        """The relative concavity sqrt(s*/r)/2 of the projection with respect to matrices of rank s*."""
        return relative_concavity(self.r, s_star, "r")

    def _matrix(self, theta: Floats) -> Floats:
        matrix = theta.reshape(self.shape) if self.shape is not None and theta.ndim == 1 else theta
        if matrix.ndim != 2:
            raise ValueError(f"theta has shape {theta.shape}; pass a matrix, or give Rank the shape of one.")
        return matrix


def fix_signs(u: Floats, s: Floats, vt: Floats) -> tuple[Floats, Floats, Floats]:
    """Choose, of the two signs of each singular pair, the one with the largest entry of u positive."""
    top = np.argmax(np.abs(u) > (1.0 - 1e-9) * np.abs(u).max(axis=0, initial=0.0), axis=0)
    signs = np.where(u[top, np.arange(u.shape[1])] < 0.0, -1.0, 1.0)
    return u * signs, s, vt * signs[:, None]
