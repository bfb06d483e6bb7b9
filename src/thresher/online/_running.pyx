"""The O(d) sums of a summary, kept up to date row by row for rounds that need them after every row."""

import numpy as np

from libc.math cimport sqrt

from thresher._utils.reductions cimport add_multiple

from thresher.io.schema import Array, Number, Schema
from thresher.summaries._shifted import start_shift

# Sums of the same rows agree to this share of what Cauchy and Schwarz allow.
SAME = 1e-6
FIELDS = ("shift_x", "sum_x", "sum_xx", "cross", "weight", "shift_y", "sum_y", "sum_yy")


cdef class RunningSums:
    """Sums over all rows of a Gram, rows in its buffer included, which kernels add rows to.

    A Gram computes these sums when its buffer is folded; a round after every row needs them after every row. Kernels
    write new rows to the buffer of the summary and to these sums: call ``begin`` before and ``end`` after.
    """

    _schema = Schema(
        shift_x=Array("d"),
        sum_x=Array("d"),
        sum_xx=Array("d"),
        cross=Array("d"),
        weight=Number(least=0.0),
        shift_y=Number(),
        sum_y=Number(),
        sum_yy=Number(),
    )

    def __init__(self, Py_ssize_t n_features):
        self.shift_x, self.sum_x, self.sum_xx, self.cross = np.zeros((4, n_features))
        self.nonzero = np.zeros(n_features, np.intp)

    def __getstate__(self):
        return {name: np.asarray(getattr(self, name))[()] for name in FIELDS}

    def __setstate__(self, state):
        for name in FIELDS:
            setattr(self, name, state[name])
        self.nonzero = np.zeros(len(self.sum_x), np.intp)

    def agree_with(self, sums):
        """Whether these are the sums of a summary, to the rounding of sums that are added in another order."""
        x, y = np.sqrt(np.abs(sums.sum_xx)), np.sqrt(abs(sums.sum_yy))
        scales = 0.0, np.sqrt(sums.weight) * x, x * x, x * y, sums.weight, 0.0, np.sqrt(sums.weight) * y, y * y
        return all(
            np.shape(getattr(self, name)) == np.shape(value)
            and np.all(np.abs(np.asarray(getattr(self, name)) - value) <= SAME * scale)
            for name, value, scale in zip(FIELDS, (getattr(sums, name) for name in FIELDS), scales)
        )

    def read(self, summary):
        """Take the sums from the summary, after it has folded its rows about another shift or absorbed rows itself."""
        sums = summary.sums()
        if any(np.shape(value) not in ((), (len(self.nonzero),)) for value in sums):
            raise ValueError("The sums are of another number of features.")
        for name, value in zip(sums._fields, sums):
            setattr(self, name, np.array(value) if np.ndim(value) else value)

    def attach(self, summary):
        """Look at the arrays of a summary, whose buffer kernels read and write until they are attached again."""
        state = summary.state
        state.check()
        if len(state.sum_x) != len(self.nonzero):
            raise ValueError("The summary has another number of features.")
        self.n_samples, self.n_buffered = state.n_samples, state.n_buffered
        self.buffer, self.buffer_y, self.buffer_root = state.buffer, state.buffer_y, state.buffer_root
        single = state.scatter.dtype == np.float32
        self.scatter, self.scatter_single = (None, state.scatter) if single else (state.scatter, None)

    def begin(self, summary, X, y, weights):
        """Make ready for rows that the buffer of the summary has room for."""
        if not summary.state.started:
            start_shift(summary.state, X, y, weights)
            self.read(summary)
        self.attach(summary)

    def end(self, summary):
        """Tell the summary how many rows a kernel has written to its buffer."""
        summary.state.n_samples, summary.state.n_buffered = self.n_samples, self.n_buffered

    cdef int check_rows(self, const double[:, ::1] X, const double[::1] y, const double[::1] weights) except -1:
        """Raise ValueError unless these rows fit together and into the buffer."""
        if not X.shape[0] == y.shape[0] == weights.shape[0] or X.shape[1] != self.sum_x.shape[0]:
            raise ValueError("The rows do not fit together.")
        if X.shape[0] > self.buffer.shape[0] - self.n_buffered:
            raise ValueError("More rows than the buffer has room for.")
        return 0

    cdef void add_row(self, const double *x, double y, double weight) noexcept nogil:
        """Add a row to the buffer and to every sum; the buffer must have room, and the shift must be set."""
        cdef Py_ssize_t j, d = self.sum_x.shape[0], slot = self.n_buffered
        cdef double root = sqrt(weight), v, weighted_v, z
        cdef double *row = &self.buffer[slot, 0]
        cdef double *shift = &self.shift_x[0]
        cdef double *sum_x = &self.sum_x[0]
        cdef double *sum_xx = &self.sum_xx[0]
        cdef double *cross = &self.cross[0]
        self.n_samples += 1
        self.n_buffered += 1
        self.buffer_root[slot] = root
        if weight == 0.0:  # a row that does not count may be so far away that zero times it is not zero
            for j in range(d):
                row[j] = 0.0
            self.buffer_y[slot] = 0.0
            return
        v = y - self.shift_y
        self.buffer_y[slot] = root * v
        weighted_v = weight * v
        for j in range(d):
            z = x[j] - shift[j]
            row[j] = root * z
            sum_x[j] += weight * z
            sum_xx[j] += weight * z * z
            cross[j] += weighted_v * z
        self.weight += weight
        self.sum_y += weight * v
        self.sum_yy += weight * v * v

    cdef double comoment(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """sum w z_i z_j over the folded rows."""
        cdef Py_ssize_t above = min(i, j), right = max(i, j)
        if self.scatter is None:
            return self.scatter_single[above, right]
        return self.scatter[above, right]

    cdef void add_scatter_product(self, const double *vector, double *out) noexcept nogil:
        """out += scatter @ vector, fast for a vector with few nonzeros.

        Reads only the upper triangle, row by row: what lies right of the diagonal counts for both of its features.
        """
        cdef Py_ssize_t a, i, j, d = self.sum_x.shape[0], n = 0, first = 0
        cdef Py_ssize_t *index = &self.nonzero[0]
        cdef double total
        for j in range(d):
            if vector[j] != 0.0:
                index[n] = j
                n += 1
        for a in range(n):
            i = index[a]
            if self.scatter is None:
                for j in range(i, d):
                    out[j] += vector[i] * self.scatter_single[i, j]
            else:
                add_multiple(vector[i], &self.scatter[i, i], out + i, d - i)
        for j in range(d):
            while first < n and index[first] <= j:  # index[first:n] lies right of the diagonal in row j
                first += 1
            total = 0.0
            for a in range(first, n):
                total += self.comoment(j, index[a]) * vector[index[a]]
            out[j] += total
