"""Coefficients of the levels from their moments.

``reference.py`` has the same in NumPy. Coordinates are (1, x, y) of the kept features, standardised: p = s + 2.
"""

import numpy as np

from libc.math cimport log, sqrt
from scipy.linalg.cython_lapack cimport dposv

from thresher._utils.reductions cimport add_multiple, dot

from thresher.drift.settings import FEWEST_CARRIERS, JITTER, LEAST, PERIODS, VARIANCES

cdef double jitter = JITTER, least = LEAST, fewest_carriers = FEWEST_CARRIERS
cdef enum:
    N_VARIANCES = 16
cdef double[N_VARIANCES] variances = VARIANCES
cdef const Py_ssize_t[::1] periods = np.array(PERIODS, np.intp)


def refit(
    const double[:, :, ::1] moments,
    const double[::1] squares,
    const double[::1] largest,
    const double[::1] ridge,
    const unsigned char[::1] overall,
    bint centred,
    double[:, ::1] coef,
    double[::1] n_rows,
    Py_ssize_t time,
):
    """Coefficients of levels, each the next longer one with the most likely change, and how many rows each rests on.

    The last level is ridge regression of all rows on the features for which `overall` is not zero. The first, the
    shortest, changes the intercept alone. A level is solved for if `time` is a multiple of its period.
    """
    cdef Py_ssize_t i, j, k, K = moments.shape[0], p = moments.shape[1], s = p - 2
    cdef Py_ssize_t first = 0 if centred else 1, m = p - 1 - first
    cdef double weight, n, change, rest, best
    if (moments.shape[2] != p or squares.shape[0] != K or ridge.shape[0] != s or overall.shape[0] != s
            or coef.shape[0] != K or periods.shape[0] != K or coef.shape[1] != p - 1 or n_rows.shape[0] != K
            or largest.shape[0] != p - 1):
        raise ValueError("the arrays of the levels do not fit together")
    cdef double[::1] room = np.empty(m * m + 8 * m + 1)
    cdef double *matrix = &room[0]
    cdef double *vector = matrix + m * m
    cdef double *scratch = vector + m
    _fit_all(moments[K - 1], ridge, overall, centred, coef[K - 1], matrix, vector)
    n_rows[K - 1] = moments[K - 1, 0, 0]
    for k in range(K - 2, -1, -1):
        if time % periods[k]:
            continue
        weight = moments[k, 0, 0]
        for j in range(p - 1):
            coef[k, j] = coef[k + 1, j]
        n_rows[k] = n_rows[k + 1]
        if not (weight > 0.0 and squares[k] > 0.0) or m == 0:
            continue
        n = weight * weight / squares[k]
        rest = moments[k, p - 1, p - 1] / weight
        for i in range(m):
            change = moments[k, first + i, p - 1] / weight
            rest -= coef[k, first + i] * change
            for j in range(m):
                matrix[i * m + j] = moments[k, first + i, first + j] / weight
                change -= matrix[i * m + j] * coef[k, first + j]
            vector[i] = change
        for i in range(m):
            rest -= coef[k, first + i] * vector[i]
        rest = max(rest, least * moments[k, p - 1, p - 1] / weight)
        if not rest > 0.0:
            continue
        if k == 0:
            best, change = n * log(rest), 0.0
            if centred:
                _change_intercept(vector[0], n, rest, &best, &change)
            coef[0, 0] += change
        elif _change(matrix, vector, &largest[first], m, weight, n, rest, centred, scratch):
            n_rows[k] = n
            for i in range(m):
                coef[k, first + i] += vector[i]


cdef void _fit_all(
    const double[:, ::1] moments,
    const double[::1] ridge,
    const unsigned char[::1] overall,
    bint centred,
    double[::1] coef,
    double *matrix,
    double *vector,
):
    """Ridge regression of all rows on some features."""
    cdef Py_ssize_t i, a, b, p = moments.shape[0]
    cdef int size = 0, one = 1, failed = 0
    cdef Py_ssize_t[::1] used = np.empty(p, np.intp)
    for i in range(p - 1):
        coef[i] = 0.0
        if overall[i - 1] if i > 0 else centred:
            used[size] = i
            size += 1
    if size == 0:
        return
    for a in range(size):
        for b in range(size):
            matrix[a * size + b] = moments[used[a], used[b]]
        matrix[a * size + a] += jitter * moments[0, 0] + (ridge[used[a] - 1] if used[a] > 0 else 0.0)
        vector[a] = moments[used[a], p - 1]
    dposv(b"L", &size, &one, matrix, &size, vector, &size, &failed)
    if not failed:
        for a in range(size):
            coef[used[a]] = vector[a]


