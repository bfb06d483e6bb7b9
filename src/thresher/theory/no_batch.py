"""How far off an estimate can be that begins without a batch."""

import numpy as np
from numpy.typing import ArrayLike

from thresher._utils.arrays import Floats
from thresher._utils.checks import check_positive_integer
from thresher.theory._checks import as_rounds, check_numbers, check_step
from thresher.theory.contraction import hard_thresholding_concavity
from thresher.theory.error_bounds import online_error_bound


def no_batch_error_bound(
    t: ArrayLike, *, K: int, squared_error: float, signal: float, s: int, eta: float, smoothness: float, sigma_x: float
) -> Floats:
    """How far can an estimate stray while there are too few rows for curvature? Eq. (eq:theta_k_mse).

    4^(tK) squared_error + (4 s eta^2 sigma_x^2 + signal) (4^(tK) - 1)/3, with ``signal = |Theta*|^2`` and `smoothness`
    at level 3s. The paper does not square the first distance, and its algebra gives 2 + 4 (eta L)^2 per step, up to
    6, where it prints 4. Still 4 is right: I - eta G does not lengthen sparse vectors, which even gives 2.

    >>> no_batch_error_bound([0, 1], K=1, squared_error=2.0, signal=1.0, s=1, eta=0.5, smoothness=2.0, sigma_x=1.0)
    array([ 2., 10.])
    """
    check_step(eta, smoothness)
    check_numbers(zero_allowed=True, squared_error=squared_error, signal=signal, sigma_x=sigma_x)
    steps = as_rounds(t) * check_positive_integer(K, "K")
    if (steps > 500).any():
        raise ValueError("4^(tK) exceeds 1e300 and bounds nothing; ask for t K <= 500.")
    added = 4.0 * check_positive_integer(s, "s") * eta**2 * sigma_x**2 + signal
    return np.asarray(4.0**steps * squared_error + added * (4.0**steps - 1.0) / 3.0)


def no_batch_loss_bound(
    t: ArrayLike, *, squared_error: ArrayLike, s: int, s_star: int, sigma: float, x_max_squared: float
) -> Floats:
    """How large can the loss be while there are too few rows? In expectation, after t rounds without a batch.

    (s + s*) x_max_squared squared_error + sigma^2 log(t + 1), with `squared_error` from ``no_batch_error_bound`` for
    the same t, E eps^2 <= sigma^2 and x_max_squared = E max_j X_ij^2 (for matrices, of the spectral norm). It is at
    most the C_1 4^(tK) + sigma^2 log(t + 1) of Propositions (prop:free_initial_sparse) and (prop:free_initial_lowrank)
    with the distance in C_1 squared, and without the factor 3 that the second states and does not use. Their proof
    bounds 1 + 1/2 + ... + 1/t by log(t + 1), too little, and drops the 1/2 of the squared loss, which makes up for it.
    A new row and its noise must be independent of the past and of each other.

    >>> no_batch_loss_bound([1, 2], squared_error=[10.0, 42.0], s=1, s_star=1, sigma=0.0, x_max_squared=3.0)
    array([ 60., 252.])
    """
    hard_thresholding_concavity(s, s_star)  # raises unless s_star is between 1 and s
    check_numbers(zero_allowed=True, sigma=sigma, x_max_squared=x_max_squared)
    per_row = (s + s_star) * x_max_squared * np.asarray(squared_error, np.float64)
    return np.asarray(per_row + sigma**2 * np.log(as_rounds(t) + 1.0))


def no_batch_online_bound(
    t: ArrayLike, *, t_enough: int, squared_error: float, delta: float, s: int, alpha: float, sigma_x: float
) -> Floats:
    """How far from Theta* is an estimate that began without a batch, once there are enough rows? Corollaries 1 and 2.

    (corollary:free_initial) and (corollary:free_initial_lowrank), with constants instead of O(): from round t_enough
    on alpha holds, and the rows so far count as the batch of ``online_error_bound``. `squared_error` is that after
    t_enough rounds: from ``no_batch_error_bound``, which needs no alpha; or, as in the paper, from the loss by
    ``squared_error_from_loss_gap``, which needs alpha at t_enough itself, where Corollary 1 asks for it only later.

    >>> start = no_batch_error_bound(2, K=1, squared_error=2.0, signal=1.0, s=1, eta=0.5, smoothness=2.0, sigma_x=1.0)
    >>> no_batch_online_bound([2, 10, 50], t_enough=2, squared_error=float(start), delta=0.5, s=1, alpha=1.0,
    ...                       sigma_x=1.0).round(3)
    array([42.   ,  1.987,  0.327])
    """
    if (as_rounds(t) < check_positive_integer(t_enough, "t_enough")).any():
        raise ValueError(f"t must be at least t_enough = {t_enough}; before that, use no_batch_error_bound.")
    later, start = as_rounds(t) - t_enough, squared_error
    return online_error_bound(
        later, squared_error=start, delta=delta, s=s, alpha=alpha, sigma_x=sigma_x, t0=t_enough, closed_form=False
    )
