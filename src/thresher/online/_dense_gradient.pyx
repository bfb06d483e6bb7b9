"""The gradient of a round whose estimate is dense: a matrix of low rank, or whole groups of features.

With the shifted sums of `summaries._shifted`, the invariant that every method here keeps is

    pull = (sum w z z') theta - sum w z v.                                                        (3)

A new row adds z (z'theta - v), a step adds (sum w z z') move.

Where the scatter matrix is large, that last product reads a copy in float32. Its relative error of about 1e-7 applies
to the move alone, and once the moves add up to more than a hundredth of theta, pull is computed again in float64.
"""

import numpy as np

from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, sqrt
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dsymv, ssymv

from thresher._utils.reductions cimport add_multiple, dot, scaled_square
from thresher.online._certificate cimport curvature
from thresher.online._running cimport RunningSums, variance
from thresher.online._step cimport Measure

from thresher.io.schema import Array, Flag, Is, Number, Schema

# Moves multiplied in float32 may add up to this share of theta.
cdef double SINGLE_REACH = 1e-2

NUMBERS = ("centred", "standardized", "single", "by_groups", "stale", "path")


cdef class DenseGradient:
    """The gradient at an estimate of p features, on a Gram in float64."""

    _schema = Schema(
        lambda at: len(at.theta) == len(at.sums.sum_x),
        centred=Flag(),
        standardized=Flag(),
        single=Flag(),
        by_groups=Flag(),
        stale=Flag(),
        path=Number(0.0, INFINITY),
        theta=Array("p"),
        pull=Array("p"),
        sums=Is(RunningSums),
    )

    def __init__(self, Py_ssize_t n_features, bint centred, bint standardized, bint single, bint by_groups):
        self.sums = RunningSums(n_features)
        self.centred, self.standardized, self.single, self.by_groups = centred, standardized, single, by_groups
        self.theta, self.pull = np.zeros((2, n_features))
        self.stale = True
        self._make_room()

    def _make_room(self):
        self.move, self.product, self.gradient, self.root, self.unit = np.zeros((5, len(self.theta)))
        self.copy = None

    def __getstate__(self):
        numbers = (self.centred, self.standardized, self.single, self.by_groups, self.stale, self.path)
        arrays = {"theta": np.asarray(self.theta), "pull": np.asarray(self.pull)}
        return dict(zip(NUMBERS, numbers)) | arrays | {"sums": self.sums}

    def __setstate__(self, state):
        self.sums = <RunningSums?> state["sums"]
        self.centred, self.standardized, self.single, self.by_groups, self.stale, self.path = (
            state[name] for name in NUMBERS
        )
        self.theta, self.pull = state["theta"], state["pull"]
        self._make_room()

    def begin(self, summary, X, y, weights):
        """Look at the arrays of a summary, for rows that its buffer has room for, if any."""
        if y is None:
            self.sums.attach(summary)
        else:
            self.sums.begin(summary, X, y, weights)
        if self.sums.scatter is None:
            raise ValueError("Ranks and groups need co-moments in float64.")
        if self.single and self.copy is None:
            p = len(self.theta)
            self.copy, (self.move_single, self.product_single) = np.zeros((p, p), np.float32), np.zeros((2, p), "f")

    cdef void follow_row(self) noexcept nogil:
        """Restore (3) after a row was added to the buffer."""
        cdef Py_ssize_t newest = self.sums.n_buffered - 1, p = self.theta.shape[0]
        cdef double *row = &self.sums.buffer[newest, 0]
        if not self.stale:
            add_multiple(dot(row, &self.theta[0], p) - self.sums.buffer_y[newest], row, &self.pull[0], p)

    cdef void fill_units(self) noexcept nogil:
        """The scales of the features for this round."""
        cdef Py_ssize_t i
        cdef double square = 1.0
        for i in range(self.theta.shape[0]):
            if self.standardized:
                square = variance(self.sums, i, self.centred)
            self.root[i] = 0.0 if square < DBL_MIN else sqrt(square)
            self.unit[i] = 0.0 if square < DBL_MIN else 1.0 / sqrt(square)

    cdef bint find(self) noexcept nogil:
        """The gradient of the loss: equation (1) of `online._certificate`. True if it had to start from scratch."""
        cdef Py_ssize_t i, p = self.theta.shape[0]
        cdef double *theta = &self.theta[0]
        cdef bint afresh = self.stale or self.path > SINGLE_REACH * sqrt(self.size())
        if afresh:
            for i in range(p):
                self.pull[i] = -self.sums.cross[i]
            self.add_scatter(theta, &self.pull[0])
            self.add_buffer(theta, &self.pull[0])
            self.path, self.stale = 0.0, False
        self.write(
            &self.pull[0],
            dot(&self.sums.sum_x[0], theta, p) - self.sums.sum_y,
            dot(&self.sums.shift_x[0], theta, p) - self.sums.shift_y,
            &self.gradient[0],
        )
        return afresh

    cdef void write(
        self, const double *pull, double along_sum, double along_shift, double *out
    ) noexcept nogil:
        """out = (pull + alpha shift + beta sum_x) / weight, or (pull - mean residual sum_x) / weight if centred."""
        cdef Py_ssize_t i
        cdef double weight = self.sums.weight, per = 1.0 / weight
        cdef double alpha = (along_sum + weight * along_shift) / weight, beta = along_shift / weight
        cdef const double *shift = &self.sums.shift_x[0]
        cdef const double *total = &self.sums.sum_x[0]
        if self.centred:
            alpha, beta = 0.0, -along_sum / weight / weight
        for i in range(self.theta.shape[0]):
            out[i] = pull[i] * per + shift[i] * alpha + total[i] * beta

    cdef double intercept(self) noexcept nogil:
        """The intercept that minimises the loss: the one for which residuals are zero on average."""
        cdef Py_ssize_t i
        cdef double weight = self.sums.weight, total = self.sums.shift_y + self.sums.sum_y / weight
        for i in range(self.theta.shape[0]):
            total -= (self.sums.shift_x[i] + self.sums.sum_x[i] / weight) * self.theta[i]
        return total

    cdef double size(self) noexcept nogil:
        """|theta|^2 in the metric."""
        return scaled_square(&self.root[0], &self.theta[0], self.theta.shape[0])

    cdef Measure measure(self) noexcept nogil:
        """What the move does: |move|^2 in the metric, move . g and move' G move / weight, given the product."""
        cdef Py_ssize_t p = self.theta.shape[0]
        cdef double *move = &self.move[0]
        cdef Measure found
        found.length = scaled_square(&self.root[0], move, p)
        found.slope = dot(move, &self.gradient[0], p)
        found.bend = curvature(
            self.sums,
            dot(move, &self.product[0], p),
            dot(&self.sums.sum_x[0], move, p),
            dot(&self.sums.shift_x[0], move, p),
            self.centred,
        )
        return found

    cdef void apply(self, double length) noexcept nogil:
        """Restore (3) after theta has moved; its length was measured."""
        cdef Py_ssize_t i
        for i in range(self.theta.shape[0]):
            self.pull[i] += self.product[i]
        if self.single:
            self.path += sqrt(length)

    cdef void fill_product(self) noexcept nogil:
        """product = (sum w z z') move over all rows."""
        memset(&self.product[0], 0, self.product.shape[0] * sizeof(double))
        if self.single and self.sums.n_samples > self.sums.n_buffered:
            self.add_scatter_single()
        else:
            self.add_scatter(&self.move[0], &self.product[0])
        self.add_buffer(&self.move[0], &self.product[0])

    cdef void add_buffer(self, const double *vector, double *out) noexcept nogil:
        """out += (sum over rows in the buffer of w z z') vector."""
        cdef Py_ssize_t i, p = self.theta.shape[0]
        cdef const double *row
        for i in range(self.sums.n_buffered):
            row = &self.sums.buffer[i, 0]
            add_multiple(dot(row, vector, p), row, out, p)

    cdef void add_scatter(self, double *vector, double *out) noexcept nogil:
        """out += scatter vector, in float64."""
        cdef int n = <int> self.theta.shape[0], stride = <int> self.sums.scatter.shape[1], one = 1
        cdef double unit = 1.0
        cdef char triangle = b"L"  # the upper one, stored by rows
        if self.sums.n_samples == self.sums.n_buffered:
            return  # nothing was folded yet
        if self.by_groups:
            self.sums.add_scatter_product(vector, out)
        else:
            dsymv(&triangle, &n, &unit, &self.sums.scatter[0, 0], &stride, vector, &one, &unit, out, &one)

    cdef void copy_scatter(self) noexcept nogil:
        """Copy the upper triangle of the scatter matrix, divided by its largest entry to stay in range."""
        cdef Py_ssize_t i, j, p = self.theta.shape[0]
        cdef double largest = 0.0
        cdef const double *row
        cdef float *copied
        for i in range(p):
            largest = max(largest, self.sums.scatter[i, i])
        self.copy_scale = 1.0 / largest if largest > 0.0 else 1.0
        for i in range(p):
            row, copied = &self.sums.scatter[i, 0], &self.copy[i, 0]
            for j in range(i, p):
                copied[j] = <float> (row[j] * self.copy_scale)
        self.copied = True

    cdef void add_scatter_single(self) noexcept nogil:
        """product += scatter move, from the copy in float32."""
        cdef Py_ssize_t i, p = self.theta.shape[0]
        cdef double *move = &self.move[0]
        cdef float *vector = &self.move_single[0]
        cdef float *image = &self.product_single[0]
        cdef double length = sqrt(dot(move, move, p)), per, scale
        cdef int n = <int> p, one = 1
        cdef float unit = 1.0, zero = 0.0
        cdef char triangle = b"L"
        if not 0.0 < length < INFINITY:
            self.add_scatter(move, &self.product[0])  # zero, or out of range
            return
        if not self.copied:
            self.copy_scatter()
        per, scale = 1.0 / length, length / self.copy_scale
        for i in range(p):
            vector[i] = <float> (move[i] * per)
        ssymv(&triangle, &n, &unit, &self.copy[0, 0], &n, vector, &one, &zero, image, &one)
        for i in range(p):
            self.product[i] += scale * image[i]