cdef bint _change(
    double *matrix,
    double *vector,
    const double *largest,
    Py_ssize_t m,
    double weight,
    double n,
    double rest,
    bint centred,
    double *scratch,
) noexcept:
    """Turn `vector` into the most likely change: none, of the intercept, of single coefficients, of all, of both.

    The result is False if nothing changes. Compared is minus twice the log of the marginal likelihood; single
    coefficients cost what the extended BIC says.
    """
    cdef double *cross = scratch
    cdef double *single = scratch + m
    cdef Py_ssize_t i
    cdef double best = n * log(rest), nothing = best, left = rest, intercept = 0.0, penalty
    scratch += 2 * m
    if centred:
        _change_intercept(vector[0], n, rest, &best, &intercept)
    penalty = _change_single_ones(matrix, vector, largest, m, weight, n, &left, cross, single)
    _tridiagonalise(matrix, m, scratch, scratch + 4 * m)
    if not _shrink(matrix, vector, m, n, rest, &best, scratch):
        for i in range(m):
            vector[i] = intercept if i == 0 else 0.0
    if penalty > 0.0:
        if n * log(left) + penalty < best:
            best = n * log(left) + penalty
            for i in range(m):
                vector[i] = single[i]
        best -= penalty
        if _shrink(matrix, cross, m, n, left, &best, scratch):
            for i in range(m):
                vector[i] = single[i] + cross[i]
        best += penalty
    return best < nothing


cdef double _change_single_ones(
    const double *matrix,
    const double *vector,
    const double *largest,
    Py_ssize_t m,
    double weight,
    double n,
    double *rest,
    double *cross,
    double *change,
) noexcept:
    """Change single coefficients as long as the extended BIC falls, the most significant first; returns its penalty.

    `rest` and `cross` become the mean squared residual and its products with the features. The variance of a change is
    that of an estimate from one row of a feature that varies as here, or as ever: the variance is one then. It costs
    log(1 + n), and 2 log(m) for choosing one of m. Features that few rows carry do not change alone, as one outlier
    could move them: the sum of x^2 must be some times the largest x^2.
    """
    cdef Py_ssize_t i, j, step
    cdef double most, gain, own, after, penalty = log(1.0 + n) + 2.0 * log(m), total = 0.0
    for i in range(m):
        cross[i], change[i] = vector[i], 0.0
    for step in range(m):
        j, most = 0, 0.0
        for i in range(m):
            own = matrix[i * m + i]
            if change[i] == 0.0 and own > 0.0 and weight * own >= fewest_carriers * largest[i] * largest[i]:
                gain = cross[i] * cross[i] / (own + max(own, 1.0) / n)
                if gain > most:
                    j, most = i, gain
        after = max(rest[0] - most, least * rest[0])
        if not n * log(after) + penalty < n * log(rest[0]):
            break
        total += penalty
        rest[0] = after
        own = matrix[j * m + j]
        change[j] = cross[j] / (own + max(own, 1.0) / n)
        for i in range(m):
            cross[i] -= matrix[i * m + j] * change[j]
    return total


cdef void _change_intercept(double mean, double n, double rest, double *best, double *change) noexcept:
    """The most likely change of the intercept alone, where the mean residual is `mean`, if it is better than `best`."""
    cdef Py_ssize_t r
    cdef double shrunk, value
    for r in range(N_VARIANCES):
        shrunk = mean / (1.0 + 1.0 / (n * variances[r]))
        value = n * log(max(rest - mean * shrunk, least * rest)) + log(1.0 + n * variances[r])
        if value < best[0]:
            best[0], change[0] = value, shrunk


