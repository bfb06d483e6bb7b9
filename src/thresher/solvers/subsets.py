"""Models with few features, or few groups of features, from a summary."""

from dataclasses import dataclass
from math import log

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher.solvers.feature_basis import FeatureBasis
from thresher.solvers.forward_backward import Basis, Found, Penalty, Search, Support, best_subset
from thresher.solvers.group_basis import GroupBasis
from thresher.solvers.least_squares import LinearFit, least_squares
from thresher.solvers.path import Path, log_choices
from thresher.sparsity.groups import Groups
from thresher.summaries.gram import Gram
from thresher.summaries.moments import Moments

# Searches do not go further than this unless asked to.
LONGEST = 1000


@dataclass(frozen=True, eq=False)
class SubsetPath(Path):
    """The best support of each size that was found, with least squares on each: valid until the summary changes."""

    found: list[Found]  # supports by size, of features or groups
    summary: Gram
    subsets: "Subsets"
    best: LinearFit  # of the size with the least criterion, without an intercept

    def support(self, size: int) -> Integers:
        """The columns of the model of this size, ascending."""
        return self.subsets.columns(self.found[size].units)

    def fit(self, size: int) -> LinearFit:
        """Least squares on the support of this size."""
        return least_squares(self.summary, self.support(size), self.subsets.centred)

    def coef(self, size: int) -> Floats:
        """Coefficients of all features; zero for those that this size does not have."""
        return self.fit(size).coef(self.summary.n_features)

    def intercept(self, size: int) -> float:
        """The intercept; zero if there is none."""
        return self.fit(size).intercept

    def loss_on(self, other: Gram) -> Floats:
        """Half the mean squared error of every candidate on the rows of another summary."""
        union = np.unique(np.concatenate([self.support(size) for size in self.sizes]))
        part = other.select(union if len(union) else [0])
        losses, coef = np.empty(len(self.sizes)), np.zeros(part.n_features)
        for size in self.sizes:
            fit = self.fit(size)
            coef[:] = 0.0
            coef[np.searchsorted(union, fit.support)] = fit.values
            losses[size] = part.loss(coef, fit.intercept)
        return losses


@dataclass(frozen=True)
class Subsets:
    """Linear models with few features: how to look for them in a summary.

    Parameters
    ----------
    centred : bool
        Whether there is an intercept.
    groups : Groups, optional
        Columns that are kept or dropped together; sizes then count groups.
    """

    centred: bool = True
    groups: Groups | None = None

    def n_units(self, summary: Gram) -> int:
        """How many features, or groups, there are."""
        return summary.n_features if self.groups is None else self.groups.n_groups

    def most(self, summary: Gram) -> int:
        """The largest size worth considering: with more, noise explains as much as it likes."""
        n_units, n = self.n_units(summary), summary.weight
        room = int((n - 1.0 - self.centred) / (log(max(n_units, 3)) * max(log(log(max(n, 3.0))), 1.0)))
        return max(min(n_units, room, LONGEST), 0)

    def search(self, summary: Gram, penalty: Penalty, n_most: int, exhaustive: bool = False) -> SubsetPath:
        """The best supports found while minimising n log(RSS) + penalty, of sizes up to `n_most`; of all, if asked."""
        moments = summary.moments(self.centred)
        search = Search(self._basis(moments), moments.weight, penalty, n_most, exhaustive)
        best = search.run()
        found, n = search.found, self.n_units(summary)
        residual, freedom = search.measures()
        return SubsetPath(
            sizes=np.arange(len(found)),
            loss=residual / (2.0 * moments.weight),
            freedom=freedom,
            log_models=log_choices(n, min(n, max(LONGEST, len(found))))[: len(found)],
            weight=moments.weight,
            found=found,
            summary=summary,
            subsets=self,
            best=LinearFit(self.columns(tuple(best.order)), best.coefficients(), 0.0),
        )

    def best(self, summary: Gram, size: int) -> tuple[Integers, Floats]:
        """The columns of the best support of this size, and their coefficients."""
        moments = summary.moments(self.centred)
        found = best_subset(self._basis(moments), size, self.n_units(summary))
        return self.columns(tuple(found.order)), found.coefficients()

    def _basis(self, moments: Moments) -> Basis:
        return FeatureBasis(moments) if self.groups is None else GroupBasis(moments, self.groups)

    def columns(self, units: Support) -> Integers:
        """The columns of some features or groups, ascending."""
        chosen = np.array(sorted(units), np.intp)
        return chosen if self.groups is None else np.flatnonzero(np.isin(self.groups.index, chosen))
