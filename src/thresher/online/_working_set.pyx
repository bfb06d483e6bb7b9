"""The working set of a sparse round: the few features whose gradient is known exactly at all times.

Write A for the scatter matrix over all rows, b for the cross moment (both about the Gram's shift), theta for the
estimate and r for the *reference*, an earlier estimate. Slots hold features; the first n_kept slots are the support,
the rest are spare features that may enter it. The invariants, which every method here keeps, are

    at_reference = A r - b              for all d features, O(d) per row
    drift = A (theta - r)               on the working set
    local = A                           on the working set, |V|^2 per row
    rows = the Gram's buffer            on the working set
    theta = 0 in the spare slots; theta = r = 0 outside the working set

so (A theta - b) on the working set is at_reference + drift, at no cost that grows with d.
"""

import numpy as np

from thresher._utils.reductions cimport add_multiple, dot
from thresher.online._running cimport RunningSums

from thresher.io.schema import Array, Count, Flag, Schema

WIDE = ("at_reference", "outside")
SLOTS = ("features", "theta", "reference", "drift")
COUNTS = ("size", "n_kept", "stale")


def _is_consistent(work):
    """Whether slots in use hold different features, which are those that are not outside."""
    outside = np.ones(len(work.outside))
    outside[work.features[: work.size]] = 0.0
    return np.array_equal(outside, work.outside) and np.count_nonzero(outside == 0.0) == work.size


