"""The scaled lasso on co-moments: one column explained by a few others, with a penalty that needs no tuning."""

import numpy as np

from thresher.kernels._compile import compiled
from thresher.kernels.gram import Floats
from thresher.kernels.lasso import descend

# Moves below this share of the noise level end a descent; noise levels that agree to this share end the alternation.
TOLERANCE = 1e-10
# A column with less of its variance left than this has nothing to say beyond the columns that were projected out.
NEGLIGIBLE = 1e-12
# Either limit ends the work on designs where descent crawls. The point reached is then not quite the minimiser, which
# those who use it must tolerate.
MOST_SWEEPS = 2000
MOST_ALTERNATIONS = 200


@compiled
def scaled_lasso(matrix: Floats, target: Floats, variance: float, level: float, coef: Floats) -> float:
    """Lasso whose penalty is `level` times the root mean square of its own residual, which is returned.

    It minimises, jointly in coef (in place, from any start) and sigma,

        (variance - 2 target' coef + coef' matrix coef) / (2 sigma) + sigma / 2 + level |coef|_1,

    by turns (Sun and Zhang, 2012): `variance` is the mean square of what is to be explained, `target` its
    co-moments with the columns that explain it and `matrix` theirs.
    """
    everything = np.arange(coef.shape[0])
    pull = target - matrix @ coef
    sigma = np.sqrt(max(float(variance - (target + pull) @ coef), 0.0))
    for _ in range(MOST_ALTERNATIONS):
        descend(
            matrix, everything, coef.shape[0], level * sigma, coef, pull, TOLERANCE * sigma, MOST_SWEEPS, NEGLIGIBLE
        )
        before, sigma = sigma, np.sqrt(max(float(variance - (target + pull) @ coef), 0.0))
        if abs(sigma - before) <= TOLERANCE * before or sigma * sigma <= NEGLIGIBLE:
            break
    return float(sigma)
