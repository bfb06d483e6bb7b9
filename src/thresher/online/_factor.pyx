"""Least squares on the support, from a Cholesky factor that rows and support changes keep up to date.

The factor U is upper triangular with U'U the second moments of the *members*: with an intercept those of (1, z_S), the
constant as member zero, z = x - shift; without one those of x_S. A new row, a new member and a member that leaves
cost O(s^2) each. Members are linearly independent: a feature that the others determine cannot enter, and the
least-squares solution has zero for it.
"""

import numpy as np

from libc.math cimport sqrt

from thresher._utils.reductions cimport add_multiple, dot
from thresher.online._running cimport RunningSums, variance
from thresher.online._working_set cimport WorkingSet

from thresher._utils.tolerances import OWN_SHARE
from thresher.io.schema import Array, Count, Flag, Schema

# A feature may enter if this share of its variance is its own, that is, not explained by the members.
cdef double OWN = OWN_SHARE[np.dtype(np.float64)], OWN_SINGLE = OWN_SHARE[np.dtype(np.float32)]
# Members were independent when they entered; when the factor is built again, only rounding can say otherwise.
cdef double REBUILT_SHARE = 1e-5  # of the above


cdef double length_of(double a, double b) noexcept nogil:
    """sqrt(a^2 + b^2), without overflow."""
    cdef double largest = max(abs(a), abs(b))
    if largest == 0.0:
        return 0.0
    return largest * sqrt((a / largest) * (a / largest) + (b / largest) * (b / largest))


cdef double solve_transposed(double[:, ::1] upper, double *vector, Py_ssize_t n) noexcept nogil:
    """vector <- U'^-1 vector in its first n places; returns its squared length."""
    cdef Py_ssize_t k
    for k in range(n):
        vector[k] /= upper[k, k]
        add_multiple(-vector[k], &upper[k, 0] + k + 1, vector + k + 1, n - k - 1)
    return dot(vector, vector, n)


cdef void solve(double[:, ::1] upper, double *vector, Py_ssize_t n) noexcept nogil:
    """vector <- U^-1 vector in its first n places."""
    cdef Py_ssize_t k
    for k in range(n - 1, -1, -1):
        vector[k] = (vector[k] - dot(&upper[k, 0] + k + 1, vector + k + 1, n - k - 1)) / upper[k, k]


def _is_consistent(factor):
    """Whether the members are different features, independent ones, and places are theirs."""
    used, n = factor.members[: factor.n_members], len(factor.place)
    place = np.zeros(n, np.intp)
    if len(used) and not 0 <= used.min() <= used.max() < n:
        return False
    place[used] = np.arange(1, len(used) + 1)
    n_factored = len(used) + (factor.centred if len(used) else 0)
    return (
        len(factor.upper) == len(factor.members) + 1
        and np.array_equal(place, factor.place)
        and np.count_nonzero(place) == len(used)
        and bool((factor.upper.diagonal()[:n_factored] > 0.0).all())
    )


