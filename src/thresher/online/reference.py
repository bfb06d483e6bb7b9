"""Algorithm 1 of the paper, line by line, for any summary and any sparsity: the readable truth.

Every fast path in this package is tested to give the iterates of this file. O(d^2) per step, no caching.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats

Gradient = Callable[[Floats], Floats]

# A step that is rejected shrinks at least by this factor, so that the search ends.
SHRINK = 0.9
# A support that would move by less than this, relatively, rests: what pulls it is rounding.
RESTING = 1e-10
# Steps stay below this over the largest eigenvalue on the support; below 2 rounding errors do not grow.
STABLE = 1.9
# How far above the condition of the descent lemma a step may be: rounding, nothing more.
ROUNDING = 1e-9
# How often a step of the reciprocal rule is halved.
MOST_HALVINGS = 10
# A feature is collinear with others if it has less than this share of its variance of its own.
OWN_SHARE = 1e-10
# A fit is perfect if the loss is below this share of that of no features.
PERFECT = 1e-12


class Summary(Protocol):
    """What a round needs to know about the rows."""

    @property
    def weight(self) -> float: ...
    def gradient(self, coef: Floats, intercept: Any = 0.0) -> Floats: ...
    def variance(self, centred: bool = True) -> Floats: ...


class Sparsity(Protocol):
    """What a round needs to know about the set C_s."""

    def project(self, theta: Floats) -> Floats: ...
    def restrict(self, direction: Floats, theta: Floats) -> Floats: ...


def run_round(
    theta: Floats,
    summary: Summary,
    sparsity: Sparsity,
    steps: Sequence[float],
    centred: bool = False,
    standardized: bool = False,
    rule: str = "hard",
) -> Floats:
    """K steps of theta <- P(theta - eta g(theta)), Algorithm 1 lines 4 to 6, with eta from `steps`.

    A step of zero asks for the certified one. With `centred`, the intercept is the best one for theta (None) at
    every step. With `standardized`, the step is taken in units of each column's scale sigma: theta, seen as
    sigma * theta, has gradient g / sigma. Theta may have one column per response; all share the scale of a feature.

    With the rule "pursuit", theta is least squares on its support at the start and after each step that changes the
    support; a step that does not ends the round. With "reciprocal", P is no projection and certified steps are those
    after which the loss is lower.
    """
    if summary.weight == 0.0:
        return theta
    scale = np.ones_like(theta)
    if standardized:
        sigma = np.sqrt(summary.variance(centred))
        scale = scale * sigma.reshape(sigma.shape + (1,) * (theta.ndim - sigma.ndim))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)

    def gradient(scaled: Floats) -> Floats:
        coef = inverse * scaled
        return inverse * summary.gradient(coef, None if centred else 0.0)

    scaled = scale * theta
    ceiling = np.inf
    fitted = rule == "pursuit" and bool(scaled.any())
    if fitted:
        scaled = least_squares(np.flatnonzero(scaled), gradient, scaled.size)
    for eta in steps:
        if fitted and perfect(scaled, gradient, summary, centred):
            break
        if eta > 0.0:
            moved = sparsity.project(scaled - eta * gradient(scaled))  # paper, eq. (OHT)
        elif rule == "reciprocal":
            moved = falling_step(scaled, gradient, sparsity)
        else:
            moved, ceiling = certified_step(scaled, gradient, sparsity, ceiling, fitted)
        if rule == "pursuit" and moved.any():
            if fitted and np.array_equal(moved != 0.0, scaled != 0.0):
                break
            moved, fitted = least_squares(independent(moved, scaled, gradient), gradient, scaled.size), True
        scaled = moved
    return inverse * scaled


def certified_step(
    theta: Floats, gradient: Gradient, sparsity: Sparsity, ceiling: float, at_rest: bool = False
) -> tuple[Floats, float]:
    """A step after which the loss is not higher, and the largest step worth trying next.

    The first try is `first_try`. A step is accepted if eta <= |move|^2 / (move' G move): then
    L(theta + move) - L(theta) <= -|move|^2 / (2 eta) + move' G move / 2 <= 0.
    """
    g = gradient(theta)
    eta = first_try(theta, g, gradient, sparsity, at_rest)
    if eta == 0.0:
        return theta, ceiling
    eta, rejected = min(eta, ceiling), False
    while True:
        move = sparsity.project(theta - eta * g) - theta
        length, bend = squared(move), curvature(move, gradient)
        if eta * bend <= length * (1.0 + ROUNDING):
            changed = not theta.any() or not np.array_equal(sparsity.restrict(move, theta), move)
            return theta + move, (np.inf if changed else eta if rejected else ceiling)
        eta, rejected = on_grid(min(SHRINK * eta, length / bend)), True


def falling_step(theta: Floats, gradient: Gradient, sparsity: Sparsity) -> Floats:
    """The longest of `first_try` and its halves after which the loss is lower; theta itself if there is none."""
    g = gradient(theta)
    eta = first_try(theta, g, gradient, sparsity, False)
    for _ in range(MOST_HALVINGS + 1 if eta > 0.0 else 0):
        move = sparsity.project(theta - eta * g) - theta
        fall, rise = float(move.ravel() @ g.ravel()), curvature(move, gradient)
        if -(fall + 0.5 * rise) > ROUNDING * (abs(fall) + rise):
            return theta + move
        eta *= 0.5
    return theta


def first_try(theta: Floats, g: Floats, gradient: Gradient, sparsity: Sparsity, at_rest: bool) -> float:
    """The step that minimises the loss along the gradient, restricted to where theta may move; zero if nothing pulls.

    If theta rests there, it is |theta|^2 / (theta' G theta). It stays below 2 / L on the support, L bounded by the
    largest row sum, so that the map theta - eta g does not amplify errors there.
    """
    direction = sparsity.restrict(g, theta)
    length, bend = squared(direction), curvature(direction, gradient)
    eta = length / bend if bend > 0.0 else 0.0
    if at_rest or (theta.any() and eta**2 * length <= RESTING**2 * squared(theta)):
        bend = curvature(theta, gradient)
        eta = squared(theta) / bend if bend > 0.0 else 0.0
    if eta > 0.0 and theta.any():
        eta = min(eta, STABLE / np.abs(moments(np.flatnonzero(theta), gradient, theta.shape)).sum(axis=1).max())
    return float(on_grid(eta)) if eta > 0.0 else 0.0


def least_squares(members: NDArray[np.intp], gradient: Gradient, size: int) -> Floats:
    """The minimiser of the loss over vectors that live on the members."""
    theta = np.zeros(size)
    theta[members] = np.linalg.solve(moments(members, gradient, theta.shape), -gradient(theta)[members])
    return theta


def independent(moved: Floats, theta: Floats, gradient: Gradient) -> NDArray[np.intp]:
    """The support of `moved` without features that the others determine: those of theta first, then ascending."""
    members = list(np.flatnonzero((moved != 0.0) & (theta != 0.0)))
    for j in np.flatnonzero((moved != 0.0) & (theta == 0.0)):
        G = moments(np.array([*members, j]), gradient, theta.shape)
        own = G[-1, -1] - G[-1, :-1] @ np.linalg.solve(G[:-1, :-1], G[:-1, -1])
        if own > OWN_SHARE * G[-1, -1]:
            members.append(j)
    return np.array(members, np.intp)


def perfect(theta: Floats, gradient: Gradient, summary: Any, centred: bool) -> bool:
    """Whether nothing but rounding is left of the response."""
    zero = np.zeros_like(theta)
    total = float(summary.loss(zero, None if centred else 0.0))
    return bool(total + 0.5 * float(theta @ (gradient(theta) + gradient(zero))) <= PERFECT * total)


def moments(members: NDArray[np.intp], gradient: Gradient, shape: tuple[int, ...]) -> Floats:
    """The rows and columns `members` of G, from gradients."""
    units = np.eye(int(np.prod(shape)))[members].reshape(-1, *shape)
    at_zero = gradient(np.zeros(shape))
    columns = [(gradient(unit) - at_zero).ravel()[members] for unit in units]
    return np.array(columns).reshape(len(members), len(members))


def curvature(v: Floats, gradient: Gradient) -> float:
    """V' G v."""
    return float(v.ravel() @ (gradient(v) - gradient(np.zeros_like(v))).ravel())


def on_grid(eta: float) -> float:
    """The largest number of the form (8, 9, ..., 15) 2^k that is not above eta: rounding must not decide a step."""
    mantissa, exponent = math.frexp(eta * (1.0 + ROUNDING))
    return math.ldexp(math.floor(mantissa * 16.0) / 16.0, exponent)


def squared(v: Floats) -> float:
    """|v|^2."""
    return float(v.ravel() @ v.ravel())
