"""How far off an estimate can be: step by step, round by round, and after t rounds."""

import math

import numpy as np
from numpy.typing import ArrayLike

from thresher._utils.arrays import Floats
from thresher._utils.checks import check_positive_integer
from thresher.theory._checks import as_rounds, check_delta, check_numbers, check_step
from thresher.theory.contraction import shrinkages


def descent_bound(*, eta: float, smoothness: float, gradient: float | None = None, move: float | None = None) -> float:
    """How much does one step lower the loss at least? An upper bound, zero or less, on its change.

    With `gradient` the norm of the gradient on the union of the old and the new support,
    -eta (1 - eta L)/2 gradient^2: Lemma (lemma:sdl), for vectors only. With `move` the length of the step,
    -(1 - eta L)/(2 eta) move^2, which the proofs contain and which holds for matrices too. Lemma
    (lemma:descent_lowrank) states the first for the sum of two column spaces; its proof treats those spaces as if they
    were aligned like supports, and the statement fails when they are nearly, but not quite, equal.

    >>> descent_bound(eta=0.5, smoothness=1.0, gradient=2.0)
    -0.5
    >>> descent_bound(eta=0.5, smoothness=1.0, move=1.0)
    -0.5
    """
    check_step(eta, smoothness)
    slack = max(0.0, 1.0 - eta * smoothness) / 2.0
    if gradient is not None and move is None:
        check_numbers(zero_allowed=True, gradient=gradient)
        return -eta * slack * gradient**2
    if move is not None and gradient is None:
        check_numbers(zero_allowed=True, move=move)
        return -slack / eta * move**2
    raise ValueError("pass either gradient (vectors) or move (vectors and matrices).")


def loss_gap_bound(
    K: int, *, squared_error: float, s: int, s_star: int, eta: float, alpha: float, smoothness: float
) -> float:
    """How far above the loss of Theta* is the last of K steps? Eq. (eq:multiple_1), for the same data throughout.

    >>> loss_gap_bound(2, squared_error=1.0, s=64, s_star=4, eta=0.5, alpha=1.0, smoothness=2.0)  # doctest: +ELLIPSIS
    0.333...
    """
    check_numbers(zero_allowed=True, squared_error=squared_error)
    _, kept_error, kept_after_projection = shrinkages(s, s_star, eta, alpha, smoothness)
    rate = (kept_error / kept_after_projection) ** check_positive_integer(K, "K")
    return kept_after_projection / (2.0 * eta) * rate * squared_error


def offline_loss_gap_bound(
    K: int, *, squared_error: float, s: int, s_star: int, alpha: float, smoothness: float
) -> float:
    """How far above the loss of Theta* is the best of K steps of size 1/L on fixed data? Eq. (eq:jain_multiple_step).

    The rate is (1 - 1/kappa)/(1 - 2 gamma); the paper prints (1 - kappa), which is negative. ``loss_gap_bound`` holds
    for the last step and is smaller by a factor 1 - 2 gamma.

    >>> offline_loss_gap_bound(2, squared_error=1.0, s=64, s_star=4, alpha=1.0, smoothness=2.0)  # doctest: +ELLIPSIS
    0.444...
    """
    check_numbers(smoothness=smoothness)
    check_numbers(zero_allowed=True, squared_error=squared_error)
    _, kept_error, kept_after_projection = shrinkages(s, s_star, 1.0 / smoothness, alpha, smoothness)
    return smoothness / 2.0 * (kept_error / kept_after_projection) ** check_positive_integer(K, "K") * squared_error


def squared_error_from_loss_gap(gap: float, *, noise: float, s: int, alpha: float) -> float:
    """How far from Theta* is an estimate whose loss is `gap` above that of Theta*? Eq. (eq:lower_bound).

    `noise` is ``max_j |sum_i eps_i X_ij| / n``, or sigma_x / sqrt(n) for a bound in expectation.

    >>> squared_error_from_loss_gap(0.5, noise=0.1, s=50, alpha=2.0)
    2.0
    """
    check_numbers(alpha=alpha)
    check_numbers(zero_allowed=True, noise=noise)
    return 4.0 / alpha * gap + 8.0 * check_positive_integer(s, "s") / alpha**2 * noise**2


def next_round_bound(squared_error: float, *, noise: float, delta: float, s: int, alpha: float) -> float:
    """How far from Theta* is the estimate after one more round? Eq. (eq:multi_step_descent).

    Lemmas (lemma:multi_step_descent) and (lemma:multi_step_descent_lowrank): delta squared_error + 8 s noise^2/alpha^2,
    with `noise` as in ``squared_error_from_loss_gap``.

    >>> next_round_bound(1.0, noise=0.5, delta=0.5, s=50, alpha=2.0)
    25.5
    """
    check_delta(delta)
    check_numbers(zero_allowed=True, squared_error=squared_error)
    return delta * squared_error + squared_error_from_loss_gap(0.0, noise=noise, s=s, alpha=alpha)


