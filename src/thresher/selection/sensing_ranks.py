"""Coefficients of matrices, by rank: rounds from each candidate to the next."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.online.dense import DenseRounds
from thresher.selection.criteria import Criterion
from thresher.selection.family import RoundsFamily
from thresher.selection.noise_edge import NoiseEdge
from thresher.solvers.path import Path
from thresher.solvers.rank_path import RowRankPath, climb, freedom_of, most_ranks, noise_edge
from thresher.sparsity.rank import Rank
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]

# A round of a path, and how many there are for one rank at the most.
N_STEPS, MOST_ROUNDS = 5, 40


@dataclass(frozen=True)
class SensingRanks(RoundsFamily):
    """Regressions on d1 x d2 matrices, by the rank of the coefficients.

    ``path`` goes up from rank one. Each candidate is found by rounds of certified steps from the one before, and is
    left as soon as a further round could not change a choice: some tens of passes over the moments for each rank.
    """

    shape: tuple[int, int]
    centred: bool = True
    memorable: ClassVar[bool] = False

    def path(self, summary: Gram, n_most: int | None = None, criterion: Criterion | None = None) -> RowRankPath:
        """Candidates from rank one until they are not worth their price; up to `n_most` exactly, if given."""
        (d1, d2), weight = self.shape, summary.weight
        n = most_ranks(d1, d2, weight) if n_most is None else min(n_most, d1, d2)
        zero = self.loss(summary, np.zeros(d1 * d2))
        ranks = np.arange(1, n + 1)
        freedom, noise = freedom_of(ranks, d1, d2), np.full(n, noise_edge(d1, d2))
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

        losses = climb(grow, improve, zero, weight, freedom, noise, n_most is not None, MOST_ROUNDS)
        keep()
        n = len(losses)
        return RowRankPath(
            sizes=ranks[:n],
            loss=np.array(losses),
            freedom=freedom[:n],
            log_models=np.zeros(n),
            weight=weight,
            noise=noise[:n],
            factors=tuple(found),
            zero=zero,
            mean_x=summary.mean_x,
            mean_y=summary.mean_y,
            centred=self.centred,
        )

    def largest(self, summary: Gram) -> int:
        """The largest rank that there is."""
        return min(self.shape)

    def fallback(self) -> NoiseEdge:
        """The criterion that chooses while there is nothing to hold out."""
        return NoiseEdge()

    def new_rounds(self, summary: Gram, size: int) -> DenseRounds:
        """Rounds at a rank."""
        return DenseRounds(summary, Rank(size, self.shape), self.centred, False)

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
        assert isinstance(path, RowRankPath)
        return np.array([summary.loss(path.coef(r).reshape(-1), float(path.intercept(r))) for r in path.sizes])
