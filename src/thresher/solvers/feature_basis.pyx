"""Least squares on a growing set of features, and what every change of the set by one feature would do to the loss."""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from scipy.linalg.cython_blas cimport dgemm
from scipy.linalg.cython_lapack cimport dtrtri

from thresher._utils.reductions cimport add_multiple, dot, largest_of
from thresher.solvers.forward_backward cimport Basis
from thresher.summaries.moments cimport Moments

from thresher._utils.tolerances import OWN_SHARE, TIE
from thresher.solvers.forward_backward import Swap

# Room for so many features to begin with; twice as many when it is full.
cdef Py_ssize_t FIRST_ROOM = 32
# Numbers that differ by less, relatively, are tied; the lowest index wins.
cdef double TIED = TIE


cdef class FeatureBasis(Basis):
    """Least squares on the features that were added, in their order.

    With G the moments of the features and h those with y, the members S have a Cholesky factor G_SS = U'U, and the rows
    W of U'^-1 G_S: are kept for all d features. What is left of feature j beside the members is G_jj - sum_k
    W_kj^2; of its moment with y it is h_j - sum_k W_kj t_k, with t = U'^-1 h_S. The residual sum of squares falls
    by the square of the latter over the former. Adding a feature costs O(d k).

    Parameters
    ----------
    moments : Moments
        What is known of the rows.
    members : tuple of int
        The features to begin with.

    The residual sum of squares is infinite if the members are collinear.
    """

    cdef Moments moments
    cdef double[::1] floor  # (d,): what a feature that is not collinear has of its own, at least
    cdef double[::1] left  # (d,): what it has, infinite if it must not be added
    cdef double[::1] pull  # (d,): of its moment with y
    cdef double[::1] gains  # (d,): by how much it would lower the residual sum of squares
    cdef double[:, ::1] rows  # W, with room for more rows
    cdef double[::1] rhs  # t
    cdef object inverted  # U^-1, upper triangular, and the coefficients of the members, once somebody asks

    def __init__(self, Moments moments not None, members=()):
        self._begin(moments, OWN_SHARE[moments.dtype] * moments.squares, max(FIRST_ROOM, len(members)))
        for unit in members:
            if not 0 <= unit < self.left.shape[0]:
                raise IndexError(f"There is no feature {unit}.")
            if self.left[unit] == INFINITY:  # collinear with those before it, in this order
                self.residual = INFINITY
                return
            self._add(unit)

    cdef _begin(self, Moments moments, double[::1] floor, Py_ssize_t room):
        """No members, and room for so many."""
        cdef Py_ssize_t j, d = floor.shape[0]
        cdef double[:, ::1] vectors = np.empty((3, d))
        self.moments, self.order, self.residual, self.floor = moments, [], moments.total, floor
        self.left, self.pull, self.gains = vectors[0], vectors[1], vectors[2]
        for j in range(d):
            self.left[j] = moments.diagonal[j] if moments.diagonal[j] > 0.0 else INFINITY
            self.pull[j] = moments.cross[j]
        self._make_room(room)

    cdef _make_room(self, Py_ssize_t room):
        rows, rhs = np.empty((room, self.pull.shape[0])), np.empty(room)
        n = len(self.order)
        if n:
            rows[:n], rhs[:n] = self.rows[:n], self.rhs[:n]
        self.rows, self.rhs = rows, rhs

    cpdef Basis truncated(self, Py_ssize_t size):
        """The first `size` members, as a new basis: O(d size)."""
        cdef FeatureBasis result = FeatureBasis.__new__(FeatureBasis)
        cdef Py_ssize_t k, unit
        result._begin(self.moments, self.floor, max(FIRST_ROOM, size))
        for k in range(size):
            unit = self.order[k]
            result.rows[k] = self.rows[k]
            result.rhs[k] = self.rhs[k]
            result._count(unit, k)
            result.order.append(unit)
        return result

    cpdef Basis restarted(self, tuple units):
        """A basis of these features."""
        return FeatureBasis(self.moments, units)

    cpdef bint add_best(self) except -1:
        """Add the feature that lowers the residual sum of squares most. False if there is none."""
        cdef Py_ssize_t unit = self._best()
        if unit >= 0:
            self._add(unit)
        return unit >= 0

    cdef Py_ssize_t _best(self) noexcept nogil:
        cdef Py_ssize_t j, d = self.pull.shape[0]
        cdef double top
        cdef double *gains = &self.gains[0]
        cdef const double *pull = &self.pull[0]
        cdef const double *left = &self.left[0]
        for j in range(d):
            gains[j] = pull[j] / left[j] * pull[j]  # in this order, so that squares of small numbers do not vanish
        top = largest_of(gains, d)
        if not top > 0.0:
            return -1
        for j in range(d):
            if gains[j] >= top * (1.0 - TIED):
                return j
        return -1

    cdef _add(self, Py_ssize_t unit):
        """Add a feature that has something of its own."""
        cdef Py_ssize_t n = len(self.order)
        if n == self.rows.shape[0]:
            self._make_room(2 * n)
        self._append(unit, n)
        self.order.append(unit)
        self.inverted = None

    cdef void _append(self, Py_ssize_t unit, Py_ssize_t n) noexcept nogil:
        """Fill row n of W and the n-th right-hand side."""
        cdef Py_ssize_t j, k, d = self.pull.shape[0]
        cdef double pivot = sqrt(self.left[unit]), a0, a1, a2, a3, per = 1.0 / sqrt(self.left[unit])
        cdef double *line = &self.rows[n, 0]
        cdef const double *r0
        cdef const double *r1
        cdef const double *r2
        cdef const double *r3
        self.moments.read(unit, line)
        k = 0
        while k + 4 <= n:  # four rows at a time, so that the line is read and written a quarter as often
            r0, r1, r2, r3 = &self.rows[k, 0], &self.rows[k + 1, 0], &self.rows[k + 2, 0], &self.rows[k + 3, 0]
            a0, a1, a2, a3 = r0[unit], r1[unit], r2[unit], r3[unit]
            for j in range(d):
                line[j] -= (a0 * r0[j] + a1 * r1[j]) + (a2 * r2[j] + a3 * r3[j])
            k += 4
        while k < n:
            add_multiple(-self.rows[k, unit], &self.rows[k, 0], line, d)
            k += 1
        for j in range(d):
            line[j] *= per
        line[unit] = pivot
        self.rhs[n] = self.pull[unit] / pivot
        self._count(unit, n)

    cdef void _count(self, Py_ssize_t unit, Py_ssize_t n) noexcept nogil:
        """Let row n of W, that of feature `unit`, count for all features."""
        cdef Py_ssize_t j, d = self.pull.shape[0]
        cdef double along = self.rhs[n]
        cdef const double *line = &self.rows[n, 0]
        cdef const double *floor = &self.floor[0]
        cdef double *left = &self.left[0]
        add_multiple(-along, line, &self.pull[0], d)
        for j in range(d):
            left[j] -= line[j] * line[j]
        for j in range(d):
            left[j] = INFINITY if left[j] <= floor[j] else left[j]
        left[unit] = INFINITY
        self.residual -= along * along

    def _inverse(self):
        """U^-1, upper triangular, and the coefficients of the members."""
        cdef int n = len(self.order), info
        cdef Py_ssize_t i, j, unit
        cdef double[:, ::1] root
        cdef double[::1] coef
        if self.inverted is None:
            inverse, solution = np.zeros((n, n)), np.zeros(n)
            self.inverted = inverse, solution
            if n == 0:
                return self.inverted
            root, coef = inverse, solution
            for j in range(n):  # U; below the diagonal it is zero but for rounding
                unit = self.order[j]
                if not 0 <= unit < self.pull.shape[0]:
                    raise IndexError(f"There is no feature {unit}.")
                for i in range(j + 1):
                    root[i, j] = self.rows[i, unit]
            dtrtri("L", "N", &n, &root[0, 0], &n, &info)  # lower, for to Fortran it is the transpose
            for i in range(n):
                coef[i] = dot(&root[i, i], &self.rhs[i], n - i)
        return self.inverted

    def coefficients(self):
        """The coefficients of the members, in ascending order of the features."""
        return self._inverse()[1][np.argsort(self.order)]

    def eliminated(self):
        """What is left, and its residual sum of squares, as members leave: each time the one that explains least.

        Without member j the residual sum of squares rises by c_j^2 / V_jj, with V = G_SS^-1 and the coefficients c.
        What is left is a rank-one update of both, O(s^2). Of members that explain the same, the last goes first.
        """
        cdef double[:, ::1] inverse
        cdef double[::1] coef
        cdef double residual = self.residual
        cdef Py_ssize_t out
        root, solution = self._inverse()
        inverse, coef, members = root @ root.T, solution.copy(), list(self.order)
        while members:
            out = explains_least(inverse, coef, len(members))
            residual += coef[out] * (coef[out] / inverse[out, out])
            leave_out(inverse, coef, len(members), out)
            del members[out]
            yield tuple(members), residual

    cpdef object best_swap(self):
        """The best exchange of one member for one other feature; None if there is no other.

        Without member i, feature k pulls with p_k + c_i b_ik / v_i and has l_k + b_ik^2 / v_i of its own, where v is
        the diagonal of G_SS^-1, c the coefficients and b_ik those of feature k regressed on the members. O(d s^2).
        """
        cdef int n = len(self.order), d = self.pull.shape[0]
        if n == 0 or n == d:
            return None
        inverse, solution = self._inverse()
        cdef double[:, ::1] root = inverse
        cdef double[::1] coef = solution
        cdef double[:, ::1] others = np.empty((n, d))  # b, then gains
        cdef double one = 1.0, zero = 0.0
        # In Fortran's eyes: others' = rows' root'
        dgemm("N", "N", &d, &n, &n, &one, &self.rows[0, 0], &d, &root[0, 0], &n, &zero, &others[0, 0], &d)
        cdef Py_ssize_t i, j
        cdef double v, loss, share, own, pull, top = -INFINITY
        cdef double *line
        with nogil:
            for i in range(n):
                line = &others[i, 0]
                v = dot(&root[i, 0], &root[i, 0], n)
                loss = coef[i] * (coef[i] / v)
                for j in range(d):
                    share = line[j] / v
                    # Infinite for members, and for what lies in their span: that cannot lower the loss.
                    own = line[j] * share + self.left[j]
                    pull = share * coef[i] + self.pull[j]
                    line[j] = pull / own * pull - loss
                top = max(top, largest_of(line, d))
        for i in range(n):
            for j in range(d):
                if others[i, j] >= top - TIED * fabs(top):
                    return Swap(i, j, top)
        return None


