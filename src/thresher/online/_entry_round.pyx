"""The steps of a completion: passes over a matrix of counts and sums, and over its leading singular vectors."""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dsyrk
from scipy.linalg.cython_lapack cimport dpotrf

from thresher._utils.reductions cimport (
    aim_entries,
    dot,
    fit_of_entries,
    measure_entries,
    squared_distance,
    weighted_square,
)
from thresher.online._step cimport Measure
from thresher.online._step_grid cimport GROWTH, N_POWER, RESTING, ROUNDING, SHRINK, on_grid
from thresher.online._subspace cimport (
    FEW_ITERATIONS,
    SLOW,
    Triplets,
    decompose,
    follow,
    keep_tangent,
    multiply,
    multiply_out,
)
from thresher.online._ties cimport largest_magnitude

from thresher.io.schema import Array, Count, Dict, Is, Number, Schema

# Subspace iteration on a large matrix: a full decomposition costs as much as very many iterations.
cdef int PATIENCE = 100
cdef double PATIENT = 0.95
# Below this, a full decomposition is as cheap as a proof.
cdef Py_ssize_t SMALL_SIDE = 100
# What is counted: steps; projections without a full decomposition; steps after which the loss was higher; steps not
# taken because they overflow; certified steps that were shortened; fresh starts.
TALLIES = ("steps", "followed", "rises", "overflows", "shortened", "fresh")