cdef bint _shrink(
    const double *matrix, double *vector, Py_ssize_t m, double n, double rest, double *best, double *scratch
) noexcept:
    """Turn `vector` into (M + I / (n rho))^-1 vector with the most likely rho; False if none is better than `best`.

    `_tridiagonalise` has reduced M to Q'MQ, so that every rho costs O(m). All of them go through the rows together, so
    that the processor divides for several at a time.
    """
    cdef double *diagonal = scratch
    cdef double *off = scratch + m
    cdef double *factor = scratch + 2 * m
    cdef double *pivot = scratch + 3 * m
    cdef double added[N_VARIANCES]
    cdef double pivots[N_VARIANCES]
    cdef double solved[N_VARIANCES]
    cdef double explained[N_VARIANCES]
    cdef double product[N_VARIANCES]
    cdef double logarithm[N_VARIANCES]
    cdef Py_ssize_t i, r, chosen = -1
    cdef double value, above
    for i in range(m - 2):  # to the coordinates of Q
        _reflect(matrix + i * m + i + 1, factor[i], vector + i + 1, m - i - 1)
    for r in range(N_VARIANCES):
        added[r] = 1.0 / (n * variances[r])
        pivots[r], solved[r], explained[r], product[r], logarithm[r] = 1.0, 0.0, 0.0, 1.0, -m * log(added[r])
    for i in range(m):
        above = off[i - 1] if i > 0 else 0.0
        for r in range(N_VARIANCES):
            value = above / pivots[r]
            solved[r] = vector[i] - value * solved[r]
            pivots[r] = diagonal[i] + added[r] - above * value
            pivots[r] = max(pivots[r], added[r])  # which it is, but for rounding
            explained[r] += solved[r] * solved[r] / pivots[r]
            product[r] *= pivots[r]
        if i % 4 == 3 or i == m - 1:  # four factors are far from overflow
            for r in range(N_VARIANCES):
                logarithm[r] += log(product[r])
                product[r] = 1.0
    for r in range(N_VARIANCES):
        value = n * log(max(rest - explained[r], least * rest)) + logarithm[r]
        if value < best[0]:
            best[0], chosen = value, r
    if chosen < 0:
        return False
    for i in range(m):
        pivot[i] = diagonal[i] + added[chosen]
        if i > 0:
            value = off[i - 1] / pivot[i - 1]
            pivot[i] -= off[i - 1] * value
            vector[i] -= value * vector[i - 1]
        pivot[i] = max(pivot[i], added[chosen])
    for i in range(m - 1, -1, -1):
        vector[i] /= pivot[i]
        if i < m - 1:
            vector[i] -= off[i] / pivot[i] * vector[i + 1]
    for i in range(m - 3, -1, -1):  # back to the features
        _reflect(matrix + i * m + i + 1, factor[i], vector + i + 1, m - i - 1)
    return True


cdef void _reflect(const double *direction, double factor, double *vector, Py_ssize_t m) noexcept:
    """vector <- (I - factor v v') vector."""
    add_multiple(-factor * dot(direction, vector, m), direction, vector, m)


cdef void _tridiagonalise(double *matrix, Py_ssize_t m, double *result, double *product) noexcept:
    """Householder's reduction of a symmetric matrix to Q'MQ; for a dozen rows it beats LAPACK.

    The result is the diagonal, what is beside it, and the factors of the reflections, m numbers each. Their directions
    remain in the rows of the matrix, right of the diagonal.
    """
    cdef double *diagonal = result
    cdef double *off = result + m
    cdef double *factor = result + 2 * m
    cdef Py_ssize_t i, j, size
    cdef double norm, along
    cdef double *direction
    cdef double *row
    for i in range(m):
        diagonal[i] = matrix[i * m + i]
        if i + 1 < m:
            off[i] = matrix[i * m + i + 1]
        if i + 2 >= m:
            continue
        size, direction = m - i - 1, matrix + i * m + i + 1
        norm = sqrt(dot(direction, direction, size))
        if norm == 0.0:
            factor[i] = 0.0
            continue
        off[i] = -norm if direction[0] > 0.0 else norm
        direction[0] -= off[i]
        factor[i] = 2.0 / dot(direction, direction, size)
        for j in range(size):
            product[j] = factor[i] * dot(matrix + (i + 1 + j) * m + i + 1, direction, size)
        along = 0.5 * factor[i] * dot(direction, product, size)
        add_multiple(-along, direction, product, size)
        for j in range(size):
            row = matrix + (i + 1 + j) * m + i + 1
            add_multiple(-direction[j], product, row, size)
            add_multiple(-product[j], direction, row, size)
