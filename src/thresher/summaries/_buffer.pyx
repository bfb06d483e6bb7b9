"""What is done with whole rows, in one pass over them."""

from thresher._utils cimport reductions


def all_within(const double[::1] values, double limit):
    """Whether every value is a number of size at most `limit`."""
    return values.shape[0] == 0 or reductions.all_within(&values[0], limit, values.shape[0])


def add_rows(
    const double[:, ::1] rows,
    const double[::1] roots,
    const double[::1] responses,
    double[::1] sum_x,
    double[::1] sum_xx,
    double[::1] cross,
):
    """sum_x += roots @ rows, sum_xx += sum of rows^2, cross += responses @ rows."""
    cdef Py_ssize_t i, n = rows.shape[0], d = rows.shape[1]
    if min(roots.shape[0], responses.shape[0]) < n or not d == sum_x.shape[0] == sum_xx.shape[0] == cross.shape[0]:
        raise ValueError("The rows do not fit the sums.")
    with nogil:
        for i in range(0, n - 3, 4):
            reductions.add_four_rows(&rows[i, 0], &roots[i], &responses[i], &sum_x[0], &sum_xx[0], &cross[0], d)
        for i in range(n - n % 4, n):
            add_one(&rows[i, 0], roots[i], responses[i], &sum_x[0], &sum_xx[0], &cross[0], d)


cdef void add_one(
    const double *row, double root, double response, double *x, double *xx, double *xy, Py_ssize_t d
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(d):
        x[j] += root * row[j]
        xx[j] += row[j] * row[j]
        xy[j] += response * row[j]
