"""Candidates by rank: what paths of matrices have in common."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher._utils.tolerances import PERFECT
from thresher.selection.noise_edge import NoiseEdge
from thresher.solvers.path import Path

Floats = NDArray[np.float64]

# A rank is considered if its parameters are at most this share of the observations.
LARGEST_SHARE = 0.75
# A path ends when this many ranks in a row were not worth their price.
PATIENCE = 3
# A candidate is good enough when a further round lowers n log(RSS) by less than this share of the price of a rank.
ENOUGH = 0.01
PRICE = NoiseEdge()


@dataclass(frozen=True, eq=False)
class RankPath(Path):
    """Matrices of rank 1, 2, ..., each as a product of two factors.

    Attributes
    ----------
    noise : ndarray
        What a rank gains on average, at most, from noise of variance one.
    factors : tuple of pairs of ndarray
        d1 x r and r x d2.
    zero : float
        The loss of the zero matrix.
    """

    noise: Floats
    factors: tuple[tuple[Floats, Floats], ...]
    zero: float

    @property
    def null(self) -> float:
        """The loss of the zero matrix."""
        return self.zero

    def coef(self, size: int) -> Floats:
        """The candidate of this rank, d1 x d2."""
        left, right = self.factors[size - 1]
        product: Floats = left @ right
        return product


@dataclass(frozen=True, eq=False)
class RowRankPath(RankPath):
    """Matrices that predict from rows, with the best intercept for each."""

    mean_x: Floats
    mean_y: Floats | float
    centred: bool

    def intercept(self, size: int) -> Floats | float:
        """The intercept of each response; zero if there is none."""
        coef = self.coef(size)
        along = self.mean_x @ coef if np.ndim(self.mean_y) else self.mean_x @ coef.reshape(-1)
        return self.mean_y - along if self.centred else np.zeros_like(self.mean_y)


def freedom_of(ranks: NDArray[np.intp], d1: int, d2: int) -> Floats:
    """Parameters of a d1 x d2 matrix of each rank."""
    result: Floats = ranks * (d1 + d2 - ranks.astype(np.float64))
    return result


def noise_edge(d1: int, d2: int) -> float:
    """The squared largest singular value of d1 x d2 noise of variance one, about."""
    return float((np.sqrt(d1) + np.sqrt(d2)) ** 2)


def most_ranks(d1: int, d2: int, weight: float) -> int:
    """The largest rank worth considering: one whose parameters are well below the observations; one at least."""
    ranks = np.arange(1, max(min(d1, d2), 1) + 1)
    return max(int(np.sum(freedom_of(ranks, d1, d2) <= LARGEST_SHARE * weight)), 1)


def climb(
    grow: Callable[[int], None],
    improve: Callable[[], float],
    zero: float,
    weight: float,
    freedom: Floats,
    noise: Floats,
    patient: bool,
    most_rounds: int,
) -> list[float]:
    """The losses of candidates of rank 1, 2, ..., each found from the one before.

    `grow` makes room for one more rank and `improve` goes one round and returns the loss. A candidate is left when
    what a round gains could not change a choice. A path that is not `patient` ends when further ranks are not worth
    their price, or nothing is left to explain.
    """
    prices = PRICE.prices(weight, freedom, noise)
    losses: list[float] = []
    last, value, best, n_best = zero, 0.0, np.inf, 0
    least = max(PERFECT * zero, np.finfo(np.float64).tiny)
    for rank in range(1, len(prices) + 1):
        grow(rank)
        for number in range(most_rounds):
            before, last = last, improve()
            gain = np.log(max(before, least) / max(last, least))
            if last <= least or (number and weight * gain <= ENOUGH * prices[rank - 1]):
                break
        losses.append(last)
        value += prices[rank - 1]
        criterion = weight * np.log(max(last, least)) + value
        if criterion < best:
            best, n_best = criterion, rank
        if not patient and (last <= least or rank >= n_best + PATIENCE):
            break
    return losses
