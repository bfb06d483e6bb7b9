"""Best subset selection from a summary: forward selection, backward elimination and pairwise swaps.

``best_subset`` solves, for a given number s of features,

    min_{theta, b}  1/(2n) sum_i (y_i - b - x_i' theta)^2   subject to   |theta|_0 <= s,

and ``Search`` minimises n log(RSS) + penalty[size] over all sizes, both up to local minima under exchanges of one
feature for another. Supports are sets of *units*: single features (`FeatureBasis`), or whole groups (`GroupBasis`).

References
----------
A. Miller (2002). Subset Selection in Regression. Chapman and Hall, chapter 3: sequential replacement.

J. Zhu, C. Wen, J. Zhu, H. Zhang and X. Wang (2020). A polynomial algorithm for best-subset selection problem. PNAS
117(52), 33117-33123: splicing.
"""

from collections.abc import Iterator
from math import log
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from thresher._utils.tolerances import PERFECT, TIE

Floats = NDArray[np.float64]
Support = tuple[int, ...]

# Forward selection goes on for so many units, and a quarter of those at the best size, beyond the best size.
BEYOND = 6
# A change has to lower the residual sum of squares by this share; less may be rounding.
TELLING = 1e-9


class Swap(NamedTuple):
    """One member out, another unit in."""

    place: int  # of the member in the order
    unit: int
    gain: float  # by how much the residual sum of squares falls


class Basis(Protocol):
    """Least squares on a set of units, in the order in which they were added, and what changes of the set would do."""

    order: list[int]
    residual: float  # sum of squares

    def freedom(self, units: Support) -> int:
        """Parameters of least squares on members."""

    def best_addition(self) -> tuple[int, float]:
        """The unit that lowers the residual sum of squares most, and by how much; -1 if there is none."""

    def add(self, unit: int) -> None:
        """Add a unit that lowers it."""

    def best_swap(self) -> Swap | None:
        """The best exchange of a member for another unit; None if there is none."""

    def eliminated(self) -> Iterator[tuple[Support, float]]:
        """The members that are left, and their residual sum of squares, as one after another leaves."""

    def coefficients(self) -> Floats:
        """The coefficients of the members' columns, in ascending order of the columns."""

    def truncated(self, size: int) -> Self:
        """The first members, as a new basis."""

    def restarted(self, units: Support) -> Self:
        """A basis of other members."""


class Penalty(NamedTuple):
    """What a support costs in n log(RSS): so much for each parameter, and so much for its size."""

    per_parameter: float
    by_size: list[float]


class Found(NamedTuple):
    """A support and what it is worth."""

    units: Support
    residual: float  # sum of squares
    freedom: int  # parameters
    criterion: float


class Search:
    """A search for the supports that minimise weight log(RSS) + penalty.

    Parameters
    ----------
    basis : Basis
        Of no units.
    weight : float
        Total weight of the rows.
    penalty : Penalty
        What sizes cost. It also ends forward selection: see `BEYOND`.
    n_most : int
        The largest size.
    exhaustive : bool, default=False
        Whether forward selection goes on to the largest size, whatever the penalty.
    """

    def __init__(self, basis: Basis, weight: float, penalty: Penalty, n_most: int, exhaustive: bool = False) -> None:
        self._empty, self._weight, self._penalty = basis, weight, penalty
        self._n_most, self._exhaustive = n_most, exhaustive
        self._least = max(PERFECT * basis.residual, np.finfo(np.float64).tiny)
        self.found: dict[int, Found] = {}  # the best support of each size that was met

    def _note(self, units: Support, residual: float, freedom: int) -> float:
        """Remember a support that is better than what is known of its size; returns the criterion of that size."""
        known = self.found.get(len(units))
        if known is None or residual < known.residual * (1.0 - TELLING):
            price = self._penalty.per_parameter * freedom + self._penalty.by_size[len(units)]
            criterion = self._weight * log(max(residual, self._least)) + price
            known = Found(units, max(residual, 0.0), freedom, criterion)
            self.found[len(units)] = known
        return known.criterion

    def best(self) -> Found:
        """The smallest size whose criterion is least, up to rounding."""
        least = min(found.criterion for found in self.found.values())
        close = [size for size, found in self.found.items() if found.criterion <= least + TIE * abs(least)]
        return self.found[min(close)]

    def run(self) -> Basis:
        """Forward selection, then swaps and backward elimination at the best size until that stays the best.

        Returns the best support; `found` has those of the other sizes.
        """
        best = basis = self._forward(self._empty)
        tried: set[Support] = set()  # so that rounding cannot make it go round in circles
        while True:
            support = tuple(sorted(self.best().units))
            if not support:
                return basis.truncated(0)
            if support in tried:
                return best if sorted(best.order) == list(support) else self._empty.restarted(support)
            nested = sorted(basis.order[: len(support)]) == list(support)
            start = basis.truncated(len(support)) if nested else self._empty.restarted(support)
            best = swap_until_best(start, self._least)
            swapped = tuple(sorted(best.order))
            tried |= {support, swapped}
            self._note_basis(best)
            self._backward(best)
            basis = best if swapped == support else self._forward(best.truncated(len(support)))

    def _note_basis(self, basis: Basis) -> float:
        units = tuple(basis.order)
        return self._note(units, basis.residual, basis.freedom(units))

    def _forward(self, basis: Basis) -> Basis:
        """Add units, each time the one that lowers the loss most, until that has not paid for a while."""
        best, n_best = self._note_basis(basis), len(basis.order)
        while basis.residual > self._least and len(basis.order) < self._n_most:
            unit, _ = basis.best_addition()
            if unit < 0:
                break
            basis.add(unit)
            value, n = self._note_basis(basis), len(basis.order)
            if value < best:
                best, n_best = value, n
            if n >= n_best + n_best // 4 + BEYOND and not self._exhaustive:
                break
        return basis

    def _backward(self, basis: Basis) -> None:
        """Take note of what is left when members leave, until that does not pay."""
        best = self._note_basis(basis)
        for units, residual in basis.eliminated():
            value = self._note(units, residual, basis.freedom(units))
            if value >= best:
                return
            best = value


def swap_until_best(basis: Basis, least: float) -> Basis:
    """Exchange one member for one other unit, each time the pair that lowers the loss most, until none lowers it.

    A residual sum of squares up to `least` is a perfect fit, where only rounding could tell supports apart.
    """
    while basis.residual > least:
        swap = basis.best_swap()
        if swap is None or not swap.gain > TELLING * basis.residual:
            return basis
        members = list(basis.order)
        members[swap.place] = swap.unit
        better = basis.restarted(tuple(sorted(members)))
        if not better.residual < basis.residual:  # what was promised was rounding
            return basis
        basis = better
    return basis


def best_subset(basis: Basis, size: int, n_most: int) -> Basis:
    """The best `size` units, from both sides: forward selection, and elimination from further on, both with swaps.

    `basis` has no units. There are fewer than `size` where the others are collinear with them, or at a perfect fit.
    """
    least, stop = PERFECT * basis.residual, min(size + size // 4 + BEYOND, n_most)
    while len(basis.order) < stop and basis.residual > least:
        unit, _ = basis.best_addition()
        if unit < 0:
            break
        basis.add(unit)
    if len(basis.order) <= size:
        return swap_until_best(basis, least)
    forward = swap_until_best(basis.truncated(size), least)
    units = next(left for left, _ in basis.eliminated() if len(left) == size)
    if sorted(units) == sorted(forward.order):
        return forward
    backward = swap_until_best(basis.restarted(units), least)
    return backward if backward.residual < forward.residual * (1.0 - TELLING) else forward
