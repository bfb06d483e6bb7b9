"""Least squares on a few features, from a summary."""

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from thresher._utils.arrays import Floats, Integers
from thresher._utils.tolerances import OWN_SHARE
from thresher.summaries.gram import Gram

# Pivots below this are rounding. The search keeps a wider margin, in the order in which features enter; what it accepts
# is solved here, whatever the order.
ROUNDING = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-6}


class LinearFit(NamedTuple):
    """Coefficients of some features, and the intercept."""

    support: Integers
    values: Floats
    intercept: float

    def coef(self, n_features: int) -> Floats:
        """Coefficients of all features; zero outside the support."""
        coef = np.zeros(n_features)
        coef[self.support] = self.values
        return coef


def least_squares(summary: Gram, support: Integers, centred: bool, ridge: Floats | None = None) -> LinearFit:
    """Least squares of all rows so far on these features, with the best intercept if `centred`.

    As ``LinearRegression(fit_intercept=centred).fit(X[:, support], y)``, from cross-products: Cholesky in units of the
    scales, O(s^3). Where features are collinear, the coefficients are the shortest ones in these units. `ridge` has a
    penalty for the square of each coefficient, which is added to the residual sum of squares.
    """
    matrix, vector, sums = summary.equations(support, centred)
    if ridge is not None:
        matrix[np.diag_indices(len(support))] += ridge
    scale = np.sqrt(np.diagonal(matrix))
    unit = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
    matrix *= unit
    matrix *= unit[:, None]
    vector *= unit
    values = unit * _solve(matrix, vector, summary.dtype)
    return LinearFit(support, values, sums.mean_y - float(sums.mean_x @ values) if centred else 0.0)


def _solve(matrix: Floats, vector: Floats, storage: np.dtype[np.floating]) -> Floats:
    """Solve with a correlation matrix, by its shortest solution if that is singular but for rounding."""
    if not len(vector):
        return vector
    factor, failed = dpotrf(matrix, lower=0)
    if not failed and np.diagonal(factor).min() ** 2 > ROUNDING[storage]:
        solution: Floats = dpotrs(factor, vector, lower=0)[0]
        return solution
    return np.asarray(np.linalg.lstsq(matrix, vector, rcond=OWN_SHARE[storage])[0], np.float64)
