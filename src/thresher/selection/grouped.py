"""Candidates with few groups of features: the path of forward selection by groups."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.kernels.factor import OWN_SHARE
from thresher.kernels.problem import PERFECT
from thresher.rounds.dense import DenseRounds
from thresher.rounds.sparse import SparseRounds
from thresher.selection.ebic import Ebic
from thresher.selection.features import GAMMA_OF_END, PATIENCE
from thresher.selection.path import Family, Path, log_choices
from thresher.sparsity.groups import Groups
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupPath(Path):
    """Nested sets of groups, with least squares on each."""

    columns: NDArray[np.intp]  # of the groups in the order in which they were chosen
    ends: NDArray[np.intp]  # how many of these columns each size has
    part: Gram  # the summary of these columns
    n_features: int
    centred: bool

    def values(self, size: int) -> Floats:
        """The coefficients of the first columns (the shortest in units of the scales, if not unique)."""
        end = int(self.ends[size])
        matrix, vector = self.part.normal_equations(np.arange(end), self.centred)
        unit = np.sqrt(np.diagonal(matrix))
        unit = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0.0)
        solution: Floats = unit * np.linalg.lstsq(unit[:, None] * matrix * unit, unit * vector, rcond=OWN_SHARE)[0]
        return solution

    def coef(self, size: int) -> Floats:
        """Coefficients of all features."""
        coef = np.zeros(self.n_features)
        if size:
            coef[self.columns[: self.ends[size]]] = self.values(size)
        return coef

    def intercept(self, size: int) -> float:
        """The intercept; zero if there is none."""
        if not self.centred:
            return 0.0
        return self.part.mean_y - (float(self.part.mean_x[: self.ends[size]] @ self.values(size)) if size else 0.0)


class GroupedFeatures(Family):
    """Linear models with few groups of features.

    ``path`` is forward selection of whole groups: the next one is the one that lowers the loss most beside those
    chosen. O(d^2) time and memory per group.
    """

    def __init__(self, groups: Groups, centred: bool, standardized: bool) -> None:
        self.groups = groups
        self.centred = centred
        self.standardized = standardized
        sizes = np.bincount(groups.index)
        order = np.argsort(groups.index, kind="stable")
        members = np.split(order, np.cumsum(sizes)[:-1])
        self._by_size = [
            (np.flatnonzero(sizes == size), np.array([members[g] for g in np.flatnonzero(sizes == size)]))
            for size in np.unique(sizes)
        ]
        self._members = members

    def path(self, summary: Gram, n_most: int | None = None) -> GroupPath:
        """Candidates of sizes from zero on, until they do not get better; up to `n_most` exactly, if given."""
        n_groups, weight = self.groups.n_groups, summary.weight
        left = summary.comoment() if self.centred else summary.second_moment()
        pull = summary.cross_comoment() if self.centred else summary.cross_moment()
        total = residual = weight * summary.response_variance(self.centred)
        whole = np.diagonal(left).copy()
        log_models = log_choices(n_groups, n_groups)
        chosen: list[int] = []
        falls, freedom = [0.0], [0.0]
        best, n_best = np.inf, 0
        while residual > PERFECT * total:
            n = len(chosen)
            value = weight * np.log(residual) + freedom[-1] * np.log(max(weight, 1.0))
            value += 2.0 * GAMMA_OF_END * log_models[n]
            if value < best:
                best, n_best = value, n
            if n in (n_groups, n_most) or (n_most is None and n >= n_best + n_best // 2 + PATIENCE // 4):
                break
            gains = self._gains(left, pull, whole)
            gains[chosen] = 0.0
            group = int(np.argmax(gains))
            basis = self._basis(left, whole, self._members[group])
            if not gains[group] > 0.0 or freedom[-1] + basis.shape[1] > (weight - 1.0 - self.centred) / 2.0:
                break
            rows = left[:, self._members[group]] @ basis
            along = basis.T @ pull[self._members[group]]
            pull = pull - rows @ along
            left -= rows @ rows.T
            chosen.append(group)
            falls.append(falls[-1] + float(along @ along))
            freedom.append(freedom[-1] + basis.shape[1])
            residual = total - falls[-1]
        columns = np.concatenate([np.zeros(0, np.intp), *(self._members[g] for g in chosen)])
        ends = np.cumsum([0, *(len(self._members[g]) for g in chosen)])
        return GroupPath(
            sizes=np.arange(len(chosen) + 1),
            loss=np.maximum(total - np.array(falls), 0.0) / (2.0 * weight),
            freedom=np.array(freedom),
            log_models=log_models[: len(chosen) + 1],
            weight=weight,
            spread=0.5 * summary.response_variance(),
            columns=columns,
            ends=ends,
            part=summary.select(columns if len(columns) else [0]),
            n_features=len(pull),
            centred=self.centred,
        )

    def _gains(self, left: Floats, pull: Floats, whole: Floats) -> Floats:
        """How much each group would lower the residual sum of squares."""
        gains = np.zeros(self.groups.n_groups)
        for numbers, members in self._by_size:
            unit = np.sqrt(whole[members])
            unit = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0.0)
            blocks = left[members[:, :, None], members[:, None, :]] * unit[:, :, None] * unit[:, None, :]
            values, vectors = np.linalg.eigh(blocks)
            along = np.einsum("gij,gi->gj", vectors, unit * pull[members]) ** 2
            gains[numbers] = np.divide(along, values, out=np.zeros_like(along), where=values > OWN_SHARE).sum(axis=1)
        return gains

    def _basis(self, left: Floats, whole: Floats, members: NDArray[np.intp]) -> Floats:
        """Q with Q' left Q = I that spans what the group has of its own."""
        unit = np.sqrt(whole[members])
        unit = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0.0)
        values, vectors = np.linalg.eigh(left[np.ix_(members, members)] * unit[:, None] * unit)
        own = values > OWN_SHARE
        basis: Floats = unit[:, None] * vectors[:, own] / np.sqrt(values[own])
        return basis

    def largest(self, summary: Gram) -> int:
        """The largest size that there is."""
        return self.groups.n_groups

    def candidate(self, summary: Gram, size: int) -> Floats:
        """The candidate of forward selection; a shorter one, if features are collinear."""
        path = self.path(summary, size)
        return path.coef(int(path.sizes[-1]))

    def fallback(self) -> Ebic:
        """The criterion that chooses while there is nothing to hold out."""
        return Ebic(parsimony=0.0)

    def new_rounds(self, summary: Gram, size: int) -> Any:
        """Rounds with `size` groups."""
        if size == 0:
            return SparseRounds(summary, 0, self.centred, self.standardized)
        return DenseRounds(summary, self.groups.keeping(size), self.centred, self.standardized)

    def loss(self, summary: Gram, coef: Floats) -> float:
        """Half the mean squared residual of an estimate."""
        return summary.loss(coef.reshape(-1), None if self.centred else 0.0)

    def part(self, path: Path, summary: Gram) -> Gram:
        """The summary of the columns on the path."""
        assert isinstance(path, GroupPath)
        return summary.select(path.columns if len(path.columns) else [0])

    def loss_of_part(self, path: Path, part: Gram) -> Floats:
        """Half the mean squared error of every candidate on the rows of such a part."""
        assert isinstance(path, GroupPath)
        coef, losses = np.zeros(part.n_features), np.empty(len(path.sizes))
        for i, size in enumerate(path.sizes):
            if size:
                coef[: path.ends[size]] = path.values(size)
            losses[i] = part.loss(coef, path.intercept(size))
        return losses
