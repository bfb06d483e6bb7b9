"""Lassos that are kept current row by row: columns of the second moments, and where all rows so far pull to.

The moments M of x with x are totals over all rows, about the mean (`centred`) or about zero. A new row adds a rank-one
term to them,

    M += share v v',    v = x - mean of the rows before,    share = n / (n + 1)        (centred; Chan et al., 1983)
    M += v v',          v = x                                                          (not centred)

so a column that is kept needs no product with the rows in the buffer; one that is not is read from the Gram once.
"""

import numpy as np

from libc.math cimport fabs, log, sqrt
from libc.string cimport memcpy

from thresher._utils.reductions cimport add_multiple, dot
from thresher.baselines._lasso cimport descend
from thresher.baselines._single_rows cimport is_sane, soft
from thresher.online._running cimport RunningSums, variance

from thresher.io.schema import Array, Count, Flag, Is, Number, Schema

# The place of a feature whose column is not kept.
cdef Py_ssize_t ABSENT = -1
# Columns kept beyond twice the support before idle ones are forgotten.
cdef Py_ssize_t SPARE = 32
# The share of the penalty by which the pull on a feature outside the descent may exceed it.
cdef double PRECISION = 1e-6
NUMBERS = ("n_kept", "sum_errors", "sum_responses", "penalty", "unsolved", "centred")


