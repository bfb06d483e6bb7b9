"""The hot part of following a stream that changes: score, mix, count and refit, for a block of rows.

``reference.py`` has the same in NumPy. Coordinates of a row are (1, x, y) of the kept features, standardised: p = s + 2.
"""

import numpy as np

from libc.math cimport exp, isfinite, log, sqrt
from scipy.linalg.cython_blas cimport dsyrk
from scipy.linalg.cython_lapack cimport dposv

from thresher._utils.reductions cimport add_multiple, dot

from thresher.drift.settings import CAP, ERROR_HALF_LIFE, JITTER, LEAST, LOST, PERIODS, PRIOR, RATE, SHARE, VARIANCES

cdef double cap = CAP, lost = LOST, rate = RATE, share = SHARE, jitter = JITTER, error_half_life = ERROR_HALF_LIFE
cdef double least = LEAST
cdef const double[::1] prior = PRIOR
cdef enum:
    N_VARIANCES = 16
cdef double[N_VARIANCES] variances = VARIANCES
cdef const Py_ssize_t[::1] periods = np.array(PERIODS, np.intp)


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
    noise = max(_smallest(losses), 1e-300)
    scale = noise
    if _is_lost(squares_of, rows, noise):  # then levels are compared in units of these rows
        _mean_squares(squares_of, weight, sums)
        scale = max(_smallest(sums), 1e-300)
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


cdef bint _is_lost(const double[:, ::1] squares, const double[:, ::1] rows, double noise):
    """Whether most rows are so far off at all levels that the noise must be another one."""
    cdef Py_ssize_t i, far = 0, n = rows.shape[0]
    for i in range(n):
        far += _smallest(squares[i]) > lost * noise * rows[i, 0] * rows[i, 0]
    return 2 * far > n


cdef void _mean_squares(const double[:, ::1] squares, double weight, double[::1] result):
    cdef Py_ssize_t i, k
    for k in range(result.shape[0]):
        result[k] = 0.0
        for i in range(squares.shape[0]):
            result[k] += squares[i, k] / weight


cdef double _smallest(const double[::1] values):
    cdef Py_ssize_t i
    cdef double result = values[0]
    for i in range(1, values.shape[0]):
        result = min(result, values[i])
    return result


def count(
    const double[:, ::1] rows,
    double[:, :, ::1] moments,
    double[::1] squares,
    const double[::1] half_lives,
):
    """Add a block of rows to the moments of every level, after decay; `squares` are sums of squared weights."""
    cdef int p = <int>rows.shape[1], n = <int>rows.shape[0]
    cdef Py_ssize_t i, j, k, K = moments.shape[0]
    cdef double one = 1.0, zero = 0.0, decay
    if moments.shape[1] != p or moments.shape[2] != p or squares.shape[0] != K or half_lives.shape[0] != K:
        raise ValueError("the arrays of the levels do not fit together")
    cdef double[:, ::1] new = np.zeros((p, p))
    if n == 0:
        return
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


def refit(
    const double[:, :, ::1] moments,
    const double[::1] squares,
    const double[::1] ridge,
    const unsigned char[::1] overall,
    bint centred,
    double[:, ::1] coef,
    double[::1] n_rows,
    Py_ssize_t time,
):
    """Coefficients of levels, each shrunk towards the next longer one, and how many rows each rests on.

    The last level is ridge regression of all rows on the features for which `overall` is not zero. The first, the
    shortest, changes the level of y alone. A level is solved for if `time` is a multiple of its period.
    """
    cdef Py_ssize_t i, j, k, K = moments.shape[0], p = moments.shape[1], s = p - 2
    cdef Py_ssize_t first = 0 if centred else 1, m = p - 1 - first
    cdef double weight, n, change, rest, best
    if (moments.shape[2] != p or squares.shape[0] != K or ridge.shape[0] != s or overall.shape[0] != s
            or coef.shape[0] != K or periods.shape[0] != K or coef.shape[1] != p - 1 or n_rows.shape[0] != K):
        raise ValueError("the arrays of the levels do not fit together")
    cdef double[::1] room = np.empty(2 * m * m + 8 * m + 1)
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
                _change_level(vector[0], n, rest, &best, &change)
            coef[0, 0] += change
        elif _change(matrix, vector, m, n, rest, centred, scratch):
            n_rows[k] = n
            for i in range(m):
                coef[k, first + i] += vector[i]


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
    cdef Py_ssize_t i, j, a = 0, b, p = moments.shape[0]
    cdef int size = 0, one = 1, failed = 0
    for i in range(p - 1):
        coef[i] = 0.0
        if (i == 0 and centred) or (i > 0 and overall[i - 1]):
            size += 1
    for i in range(p - 1):
        if not ((i == 0 and centred) or (i > 0 and overall[i - 1])):
            continue
        b = 0
        for j in range(p - 1):
            if (j == 0 and centred) or (j > 0 and overall[j - 1]):
                matrix[a * size + b] = moments[i, j]
                b += 1
        matrix[a * size + a] += jitter * moments[0, 0] + (ridge[i - 1] if i > 0 else 0.0)
        vector[a] = moments[i, p - 1]
        a += 1
    if size == 0:
        return
    dposv(b"L", &size, &one, matrix, &size, vector, &size, &failed)
    if failed:
        return
    a = 0
    for i in range(p - 1):
        if (i == 0 and centred) or (i > 0 and overall[i - 1]):
            coef[i] = vector[a]
            a += 1


