"""Least squares on a growing set of groups of features, and what every change of the set by one group would do."""

from collections.abc import Iterator

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher._utils.tolerances import OWN_SHARE, TIE
from thresher.solvers.forward_backward import Basis, Support, Swap
from thresher.sparsity.groups import Groups
from thresher.summaries.moments import Moments


class GroupBasis(Basis):
    """Least squares on the groups that were added, in their order: `FeatureBasis` for groups.

    Orthonormal combinations W of the members' columns are kept for all d features, and for every group what its columns
    have of their own beside the members, a k x k block for k columns. Adding a group costs O(d k m) for m columns so
    far, and an eigendecomposition of every block. Directions in which a group has nothing of its own do not count.

    Parameters
    ----------
    moments : Moments
        What is known of the rows.
    groups : Groups
        The group of each column.
    members : tuple of int
        The groups to begin with.
    """

    def __init__(self, moments: Moments, groups: Groups, members: Support = ()) -> None:
        self._moments, self._groups, self._by_size = moments, groups, groups.by_size
        self.order = []
        self.residual = moments.total
        scale = np.sqrt(moments.squares)
        self._unit = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
        self._pull = moments.products.copy()
        self._rows = np.zeros((0, moments.n_features))
        self._own_share = OWN_SHARE[moments.dtype]
        self._blocks = [self._moments_within(columns) for _, columns in self._by_size]
        for unit in members:
            self.add(unit)

    def _moments_within(self, columns: Integers) -> Floats:
        """The moments of each group's columns with each other, for groups of one size."""
        return np.array([[self._moments.column(j)[own] for j in own] for own in columns])

    def restarted(self, units: Support) -> "GroupBasis":
        """A basis of these groups."""
        return GroupBasis(self._moments, self._groups, units)

    def truncated(self, size: int) -> "GroupBasis":
        """The first `size` members, as a new basis."""
        return self.restarted(tuple(self.order[:size]))

    def freedom(self, units: Support | None = None) -> int:
        """Parameters of least squares on members: fewer than columns, if these are collinear."""
        if units is None:
            return len(self._rows)
        return int(np.sum(self._decomposed(self._columns(units))[0] > self._own_share))

    def add_best(self) -> bool:
        """Add the group that lowers the residual sum of squares most; False if there is none."""
        gains = self._gains()
        top = float(gains.max())
        if top > 0.0:
            self.add(int(np.argmax(gains >= top * (1.0 - TIE))))
        return top > 0.0

    def _gains(self) -> Floats:
        """How much each group would lower the residual sum of squares."""
        gains = np.zeros(self._groups.n_groups)
        for (numbers, columns), blocks in zip(self._by_size, self._blocks, strict=True):
            unit = self._unit[columns]
            values, vectors = np.linalg.eigh(blocks * unit[:, :, None] * unit[:, None, :])
            along = np.einsum("gij,gi->gj", vectors, unit * self._pull[columns]) ** 2
            own = values > self._own_share
            gains[numbers] = np.divide(along, values, out=np.zeros_like(along), where=own).sum(axis=1)
        gains[self.order] = 0.0
        return gains

    def add(self, unit: int) -> None:
        """Add a group that has something of its own."""
        columns = self._groups.members(unit)
        scale = self._unit[columns]
        left = np.array([self._moments.column(j) for j in columns]) - self._rows[:, columns].T @ self._rows
        values, vectors = np.linalg.eigh(left[:, columns] * scale[:, None] * scale)
        own = values > self._own_share
        basis = scale[:, None] * vectors[:, own] / np.sqrt(values[own])  # basis' left basis = I
        new, along = basis.T @ left, basis.T @ self._pull[columns]
        self._pull = self._pull - along @ new
        self._rows = np.vstack([self._rows, new])
        for blocks, (_, members) in zip(self._blocks, self._by_size, strict=True):
            part = new[:, members]
            blocks -= np.einsum("rgi,rgj->gij", part, part)
        self.residual -= float(along @ along)
        self.order.append(unit)

    def coefficients(self) -> Floats:
        """The coefficients of the members' columns, ascending; the shortest in units of the scales, if not unique."""
        columns = self._columns(tuple(self.order))
        values, vectors, along = self._decomposed(columns)
        inverse = np.divide(along, values, out=np.zeros_like(along), where=values > self._own_share)
        coef: Floats = self._unit[columns] * (vectors @ inverse)
        return coef

    def eliminated(self) -> Iterator[tuple[Support, float]]:
        """What is left, and its residual sum of squares, as members leave: each time the one that explains least."""
        left = tuple(sorted(self.order))
        while left:
            smaller = [left[:i] + left[i + 1 :] for i in range(len(left))]
            residuals = np.array([self._residual(units) for units in smaller])
            best = len(left) - 1 - int(np.argmax(residuals[::-1] <= residuals.min() * (1.0 + TIE)))
            left = smaller[best]
            yield left, float(residuals[best])

    def best_swap(self) -> Swap | None:
        """The best exchange of one member for one other group; None if there is no other. O(s) bases."""
        best: Swap | None = None
        if len(self.order) == self._groups.n_groups:
            return None
        for place, member in enumerate(self.order):
            others = self.restarted(tuple(unit for unit in self.order if unit != member))
            gains = others._gains()
            gains[self.order] = -np.inf
            unit = int(np.argmax(gains))
            gain = float(gains[unit]) - (others.residual - self.residual)
            if best is None or gain > best.gain:
                best = Swap(place, unit, gain)
        return best

    def _residual(self, units: Support) -> float:
        """The residual sum of squares of least squares on some groups."""
        values, _, along = self._decomposed(self._columns(units))
        own = values > self._own_share
        return self._moments.total - float(np.sum(along[own] ** 2 / values[own]))

    def _columns(self, units: Support) -> Integers:
        return np.flatnonzero(np.isin(self._groups.index, units))

    def _decomposed(self, columns: Integers) -> tuple[Floats, Floats, Floats]:
        """Eigenvalues and eigenvectors of the correlations of some columns, and the response along the latter."""
        matrix = np.array([self._moments.column(j)[columns] for j in columns]).reshape(len(columns), len(columns))
        scale = self._unit[columns]
        values, vectors = np.linalg.eigh(matrix * scale[:, None] * scale)
        return values, vectors, vectors.T @ (scale * self._moments.products[columns])
