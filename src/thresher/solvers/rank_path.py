"""Candidates by rank: what paths of matrices have in common."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats, Integers
from thresher._utils.tolerances import PERFECT
from thresher.solvers.path import Path

# A rank is considered if its parameters are at most this share of the observations.
LARGEST_SHARE = 0.75
# A path ends when this many ranks in a row were not worth their price.
PATIENCE = 3
# A candidate is good enough when a further round lowers n log(RSS) by less than this share of the price of a rank.
ENOUGH = 0.01


@dataclass(frozen=True, eq=False)
class RankPath(Path):
    """Matrices of rank 1, 2, ...

    Attributes
    ----------
    noise : ndarray
        What a rank gains on average, at most, from noise of variance one.
    zero : float
        The loss of the zero matrix.
    """

    noise: Floats
    zero: float

    @property
    def null(self) -> float:
        """The loss of the zero matrix."""
        return self.zero


@dataclass(frozen=True, eq=False)
class FactoredPath(RankPath):
    """Matrices of rank 1, 2, ..., each as a product of two factors.

    Attributes
    ----------
    factors : tuple of pairs of ndarray
        d1 x r and r x d2.
    """

    factors: tuple[tuple[Floats, Floats], ...]

    def coef(self, size: int) -> Floats:
        """The candidate of this rank, d1 x d2."""
        left, right = self.factors[size - 1]
        product: Floats = left @ right
        return product


class RankFields(TypedDict):
    """What `climb` finds of the fields of a path."""

    sizes: Integers
    loss: Floats
    freedom: Floats
    log_models: Floats
    weight: float
    noise: Floats
    zero: float


def freedom_of(ranks: NDArray[Any], d1: Any, d2: int) -> Floats:
    """Parameters of a d1 x d2 matrix of each rank."""
    result: Floats = ranks * (d1 + d2 - np.asarray(ranks, np.float64))
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
    shape: tuple[int, int],
    prices_of: Callable[[float, Floats, Floats], Floats],
    n_most: int | None,
    most_rounds: int,
    n_others: float = 0.0,
) -> RankFields:
    """Sizes, losses, prices and so on of candidates of rank 1, 2, ..., each found from the one before.

    `zero` is the loss of none of them, `shape` that of the matrices, and there are `n_others` parameters besides.
    `grow` makes room for one more rank and `improve` goes one round and returns the loss. `prices_of` tells, from the
    weight, the parameters and the noise of each rank, what it must lower n log(RSS) by. A candidate is left when what
    a round gains could not change a choice. A path ends at rank `n_most`; without that, when further ranks are not
    worth their price, or nothing is left to explain.
    """
    d1, d2 = shape
    n = most_ranks(d1, d2, weight - n_others) if n_most is None else max(min(n_most, d1, d2), 1)
    ranks = np.arange(1, n + 1)
    freedom, noise = freedom_of(ranks, d1, d2) + n_others, np.full(n, noise_edge(d1, d2))
    prices = prices_of(weight, freedom, noise)
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
        if n_most is None and (last <= least or rank >= n_best + PATIENCE):
            break
    n = len(losses)
    return {
        "sizes": ranks[:n],
        "loss": np.array(losses),
        "freedom": freedom[:n],
        "log_models": np.zeros(n),
        "weight": weight,
        "noise": noise[:n],
        "zero": zero,
    }
