"""What methods that look at one row at a time share: soft thresholding, the scale of rows, and when to stop."""

cdef inline double soft(double value, double threshold) noexcept nogil:
    """sign(value) max(|value| - threshold, 0): the proximal map of the l1 norm."""
    return value - threshold if value > threshold else (value + threshold if value < -threshold else 0.0)


cdef bint is_sane(double prediction, double n_rows, double squares, double errors) noexcept nogil


cdef class RowTotals:
    cdef readonly Py_ssize_t n_rows
    cdef readonly double sum_yy, sum_errors  # squares of responses, and of errors of one-step-ahead predictions
    cdef readonly double longest  # the largest squared length of a row

    cdef double take(self, const double *x, double y, const double *coef, Py_ssize_t d) noexcept nogil