cdef bint _change(
    double *matrix, double *vector, Py_ssize_t m, double n, double rest, bint centred, double *scratch
) noexcept:
    """Turn `vector` into the most likely change: none, of the level of y, of single coefficients, of all, of both.

    The result is False if nothing changes. Compared is minus twice the log of the marginal likelihood; single
    coefficients cost what the extended BIC says.
    """
    cdef double *copied = scratch
    cdef double *cross = copied + m * m
    cdef double *single = cross + m
    cdef Py_ssize_t i
    cdef double best = n * log(rest), nothing = best, left = rest, level = 0.0, penalty
    scratch = single + m
    if centred:
        _change_level(vector[0], n, rest, &best, &level)
    penalty = _change_single_ones(matrix, vector, m, n, &left, cross, single)
    if penalty > 0.0:
        for i in range(m * m):
            copied[i] = matrix[i]
    if not _shrink(matrix, vector, m, n, rest, &best, scratch):
        for i in range(m):
            vector[i] = level if i == 0 else 0.0
    if penalty > 0.0:
        if n * log(left) + penalty < best:
            best = n * log(left) + penalty
            for i in range(m):
                vector[i] = single[i]
        best -= penalty
        if _shrink(copied, cross, m, n, left, &best, scratch):
            for i in range(m):
                vector[i] = single[i] + cross[i]
        best += penalty
    return best < nothing


cdef double _change_single_ones(
    const double *matrix, const double *vector, Py_ssize_t m, double n, double *rest, double *cross, double *change
) noexcept:
    """Change single coefficients as long as the extended BIC falls, the most significant first; returns its penalty.

    `rest` and `cross` become the mean squared residual and its products with the features. The variance of a change is
    that of one row, so that it costs log(1 + n), and 2 log(m) for choosing one of m.
    """
    cdef Py_ssize_t i, j, step
    cdef double largest, t, after, penalty = log(1.0 + n) + 2.0 * log(m), total = 0.0
    for i in range(m):
        cross[i], change[i] = vector[i], 0.0
    for step in range(m):
        j, largest = 0, 0.0
        for i in range(m):
            if change[i] == 0.0 and matrix[i * m + i] > 0.0:
                t = cross[i] * cross[i] / matrix[i * m + i]
                if t > largest:
                    j, largest = i, t
        after = max(rest[0] - largest * n / (1.0 + n), least * rest[0])
        if not n * log(after) + penalty < n * log(rest[0]):
            break
        total += penalty
        rest[0] = after
        change[j] = cross[j] / matrix[j * m + j] * n / (1.0 + n)
        for i in range(m):
            cross[i] -= matrix[i * m + j] * change[j]
    return total


cdef void _change_level(double mean, double n, double rest, double *best, double *change) noexcept:
    """The most likely change of the intercept alone, where the mean residual is `mean`, if it is better than `best`."""
    cdef Py_ssize_t r
    cdef double shrunk, value
    for r in range(N_VARIANCES):
        shrunk = mean / (1.0 + 1.0 / (n * variances[r]))
        value = n * log(max(rest - mean * shrunk, least * rest)) + log(1.0 + n * variances[r])
        if value < best[0]:
            best[0], change[0] = value, shrunk


cdef bint _shrink(
    double *matrix, double *vector, Py_ssize_t m, double n, double rest, double *best, double *scratch
) noexcept:
    """Turn `vector` into (M + I / (n rho))^-1 vector with the most likely rho; False if none is better than `best`.

    With a tridiagonal matrix Q'MQ, every rho costs O(m). All of them go through the rows together, so that the
    processor divides for several at a time.
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
    _tridiagonalise(matrix, vector, m, diagonal, off, factor, scratch + 4 * m)
    for r in range(N_VARIANCES):
        added[r] = 1.0 / (n * variances[r])
        pivots[r], solved[r], explained[r], product[r], logarithm[r] = 1.0, 0.0, 0.0, 1.0, -m * log(added[r])
    for i in range(m):
        above = off[i - 1] if i > 0 else 0.0
        for r in range(N_VARIANCES):
            value = above / pivots[r]
            solved[r] = vector[i] - value * solved[r]
            pivots[r] = diagonal[i] + added[r] - above * value
            pivots[r] = pivots[r] if pivots[r] > least * added[r] else least * added[r]
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
        pivot[i] = max(pivot[i], least * added[chosen])
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


cdef void _tridiagonalise(
    double *matrix, double *vector, Py_ssize_t m, double *diagonal, double *off, double *factor, double *product
) noexcept:
    """Householder's reduction of a symmetric matrix to Q'MQ, and of a vector to Q'c; for a dozen rows it beats LAPACK.

    The directions of the reflections remain in the rows of the matrix, right of the diagonal.
    """
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
        _reflect(direction, factor[i], vector + i + 1, size)
