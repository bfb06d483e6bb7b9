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

from typing import NamedTuple

import numpy as np

from libc.float cimport DBL_MIN
from libc.math cimport fabs, log

from thresher._utils.tolerances import PERFECT, TIE

# Forward selection goes on for so many units, and a quarter of those at the best size, beyond the best size.
cdef Py_ssize_t BEYOND = 6
# A change has to lower the residual sum of squares by this share; less may be rounding.
cdef double TELLING = 1e-9
cdef double NOTHING = PERFECT, TIED = TIE


Support = tuple[int, ...]


class Swap(NamedTuple):
    """One member out, another unit in."""

    place: int  # of the member in the order
    unit: int
    gain: float  # by how much the residual sum of squares falls


class Penalty(NamedTuple):
    """What a support costs in n log(RSS): so much for each parameter, and so much for its size."""

    per_parameter: float
    by_size: np.ndarray


cdef class Basis:
    """Least squares on a set of units, in the order in which they were added, and what changes of the set would do.

    Attributes
    ----------
    order : list of int
        The members, in the order in which they were added.
    residual : float
        The residual sum of squares of least squares on them.
    """

    cpdef bint add_best(self) except -1:
        """Add the unit that lowers the residual sum of squares most; False if there is none."""
        raise NotImplementedError

    cpdef Py_ssize_t freedom(self, tuple units=None) except -1:
        """Parameters of least squares on these members, or on all."""
        return len(self.order if units is None else units)

    cpdef object best_swap(self):
        """The best exchange of a member for another unit; None if there is none."""
        raise NotImplementedError

    def eliminated(self):
        """The members that are left, and their residual sum of squares, as one after another leaves."""
        raise NotImplementedError

    def coefficients(self):
        """The coefficients of the members' columns, in ascending order of the columns."""
        raise NotImplementedError

    cpdef Basis truncated(self, Py_ssize_t size):
        """The first members, as a new basis."""
        raise NotImplementedError

    cpdef Basis restarted(self, tuple units):
        """A basis of other members."""
        raise NotImplementedError


cdef class Found:
    """The best support of a size that was met: the first members of a basis, in their order."""

    cdef list members  # which may go on after them
    cdef readonly Py_ssize_t size, freedom
    cdef readonly double residual, criterion

    @property
    def units(self):
        """The units of the support."""
        return tuple(self.members[: self.size])


cdef class Search:
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

    cdef readonly list found  # the best support of each size that was met
    cdef Basis empty
    cdef double weight, per_parameter, least
    cdef const double[::1] by_size
    cdef Py_ssize_t n_most
    cdef bint exhaustive

    def __init__(self, Basis basis, double weight, penalty, Py_ssize_t n_most, bint exhaustive=False):
        self.empty, self.weight, self.n_most, self.exhaustive = basis, weight, n_most, exhaustive
        self.per_parameter, self.by_size = penalty
        if self.by_size.shape[0] <= n_most:
            raise ValueError(f"The penalty has {self.by_size.shape[0]} sizes; {n_most + 1} are needed.")
        self.least = max(NOTHING * basis.residual, DBL_MIN)
        self.found = []

    def measures(self):
        """The residual sum of squares and the parameters of the best support of each size that was met."""
        residuals, freedoms = np.empty(len(self.found)), np.empty(len(self.found))
        cdef double[::1] residual = residuals, freedom = freedoms
        cdef Py_ssize_t size
        cdef Found found
        for size in range(residual.shape[0]):
            found = self.found[size]
            residual[size], freedom[size] = found.residual, found.freedom
        return residuals, freedoms

    cdef double note(self, list members, Py_ssize_t size, double residual, Py_ssize_t freedom) except? -1.0:
        """Remember a support that is better than what is known of its size; returns the criterion of that size."""
        cdef Found known
        while len(self.found) <= size:
            self.found.append(None)
        known = self.found[size]
        if known is None or residual < known.residual * (1.0 - TELLING):
            known = self.found[size] = Found.__new__(Found)
            known.members, known.size, known.freedom, known.residual = members, size, freedom, max(residual, 0.0)
            known.criterion = self.per_parameter * freedom + self.by_size[size]
            known.criterion += self.weight * log(max(residual, self.least))
        return known.criterion

    cdef Found best(self):
        """The smallest size whose criterion is least, up to rounding."""
        cdef Found found, best = None
        cdef double least
        for found in self.found:
            if found is not None and (best is None or found.criterion < best.criterion):
                best = found
        least = best.criterion + TIED * fabs(best.criterion)
        for found in self.found:
            if found is not None and found.criterion <= least:
                return found

    def run(self):
        """Forward selection, then swaps and backward elimination at the best size until that stays the best.

        Returns the best support; `found` has those of the other sizes.
        """
        cdef Basis basis = self.forward(self.empty), best = basis, start
        cdef set tried = set()  # so that rounding cannot make it go round in circles
        cdef tuple support, swapped
        while True:
            support = tuple(sorted(self.best().units))
            if not support:
                return basis.truncated(0)
            if support in tried:
                return best if sorted(best.order) == list(support) else self.empty.restarted(support)
            nested = sorted(basis.order[: len(support)]) == list(support)
            start = basis.truncated(len(support)) if nested else self.empty.restarted(support)
            best = swap_until_best(start, self.least)
            swapped = tuple(sorted(best.order))
            tried |= {support, swapped}
            self.note_basis(best)
            self.backward(best)
            basis = best if swapped == support else self.forward(best.truncated(len(support)))

    cdef double note_basis(self, Basis basis) except? -1.0:
        return self.note(basis.order, len(basis.order), basis.residual, basis.freedom())

    cdef Basis forward(self, Basis basis):
        """Add units, each time the one that lowers the loss most, until that has not paid for a while."""
        cdef double value, best = self.note_basis(basis)
        cdef Py_ssize_t n = len(basis.order), n_best = n
        while basis.residual > self.least and n < self.n_most and basis.add_best():
            value, n = self.note_basis(basis), n + 1
            if value < best:
                best, n_best = value, n
            if n >= n_best + n_best // 4 + BEYOND and not self.exhaustive:
                break
        return basis

    cdef backward(self, Basis basis):
        """Take note of what is left when members leave, until that does not pay."""
        cdef double value, best = self.note_basis(basis)
        for units, residual in basis.eliminated():
            value = self.note(list(units), len(units), residual, basis.freedom(units))
            if value >= best:
                return
            best = value


cdef Basis swap_until_best(Basis basis, double least):
    """Exchange one member for one other unit, each time the pair that lowers the loss most, until none lowers it.

    A residual sum of squares up to `least` is a perfect fit, where only rounding could tell supports apart.
    """
    cdef Basis better
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


def best_subset(Basis basis, Py_ssize_t size, Py_ssize_t n_most):
    """The best `size` units, from both sides: forward selection, and elimination from further on, both with swaps.

    `basis` has no units. There are fewer than `size` where the others are collinear with them, or at a perfect fit.
    """
    cdef double least = NOTHING * basis.residual
    cdef Py_ssize_t stop = min(size + size // 4 + BEYOND, n_most)
    cdef Basis forward, backward
    while len(basis.order) < stop and basis.residual > least and basis.add_best():
        pass
    if len(basis.order) <= size:
        return swap_until_best(basis, least)
    forward = swap_until_best(basis.truncated(size), least)
    units = next(left for left, _ in basis.eliminated() if len(left) == size)
    if sorted(units) == sorted(forward.order):
        return forward
    backward = swap_until_best(basis.restarted(units), least)
    return backward if backward.residual < forward.residual * (1.0 - TELLING) else forward
