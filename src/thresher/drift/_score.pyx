"""Rows in units of the levels: score what levels predict for a block of rows, mix them, and count the rows.

``reference.py`` has the same in NumPy. Coordinates of a row are (1, x, y) of the kept features, standardised: p = s + 2.
"""

import numpy as np

from libc.math cimport exp, fabs, isfinite
from scipy.linalg.cython_blas cimport dsyrk

from thresher.drift.settings import CAP, ERROR_HALF_LIFE, FAR, PRIOR, RATE, ROUNDING, SHARE

cdef double cap = CAP, far = FAR, rate = RATE, share = SHARE, error_half_life = ERROR_HALF_LIFE
cdef double rounding = ROUNDING
cdef const double[::1] prior = PRIOR


def standardised(
    const double[:, ::1] buffer,
    const double[::1] root,
    const double[::1] responses,
    const double[::1] shift,
    double shift_y,
    const Py_ssize_t[::1] features,
    const double[::1] origin,
    const double[::1] scale,
    double origin_y,
    double scale_y,
    Py_ssize_t start,
    Py_ssize_t stop,
):
    """Rows of the buffer of a summary, sqrt(w) (1, x, y), in units of the levels."""
    cdef Py_ssize_t i, j, n = stop - start, s = features.shape[0]
    result = np.empty((n, s + 2))
    cdef double[:, ::1] rows = result
    for j in range(s):
        if not 0 <= features[j] < buffer.shape[1]:
            raise ValueError("a feature is not among the columns")
    if not (0 <= start <= stop <= buffer.shape[0]) or stop > root.shape[0] or stop > responses.shape[0]:
        raise ValueError("there are no such rows in the buffer")
    if origin.shape[0] != s or scale.shape[0] != s or shift.shape[0] < buffer.shape[1]:
        raise ValueError("features, origin, scale and shift do not fit together")
    for i in range(n):
        rows[i, 0] = root[start + i]
        for j in range(s):
            rows[i, j + 1] = (
                buffer[start + i, features[j]] + root[start + i] * (shift[features[j]] - origin[j])
            ) / scale[j]
        rows[i, s + 1] = (responses[start + i] + root[start + i] * (shift_y - origin_y)) / scale_y
    return result


def score(
    const double[:, ::1] rows,
    const double[:, ::1] earlier,
    double[::1] weights,
    double[::1] losses,
    double[::1] errors,
):
    """Predict a block of rows by the levels as they were some time ago, and mix them by how well they did.

    `weights` of the levels and mean `losses` (of the levels, then of the mixture) are updated. `errors` become those of
    the mixture, times sqrt(w). The result is by how much less the mixture has lost than all rows did, and the sum over
    rows of its square, both in units of the noise.
    """
    cdef Py_ssize_t i, k, n = rows.shape[0], p = rows.shape[1], K = earlier.shape[0]
    cdef double predicted, mixed, weight, total, first, noise, scale, decay, advantage = 0.0, squares = 0.0, one
    if (earlier.shape[1] != p - 1 or weights.shape[0] != K or losses.shape[0] != K + 1 or errors.shape[0] != n
            or prior.shape[0] != K):
        raise ValueError("the arrays of the levels do not fit together")
    squared_errors = np.empty((n, K + 1))
    cdef double[:, ::1] squares_of = squared_errors
    cdef double[::1] sums = np.zeros(K + 1), counted = np.zeros(K + 1)
    weight = 0.0
    for i in range(n):
        weight += rows[i, 0] * rows[i, 0]
        mixed = 0.0
        for k in range(K):
            predicted = 0.0
            for j in range(p - 1):
                predicted += rows[i, j] * earlier[k, j]
            mixed += weights[k] * predicted
            squares_of[i, k] = (rows[i, p - 1] - predicted) ** 2
        errors[i] = rows[i, p - 1] - mixed
        squares_of[i, K] = errors[i] ** 2
    if weight <= 0.0:
        return 0.0, 0.0
    if losses[K] < 0.0:  # nothing was scored yet
        _mean_squares(squares_of, weight, losses)
    noise = max(_smallest(&losses[0], K + 1), rounding)
    scale = noise
    if _is_far_off(squares_of, rows, noise):  # then levels are compared in units of these rows
        _mean_squares(squares_of, weight, sums)
        scale = max(_smallest(&sums[0], K + 1), noise)
        sums[:] = 0.0
    for i in range(n):
        one = rows[i, 0] * rows[i, 0]
        for k in range(K + 1):
            counted[k] += min(squares_of[i, k], cap * noise * one)
            squares_of[i, k] = min(squares_of[i, k], cap * scale * one)
            sums[k] += squares_of[i, k]
        one = (squares_of[i, K - 1] - squares_of[i, K]) / scale
        advantage += one
        squares += one * one
    decay = 2.0 ** (-weight / error_half_life)
    first = -1.0
    for k in range(K + 1):
        losses[k] = decay * losses[k] + (1.0 - decay) * counted[k] / weight
        if k < K and weights[k] > 0.0 and (first < 0.0 or sums[k] < first):
            first = sums[k]
    total = 0.0
    for k in range(K):
        if weights[k] > 0.0:
            weights[k] *= exp(-rate * (sums[k] - first) / scale)
        total += weights[k]
    one = (1.0 - share) ** n
    for k in range(K):
        weights[k] = one * weights[k] / total + (1.0 - one) * prior[k]
    return advantage, squares


