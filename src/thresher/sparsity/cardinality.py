"""Sparsity by counting: vectors with at most s entries different from zero."""

from dataclasses import dataclass

import numpy as np

from thresher._utils.arrays import ArrayLike, Floats
from thresher._utils.checks import check_positive_integer
from thresher.io.schema import Count, Schema
from thresher.sparsity._common import largest, relative_concavity


@dataclass(frozen=True)
class Cardinality:
    r"""The set :math:`\{\theta : \|\theta\|_0 \le s\}` and the projection onto it.

    ``project`` solves :math:`\min_\phi \|\phi - \theta\|_2` over the set: it keeps the s entries of largest
    magnitude and sets the others to zero. Magnitudes that agree to ten digits, or to 1e-13 of the
    largest, count as tied, and ties go to the lowest index: rounding must not choose between two equal columns.
    O(d) time.

    Parameters
    ----------
    s : int
        Number of entries to keep; all of them, if the vector is shorter.

    References
    ----------
    Online Generalized Sparse Regression, eq. (def:cardinality_projection) and Lemma (multi_step_descent).

    Examples
    --------
    >>> from thresher import Cardinality
    >>> Cardinality(2).project([3.0, -1.0, 0.5, 1.0])
    array([ 3., -1.,  0.,  0.])
    >>> Cardinality(2).measure([3.0, -1.0, 0.0, 0.0])
    2
    >>> Cardinality(16).concavity(4)
    0.25
    """

    _schema = Schema(s=Count(1))
    s: int

    def __post_init__(self) -> None:
        check_positive_integer(self.s, "s")

    def project(self, theta: ArrayLike) -> Floats:
        """The closest vector with at most s nonzero entries, as a new array."""
        theta = np.asarray(theta, np.float64)
        keep = largest(np.abs(theta).reshape(-1), self.s).reshape(theta.shape)
        return np.where(keep, theta, 0.0)

    def restrict(self, direction: ArrayLike, theta: ArrayLike) -> Floats:
        """The part of `direction` along which theta can move without leaving the set.

        Entries outside the support of theta become zero. At theta = 0 every direction with s entries
        is open, and the s largest are taken.
        """
        direction, theta = np.asarray(direction, np.float64), np.asarray(theta, np.float64)
        if not theta.any():
            return Cardinality.project(self, direction)  # whatever else a subclass does to what it keeps
        return np.where(theta != 0.0, direction, 0.0)

    def measure(self, theta: ArrayLike) -> int:
        """The number of nonzero entries."""
        return int(np.count_nonzero(theta))

    def concavity(self, s_star: int) -> float:
        """The relative concavity sqrt(s*/s)/2 of the projection with respect to s*-sparse vectors."""
        return relative_concavity(self.s, s_star, "s")
