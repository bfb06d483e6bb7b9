"""Least squares on a growing set of features, and what every change of the set by one feature would do to the loss."""

from collections.abc import Iterator
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri

from thresher._utils.tolerances import OWN_SHARE, TIE
from thresher.solvers.forward_backward import Swap
from thresher.summaries.moments import Moments

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# Room for so many features to begin with; twice as many when it is full.
FIRST_ROOM = 32


class FeatureBasis:
    """Least squares on the features that were added, in their order.

    With G the moments of the features and h those with y, the members S have a Cholesky factor G_SS = U'U, and
    the rows W of U'^-1 G_S: are kept for all d features. What is left of feature j beside the members is
    G_jj - sum_k W_kj^2; of its moment with y it is h_j - sum_k W_kj t_k, with t = U'^-1 h_S. The residual sum of
    squares falls by the square of the latter over the former. Adding a feature costs O(d k).

    Parameters
    ----------
    moments : Moments
        What is known of the rows.
    members : iterable of int
        The features to begin with.

    Attributes
    ----------
    order : list of int
        The members, in the order in which they were added.
    residual : float
        The residual sum of squares of least squares on them.
    """

    def __init__(self, moments: Moments, members: tuple[int, ...] = ()) -> None:
        self._moments = moments
        d, room = moments.n_features, max(FIRST_ROOM, len(members))
        self.order: list[int] = []
        self.residual = moments.total
        self._floor = OWN_SHARE[moments.dtype] * moments.squares
        self._left = np.where(moments.squares > 0.0, moments.squares, np.inf)  # infinite: must not be added
        self._pull = moments.products.copy()
        self._rows = np.empty((room, d))
        self._rhs = np.empty(room)
        self._scratch = np.empty(d)
        self._inverted: tuple[Floats, Floats] | None = None
        for unit in members:
            if np.isinf(self._left[unit]):  # collinear with those before it, in this order
                self.residual = np.inf
                return
            self.add(unit)

    def truncated(self, size: int) -> "FeatureBasis":
        """The first `size` members, as a new basis: O(d size)."""
        result = FeatureBasis(self._moments)
        result.order, rows, rhs = self.order[:size], self._rows[:size].copy(), self._rhs[:size].copy()
        result._rows, result._rhs = rows, rhs
        result.residual = float(self._moments.total - rhs @ rhs)
        result._pull -= rhs @ rows
        result._left -= np.einsum("ij,ij->j", rows, rows)
        np.putmask(result._left, result._left <= self._floor, np.inf)
        result._left[result.order] = np.inf
        return result

    def restarted(self, units: tuple[int, ...]) -> "FeatureBasis":
        """A basis of these features."""
        return FeatureBasis(self._moments, units)

    def freedom(self, units: tuple[int, ...]) -> int:
        """Parameters of least squares on members."""
        return len(units)

    def best_addition(self) -> tuple[int, float]:
        """The feature that lowers the residual sum of squares most, and by how much; -1 if there is none."""
        gains = np.divide(self._pull, self._left, out=self._scratch)
        gains *= self._pull  # in this order, so that squares of small numbers do not vanish
        top = gains.item(gains.argmax())
        if not top > 0.0:
            return -1, 0.0
        return int((gains >= top * (1.0 - TIE)).argmax()), top

    def add(self, unit: int) -> None:
        """Add a feature that has something of its own."""
        n, rows = len(self.order), self._rows
        if n == len(rows):
            more = max(n, FIRST_ROOM)
            self._rows = rows = np.vstack([rows, np.empty((more, rows.shape[1]))])
            self._rhs = np.append(self._rhs, np.empty(more))
        line, left, pull, scratch = rows[n], self._left, self._pull, self._scratch
        pivot = sqrt(left.item(unit))
        column = self._moments.column(unit)
        if n:
            above = rows[:n]
            np.dot(above[:, unit], above, out=line)
            np.subtract(column, line, out=line)
            line /= pivot
        else:
            np.divide(column, pivot, out=line)
        line[unit] = pivot
        along = self._rhs[n] = pull.item(unit) / pivot
        pull -= np.multiply(line, along, out=scratch)
        left -= np.multiply(line, line, out=scratch)
        np.putmask(left, left <= self._floor, np.inf)
        left[unit] = np.inf
        self.residual -= along * along
        self.order.append(unit)
        self._inverted = None

    def _inverse(self) -> tuple[Floats, Floats]:
        """U^-1, upper triangular, and the coefficients of the members."""
        if self._inverted is None:
            n = len(self.order)
            if n == 0:
                return np.zeros((0, 0)), np.zeros(0)
            # Below the diagonal, the rows of members are zero but for rounding, and dtrtri does not look there.
            root = np.triu(dtrtri(self._rows[:n, self.order])[0])
            self._inverted = root, root @ self._rhs[:n]
        return self._inverted

    def coefficients(self) -> Floats:
        """The coefficients of the members, in ascending order of the features."""
        return self._inverse()[1][np.argsort(self.order)]

    def eliminated(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """What is left, and its residual sum of squares, as members leave: each time the one that explains least.

        Without member j the residual sum of squares rises by c_j^2 / V_jj, with V = G_SS^-1 and the coefficients c.
        What is left is a rank-one update of both, O(s^2). Of members that explain the same, the last goes first.
        """
        root, coef = self._inverse()
        inverse, members, residual = root @ root.T, np.array(self.order), self.residual
        while len(members):
            rises = coef * (coef / np.diagonal(inverse))
            out = len(members) - 1 - int((rises[::-1] <= rises.min() * (1.0 + TIE)).argmax())
            residual += rises.item(out)
            kept = np.arange(len(members)) != out
            members = members[kept]
            yield tuple(members.tolist()), residual
            share = inverse[:, out] / inverse[out, out]
            coef = (coef - share * coef[out])[kept]
            inverse = (inverse - np.outer(share, inverse[out]))[np.ix_(kept, kept)]

    def best_swap(self) -> Swap | None:
        """The best exchange of one member for one other feature; None if there is no other.

        Without member i, feature k pulls with p_k + c_i b_ik / v_i and has l_k + b_ik^2 / v_i of its own, where v is
        the diagonal of G_SS^-1, c the coefficients and b_ik those of feature k regressed on the members. O(d s^2).
        """
        n, d = len(self.order), self._moments.n_features
        if n in (0, d):
            return None
        root, coef = self._inverse()
        of_others = root @ self._rows[:n]  # b
        inverse = np.einsum("ij,ij->i", root, root)  # v
        share = of_others / inverse[:, None]
        own = of_others * share
        own += self._left  # infinite for members, and for what lies in their span: that cannot lower the loss
        pull = share
        pull *= coef[:, None]
        pull += self._pull
        gains = pull / own
        gains *= pull
        gains -= (coef * (coef / inverse))[:, None]
        top = float(gains.max())
        place, unit = np.unravel_index(int(np.argmax(gains >= top - TIE * abs(top))), gains.shape)
        return Swap(int(place), int(unit), top)
