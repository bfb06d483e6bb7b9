"""Choosing among linear models that hard thresholding estimates."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher._utils.arrays import Floats
from thresher.io.schema import Anything, Count, Flag, Is, Number, Schema, Text, part
from thresher.online.dense import DenseRounds
from thresher.online.sparse import RULES, SparseRounds
from thresher.online.step_size import StepCount, StepSize
from thresher.selection.criteria import Criterion
from thresher.selection.ebic import Ebic
from thresher.selection.family import RoundsFamily
from thresher.selection.subset_family import SubsetFamily
from thresher.solvers.path import Path, log_choices
from thresher.solvers.subsets import Subsets
from thresher.sparsity.groups import Groups
from thresher.summaries.gram import Gram

# Candidates for Algorithm 1 itself: every size up to here, and then one in so many more.
EVERY_SIZE_TO, GROWTH = 20, 8
# Calls of a kernel cost more than its steps: so many rounds are made in one.
ROUNDS_AT_ONCE = 20


@dataclass(frozen=True)
class Thresholding(Subsets, RoundsFamily):
    """Linear models that hard thresholding estimates, by their number of features or groups."""

    _schema = part(centred=Flag(), groups=Is(Groups, shared=True) | None, standardized=Flag(), rule=Text(*RULES))
    fallback = Ebic()

    standardized: bool = False
    rule: str = "hard"

    def new_rounds(self, summary: Gram, size: int) -> Any:
        """Rounds that keep `size` features, or groups."""
        if self.groups is None or size == 0:
            return SparseRounds(summary, size, self.centred, self.standardized, rule=self.rule)
        return DenseRounds(summary, self.groups.keeping(size), self.centred, self.standardized)

    def fits(self, rounds: Any, size: int) -> bool:
        """Whether these are rounds that keep so many features, or groups."""
        if (rounds.centred, rounds.standardized) != (self.centred, self.standardized):
            return False
        if self.groups is None or size == 0:
            return type(rounds) is SparseRounds and (rounds.sparsity, rounds.rule) == (size, self.rule)
        return (
            type(rounds) is DenseRounds
            and isinstance(rounds.sparsity, Groups)
            and rounds.sparsity.s == size
            and np.array_equal(rounds.sparsity.index, self.groups.index)
        )

    def largest(self, summary: Gram) -> int:
        """The largest size that there is."""
        return self.n_units(summary)

    def size_of(self, coef: Floats) -> int:
        """The number of features, or groups, in a vector."""
        return int(np.count_nonzero(coef)) if self.groups is None else self.groups.measure(coef)


@dataclass(frozen=True)
class ThresholdedFamily(Thresholding, SubsetFamily):
    """The candidates are the best subsets."""

    _schema = Schema()


@dataclass(frozen=True, eq=False)
class AlgorithmPath(Path):
    """Where Algorithm 1 stops at each of some sizes, on one summary."""

    coefs: Floats  # (sizes, d)
    intercepts: Floats

    def coef(self, size: int) -> Floats:
        """Coefficients of all features."""
        coef: Floats = self.coefs[np.searchsorted(self.sizes, size)]
        return coef


@dataclass(frozen=True)
class AlgorithmFamily(Thresholding):
    """The candidates are the estimates of Algorithm 1 itself, with the steps and the start of a model.

    Each one is where Algorithm 1 with this s stops on the rows of the summary, or stands after
    `max_rounds`. It is what a stream of such rows converges to.
    """

    _schema = Schema(
        step_size=Anything(), n_steps=Count(1), tol=Number(least=0.0), max_rounds=Count(1), start_at=Anything()
    )
    step_size: StepSize = "auto"
    n_steps: StepCount = 5
    tol: float = 1e-8
    max_rounds: int = 1000
    start_at: tuple[float, ...] | None = None

    def path(self, summary: Gram, n_most: int | None = None, criterion: Criterion | None = None) -> AlgorithmPath:
        """Candidates of some sizes from zero on, as far as there are rows for them; up to `n_most`, if given."""
        n_units = self.n_units(summary)
        sizes = sizes_up_to(self.most(summary) if n_most is None else min(n_most, n_units))
        coefs, intercepts = np.zeros((len(sizes), summary.n_features)), np.zeros(len(sizes))
        n_steps, max_rounds = self._longer_rounds()
        for i, size in enumerate(sizes):
            rounds = self.new_rounds(summary, int(size))
            if self.start_at is not None:
                rounds.start_near(np.array(self.start_at))
            rounds.settle(self.step_size, n_steps, self.tol, max_rounds, refit=False)
            coefs[i], intercepts[i] = rounds.coef.reshape(-1), rounds.intercept
        best = None if self.centred else 0.0
        return AlgorithmPath(
            sizes=sizes,
            loss=np.array([summary.loss(coef, best) for coef in coefs]),
            freedom=np.count_nonzero(coefs, axis=1) + float(self.centred),
            log_models=log_choices(n_units, n_units)[sizes],
            weight=summary.weight,
            coefs=coefs,
            intercepts=intercepts,
        )

    def _longer_rounds(self) -> tuple[StepCount, int]:
        """Steps per round and rounds. On one summary, steps of a given size do not know where a round ends."""
        if isinstance(self.n_steps, int) and isinstance(self.step_size, float) and self.rule == "hard":
            return ROUNDS_AT_ONCE * self.n_steps, -(-self.max_rounds // ROUNDS_AT_ONCE)
        return self.n_steps, self.max_rounds

    def loss_elsewhere(self, path: Any, summary: Gram) -> Floats:
        """Half the mean squared error of every candidate on the rows of another summary."""
        pairs = zip(path.coefs, path.intercepts, strict=True)
        return np.array([summary.loss(coef, intercept) for coef, intercept in pairs])


def sizes_up_to(most: int) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Sizes from zero on: every one at first, then ever further apart."""
    sizes = list(range(min(most, EVERY_SIZE_TO) + 1))
    while sizes[-1] < most:
        sizes.append(min(sizes[-1] + 1 + sizes[-1] // GROWTH, most))
    return np.array(sizes, np.intp)
