"""The sums of a Gram as kernels see them."""

cdef class RunningSums:
    # With z = x - shift and v = y - shift_y: sums over all rows, those in the buffer included
    cdef public double[::1] shift_x, sum_x, sum_xx, cross  # (d,): shift, sum w z, sum w z^2, sum w z v
    cdef public double weight, shift_y, sum_y, sum_yy
    # The summary's own arrays, while it is followed
    cdef Py_ssize_t n_samples, n_buffered
    cdef double[:, ::1] buffer  # (B, d): sqrt(w) z
    cdef double[::1] buffer_y, buffer_root  # (B,): sqrt(w) v, sqrt(w)
    cdef double[:, ::1] scatter  # (d, d) or larger, upper triangle, folded rows; None if it is in float32
    cdef float[:, ::1] scatter_single
    cdef Py_ssize_t[::1] nonzero  # (d,), to work on

    cdef int check_rows(self, const double[:, ::1] X, const double[::1] y, const double[::1] weights) except -1
    cdef void add_row(self, const double *x, double y, double weight) noexcept nogil
    cdef void add_scatter_product(self, const double *vector, double *out) noexcept nogil
    cdef double comoment(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil


cdef inline double variance(RunningSums sums, Py_ssize_t j, bint centred) noexcept nogil:
    """Of feature j: about the mean (`centred`) or about zero."""
    cdef double sum_x = sums.sum_x[j], shift = sums.shift_x[j], total
    if centred:
        total = sums.sum_xx[j] - sum_x * (sum_x / sums.weight)
    else:
        total = sums.sum_xx[j] + (2.0 * sum_x + sums.weight * shift) * shift
    return max(total / sums.weight, 0.0)