cdef class LassoStream:
    """An estimate, the columns of its features, and sums over the rows of a Gram, which this object fills."""

    _schema = Schema(
        lambda stream: len(stream.coef) == len(stream.sums.sum_x),
        lambda stream: 1 <= len(stream.features) <= len(stream.coef),
        lambda stream: len(np.unique(stream.features[: stream.n_kept])) == stream.n_kept,
        sums=Is(RunningSums),
        coef=Array("d"),
        columns=Array("room", "d"),
        features=Array("room", dtype="i8", least=0, below="d"),
        n_kept=Count(most="room"),
        sum_errors=Number(least=0.0),
        sum_responses=Number(least=0.0),
        penalty=Number(least=0.0),
        unsolved=Flag(),
        centred=Flag(),
    )

    cdef readonly RunningSums sums
    cdef double[::1] _coef
    cdef double[:, ::1] columns  # (room, d): columns of M, of the support and a few more
    cdef Py_ssize_t[::1] features  # (room,): whose they are
    cdef Py_ssize_t[::1] place  # (d,): where a feature's column is
    cdef public Py_ssize_t n_kept
    cdef public double sum_errors, sum_responses  # squares of errors of one-step-ahead predictions, and of responses
    cdef public double penalty  # that was used last
    cdef public bint unsolved  # whether the last solution was given up
    cdef public bint centred
    # To work on
    cdef double[::1] pull  # target - M coef
    cdef double[::1] v
    cdef double[::1] before, moves

    def __init__(self, Py_ssize_t n_features, bint centred):
        cdef Py_ssize_t room = min(n_features, 2 * SPARE)
        self.sums, self.centred = RunningSums(n_features), centred
        self._coef, self.columns = np.zeros(n_features), np.zeros((room, n_features))
        self.features = np.zeros(room, np.intp)
        self._prepare()

    def _prepare(self):
        """Make the arrays that follow from others or that every row fills."""
        d, used = len(self._coef), np.asarray(self.features)[: self.n_kept]
        place = np.full(d, ABSENT)
        place[used] = np.arange(self.n_kept)
        self.place = place
        self.pull, self.v, self.before, self.moves = np.zeros((4, d))

    def __getstate__(self):
        numbers = {name: getattr(self, name) for name in NUMBERS}
        arrays = {"columns": np.asarray(self.columns), "features": np.asarray(self.features)}
        return {"sums": self.sums, "coef": self.coef, **arrays, **numbers}

    def __setstate__(self, state):
        self.sums, self._coef = state["sums"], state["coef"]
        self.columns, self.features = state["columns"], state["features"]
        for name in NUMBERS:
            setattr(self, name, state[name])
        self._prepare()

    @property
    def coef(self):
        """The estimate, a live view."""
        return np.asarray(self._coef)

    def solve_rows(
        self, summary, const double[:, ::1] X, const double[::1] y, const double[::1] given, double multiple,
        Py_ssize_t n_warmup, Py_ssize_t round_size, double tolerance, Py_ssize_t most_sweeps,
    ):
        """`OnlineLasso`: absorb rows that the summary has room for, and solve after every `round_size` of them.

        `given` has the penalty of each row; if it is empty, penalties are estimated with `multiple` for C.
        """
        cdef Py_ssize_t i, n_past
        if round_size < 1:
            raise ValueError("The rows of a round must be one or more.")
        self._begin(summary, X, y, given)
        with nogil:
            for i in range(X.shape[0]):
                self.follow_row(&X[i, 0], y[i], False)
                n_past = self.sums.n_samples - n_warmup
                if n_past > 0 and n_past % round_size == 0:
                    self.set_penalty(given, i, multiple)
                    self.solve(tolerance * sqrt(self.sum_responses), most_sweeps)
        self.sums.end(summary)
        return X.shape[0]

    def linearized_rows(
        self, summary, const double[:, ::1] X, const double[::1] y, const double[::1] given, double multiple,
        const double[:, ::1] curvature, Py_ssize_t n_wait, Py_ssize_t n_steps, double step, double tolerance,
        Py_ssize_t most_sweeps,
    ):
        """`OnlineLinearizedLasso`: absorb rows, and solve `n_steps` surrogate problems after each past the wait.

        Returns how many rows came before the one with which the estimate was seen to have diverged, or their number.
        """
        cdef Py_ssize_t i, j
        cdef double close
        cdef bint sane = True
        self._begin(summary, X, y, given)
        if not curvature.shape[0] == curvature.shape[1] == self._coef.shape[0]:
            raise ValueError("The curvature is of another number of features.")
        with nogil:
            if self.sums.n_samples == 0:  # the lasso of the batch has a support, and the stream no columns of it yet
                for j in range(self._coef.shape[0]):
                    if self._coef[j] != 0.0:
                        self.load(j)
            for i in range(X.shape[0]):
                sane = self.follow_row(&X[i, 0], y[i], True)
                if not sane:
                    break
                if self.sums.n_samples <= n_wait:
                    continue
                self.set_penalty(given, i, multiple)
                close = tolerance * sqrt(self.sum_responses / self.sums.weight)
                for _ in range(n_steps):
                    if not self.solve_surrogate(curvature, step, close, most_sweeps):
                        break
                self.tidy()
        self.sums.end(summary)
        return X.shape[0] if sane else i

    def _begin(self, summary, const double[:, ::1] X, const double[::1] y, const double[::1] given):
        """Look at the arrays of a summary, for rows that its buffer has room for."""
        self.sums.begin(summary, X, y, None)
        if X.shape[0] != y.shape[0] or X.shape[1] != self._coef.shape[0] or given.shape[0] not in (0, y.shape[0]):
            raise ValueError("The rows do not fit together.")

    cdef bint follow_row(self, const double *x, double y, bint watch) noexcept nogil:
        """Absorb a row; False, and nothing happens, if estimates are watched and this one has diverged."""
        cdef Py_ssize_t j, k, d = self._coef.shape[0]
        cdef double weight = self.sums.weight, share = 1.0, v_y = y, prediction, error, squares, errors
        cdef double *v = &self.v[0]
        cdef double *shift = &self.sums.shift_x[0]
        cdef double *sum_x = &self.sums.sum_x[0]
        if not self.centred:
            for j in range(d):
                v[j] = x[j]
        elif weight == 0.0:  # one row alone says nothing about deviations
            share = v_y = 0.0
            for j in range(d):
                v[j] = 0.0
        else:
            share = weight / (weight + 1.0)
            v_y = (y - self.sums.shift_y) - self.sums.sum_y / weight
            for j in range(d):
                v[j] = (x[j] - shift[j]) - sum_x[j] / weight
        prediction = dot(v, &self._coef[0], d)
        error = v_y - prediction
        squares, errors = self.sum_responses + v_y * v_y, self.sum_errors + error * error
        if watch and not is_sane(prediction, weight + 1.0, squares, errors):
            return False
        self.sum_responses, self.sum_errors = squares, errors
        for k in range(self.n_kept):
            if share * v[self.features[k]] != 0.0:
                add_multiple(share * v[self.features[k]], v, &self.columns[k, 0], d)
        self.sums.add_row(x, y, 1.0)
        return True

    cdef void set_penalty(self, const double[::1] given, Py_ssize_t i, double multiple) noexcept nogil:
        """The penalty for row i: the one given, or from the errors of one-step-ahead predictions.

        Those are honest about the noise from the first row on, which residuals of a fit to few rows are not. They are
        multiplied by the root of the mean variance of the columns, so that units do not matter.
        """
        cdef Py_ssize_t j, d = self._coef.shape[0]
        cdef double t = self.sums.n_samples, size = 0.0
        if given.shape[0]:
            self.penalty = given[i]
            return
        for j in range(d):
            size += variance(self.sums, j, self.centred) / d
        self.penalty = multiple * sqrt(self.sum_errors / t) * sqrt(size) * sqrt(log(max(d, 2)) / t)

    cdef void find_pull(self) noexcept nogil:
        """Compute target - M coef: O(d) for each nonzero coefficient, all of whose columns must be there."""
        cdef Py_ssize_t j, k, d = self._coef.shape[0]
        cdef double weight = self.sums.weight, sum_y = self.sums.sum_y, shift_y = self.sums.shift_y
        cdef double *pull = &self.pull[0]
        cdef double *cross = &self.sums.cross[0]
        cdef double *sum_x = &self.sums.sum_x[0]
        cdef double *shift = &self.sums.shift_x[0]
        if self.centred:
            for j in range(d):
                pull[j] = cross[j] - (sum_y / weight) * sum_x[j]
        else:
            for j in range(d):
                pull[j] = cross[j] + sum_x[j] * shift_y + shift[j] * (sum_y + weight * shift_y)
        for k in range(self.n_kept):
            if self._coef[self.features[k]] != 0.0:
                add_multiple(-self._coef[self.features[k]], &self.columns[k, 0], pull, d)

    cdef int solve(self, double close, Py_ssize_t most_sweeps) except -1 nogil:
        """The lasso of all rows so far: descent on the features that are, or have to be, nonzero."""
        cdef Py_ssize_t j, d = self._coef.shape[0], n_before = -1
        cdef double level = self.sums.weight * self.penalty
        self.find_pull()
        while self.n_kept > n_before:
            self.unsolved = not descend(
                &self.columns[0, 0], &self.features[0], self.n_kept, d, level, &self._coef[0], &self.pull[0], close,
                most_sweeps,
            )
            n_before = self.n_kept
            for j in range(d):
                if self.place[j] == ABSENT and fabs(self.pull[j]) > level * (1.0 + PRECISION):
                    self.load(j)
        self.tidy()
        return 0

    cdef int solve_surrogate(
        self, const double[:, ::1] curvature, double step, double close, Py_ssize_t most_steps
    ) except -1 nogil:
        """Minimise a surrogate loss from the estimate on; whether that moved it.

        The surrogate's pull at theta_(t-1) is that of the stream, -grad L_t; its curvature is the batch's.
        """
        cdef Py_ssize_t j, d = self._coef.shape[0]
        cdef double weight = self.sums.weight
        cdef int moved = 0
        self.find_pull()
        for j in range(d):
            self.before[j] = self._coef[j]
            self.pull[j] /= weight
        self.take_proximal_steps(curvature, step, close, most_steps)
        for j in range(d):
            if self._coef[j] != self.before[j]:
                moved = 1
                self.load(j)
        return moved

    cdef void take_proximal_steps(
        self, const double[:, ::1] curvature, double step, double close, Py_ssize_t most_steps
    ) noexcept nogil:
        """Steps towards the minimiser of coef' M coef / 2 - target' coef + penalty |coef|_1, M the curvature."""
        cdef Py_ssize_t j, d = self._coef.shape[0]
        cdef double trace = 0.0, threshold = step * self.penalty
        cdef double *coef = &self._coef[0]
        cdef double *pull = &self.pull[0]
        cdef double *moves = &self.moves[0]
        for j in range(d):
            trace += curvature[j, j] / d
        for _ in range(most_steps):
            for j in range(d):
                moves[j] = soft(coef[j] + step * pull[j], threshold) - coef[j]
            for j in range(d):
                if moves[j] != 0.0:
                    coef[j] += moves[j]
                    add_multiple(-moves[j], &curvature[j, 0], pull, d)
            if dot(moves, moves, d) * trace <= close * close:
                return

    cdef int load(self, Py_ssize_t j) except -1 nogil:
        """Keep the column of feature j, which is read from the Gram if it was not kept before."""
        if self.place[j] != ABSENT:
            return 0
        if self.n_kept == self.features.shape[0]:
            with gil:
                self._grow()
        self.read_column(j, &self.columns[self.n_kept, 0])
        self.features[self.n_kept] = j
        self.place[j] = self.n_kept
        self.n_kept += 1
        return 0

    def _grow(self):
        """Make room for twice as many columns."""
        cdef Py_ssize_t d = len(self._coef), room = min(2 * len(self.features), d)
        columns, features = np.zeros((room, d)), np.zeros(room, int)
        columns[: len(self.features)], features[: len(self.features)] = self.columns, self.features
        self.columns, self.features = columns, features

    cdef void read_column(self, Py_ssize_t j, double *out) noexcept nogil:
        """Column j of the moments of all rows that the Gram has absorbed."""
        cdef Py_ssize_t b, i, d = self._coef.shape[0]
        cdef double weight = self.sums.weight, half, shift_j = self.sums.shift_x[j]
        cdef double *sum_x = &self.sums.sum_x[0]
        cdef double *shift = &self.sums.shift_x[0]
        for i in range(d):
            out[i] = self.sums.comoment(i, j)
        for b in range(self.sums.n_buffered):
            add_multiple(self.sums.buffer[b, j], &self.sums.buffer[b, 0], out, d)
        out[j] = self.sums.sum_xx[j]
        if self.centred:
            add_multiple(-(sum_x[j] / weight), sum_x, out, d)
            return
        half = sum_x[j] + 0.5 * weight * shift_j
        for i in range(d):
            out[i] += shift_j * (sum_x[i] + 0.5 * weight * shift[i])
            out[i] += half * shift[i]

    cdef void tidy(self) noexcept nogil:
        """Forget the columns of features whose coefficient is zero, once they are many: each costs O(d) per row."""
        cdef Py_ssize_t j, k, feature, left = 0, d = self._coef.shape[0]
        for j in range(d):
            left += self._coef[j] != 0.0
        if self.n_kept <= 2 * left + SPARE:
            return
        left = 0
        for k in range(self.n_kept):
            feature = self.features[k]
            if self._coef[feature] == 0.0:
                self.place[feature] = ABSENT
                continue
            if left < k:
                memcpy(&self.columns[left, 0], &self.columns[k, 0], d * sizeof(double))
                self.features[left] = feature
                self.place[feature] = left
            left += 1
        self.n_kept = left