def best_subset_error_bound(t: ArrayLike, *, s_star: int, alpha: float, sigma_x: float, t0: int) -> Floats:
    """How far from Theta* is the best estimate of size s*? Lemmas (lemma:stats_error), (lemma:stats_error_lowrank).

    8 s* sigma_x^2 / (alpha^2 (t + t0)), in expectation: what to compare ``online_error_bound`` with.

    >>> best_subset_error_bound([0, 100], s_star=5, alpha=2.0, sigma_x=1.0, t0=100)
    array([0.1 , 0.05])
    """
    n = as_rounds(t) + as_rounds(t0, "t0")
    if (n < 1).any():
        raise ValueError("t + t0 is zero; without rows there is no estimate.")
    check_numbers(alpha=alpha)
    check_numbers(zero_allowed=True, sigma_x=sigma_x)
    return np.asarray(8.0 * check_positive_integer(s_star, "s_star") * sigma_x**2 / (alpha**2 * n))


def discounted_sum(t: ArrayLike, *, delta: float, t0: int, closed_form: bool = False) -> Floats:
    """How much of the noise of all rounds is left after t of them? The sum over j <= t of delta^(t-j) / (t0 + j).

    With `closed_form`, the upper bound of Lemma (lemma:tele_sum), whose statement lacks the factor 1/log(1/delta) that
    its proof ends with and that it is false without. It grows without limit as delta goes to 0; the sum does not.

    >>> discounted_sum([0, 1, 2], delta=0.5, t0=0)
    array([0., 1., 1.])
    >>> discounted_sum([1, 2, 100], delta=0.5, t0=0, closed_form=True).round(2)
    array([7.21, 4.63, 0.09])
    """
    rounds, start = as_rounds(t), int(as_rounds(t0, "t0"))
    check_delta(delta)
    if closed_form:
        if delta == 0.0:
            raise ValueError("the closed form is infinite at delta = 0; use closed_form=False, or a larger delta.")
        parts = delta ** (rounds - 1.0) / (start + 1.0) + 3.0 / (delta * (rounds + 1.0 + start))
        parts = parts + delta ** ((rounds + 1.0) / 2.0 - 1.0) / (start + 1.0)
        return np.where(rounds == 0, 0.0, parts / math.log(1.0 / delta))
    sums = np.zeros(int(rounds.max(initial=0)) + 1)
    for j in range(1, len(sums)):
        sums[j] = delta * sums[j - 1] + 1.0 / (start + j)
    return np.asarray(sums[rounds])


def online_error_bound(
    t: ArrayLike,
    *,
    squared_error: float,
    delta: float,
    s: int,
    alpha: float,
    sigma_x: float,
    t0: int,
    closed_form: bool = True,
) -> Floats:
    """How far from Theta* is the estimate after t rounds, in expectation? Theorem 1, Theorem 2.

    (thm:multistep_sparse) and (thm:multistep_lowrank):
    delta^t squared_error + 8 s sigma_x^2 / alpha^2 times ``discounted_sum``. Algorithm 1 starts with round 1, so its
    recursion gives delta^t where both theorems print delta^(t+1), and Theorem 2 bounds the noise one round ahead.
    Without `closed_form` the sum is taken as it is, which is never worse.

    >>> online_error_bound([0, 10, 1000], squared_error=4.0, delta=0.5, s=20, alpha=2.0, sigma_x=1.0, t0=100,
    ...                    closed_form=False).round(3)
    array([4.   , 0.737, 0.073])
    """
    rounds = as_rounds(t)
    check_delta(delta)
    check_numbers(zero_allowed=True, squared_error=squared_error, sigma_x=sigma_x)
    noise = squared_error_from_loss_gap(0.0, noise=sigma_x, s=s, alpha=alpha)
    return delta**rounds * squared_error + noise * discounted_sum(rounds, delta=delta, t0=t0, closed_form=closed_form)


def burn_in(*, squared_error: float, delta: float, s: int, alpha: float, sigma_x: float, t0: int) -> int:
    """From which round on is the error that of the statistics, not that of the start? For Theorems 1 and 2.

    The least t from which on delta^t squared_error <= 8 s sigma_x^2 / (alpha^2 (t + t0)): what is left of the start is
    no more than what the noise of t + t0 rows adds. The theorems give this up to constants, with s* in the place of s
    and log(t + t0) on the other side; here it is solved for t.

    >>> burn_in(squared_error=4.0, delta=0.5, s=20, alpha=2.0, sigma_x=1.0, t0=100)
    4
    """
    check_delta(delta)
    check_numbers(sigma_x=sigma_x)
    check_numbers(zero_allowed=True, squared_error=squared_error)
    start = int(as_rounds(t0, "t0"))
    noise = squared_error_from_loss_gap(0.0, noise=sigma_x, s=s, alpha=alpha)

    def still_there(t: int) -> bool:
        return squared_error > 0.0 and t * rate + math.log(squared_error * max(t + start, 1)) > math.log(noise)

    rate = math.log(delta) if delta > 0.0 else -math.inf
    if delta == 0.0:
        return int(start > 0 and squared_error * start > noise)
    # delta^t (t + t0) rises until here, and falls from here on.
    top = max(math.ceil(-1.0 / rate) - start, 0)
    if not still_there(top):
        return top if top and still_there(top - 1) else 0
    low, high = top, top + 1
    while still_there(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if still_there(middle) else (low, middle)
    return high
