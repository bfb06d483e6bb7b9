"""The lasso on second moments, by coordinate descent."""

import numpy as np

from libc.math cimport fabs, sqrt

from thresher._utils.reductions cimport add_multiple
from thresher.baselines._single_rows cimport soft


cdef bint descend(
    const double *columns, const Py_ssize_t *features, Py_ssize_t n_features, Py_ssize_t d, double penalty,
    double *coef, double *pull, double tolerance, Py_ssize_t most_sweeps,
) noexcept nogil:
    """Minimise coef' M coef / 2 - target' coef + penalty |coef|_1 over some of d coordinates, in place.

    The first `n_features` of `features` may move; row k of `columns` is the column of M that belongs to features[k].
    `pull` is target - M coef for all coordinates, before and after. It ends when no move, in units of the response
    (times the root of the curvature M_kk), exceeds the tolerance. Coordinates without curvature stay where they are.
    False if so many sweeps were not enough.
    """
    cdef Py_ssize_t k, feature
    cdef double curvature, move, furthest
    for _ in range(most_sweeps):
        furthest = 0.0
        for k in range(n_features):
            feature = features[k]
            curvature = columns[k * d + feature]
            if curvature <= 0.0:
                continue
            move = soft(pull[feature] + curvature * coef[feature], penalty) / curvature - coef[feature]
            if move != 0.0:
                add_multiple(-move, columns + k * d, pull, d)
                coef[feature] += move
                furthest = max(furthest, fabs(move) * sqrt(curvature))
        if furthest <= tolerance:
            return True
    return False


def solve(
    const double[:, ::1] matrix, const double[::1] target, double penalty, double[::1] coef, double tolerance,
    Py_ssize_t most_sweeps,
):
    """The lasso with second moments `matrix` and cross moments `target`, in `coef` and from what is there."""
    cdef Py_ssize_t j, d = coef.shape[0]
    if not (matrix.shape[0] == matrix.shape[1] == target.shape[0] == d):
        raise ValueError("The moments and the coefficients do not fit together.")
    cdef double[::1] pull = np.array(target)
    cdef const Py_ssize_t[::1] features = np.arange(d)
    with nogil:
        for j in range(d):
            if coef[j] != 0.0:
                add_multiple(-coef[j], &matrix[j, 0], &pull[0], d)
        descend(&matrix[0, 0], &features[0], d, d, penalty, &coef[0], &pull[0], tolerance, most_sweeps)
