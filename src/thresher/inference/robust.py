"""Standard errors that hold whatever the variance of the noise depends on."""

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher._utils.tolerances import OWN_SHARE
from thresher.online.residual_moments import ResidualMoments
from thresher.summaries.gram import Gram

# Rows for each coefficient from which on the residual-weighted moments are worth more than the assumption they replace.
ROWS_PER_TERM = 20


def widening(summary: Gram, residuals: ResidualMoments, centred: bool, features: Integers) -> Floats:
    """By what to multiply the standard errors of these features: never less than one, and one where nothing is known.

    Where the noise is constant, ratios below one are chance more often than not.
    """
    factors, ratios = np.ones(len(features)), error_ratios(summary, residuals, centred)
    if ratios is not None:
        place = {int(j): k for k, j in enumerate(residuals.support)}
        for k, j in enumerate(features.tolist()):
            if j in place:
                factors[k] = max(float(ratios[place[j]]), 1.0)
    return factors


def error_ratios(summary: Gram, residuals: ResidualMoments, centred: bool) -> Floats | None:
    """How many times the usual standard errors of the kept features those of White (1980) are.

    As the ratio of ``statsmodels.OLS(y, X[:, S]).fit(cov_type="HC0").bse`` to ``.fit().bse``, with residuals of
    predictions made before the rows were learned. None if fewer than 20 rows for each coefficient came in since the
    support was last changed. O(s^3).

    Parameters
    ----------
    summary : Gram
        All rows so far.
    residuals : ResidualMoments
        Of the support.
    centred : bool
        Whether the model has an intercept.
    """
    s = len(residuals.support)
    if s == 0 or residuals.weight < ROWS_PER_TERM * (s + 1) or not np.isfinite(residuals.matrix).all():
        return None
    matrix, _, sums = summary.equations(residuals.support, centred)
    own = np.linalg.pinv(matrix / summary.weight, rcond=OWN_SHARE[summary.dtype], hermitian=True)
    # About the means, or about zero, as the equations are.
    move = residuals.origin - (sums.mean_x if centred else 0.0)
    shift = np.eye(s + 1)
    shift[1:, 0] = move
    weighted = (shift @ residuals.matrix @ shift.T / residuals.weight)[1:, 1:]
    variance = residuals.matrix[0, 0] / residuals.weight
    usual = variance * np.diagonal(own)
    robust = np.einsum("ij,jk,ik->i", own, weighted, own)
    ratios: Floats = np.sqrt(np.divide(robust, usual, out=np.ones(s), where=usual > 0.0))
    return ratios
