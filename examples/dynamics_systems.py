"""Two chaotic systems with known equations, and noisy samples of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.integrate import solve_ivp

NOISES = (0.001, 0.01, 0.02, 0.05)


@dataclass(frozen=True)
class System:
    """A right-hand side, its terms, and how it is observed."""

    name: str
    names: list[str]
    rate: Callable  # (n_variables, ...) -> the same
    truth: list[dict[tuple[int, ...], float]]
    degree: int
    dt: float
    window: int  # samples
    duration: float
    centre: np.ndarray  # where trajectories begin, give or take `spread`
    spread: float


def lorenz():
    """The Lorenz system (1963): 7 terms."""

    def rate(u):
        x, y, z = u
        return np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    truth = [{(0,): -10.0, (1,): 10.0}, {(0,): 28.0, (1,): -1.0, (0, 2): -1.0}, {(2,): -8.0 / 3.0, (0, 1): 1.0}]
    return System("Lorenz", ["x", "y", "z"], rate, truth, 5, 0.002, 24, 600.0, np.array([0.0, 0.0, 25.0]), 10.0)


def lorenz96(n=10, forcing=8.0):
    """The model of Lorenz (1996), n places on a circle: 4 n terms, among them a constant in each equation."""
    behind, two_behind, ahead = (np.roll(np.arange(n), shift) for shift in (1, 2, -1))

    def rate(u):
        return (u[ahead] - u[two_behind]) * u[behind] - u + forcing

    def pair(i, j):
        return tuple(sorted((i % n, j % n)))

    truth = [{(): forcing, (i,): -1.0, pair(i + 1, i - 1): 1.0, pair(i - 2, i - 1): -1.0} for i in range(n)]
    names = [f"x{i}" for i in range(n)]
    return System("Lorenz-96", names, rate, truth, 2, 0.005, 20, 400.0, np.full(n, 2.0), 4.0)


def in_units(system, scale):
    """The same system, its variables `scale` times as large: a term of degree k has scale^(1 - k) its coefficient."""
    truth = [{term: value * scale ** (1 - len(term)) for term, value in true.items()} for true in system.truth]
    centre, spread = scale * system.centre, scale * system.spread

    def rate(u):
        return scale * system.rate(u / scale)

    name = f"{system.name}, {scale:g} times as large"
    return replace(system, name=name, rate=rate, truth=truth, centre=centre, spread=spread)


def trajectories(system, seeds, duration=None):
    """One trajectory for each seed, on the attractor from the start: (seeds, samples, variables).

    They are integrated together, which takes little longer than one alone.
    """
    n, shape = len(system.names), (len(system.names), len(seeds))
    starts = [np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, n) for seed in seeds]
    begin = system.centre[:, None] + system.spread * np.array(starts).T
    t = np.arange(0.0, duration or system.duration, system.dt)
    solution = solve_ivp(
        lambda _, u: system.rate(u.reshape(shape)).ravel(),
        (-5.0, t[-1] + system.dt),
        begin.ravel(),
        method="DOP853",
        t_eval=t,
        rtol=1e-8,
        atol=1e-8,
    )
    return solution.y.reshape(*shape, -1).transpose(1, 2, 0)


def observe(clean, noise, seed):
    """Every sample with normal noise of its own, `noise` times the standard deviation of each variable."""
    errors = np.random.default_rng([seed, 2]).standard_normal(clean.shape)
    return clean + noise * clean.std(axis=0) * errors
