"""Algorithm 1 of the paper, line by line, for any summary and any sparsity: the readable truth.

Every fast path in this package is tested to give the iterates of this file. O(d^2) per step, no caching.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from thresher.kernels.step_grid import RESTING, ROUNDING, SHRINK, STABLE, on_grid

Floats = NDArray[np.float64]


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
) -> Floats:
    """K steps of theta <- P(theta - eta g(theta)), Algorithm 1 lines 4 to 6, with eta from `steps`.

    A step of zero asks for the certified one. With `centred`, the intercept is the best one for theta (None) at
    every step. With `standardized`, the step is taken in units of each column's scale sigma: theta, seen as
    sigma * theta, has gradient g / sigma. Theta may have one column per response; all share the scale of a feature.
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
    for eta in steps:
        if eta > 0.0:
            scaled = sparsity.project(scaled - eta * gradient(scaled))  # paper, eq. (OHT)
        else:
            scaled, ceiling = certified_step(scaled, gradient, sparsity, ceiling)
    return inverse * scaled


def certified_step(
    theta: Floats, gradient: Callable[[Floats], Floats], sparsity: Sparsity, ceiling: float
) -> tuple[Floats, float]:
    """A step after which the loss is not higher, and the largest step worth trying next.

    The first try minimises the loss along the gradient, restricted to where theta may move; if theta rests
    there, it is |theta|^2 / (theta' G theta). It stays below 2 / L on the support, L bounded by the largest row
    sum, so that the map theta - eta g does not amplify errors there. A step is accepted if
    eta <= |move|^2 / (move' G move): then L(theta + move) - L(theta) <= -|move|^2 / (2 eta) + move' G move / 2 <= 0.
    """
    g = gradient(theta)
    at_zero = gradient(np.zeros_like(theta))

    def curvature(v: Floats) -> float:
        return float(v.ravel() @ (gradient(v) - at_zero).ravel())

    direction = sparsity.restrict(g, theta)
    length, bend = squared(direction), curvature(direction)
    eta = length / bend if bend > 0.0 else 0.0
    if theta.any() and eta**2 * length <= RESTING**2 * squared(theta):
        bend = curvature(theta)
        eta = squared(theta) / bend if bend > 0.0 else 0.0
    if eta == 0.0:
        return theta, ceiling
    if theta.any():
        support = theta.ravel() != 0.0
        units = np.eye(theta.size)[support].reshape(-1, *theta.shape)
        columns = np.array([(gradient(unit) - at_zero).ravel()[support] for unit in units])
        eta = min(eta, STABLE / np.abs(columns).sum(axis=1).max())
    eta, rejected = min(on_grid(eta), ceiling), False
    while True:
        move = sparsity.project(theta - eta * g) - theta
        length, bend = squared(move), curvature(move)
        if eta * bend <= length * (1.0 + ROUNDING):
            changed = not theta.any() or not np.array_equal(sparsity.restrict(move, theta), move)
            return theta + move, (np.inf if changed else eta if rejected else ceiling)
        eta, rejected = on_grid(min(SHRINK * eta, length / bend)), True


def squared(v: Floats) -> float:
    """|v|^2."""
    return float(v.ravel() @ v.ravel())
