"""How large s and K must be for a round to contract."""

import math

from thresher._utils.checks import check_positive_integer
from thresher.sparsity._common import relative_concavity
from thresher.theory._checks import ROUNDING, curvature_seen


def shrinkages(s: int, s_star: int, eta: float, alpha: float, smoothness: float) -> tuple[float, float, float]:
    """Eta alpha, 1 - eta alpha and 1 - 2 gamma, with s large enough for the second to be less than the third."""
    seen = curvature_seen(eta, alpha, smoothness)
    enough = minimum_size(s_star, eta=eta, alpha=alpha, smoothness=smoothness)
    if check_positive_integer(s, "s") < enough:
        raise ValueError(f"s = {s} is not above s_star/(eta alpha)^2; take s >= {enough}, or eta closer to 1/L.")
    return seen, 1.0 - seen, 1.0 - 2.0 * hard_thresholding_concavity(s, s_star)


def hard_thresholding_concavity(s: int, s_star: int) -> float:
    """How far from a projection onto a convex set is keeping the s largest? sqrt(s*/s)/2; 0 would be convex.

    The supremum of ``<Y - P(Z), Z - P(Z)> / |Y - P(Z)|^2`` over all Z and all Y of size s*; Lemmas
    (lemma:relative_concavity_sparse) and (lemma:relative_concavity_lowrank). It is attained when there are at least
    s + s* entries; with fewer it is an upper bound, which is all that is used.

    >>> hard_thresholding_concavity(16, 4)
    0.25
    """
    return relative_concavity(check_positive_integer(s, "s"), s_star, "s")


def reciprocal_thresholding_concavity(s: int, s_star: int, a: float = 1.0) -> float:
    """Would reciprocal thresholding need a smaller s? It would where this is less than sqrt(s*/s)/2.

    The operator keeps the s largest z as ``sign(z) (|z| + sqrt(z^2 - a tau^2)) / 2``, with tau the largest size
    dropped: a = 0 is hard thresholding, a = 1 the usual form, and a = 1 - (s*/s)^2 has the least concavity of all,
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
    seen = curvature_seen(eta, alpha, smoothness)
    return math.floor(check_positive_integer(s_star, "s_star") / seen**2 * (1.0 + ROUNDING)) + 1


def minimum_size_at_longest_step(s_star: int, kappa: float) -> int:
    """How large must s be at eta = 1/L? The least integer above kappa^2 s*, with kappa = L/alpha (Section sec:main).

    >>> minimum_size_at_longest_step(15, 2.0)
    61
    """
    if not (math.isfinite(kappa) and kappa >= 1.0):
        raise ValueError(f"kappa must be a finite number, at least 1 (it is L/alpha), got {kappa!r}")
    return math.floor(check_positive_integer(s_star, "s_star") * kappa**2 * (1.0 + ROUNDING)) + 1


def critical_steps(*, s: int, s_star: int, eta: float, alpha: float, smoothness: float) -> float:
    """More than how many steps must a round have? K_0 of Lemma (lemma:multi_step_descent).

    The lemma asks for K >= K_0, but delta is 1 at K = K_0: it takes K > K_0. May be negative; a round has one step.

    >>> round(critical_steps(s=64, s_star=4, eta=0.5, alpha=1.0, smoothness=2.0), 3)
    2.71
    """
    seen, kept_error, kept_after_projection = shrinkages(s, s_star, eta, alpha, smoothness)
    if kept_error == 0.0:
        return 0.0
    return math.log(2.0 * kept_after_projection / seen) / math.log(kept_after_projection / kept_error)


def minimum_steps(*, s: int, s_star: int, eta: float, alpha: float, smoothness: float) -> int:
    """How many steps must a round have to contract? The least K >= 1 above ``critical_steps``.

    >>> minimum_steps(s=64, s_star=4, eta=0.5, alpha=1.0, smoothness=2.0)
    3
    """
    critical = critical_steps(s=s, s_star=s_star, eta=eta, alpha=alpha, smoothness=smoothness)
    return max(1, math.floor(critical * (1.0 + math.copysign(ROUNDING, critical))) + 1)


def contraction(K: int, *, s: int, s_star: int, eta: float, alpha: float, smoothness: float) -> float:
    """By what factor does a round of K steps shrink the squared error, noise aside? delta of eq. (def:delta).

    2 (1 - 2 gamma) / (eta alpha) ((1 - eta alpha) / (1 - 2 gamma))^K, which must be less than 1.

    >>> contraction(3, s=64, s_star=4, eta=0.5, alpha=1.0, smoothness=2.0)  # doctest: +ELLIPSIS
    0.888...
    """
    enough = minimum_steps(s=s, s_star=s_star, eta=eta, alpha=alpha, smoothness=smoothness)
    if check_positive_integer(K, "K") < enough:
        raise ValueError(f"K = {K} steps do not contract; take K >= {enough}, or a larger s.")
    seen, kept_error, kept_after_projection = shrinkages(s, s_star, eta, alpha, smoothness)
    return 2.0 * kept_after_projection / seen * (kept_error / kept_after_projection) ** K
