"""What is done with whole rows, in one pass over them."""

from libc.math cimport sqrt

from thresher._utils cimport reductions


def all_within(const double[::1] values, double limit):
    """Whether every value is a number of size at most `limit`."""
    return values.shape[0] == 0 or reductions.all_within(&values[0], limit, values.shape[0])


def put_rows(
    const double[:, ::1] rows,
    const double[:] responses,
    const double[:] weights,
    const double[::1] shift_x,
    double shift_y,
    double[:, ::1] buffer,
    double[::1] buffer_y,
    double[::1] buffer_root,
    Py_ssize_t start,
):
    """Put sqrt(w) (x - shift), the same of y, and sqrt(w) into a buffer, from row `start` on; no weights mean one."""
    cdef Py_ssize_t i, j, n = rows.shape[0], d = rows.shape[1], room = buffer.shape[0] - start
    cdef double root = 1.0
    cdef const double *row
    cdef const double *shift
    cdef double *out
    if (
        start < 0 or n > min(room, buffer_y.shape[0] - start, buffer_root.shape[0] - start)
        or responses.shape[0] != n or (weights is not None and weights.shape[0] != n)
        or not d == buffer.shape[1] == shift_x.shape[0]
    ):
        raise ValueError("The rows do not fit the buffer.")
    if n == 0 or d == 0:
        return
    with nogil:
        shift = &shift_x[0]
        for i in range(n):
            row, out = &rows[i, 0], &buffer[start + i, 0]
            if weights is not None:
                root = sqrt(weights[i])
            buffer_root[start + i] = root
            buffer_y[start + i] = (responses[i] - shift_y) * root if root != 0.0 else 0.0
            if root == 1.0:
                for j in range(d):
                    out[j] = row[j] - shift[j]
            elif root == 0.0:  # zero times a huge value need not be zero
                for j in range(d):
                    out[j] = 0.0
            else:
                for j in range(d):
                    out[j] = (row[j] - shift[j]) * root


def add_rows(
    const double[:, ::1] rows,
    const double[::1] roots,
    const double[::1] responses,
    double[::1] sum_x,
    double[::1] sum_xx,
    double[::1] cross,
):
    """sum_x += roots @ rows, sum_xx += sum of rows^2, cross += responses @ rows.

    Returns roots @ responses and responses @ responses.
    """
    cdef Py_ssize_t i, n = rows.shape[0], d = rows.shape[1]
    if min(roots.shape[0], responses.shape[0]) < n or not d == sum_x.shape[0] == sum_xx.shape[0] == cross.shape[0]:
        raise ValueError("The rows do not fit the sums.")
    with nogil:
        for i in range(0, n - 3, 4):
            reductions.add_four_rows(&rows[i, 0], &roots[i], &responses[i], &sum_x[0], &sum_xx[0], &cross[0], d)
        for i in range(n - n % 4, n):
            add_one(&rows[i, 0], roots[i], responses[i], &sum_x[0], &sum_xx[0], &cross[0], d)
    if n == 0:
        return 0.0, 0.0
    return reductions.dot(&roots[0], &responses[0], n), reductions.dot(&responses[0], &responses[0], n)


cdef void add_one(
    const double *row, double root, double response, double *x, double *xx, double *xy, Py_ssize_t d
) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(d):
        x[j] += root * row[j]
        xx[j] += row[j] * row[j]
        xy[j] += response * row[j]