cdef class WorkingSet:
    """Room for C of d features, with B rows in the buffer of the summary."""

    _schema = Schema(
        _is_consistent,
        at_reference=Array("d"),
        outside=Array("d", least=0.0, most=1.0),
        features=Array("capacity", dtype="i8", least=0, below="d"),
        theta=Array("capacity"),
        reference=Array("capacity"),
        drift=Array("capacity"),
        local=Array("capacity", "capacity"),
        rows=Array("block", "capacity"),
        size=Count(most="capacity"),
        n_kept=Count(most="size"),
        stale=Flag(),
    )

    def __init__(self, Py_ssize_t n_features, Py_ssize_t capacity, Py_ssize_t block):
        self.at_reference, self.outside = np.zeros(n_features), np.ones(n_features)
        self.features = np.zeros(capacity, np.intp)
        self.theta, self.reference, self.drift = np.zeros((3, capacity))
        self.local, self.rows = np.zeros((capacity, capacity)), np.zeros((block, capacity))
        self.stale = True
        self._make_room()

    def _make_room(self):
        """Make the arrays that every round fills."""
        self.strength = np.zeros(len(self.outside))
        self.chosen = np.zeros(len(self.features), np.intp)
        (
            self.pull, self.sum_x, self.shift, self.root, self.unit, self.inverse, self.gradient, self.target,
            self.key, self.direction, self.along, self.bend, self.move, self.product,
        ) = np.zeros((14, len(self.features)))

    def __getstate__(self):
        arrays = {name: np.asarray(getattr(self, name)) for name in (*WIDE, *SLOTS, "local", "rows")}
        return arrays | {name: getattr(self, name) for name in COUNTS}

    def __setstate__(self, state):
        for name in (*WIDE, *SLOTS, "local", "rows", *COUNTS):
            setattr(self, name, state[name])
        self._make_room()

    cdef void follow_row(self, RunningSums sums) noexcept nogil:
        """Restore the invariants after a row was added to the buffer."""
        cdef Py_ssize_t k, newest = sums.n_buffered - 1, size = self.size
        cdef double z, residual = -sums.buffer_y[newest], moved = 0.0
        cdef double *row = &sums.buffer[newest, 0]
        cdef double *ours = &self.rows[newest, 0]
        for k in range(size):
            z = row[self.features[k]]
            ours[k] = z
            residual += z * self.reference[k]
            moved += z * (self.theta[k] - self.reference[k])
        add_multiple(moved, ours, &self.drift[0], size)
        for k in range(size):
            add_multiple(ours[k], ours, &self.local[k, 0], size)
        add_multiple(residual, row, &self.at_reference[0], self.at_reference.shape[0])

    cdef void load(self, RunningSums sums, Py_ssize_t feature) noexcept nogil:
        """Take one more feature in, as a spare. The set must have room."""
        cdef Py_ssize_t i, m, k = self.size
        cdef double z, drift = 0.0
        cdef double *local = &self.local[k, 0]
        self.size = k + 1
        self.features[k] = feature
        self.outside[feature] = 0.0
        self.theta[k] = self.reference[k] = 0.0
        for m in range(k + 1):
            local[m] = sums.comoment(feature, self.features[m])
        for i in range(sums.n_buffered):
            z = sums.buffer[i, feature]
            self.rows[i, k] = z
            add_multiple(z, &self.rows[i, 0], local, k + 1)
        for m in range(k + 1):
            self.local[m, k] = local[m]
            drift += local[m] * (self.theta[m] - self.reference[m])
        self.drift[k] = drift

    cdef void swap(self, Py_ssize_t n_buffered, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
        """Exchange two slots."""
        cdef Py_ssize_t i, m
        if a == b:
            return
        self.features[a], self.features[b] = self.features[b], self.features[a]
        self.theta[a], self.theta[b] = self.theta[b], self.theta[a]
        self.reference[a], self.reference[b] = self.reference[b], self.reference[a]
        self.drift[a], self.drift[b] = self.drift[b], self.drift[a]
        for m in range(self.size):
            self.local[a, m], self.local[b, m] = self.local[b, m], self.local[a, m]
        for m in range(self.size):
            self.local[m, a], self.local[m, b] = self.local[m, b], self.local[m, a]
        for i in range(n_buffered):
            self.rows[i, a], self.rows[i, b] = self.rows[i, b], self.rows[i, a]

    cdef void evict(self, Py_ssize_t n_buffered, Py_ssize_t k) noexcept nogil:
        """Let the spare slot k go. theta and the reference must be zero there."""
        cdef Py_ssize_t last = self.size - 1
        self.swap(n_buffered, k, last)
        self.outside[self.features[last]] = 1.0
        self.size = last

    cdef void keep_chosen(self, Py_ssize_t n_buffered) noexcept nogil:
        """Make the chosen slots the support, by exchanging slots across the border."""
        cdef Py_ssize_t k, n_kept = 0
        for k in range(self.size):
            if self.chosen[k]:
                self.swap(n_buffered, k, n_kept)
                n_kept += 1
        self.n_kept = n_kept

    cdef void reload(self, RunningSums sums, const double *coef) noexcept nogil:
        """Build the set again around the support of `coef`, for a summary that changed in other ways."""
        cdef Py_ssize_t j, k
        for k in range(self.size):
            self.outside[self.features[k]] = 1.0
        self.size = 0
        for j in range(self.outside.shape[0]):
            if coef[j] != 0.0 and self.size < self.features.shape[0]:
                self.load(sums, j)
                self.theta[self.size - 1] = coef[j]
        self.n_kept = self.size
        self.stale = False

    cdef void move_reference(self, RunningSums sums) noexcept nogil:
        """Make the current estimate the reference: at_reference = A theta - b exactly, drift = 0."""
        cdef Py_ssize_t i, j, k, d = self.at_reference.shape[0]
        cdef double *dense = &self.strength[0]  # which is about to be filled again
        cdef double *at_reference = &self.at_reference[0]
        for j in range(d):
            at_reference[j] = -sums.cross[j]
            dense[j] = 0.0
        for k in range(self.n_kept):
            dense[self.features[k]] = self.theta[k]
        sums.add_scatter_product(dense, at_reference)
        for i in range(sums.n_buffered):
            add_multiple(dot(&self.rows[i, 0], &self.theta[0], self.n_kept), &sums.buffer[i, 0], at_reference, d)
        for k in range(self.size):
            self.reference[k] = self.theta[k]
            self.drift[k] = 0.0

    cdef void multiply(self, const double *vector, double *out, Py_ssize_t n) noexcept nogil:
        """out = A vector on the working set; the vector lives in the first n slots."""
        cdef Py_ssize_t k = 0, m, size = self.size
        cdef double v0, v1, v2, v3
        cdef const double *a
        cdef const double *b
        cdef const double *c
        cdef const double *d
        for m in range(size):
            out[m] = 0.0
        while k + 4 <= n:  # four columns at a time, so that the result is read and written a quarter as often
            v0, v1, v2, v3 = vector[k], vector[k + 1], vector[k + 2], vector[k + 3]
            a, b, c, d = &self.local[k, 0], &self.local[k + 1, 0], &self.local[k + 2, 0], &self.local[k + 3, 0]
            for m in range(size):
                out[m] += (a[m] * v0 + b[m] * v1) + (c[m] * v2 + d[m] * v3)
            k += 4
        while k < n:
            add_multiple(vector[k], &self.local[k, 0], out, size)
            k += 1
