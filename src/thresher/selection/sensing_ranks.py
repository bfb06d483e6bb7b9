"""Coefficients of matrices, by rank: rounds from each candidate to the next."""

from dataclasses import dataclass

import numpy as np

from thresher._utils.arrays import Floats
from thresher.io.schema import Count, Flag, Schema, Tuple
from thresher.online.dense import DenseRounds
from thresher.selection.criteria import Criterion
from thresher.selection.family import RoundsFamily
from thresher.selection.noise_edge import NoiseEdge
from thresher.solvers.path import Path
from thresher.solvers.rank_path import FactoredPath, climb
from thresher.sparsity.rank import Rank
from thresher.summaries.gram import Gram

# A round of a path, and how many there are for one rank at the most.
N_STEPS, MOST_ROUNDS = 5, 40


@dataclass(frozen=True, eq=False)
class SensingPath(FactoredPath):
    """Matrices of rank 1, 2, ... that predict one number, with the best intercept for each."""

    mean_x: Floats
    mean_y: float
    centred: bool

    def intercept(self, size: int) -> float:
        """The intercept; zero if there is none."""
        return self.mean_y - float(self.mean_x @ self.coef(size).reshape(-1)) if self.centred else 0.0


@dataclass(frozen=True)
class SensingRanks(RoundsFamily):
    """Regressions on d1 x d2 matrices, by the rank of the coefficients.

    ``path`` goes up from rank one. Each candidate is found by rounds of certified steps from the one before, and is
    left as soon as a further round could not change a choice: some tens of passes over the moments for each rank.
    """

    _schema = Schema(shape=Tuple(Count(1), Count(1)), centred=Flag())
    shape: tuple[int, int]
    centred: bool = True
    memorable = False
    fallback = NoiseEdge()

    def path(self, summary: Gram, n_most: int | None = None, criterion: Criterion | None = None) -> SensingPath:
        """Candidates from rank one until they are not worth their price; up to `n_most` exactly, if given."""
        zero = self.loss(summary, np.zeros(self.shape))
        rounds: list[DenseRounds] = []
        found: list[tuple[Floats, Floats]] = []

        def grow(rank: int) -> None:
            # In float64: a copy in float32 would be half as large as the summary.
            wider = DenseRounds(summary, Rank(rank, self.shape), self.centred, False, single=False)
            if rounds:
                keep()
                wider.start_from(rounds.pop().coef)
            rounds.append(wider)

        def keep() -> None:
            left, values, right = Rank(len(found) + 1).factors(rounds[0].coef)
            found.append((left * values, right))

        def improve() -> float:
            rounds[0].run_round("auto", N_STEPS)
            return self.loss(summary, rounds[0].coef)

        path = climb(grow, improve, zero, summary.weight, self.shape, NoiseEdge().prices, n_most, MOST_ROUNDS)
        keep()
        return SensingPath(
            **path,
            factors=tuple(found),
            mean_x=summary.mean_x,
            mean_y=summary.mean_y,
            centred=self.centred,
        )

    def largest(self, summary: Gram) -> int:
        """The largest rank that there is."""
        return min(self.shape)

    def size_of(self, coef: Floats) -> int:
        """The rank of a matrix, at least one."""
        return max(Rank(1).measure(coef), 1)

    def new_rounds(self, summary: Gram, size: int) -> DenseRounds:
        """Rounds at a rank."""
        return DenseRounds(summary, Rank(size, self.shape), self.centred, False)

    def fits(self, rounds: DenseRounds, size: int) -> bool:
        """Whether these are rounds of such matrices, at this rank."""
        return (
            type(rounds) is DenseRounds
            and rounds.sparsity == Rank(size, self.shape)
            and (rounds.centred, rounds.standardized) == (self.centred, False)
        )

    def start(self, rounds: DenseRounds, path: Path, size: int) -> None:
        """Let rounds go on from a candidate, if they have not come as far: candidates are found in a hurry."""
        assert isinstance(rounds.summary, Gram)
        if path.loss[size - 1] < self.loss(rounds.summary, rounds.coef):
            rounds.start_from(path.coef(size))

    def loss(self, summary: Gram, coef: Floats) -> float:
        """Half the mean squared residual of an estimate."""
        return summary.loss(coef.reshape(-1), None if self.centred else 0.0)

    def loss_elsewhere(self, path: Path, summary: Gram) -> Floats:
        """Half the mean squared error of every candidate on the rows of another summary."""
        assert isinstance(path, SensingPath)
        return np.array([summary.loss(path.coef(r).reshape(-1), path.intercept(r)) for r in path.sizes])
