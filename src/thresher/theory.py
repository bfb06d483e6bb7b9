r"""What the theory promises, in numbers: how large s and K must be, and how far off an estimate can be.

Statements are cited by their labels in the source of "Online Generalized Sparse Regression"; theorems and corollaries
are numbered in order of appearance. Vectors with s entries and matrices of rank s share every formula except the one
of ``descent_bound``; read Frobenius norms, and the spectral norm of the noise, for matrices.

===============  =======================================================================================
s, s_star        size the projection keeps, and size of the truth Theta* (nonzero entries, or rank)
eta, K           step size, and steps per round
alpha            least curvature: for squared loss, the least eigenvalue of the Gram / n over 2s-sparse
                 vectors, which is what (s, s)-sparse strong convexity comes to (difference of two)
smoothness       L, the largest such eigenvalue; at level 3s, (2s, s), where no batch starts the stream
delta            contraction of the squared error per round, from ``contraction``
squared_error    squared distance to Theta* (in expectation) before the first round that is counted
sigma_x          root of a bound on E max_j (sum_i eps_i X_ij)^2 / n, Assumption (assumption:noise)
t, t0            rounds (an int or an array of them), and rows of the initial batch
===============  =======================================================================================
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from thresher._utils.arrays import Floats
from thresher._utils.checks import check_positive_integer
from thresher.sparsity._common import relative_concavity

# A bound this close to an integer counts as that integer: rounding must not turn "equal" into "strictly above".
_ROUNDING = 1e-12


def _check_numbers(*, zero_allowed: bool = False, **values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and (value > 0.0 or (zero_allowed and value == 0.0))):
            kind = "a finite number, zero or more" if zero_allowed else "a positive finite number"
            raise ValueError(f"{name} must be {kind}, got {value!r}")


def _check_delta(delta: float) -> None:
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}; `contraction` gives it, and more steps K lower it.")


def _as_rounds(t: ArrayLike, name: str = "t") -> NDArray[np.int64]:
    rounds = np.asarray(t)
    if rounds.dtype.kind not in "iu" or (rounds < 0).any():
        raise ValueError(f"{name} must hold integers, zero or more, got {t!r}")
    return rounds.astype(np.int64)


def _check_step(eta: float, smoothness: float) -> None:
    _check_numbers(eta=eta, smoothness=smoothness)
    if eta * smoothness > 1.0 + _ROUNDING:
        raise ValueError(f"eta = {eta:.6g} exceeds 1/L = {1.0 / smoothness:.6g}; take eta <= 1/L.")


def _curvature_seen(eta: float, alpha: float, smoothness: float) -> float:
    """Eta times alpha, after the checks on both."""
    _check_step(eta, smoothness)
    _check_numbers(alpha=alpha)
    if alpha > smoothness * (1.0 + _ROUNDING):
        raise ValueError(f"alpha = {alpha:.6g} exceeds L = {smoothness:.6g}; alpha is the smaller curvature.")
    return min(1.0, eta * alpha)


def _shrinkages(s: int, s_star: int, eta: float, alpha: float, smoothness: float) -> tuple[float, float, float]:
    """Eta alpha, 1 - eta alpha and 1 - 2 gamma, with s large enough for the second to be less than the third."""
    seen = _curvature_seen(eta, alpha, smoothness)
    enough = minimum_size(s_star, eta=eta, alpha=alpha, smoothness=smoothness)
    if check_positive_integer(s, "s") < enough:
        raise ValueError(f"s = {s} is not above s_star/(eta alpha)^2; take s >= {enough}, or eta closer to 1/L.")
    return seen, 1.0 - seen, 1.0 - 2.0 * hard_thresholding_concavity(s, s_star)


def hard_thresholding_concavity(s: int, s_star: int) -> float:
    """How far from a projection onto a convex set is keeping the s largest? sqrt(s*/s)/2; 0 would be convex.

    The supremum of <Y - P(Z), Z - P(Z)> / |Y - P(Z)|^2 over all Z and all Y of size s*; Lemmas
    (lemma:relative_concavity_sparse) and (lemma:relative_concavity_lowrank). It is attained when there are at least
    s + s* entries; with fewer it is an upper bound, which is all that is used.

    >>> hard_thresholding_concavity(16, 4)
    0.25
    """
    return relative_concavity(check_positive_integer(s, "s"), s_star, "s")


def reciprocal_thresholding_concavity(s: int, s_star: int, a: float = 1.0) -> float:
    """Would reciprocal thresholding need a smaller s? It would where this is less than sqrt(s*/s)/2.

    The operator keeps the s largest z as sign(z) (|z| + sqrt(z^2 - a tau^2)) / 2, with tau the largest size dropped:
    a = 0 is hard thresholding, a = 1 the usual form, and a = 1 - (s*/s)^2 has the least concavity of all,
    s*/(s + s*). Derived here, not in the paper: in the worst case all sizes equal tau, and Y lies either outside what
    was kept or, where the result exceeds 1/2, inside. For a = 1 it beats hard thresholding only if s*/s < 4/9.
    The descent lemma does not cover this operator, so no bound below applies to it.

    >>> reciprocal_thresholding_concavity(90, 10), hard_thresholding_concavity(90, 10)  # doctest: +ELLIPSIS
    (0.1009..., 0.1666...)
    """
    ratio = 4.0 * hard_thresholding_concavity(s, s_star) ** 2
    if not 0.0 <= a <= 1.0:
        raise ValueError(f"a must be between 0 (hard thresholding) and 1, got {a!r}")
    kept = (1.0 + math.sqrt(1.0 - a)) / 2.0
    lost = 1.0 - kept
    outside = ratio / (2.0 * (kept * lost + math.sqrt((kept * lost) ** 2 + ratio * kept**2)))
    if lost == 0.0:
        return outside
    return math.inf if s == s_star else max(outside, lost / (2.0 * kept) * (1.0 / math.sqrt(1.0 - ratio) - 1.0))


def minimum_size(s_star: int, *, eta: float, alpha: float, smoothness: float) -> int:
    """How large must s be for a round to contract? The least integer above s*/(eta alpha)^2.

    Lemma (lemma:multi_step_descent) uses the condition in its proof and leaves it out of its statement; Theorems 1 and
    2 state it. A step far below 1/L asks for a very large s: the promise is lost, not necessarily the convergence.

    >>> minimum_size(15, eta=0.5, alpha=1.0, smoothness=2.0)
    61
    """
    seen = _curvature_seen(eta, alpha, smoothness)
    return math.floor(check_positive_integer(s_star, "s_star") / seen**2 * (1.0 + _ROUNDING)) + 1


def minimum_size_at_longest_step(s_star: int, kappa: float) -> int:
    """How large must s be at eta = 1/L? The least integer above kappa^2 s*, with kappa = L/alpha (Section sec:main).

    >>> minimum_size_at_longest_step(15, 2.0)
    61
    """
    if not (math.isfinite(kappa) and kappa >= 1.0):
        raise ValueError(f"kappa must be a finite number, at least 1 (it is L/alpha), got {kappa!r}")
    return math.floor(check_positive_integer(s_star, "s_star") * kappa**2 * (1.0 + _ROUNDING)) + 1


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
    _check_step(eta, smoothness)
    slack = max(0.0, 1.0 - eta * smoothness) / 2.0
    if gradient is not None and move is None:
        _check_numbers(zero_allowed=True, gradient=gradient)
        return -eta * slack * gradient**2
    if move is not None and gradient is None:
        _check_numbers(zero_allowed=True, move=move)
        return -slack / eta * move**2
    raise ValueError("pass either gradient (vectors) or move (vectors and matrices).")


def critical_steps(*, s: int, s_star: int, eta: float, alpha: float, smoothness: float) -> float:
    """More than how many steps must a round have? K_0 of Lemma (lemma:multi_step_descent).

    The lemma asks for K >= K_0, but delta is 1 at K = K_0: it takes K > K_0. May be negative; a round has one step.

    >>> round(critical_steps(s=64, s_star=4, eta=0.5, alpha=1.0, smoothness=2.0), 3)
    2.71
    """
    seen, kept_error, kept_after_projection = _shrinkages(s, s_star, eta, alpha, smoothness)
    if kept_error == 0.0:
        return 0.0
    return math.log(2.0 * kept_after_projection / seen) / math.log(kept_after_projection / kept_error)


def minimum_steps(*, s: int, s_star: int, eta: float, alpha: float, smoothness: float) -> int:
    """How many steps must a round have to contract? The least K >= 1 above ``critical_steps``.

    >>> minimum_steps(s=64, s_star=4, eta=0.5, alpha=1.0, smoothness=2.0)
    3
    """
    critical = critical_steps(s=s, s_star=s_star, eta=eta, alpha=alpha, smoothness=smoothness)
    return max(1, math.floor(critical * (1.0 + math.copysign(_ROUNDING, critical))) + 1)


def contraction(K: int, *, s: int, s_star: int, eta: float, alpha: float, smoothness: float) -> float:
    """By what factor does a round of K steps shrink the squared error, noise aside? delta of eq. (def:delta).

    2 (1 - 2 gamma) / (eta alpha) ((1 - eta alpha) / (1 - 2 gamma))^K, which must be less than 1.

    >>> contraction(3, s=64, s_star=4, eta=0.5, alpha=1.0, smoothness=2.0)  # doctest: +ELLIPSIS
    0.888...
    """
    enough = minimum_steps(s=s, s_star=s_star, eta=eta, alpha=alpha, smoothness=smoothness)
    if check_positive_integer(K, "K") < enough:
        raise ValueError(f"K = {K} steps do not contract; take K >= {enough}, or a larger s.")
    seen, kept_error, kept_after_projection = _shrinkages(s, s_star, eta, alpha, smoothness)
    return 2.0 * kept_after_projection / seen * (kept_error / kept_after_projection) ** K


def loss_gap_bound(
    K: int, *, squared_error: float, s: int, s_star: int, eta: float, alpha: float, smoothness: float
) -> float:
    """How far above the loss of Theta* is the last of K steps? Eq. (eq:multiple_1), for the same data throughout.

    >>> loss_gap_bound(2, squared_error=1.0, s=64, s_star=4, eta=0.5, alpha=1.0, smoothness=2.0)  # doctest: +ELLIPSIS
    0.333...
    """
    _check_numbers(zero_allowed=True, squared_error=squared_error)
    _, kept_error, kept_after_projection = _shrinkages(s, s_star, eta, alpha, smoothness)
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
    _check_numbers(smoothness=smoothness)
    _check_numbers(zero_allowed=True, squared_error=squared_error)
    _, kept_error, kept_after_projection = _shrinkages(s, s_star, 1.0 / smoothness, alpha, smoothness)
    return smoothness / 2.0 * (kept_error / kept_after_projection) ** check_positive_integer(K, "K") * squared_error


def squared_error_from_loss_gap(gap: float, *, noise: float, s: int, alpha: float) -> float:
    """How far from Theta* is an estimate whose loss is `gap` above that of Theta*? Eq. (eq:lower_bound).

    `noise` is max_j |sum_i eps_i X_ij| / n, or sigma_x / sqrt(n) for a bound in expectation.

    >>> squared_error_from_loss_gap(0.5, noise=0.1, s=50, alpha=2.0)
    2.0
    """
    _check_numbers(alpha=alpha)
    _check_numbers(zero_allowed=True, noise=noise)
    return 4.0 / alpha * gap + 8.0 * check_positive_integer(s, "s") / alpha**2 * noise**2


def next_round_bound(squared_error: float, *, noise: float, delta: float, s: int, alpha: float) -> float:
    """How far from Theta* is the estimate after one more round? Eq. (eq:multi_step_descent).

    Lemmas (lemma:multi_step_descent) and (lemma:multi_step_descent_lowrank): delta squared_error + 8 s noise^2/alpha^2,
    with `noise` as in ``squared_error_from_loss_gap``.

    >>> next_round_bound(1.0, noise=0.5, delta=0.5, s=50, alpha=2.0)
    25.5
    """
    _check_delta(delta)
    _check_numbers(zero_allowed=True, squared_error=squared_error)
    return delta * squared_error + squared_error_from_loss_gap(0.0, noise=noise, s=s, alpha=alpha)


def best_subset_error_bound(t: ArrayLike, *, s_star: int, alpha: float, sigma_x: float, t0: int) -> Floats:
    """How far from Theta* is the best estimate of size s*? Lemmas (lemma:stats_error), (lemma:stats_error_lowrank).

    8 s* sigma_x^2 / (alpha^2 (t + t0)), in expectation: what to compare ``online_error_bound`` with.

    >>> best_subset_error_bound([0, 100], s_star=5, alpha=2.0, sigma_x=1.0, t0=100)
    array([0.1 , 0.05])
    """
    n = _as_rounds(t) + _as_rounds(t0, "t0")
    if (n < 1).any():
        raise ValueError("t + t0 is zero; without rows there is no estimate.")
    _check_numbers(alpha=alpha)
    _check_numbers(zero_allowed=True, sigma_x=sigma_x)
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
    rounds, start = _as_rounds(t), int(_as_rounds(t0, "t0"))
    _check_delta(delta)
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
    rounds = _as_rounds(t)
    _check_delta(delta)
    _check_numbers(zero_allowed=True, squared_error=squared_error, sigma_x=sigma_x)
    noise = squared_error_from_loss_gap(0.0, noise=sigma_x, s=s, alpha=alpha)
    return delta**rounds * squared_error + noise * discounted_sum(rounds, delta=delta, t0=t0, closed_form=closed_form)


def no_batch_error_bound(
    t: ArrayLike, *, K: int, squared_error: float, signal: float, s: int, eta: float, smoothness: float, sigma_x: float
) -> Floats:
    """How far can an estimate stray while there are too few rows for curvature? Eq. (eq:theta_k_mse).

    4^(tK) squared_error + (4 s eta^2 sigma_x^2 + signal) (4^(tK) - 1)/3, with signal = |Theta*|^2 and `smoothness` at
    level 3s. The paper forgets to square the first distance, and its algebra gives 2 + 4 (eta L)^2 per step, up to 6,
    where it prints 4. Still 4 is right: I - eta G does not lengthen sparse vectors, which even gives 2.

    >>> no_batch_error_bound([0, 1], K=1, squared_error=2.0, signal=1.0, s=1, eta=0.5, smoothness=2.0, sigma_x=1.0)
    array([ 2., 10.])
    """
    _check_step(eta, smoothness)
    _check_numbers(zero_allowed=True, squared_error=squared_error, signal=signal, sigma_x=sigma_x)
    steps = _as_rounds(t) * check_positive_integer(K, "K")
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
    _check_numbers(zero_allowed=True, sigma=sigma, x_max_squared=x_max_squared)
    per_row = (s + s_star) * x_max_squared * np.asarray(squared_error, np.float64)
    return np.asarray(per_row + sigma**2 * np.log(_as_rounds(t) + 1.0))


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
    if (_as_rounds(t) < check_positive_integer(t_enough, "t_enough")).any():
        raise ValueError(f"t must be at least t_enough = {t_enough}; before that, use no_batch_error_bound.")
    later, start = _as_rounds(t) - t_enough, squared_error
    return online_error_bound(
        later, squared_error=start, delta=delta, s=s, alpha=alpha, sigma_x=sigma_x, t0=t_enough, closed_form=False
    )