cdef class Factor:
    """Room for C of d features."""

    _schema = Schema(
        _is_consistent,
        centred=Flag(),
        upper=Array("side", "side"),
        members=Array("capacity", dtype="i8"),
        place=Array("d", dtype="i8"),
        n_members=Count(most="capacity"),
    )

    def __init__(self, Py_ssize_t n_features, Py_ssize_t capacity, bint centred):
        self.__setstate__({
            "centred": centred,
            "upper": np.zeros((capacity + 1, capacity + 1)),
            "members": np.zeros(capacity, np.intp),
            "place": np.zeros(n_features, np.intp),
            "n_members": 0,
        })

    def __getstate__(self):
        return {
            "centred": self.centred,
            "upper": np.asarray(self.upper),
            "members": np.asarray(self.members),
            "place": np.asarray(self.place),
            "n_members": self.n_members,
        }

    def __setstate__(self, state):
        self.centred, self.n_members = state["centred"], state["n_members"]
        self.upper, self.members, self.place = state["upper"], state["members"], state["place"]
        self.column, self.solution = np.zeros((2, len(self.upper)))

    cdef void clear(self) noexcept nogil:
        """Forget all members."""
        cdef Py_ssize_t m
        for m in range(self.n_members):
            self.place[self.members[m]] = 0
        self.n_members = 0

    cdef void add_row(self, RunningSums sums) noexcept nogil:
        """Restore U'U after a row was added to the buffer, by one rotation per member.

        G. H. Golub and C. F. Van Loan, Matrix Computations, Section 6.5.4.
        """
        cdef Py_ssize_t j, k, m, n, newest = sums.n_buffered - 1, first = 1 if self.centred else 0
        cdef double root = sums.buffer_root[newest], longer, cosine, sine, old
        cdef double *row = &self.column[0]
        cdef double *line
        if self.n_members == 0 or root == 0.0:
            return
        row[0] = root
        for m in range(self.n_members):
            j = self.members[m]
            row[first + m] = sums.buffer[newest, j] + (0.0 if self.centred else root * sums.shift_x[j])
        n = first + self.n_members
        for k in range(n):
            line = &self.upper[k, 0]
            longer = length_of(line[k], row[k])
            cosine, sine = line[k] / longer, row[k] / longer
            line[k] = longer
            for m in range(k + 1, n):
                old = line[m]
                line[m] = cosine * old + sine * row[m]
                row[m] = cosine * row[m] - sine * old

    cdef void remove(self, Py_ssize_t m) noexcept nogil:
        """Let member m go: its column is cut out, and rotations make what is left triangular again."""
        cdef Py_ssize_t i, k, first = 1 if self.centred else 0, n = first + self.n_members
        cdef double longer, cosine, sine, above, below
        self.place[self.members[m]] = 0
        for k in range(m, self.n_members - 1):
            self.members[k] = self.members[k + 1]
            self.place[self.members[k]] = k + 1
        self.n_members -= 1
        for i in range(n):
            for k in range(max(first + m, i - 1), n - 1):
                self.upper[i, k] = self.upper[i, k + 1]
        for k in range(first + m, n - 1):
            longer = length_of(self.upper[k, k], self.upper[k + 1, k])
            cosine, sine = self.upper[k, k] / longer, self.upper[k + 1, k] / longer
            for i in range(k, n - 1):
                above, below = self.upper[k, i], self.upper[k + 1, i]
                self.upper[k, i] = cosine * above + sine * below
                self.upper[k + 1, i] = cosine * below - sine * above

    cdef void enter(self, RunningSums sums, WorkingSet work, Py_ssize_t slot, double smallest_share) noexcept nogil:
        """Make the feature in a slot of the working set a member, unless the members determine it."""
        cdef Py_ssize_t f, k, j = work.features[slot], first = 1 if self.centred else 0, n = first + self.n_members
        cdef double *column = &self.column[0]
        cdef double shift = 0.0, lever = 0.0, square = work.local[slot, slot]
        if self.n_members == 0 and self.centred:
            self.upper[0, 0] = sqrt(sums.weight)
        column[0] = sums.sum_x[j]
        if not self.centred:  # sum w x_j x_k = A_jk + shift_j sum_k + (sum_j + weight shift_j) shift_k
            shift, lever = sums.shift_x[j], sums.sum_x[j] + sums.weight * sums.shift_x[j]
            square += shift * sums.sum_x[j] + lever * shift
        for k in range(work.size):
            f = work.features[k]
            if self.place[f] > 0:
                column[first + self.place[f] - 1] = (
                    work.local[slot, k] + shift * sums.sum_x[f] + lever * sums.shift_x[f]
                )
        square -= solve_transposed(self.upper, column, n)
        if not square > smallest_share * (sums.weight * variance(sums, j, self.centred)):
            return
        for k in range(n):
            self.upper[k, n] = column[k]
        self.upper[n, n] = sqrt(square)
        self.members[self.n_members] = j
        self.n_members += 1
        self.place[j] = self.n_members

    cdef void follow_support(self, RunningSums sums, WorkingSet work, bint rebuilt) noexcept nogil:
        """Make the members the support. Features that enter do so in ascending order."""
        cdef Py_ssize_t k, m, slot, tried = -1, n_found = 0
        cdef double share = OWN_SINGLE if sums.scatter is None else OWN
        cdef bint stays
        if rebuilt:
            share *= REBUILT_SHARE
        for k in range(work.n_kept):
            n_found += self.place[work.features[k]] > 0
        if n_found < self.n_members:
            for m in range(self.n_members - 1, -1, -1):
                stays = False
                for k in range(work.n_kept):
                    stays |= work.features[k] == self.members[m]
                if not stays:
                    self.remove(m)
        for _ in range(work.n_kept - n_found):
            slot = -1
            for k in range(work.n_kept):
                if self.place[work.features[k]] == 0 and work.features[k] > tried:
                    if slot < 0 or work.features[k] < work.features[slot]:
                        slot = k
            tried = work.features[slot]
            self.enter(sums, work, slot, share)

    cdef bint refit(self, RunningSums sums, WorkingSet work, double *coef, bint rebuilt) noexcept nogil:
        """Put theta at least squares on the support; features that the others determine leave it.

        `rebuilt` says that the factor was cleared and the support is as it was. True if the support changed.
        """
        cdef Py_ssize_t j, k, m, place, first = 1 if self.centred else 0
        cdef double target
        cdef double sum_y = 0.0 if self.centred else sums.sum_y + sums.weight * sums.shift_y
        cdef double shift_y = 0.0 if self.centred else sums.shift_y
        cdef double *solution = &self.solution[0]
        cdef bint left = False
        self.follow_support(sums, work, rebuilt)
        solution[0] = sums.sum_y
        for m in range(self.n_members):
            j = self.members[m]
            solution[first + m] = sums.cross[j] + sums.sum_x[j] * shift_y + sums.shift_x[j] * sum_y
        solve_transposed(self.upper, solution, first + self.n_members)
        solve(self.upper, solution, first + self.n_members)
        for k in range(work.n_kept):
            place = self.place[work.features[k]]
            target = solution[first + place - 1] if place > 0 else 0.0
            work.move[k] = target - work.theta[k]
            work.theta[k] = target
            coef[work.features[k]] = target
            left |= target == 0.0
        work.multiply(&work.move[0], &work.product[0], work.n_kept)
        for k in range(work.size):
            work.drift[k] += work.product[k]
        if left:
            for k in range(work.size):
                work.chosen[k] = k < work.n_kept and work.theta[k] != 0.0
            work.keep_chosen(sums.n_buffered)
        return left