cdef class EntryRound:
    """An estimate of a d1 x d2 matrix, with offsets of rows and columns, and how it moves.

    A step of zero asks for the certified step: one over the largest curvature tangent to the matrices of rank r,
    shortened until eta <= |move|^2 / (move' G move). That is the descent lemma's condition, so the loss does not rise.
    """

    _schema = Schema(
        lambda round: round.coef.shape == (round.triplets.left.shape[1], round.triplets.right.shape[1]),
        coef=Array("d1", "d2"),
        row_offsets=Array("d1"),
        col_offsets=Array("d2"),
        triplets=Is(Triplets),
        bounded=Array("d1", "d2"),
        bound=Number(0.0, INFINITY),
        mode=Array("d1", "d2"),
        stiffness=Number(0.0, INFINITY),
        weight_then=Number(least=0.0),
        last_step=Number(least=0.0),
        tallies=Dict(Count(), TALLIES),
    )

    cdef double[:, ::1] _coef
    cdef double[::1] _row_offsets, _col_offsets
    cdef readonly Triplets triplets  # of the last target
    cdef double[:, ::1] bounded  # a matrix, and a bound on its next singular value
    cdef double bound
    cdef double[:, ::1] mode  # the direction of largest curvature found so far
    # The curvature that steps are made for, and the weight of the entries when it was estimated
    cdef double stiffness, weight_then
    cdef public double last_step
    cdef public Py_ssize_t steps, followed, rises, overflows, shortened, fresh
    # Of the summary, while it is followed
    cdef const double[:, ::1] counts, sums
    cdef double weight, sum_squares
    # To work on
    cdef Py_ssize_t n_entries  # d1 d2
    cdef readonly double[:, ::1] target
    cdef double[:, ::1] projected

    def __init__(self, Py_ssize_t n_rows, Py_ssize_t n_cols, Py_ssize_t rank):
        shape = n_rows, n_cols
        self._coef, self._row_offsets, self._col_offsets = np.zeros(shape), np.zeros(n_rows), np.zeros(n_cols)
        self.triplets, self.mode = Triplets(n_rows, n_cols, rank), np.zeros(shape)
        self.bounded, self.bound = np.zeros(shape), INFINITY
        self._make_room()

    def _make_room(self):
        self.n_entries = self.coef.size
        self.target, self.projected = np.empty_like(self._coef), np.empty_like(self._coef)

    def __getstate__(self):
        return {
            "coef": self.coef,
            "row_offsets": self.row_offsets,
            "col_offsets": self.col_offsets,
            "triplets": self.triplets,
            "bounded": np.asarray(self.bounded),
            "bound": self.bound,
            "mode": np.asarray(self.mode),
            "stiffness": self.stiffness,
            "weight_then": self.weight_then,
            "last_step": self.last_step,
            "tallies": self.tallies,
        }

    def __setstate__(self, state):
        self.triplets = <Triplets?> state["triplets"]
        self._coef, self.bounded, self.mode = state["coef"], state["bounded"], state["mode"]
        self._row_offsets, self._col_offsets = state["row_offsets"], state["col_offsets"]
        self.bound, self.stiffness, self.weight_then = state["bound"], state["stiffness"], state["weight_then"]
        self.last_step, self.tallies = state["last_step"], state["tallies"]
        self._make_room()

    @property
    def coef(self):
        """The estimate without its offsets, a live view until the next step."""
        return np.asarray(self._coef)

    @property
    def row_offsets(self):
        """The offsets of the rows, a live view."""
        return np.asarray(self._row_offsets)

    @property
    def col_offsets(self):
        """The offsets of the columns, a live view."""
        return np.asarray(self._col_offsets)

    @property
    def tallies(self):
        """How the steps went."""
        return dict(zip(TALLIES, (getattr(self, name) for name in TALLIES)))

    @tallies.setter
    def tallies(self, counts):
        for name in TALLIES:
            setattr(self, name, counts[name])

    def begin(self, summary):
        """Look at the arrays of a summary."""
        if not summary.counts.shape == summary.sums.shape == self.coef.shape:
            raise ValueError("The rounds are of a summary of another shape.")
        self.counts, self.sums = summary.counts, summary.sums
        self.weight, self.sum_squares = summary.weight, summary.sum_squares
        return self

    def _check_begun(self):
        if self.counts.shape[0] == 0:
            raise ValueError("There is no summary; call begin first.")

    def fit_offsets(self):
        """A sweep of least squares for the offsets."""
        self._check_begun()
        fit_offsets(self.counts, self.sums, self._coef, self._row_offsets, self._col_offsets)

    def squared_residuals(self):
        """The weighted sum of squared residuals."""
        self._check_begun()
        return squared_residuals(
            self.counts, self.sums, self._coef, self._row_offsets, self._col_offsets, self.sum_squares
        )

    def step(self, double eta):
        """One step; zero asks for a certified one. False if there is nowhere to go."""
        cdef bint taken
        self._check_begun()
        with nogil:
            taken = self.find_step(eta)
        if taken:  # whoever looks at the estimate of before keeps it
            self._coef, self.projected = self.projected, np.empty_like(self._coef)
        return taken

    cdef bint find_step(self, double eta) noexcept nogil:
        """Find where a step leads. False if it is not to be taken."""
        cdef double total, weight = self.weight
        cdef bint automatic = eta == 0.0, felt
        cdef Measure effect
        if automatic:
            if not weight < GROWTH * self.weight_then:
                self.estimate_stiffness()
            if self.stiffness == 0.0:
                self.weight_then = 0.0  # nothing pulls yet: look again in the next step
                return False
            eta = on_grid(1.0 / self.stiffness)
        while True:
            total = self.aim(eta / weight)
            if not total < INFINITY:
                self.overflows += 1
                return False
            self.followed += self.project()
            effect = self.measure()
            if not fabs(effect.slope) + effect.bend < INFINITY:
                self.overflows += 1
                self.triplets.warm = False  # the triplets are those of a step that is not taken
                return False
            if automatic and eta * effect.bend > weight * effect.length * (1.0 + ROUNDING):
                eta = on_grid(min(SHRINK * eta, weight * effect.length / effect.bend))
                if eta * self.stiffness < 1.0:  # it was underestimated: look again in the next step
                    self.stiffness, self.weight_then = 1.0 / eta, 0.0
                self.shortened += 1
                continue
            felt = effect.length > RESTING * (RESTING * total)  # below that, a move is rounding
            self.rises += not automatic and felt and effect.slope + 0.5 * effect.bend > 1e-9 * fabs(effect.slope)
            self.steps += 1
            self.last_step = eta
            return True

    cdef double aim(self, double step) noexcept nogil:
        """target = theta - step (counts (theta + offsets) - sums). Returns its squared norm.

        The offset of entry (i, j) is rows[i] + cols[j].
        """
        cdef Py_ssize_t i
        cdef double total = 0.0
        for i in range(self._coef.shape[0]):
            total += aim_entries(
                &self.counts[i, 0], &self.sums[i, 0], &self._coef[i, 0], self._row_offsets[i], &self._col_offsets[0],
                step, &self.target[i, 0], self._coef.shape[1],
            )
        return total

    cdef Measure measure(self) noexcept nogil:
        """Squared length, slope and curvature of the move to the projected point, the last two times the weight."""
        cdef Py_ssize_t i
        cdef Measure found
        found.length, found.slope, found.bend = 0.0, 0.0, 0.0
        for i in range(self._coef.shape[0]):
            measure_entries(
                &self.counts[i, 0], &self.sums[i, 0], &self._coef[i, 0], self._row_offsets[i], &self._col_offsets[0],
                &self.projected[i, 0], self._coef.shape[1], &found.length, &found.slope, &found.bend,
            )
        return found

    cdef bint project(self) noexcept nogil:
        """projected = the projection of the target. True if it took no full decomposition."""
        cdef Py_ssize_t d1 = self._coef.shape[0], d2 = self._coef.shape[1], r = self.triplets.rank
        cdef double *target = &self.target[0, 0]
        cdef bint small = min(d1, d2) < SMALL_SIDE, cheap = False
        if self.triplets.is_whole():
            memcpy(&self.projected[0, 0], target, d1 * d2 * sizeof(double))
            return True
        if self.triplets.warm and small:
            cheap = follow(self.triplets, target, self.known_bound(), FEW_ITERATIONS, SLOW)
        elif self.triplets.warm:
            cheap = follow(self.triplets, target, self.known_bound(), PATIENCE, PATIENT) or self.prove()
        if not cheap:
            self.triplets.warm = decompose(self.triplets, target)
            if r < self.triplets.values.shape[0]:
                self.keep_bound(self.triplets.values[r] * (1.0 + 1e-12))
        multiply_out(self.triplets, &self.projected[0, 0])
        return cheap

    cdef double known_bound(self) noexcept nogil:
        """A bound on the next singular value of the target, from that of a similar matrix (Weyl)."""
        if self.bound == INFINITY:
            return INFINITY
        return self.bound + sqrt(squared_distance(&self.target[0, 0], &self.bounded[0, 0], self.n_entries))

    cdef void keep_bound(self, double bound) noexcept nogil:
        """Remember a bound on the next singular value of the target."""
        memcpy(&self.bounded[0, 0], &self.target[0, 0], self.n_entries * sizeof(double))
        self.bound = bound

    cdef bint prove(self) noexcept nogil:
        """Follow the singular vectors on the assumption of a bound, then prove the bound.

        If c^2 - N N' has a Cholesky factor, with N = (I - UU') M, no singular value of N reaches c, and the next one of
        M is at most that of N.
        """
        cdef Py_ssize_t i, r = self.triplets.rank
        cdef int d1 = <int> self._coef.shape[0], d2 = <int> self._coef.shape[1], side = min(d1, d2), other, failed = 1
        cdef double bound, minus = -1.0, zero = 0.0
        cdef double *target = &self.target[0, 0]
        cdef double *rest = &self.projected[0, 0]
        cdef double *inside = &self.triplets.inside[0, 0]
        cdef double *gap
        cdef char triangle = b"L", turned = b"T" if d1 <= d2 else b"N"
        if r >= self.triplets.values.shape[0]:
            return False
        bound = 0.5 * (self.triplets.values[r - 1] + self.triplets.values[r])
        if not follow(self.triplets, target, bound, PATIENCE, PATIENT):
            return False
        memcpy(rest, target, self.n_entries * sizeof(double))
        multiply(&self.triplets.left[0, 0], False, target, False, inside, r, d2, d1, 1.0, 0.0)
        multiply(&self.triplets.left[0, 0], True, inside, False, rest, d1, d2, r, -1.0, 1.0)
        gap = <double *> malloc(<size_t> side * side * sizeof(double))
        if gap != NULL:
            other = max(d1, d2)
            dsyrk(&triangle, &turned, &side, &other, &minus, rest, &d2, &zero, gap, &side)
            for i in range(side):
                gap[i * side + i] += bound * bound * (1.0 - 1e-10)
            dpotrf(&triangle, &side, gap, &side, &failed)
        free(gap)
        if failed:
            return False
        self.keep_bound(bound)
        return True

    cdef void estimate_stiffness(self) noexcept nogil:
        """The largest curvature of the loss tangent to the set, by power iteration from the last estimate."""
        cdef Py_ssize_t i, n = self.n_entries, d2 = self._coef.shape[1]
        cdef double *mode = &self.mode[0, 0]
        cdef double *pull = &self.projected[0, 0]
        cdef double *target = &self.target[0, 0]
        cdef double *row
        cdef double last = largest_magnitude(mode, n), top, size, length, bend, largest = 0.0
        cdef int _
        if not self.aim(1.0 / self.weight) < INFINITY:
            return
        for i in range(n):
            pull[i] = target[i] - (&self._coef[0, 0])[i]  # minus the gradient
        top = largest_magnitude(pull, n)
        for i in range(n):
            pull[i] /= top if top > 0.0 else 1.0
            mode[i] = mode[i] / (last if last > 0.0 else 1.0) + pull[i]  # not orthogonal to what pulls now
        memcpy(target, &self._coef[0, 0] if largest_magnitude(&self._coef[0, 0], n) > 0.0 else pull, n * sizeof(double))
        self.project()
        for _ in range(N_POWER):
            keep_tangent(self.triplets, mode)
            size = largest_magnitude(mode, n)
            if not 0.0 < size < INFINITY:
                memset(mode, 0, n * sizeof(double))
                break
            length, bend = 0.0, 0.0
            for i in range(n):
                mode[i] /= size  # so that squares stay in range
            for i in range(self._coef.shape[0]):
                row = mode + i * d2
                length += dot(row, row, d2)
                bend += weighted_square(&self.counts[i, 0], row, d2)
            for i in range(n):
                mode[i] *= (&self.counts[0, 0])[i]
            largest = max(largest, bend / (length * self.weight))
        self.stiffness, self.weight_then = largest, self.weight


