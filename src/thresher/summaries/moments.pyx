"""Second moments of a Gram about the mean or about zero: what solvers read."""

import numpy as np

from thresher._utils.reductions cimport add_multiple

from thresher.summaries._decay import weight_and_scale
from thresher.summaries._shifted import scatter_product, sums


cdef class Moments:
    """The second moments of all rows that a Gram has seen, valid until it changes.

    Attributes
    ----------
    weight : float
        Sum of the weights.
    squares : ndarray of shape (d,)
        Sum w x_j^2 of each feature, about its mean or about zero; exactly zero for a constant one.
    products : ndarray of shape (d,)
        Sum w x_j y.
    total : float
        Sum w y^2: the residual sum of squares of no features.
    dtype : dtype
        How the Gram stores products of features.
    """

    def __init__(self, state, bint centred):
        state.check()
        total = sums(state)
        self.state = state
        self.centred, self.weight = centred, total.weight
        self.squares, self.products = total.squares(centred), total.products_y(centred)
        self.total, self.dtype = total.squares_y(centred), state.scatter.dtype
        self.scale = 1.0 if state.decay is None else weight_and_scale(state)[1]
        if self.dtype == np.float32:
            self.scatter, self.scatter_single = None, state.scatter
        else:
            self.scatter = state.scatter
        self.n_buffered, self.diagonal, self.cross = state.n_buffered, self.squares, self.products
        if self.n_buffered:
            self.buffer = state.buffer
        if centred:
            self.centring = total.centring()
        else:
            self.shift_x, self.half = total.shift_x, total.sum_x + 0.5 * total.weight * total.shift_x

    @property
    def n_features(self):
        """How many features there are."""
        return self.diagonal.shape[0]

    def column(self, Py_ssize_t j):
        """Sum w x_j x of feature j with all features; O(d), more for rows not yet folded."""
        column = np.empty(self.n_features)
        cdef double[::1] out = column
        if not 0 <= j < out.shape[0]:
            raise IndexError(f"There is no feature {j}.")
        self.read(j, &out[0])
        return column

    def toward(self, coef):
        """The moments with X coef in the place of y; O(d^2)."""
        cdef Moments result = Moments(self.state, self.centred)
        product = scatter_product(self.state, coef)
        if self.centred:
            product -= np.asarray(self.centring) * (np.asarray(self.centring) @ coef)
        else:
            product += np.asarray(self.shift_x) * (np.asarray(self.half) @ coef)
            product += np.asarray(self.half) * (np.asarray(self.shift_x) @ coef)
        result.products = result.cross = product
        result.total = max(float(coef @ product), 0.0)
        return result

    cdef void read(self, Py_ssize_t j, double *out) noexcept nogil:
        cdef Py_ssize_t i, d = self.diagonal.shape[0]
        if self.scatter is None:
            for i in range(j):
                out[i] = self.scatter_single[i, j]
            for i in range(j, d):
                out[i] = self.scatter_single[j, i]
        else:
            for i in range(j):
                out[i] = self.scatter[i, j]
            for i in range(j, d):
                out[i] = self.scatter[j, i]
        for i in range(self.n_buffered):
            add_multiple(self.buffer[i, j], &self.buffer[i, 0], out, d)
        if self.scale != 1.0:
            for i in range(d):
                out[i] *= self.scale
        if self.centred:
            add_multiple(-self.centring[j], &self.centring[0], out, d)
        else:
            add_multiple(self.shift_x[j], &self.half[0], out, d)
            add_multiple(self.half[j], &self.shift_x[0], out, d)
        out[j] = self.diagonal[j]  # float64 whatever the storage
