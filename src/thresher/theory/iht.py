"""What is known of iterative hard thresholding on fixed rows, at s = s* and nearly orthonormal designs."""

import math

import numpy as np
from numpy.typing import ArrayLike

from thresher._utils.arrays import Floats
from thresher._utils.checks import check_positive_integer
from thresher.theory._checks import ROUNDING, as_rounds, check_numbers, curvature_seen

# The restricted isometry constant that the theorem of Blumensath and Davies allows, at level 3s.
LARGEST_RIP = 1.0 / math.sqrt(32.0)


def rip_constant(*, alpha: float, smoothness: float) -> float:
    """How far from orthonormal are sparse vectors? The restricted isometry constant: all eigenvalues are in 1 +- it.

    `alpha` and `smoothness` are the extreme sparse eigenvalues of the Gram / n, for ``iht_error_bound`` at level 3s.

    >>> round(rip_constant(alpha=0.9, smoothness=1.15), 3)
    0.15
    """
    curvature_seen(1.0 / smoothness if smoothness > 0.0 else math.nan, alpha, smoothness)  # checks both
    return max(1.0 - alpha, smoothness - 1.0, 0.0)


def iht_error_bound(
    k: ArrayLike, *, error: float, noise_norm: float, n: int, alpha: float, smoothness: float
) -> Floats:
    """How far from Theta* are k steps with eta = 1 and s = s*? Section 2: at most ``6 |eps| / sqrt(n)`` in the end.

    ``2^-k error + 5 |eps| / sqrt(n)``, where `error` is ``|Theta*|``, for a start at zero, and `noise_norm` is
    ``|eps|``; Theorem 5 of Blumensath and Davies (2009). Needs a restricted isometry constant of at most 1/sqrt(32) at
    level 3s, so a sparse condition number of at most 1.43.

    >>> iht_error_bound([0, 1, 50], error=8.0, noise_norm=2.0, n=100, alpha=0.9, smoothness=1.1)
    array([9., 5., 1.])
    """
    _check_rip(alpha, smoothness)
    check_numbers(zero_allowed=True, error=error, noise_norm=noise_norm)
    return np.asarray(error * 0.5 ** as_rounds(k, "k") + 5.0 * noise_norm / math.sqrt(check_positive_integer(n, "n")))


def iht_recursion_bound(k: ArrayLike, *, error: float, noise: float, s: int, alpha: float, smoothness: float) -> Floats:
    """How far from Theta* are k steps with eta = 1 and s = s*? By the largest correlation with the noise.

    ``2^-k error + 4 sqrt(2 s) noise``, with ``noise = max_j |sum_i eps_i X_ij| / n``: halving, plus
    ``2 |X_S' eps| / n`` per step, over k steps. S is the union of two supports of size s, so the root is of 2 s where
    Section 2 prints s.

    >>> iht_recursion_bound([0, 1], error=8.0, noise=0.125, s=2, alpha=0.9, smoothness=1.1)
    array([9., 5.])
    """
    _check_rip(alpha, smoothness)
    check_numbers(zero_allowed=True, error=error, noise=noise)
    root = math.sqrt(2.0 * check_positive_integer(s, "s"))
    return np.asarray(error * 0.5 ** as_rounds(k, "k") + 4.0 * root * noise)


def _check_rip(alpha: float, smoothness: float) -> None:
    constant = rip_constant(alpha=alpha, smoothness=smoothness)
    if constant > LARGEST_RIP * (1.0 + ROUNDING):
        raise ValueError(
            f"The restricted isometry constant is {constant:.4g}; the theorem needs at most {LARGEST_RIP:.4g}."
        )