cdef Py_ssize_t explains_least(double[:, ::1] inverse, double[::1] coef, Py_ssize_t n) noexcept nogil:
    """The last of those members without which the residual sum of squares rises least."""
    cdef Py_ssize_t i
    cdef double least = INFINITY
    for i in range(n):
        least = min(least, coef[i] * (coef[i] / inverse[i, i]))
    for i in range(n - 1, -1, -1):
        if coef[i] * (coef[i] / inverse[i, i]) <= least * (1.0 + TIED):
            return i
    return n - 1


cdef void leave_out(double[:, ::1] inverse, double[::1] coef, Py_ssize_t n, Py_ssize_t out) noexcept nogil:
    """G_SS^-1 and the coefficients without one of n members, in place."""
    cdef Py_ssize_t i, j, row, column
    cdef double share, pivot = inverse[out, out], gone = coef[out]
    for i in range(n):
        if i != out:
            share = inverse[i, out] / pivot
            coef[i] -= share * gone
            for j in range(n):
                if j != out:
                    inverse[i, j] -= share * inverse[out, j]
    row = 0
    for i in range(n):
        if i == out:
            continue
        coef[row] = coef[i]
        column = 0
        for j in range(n):
            if j != out:
                inverse[row, column] = inverse[i, j]
                column += 1
        row += 1