def _check(counts, sums, theta, rows, cols):
    """Raise ValueError if arrays are not of one matrix."""
    if not counts.shape == sums.shape == theta.shape == (len(rows), len(cols)):
        raise ValueError("Counts, sums, matrix and offsets are of different shapes.")


def squared_residuals(
    const double[:, ::1] counts,
    const double[:, ::1] sums,
    const double[:, ::1] theta,
    const double[::1] rows,
    const double[::1] cols,
    double sum_squares,
):
    """The weighted sum of squared residuals of a matrix with offsets."""
    _check(np.asarray(counts), np.asarray(sums), np.asarray(theta), rows, cols)
    cdef Py_ssize_t i
    cdef double total = sum_squares
    with nogil:
        for i in range(theta.shape[0]):
            total += fit_of_entries(&counts[i, 0], &sums[i, 0], &theta[i, 0], rows[i], &cols[0], theta.shape[1])
    return total


def fit_offsets(
    const double[:, ::1] counts,
    const double[:, ::1] sums,
    const double[:, ::1] theta,
    double[::1] rows,
    double[::1] cols,
):
    """Least squares for the row offsets given the column offsets, then the other way round.

    Rows and columns without observations keep offset zero.
    """
    _check(np.asarray(counts), np.asarray(sums), np.asarray(theta), rows, cols)
    cdef Py_ssize_t i, j, d1 = theta.shape[0], d2 = theta.shape[1]
    cdef double weight, total
    cdef double[:, ::1] room = np.zeros((2, d2))
    cdef double *weights = &room[0, 0]
    cdef double *totals = &room[1, 0]
    with nogil:
        for i in range(d1):
            weight, total = 0.0, 0.0
            for j in range(d2):
                weight += counts[i, j]
                total += sums[i, j] - counts[i, j] * (theta[i, j] + cols[j])
            rows[i] = total / weight if weight > 0.0 else 0.0
        for i in range(d1):
            for j in range(d2):
                weights[j] += counts[i, j]
                totals[j] += sums[i, j] - counts[i, j] * (theta[i, j] + rows[i])
        for j in range(d2):
            cols[j] = totals[j] / weights[j] if weights[j] > 0.0 else 0.0