cdef bint _is_far_off(const double[:, ::1] squares, const double[:, ::1] rows, double noise):
    """Whether most rows are so far off at all levels that the noise must be another one."""
    cdef Py_ssize_t i, distant = 0, n = 0
    for i in range(rows.shape[0]):
        if rows[i, 0] > 0.0:
            n += 1
            distant += _smallest(&squares[i, 0], squares.shape[1]) > far * noise * rows[i, 0] * rows[i, 0]
    return 2 * distant > n


cdef void _mean_squares(const double[:, ::1] squares, double weight, double[::1] result):
    cdef Py_ssize_t i, k
    for k in range(result.shape[0]):
        result[k] = 0.0
        for i in range(squares.shape[0]):
            result[k] += squares[i, k] / weight


cdef double _smallest(const double *values, Py_ssize_t size) noexcept:
    cdef Py_ssize_t i
    cdef double result = values[0]
    for i in range(1, size):
        result = min(result, values[i])
    return result


def count(
    const double[:, ::1] rows,
    double[:, :, ::1] moments,
    double[::1] squares,
    const double[::1] half_lives,
    double[::1] largest,
):
    """Add a block of rows to the moments of every level, after decay; `squares` are sums of squared weights.

    `largest` are the largest magnitudes of 1 and x.
    """
    cdef int p = <int>rows.shape[1], n = <int>rows.shape[0]
    cdef Py_ssize_t i, j, k, K = moments.shape[0]
    cdef double one = 1.0, zero = 0.0, decay
    if moments.shape[1] != p or moments.shape[2] != p or squares.shape[0] != K or half_lives.shape[0] != K \
            or largest.shape[0] != p - 1:
        raise ValueError("the arrays of the levels do not fit together")
    cdef double[:, ::1] new = np.zeros((p, p))
    if n == 0:
        return
    for i in range(n):
        if rows[i, 0] > 0.0:
            for j in range(p - 1):
                largest[j] = max(largest[j], fabs(rows[i, j]) / rows[i, 0])
    # The transpose of the rows is Fortran-ordered; its lower triangle is our upper one.
    dsyrk(b"L", b"N", &p, &n, &one, <double *>&rows[0, 0], &p, &zero, &new[0, 0], &p)
    for i in range(p):
        for j in range(i):
            new[i, j] = new[j, i]
    for k in range(K):
        decay = 2.0 ** (-n / half_lives[k])
        for i in range(p):
            for j in range(p):
                moments[k, i, j] = decay * moments[k, i, j] + new[i, j]
        squares[k] = decay * decay * squares[k] + new[0, 0]


def is_finite(
    const double[:, :, ::1] moments, const double[:, ::1] coef, const double[::1] weights, const double[::1] losses
):
    """Whether the sums of these arrays are numbers."""
    cdef Py_ssize_t i, j, k
    cdef double total = 0.0
    for k in range(moments.shape[0]):
        for i in range(moments.shape[1]):
            for j in range(moments.shape[2]):
                total += moments[k, i, j]
    for k in range(coef.shape[0]):
        for i in range(coef.shape[1]):
            total += coef[k, i]
    for k in range(weights.shape[0]):
        total += weights[k]
    for k in range(losses.shape[0]):
        total += losses[k]
    return bool(isfinite(total))
