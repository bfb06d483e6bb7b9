"""What an item of the paper is: what it runs, how it is drawn, and what the paper claims about it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.paper.cells import Cell, Method
from thresher.paper.running import Result

Floats = NDArray[np.float64]

STEPS = (1, 5, 10, 20)


@dataclass(frozen=True)
class Profile:
    """How large the experiments are.

    Parameters
    ----------
    name : str
    n_rounds : int
        T.
    n_features, n_active : int
        d and s* of the sparse experiments.
    shape, rank : tuple of int, int
        Of the coefficient matrix.
    vector_seeds, matrix_seeds : int
    """

    name: str
    n_rounds: int
    n_features: int
    n_active: int
    shape: tuple[int, int]
    rank: int
    vector_seeds: int
    matrix_seeds: int


FULL = Profile("full", 10_000, 1000, 15, (50, 50), 5, 10, 3)
QUICK = Profile("quick", 2000, 200, 15, (16, 16), 3, 3, 2)


@dataclass(frozen=True)
class Claim:
    """What the paper says, in our words, and whether our runs bear it out."""

    text: str
    verdict: str  # "holds", "does not hold", or "holds with a change", which the evidence states
    evidence: str


class Results:
    """Errors by cell, method and row count."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._errors: dict[tuple[str, str, int], list[float]] = {}
        for result in sorted(results, key=lambda r: r.seed):
            self._errors.setdefault((result.cell, result.method, result.t), []).append(result.mse)

    def errors(self, cell: str, method: str, t: int) -> Floats:
        """One per seed."""
        return np.array(self._errors[cell, method, t])

    def median(self, cell: str, method: str, t: int) -> float:
        """Over seeds."""
        return float(np.median(self.errors(cell, method, t)))

    def curve(self, cell: str, method: str, times: Sequence[int]) -> Floats:
        """Seeds by times."""
        return np.array([self.errors(cell, method, t) for t in times]).T


@dataclass(frozen=True)
class Item:
    """A figure or table of the paper.

    Parameters
    ----------
    name, title : str
    cells : callable
        Cells for a profile.
    draw : callable
        Draws results into a matplotlib figure.
    claims : callable
        Verdicts from results.
    choices : tuple of str
        What we decided where the paper is silent, or contradicts itself.
    printed : mapping
        Numbers that the paper prints, by (method, column).
    """

    name: str
    title: str
    cells: Callable[[Profile], list[Cell]]
    draw: Callable[[Results, Profile, Any], None]
    claims: Callable[[Results, Profile], list[Claim]]
    choices: tuple[str, ...] = ()
    printed: Mapping[tuple[str, str], float] = field(default_factory=dict, hash=False)
    size: tuple[float, float] = (9.0, 3.6)


def sparse_design(profile: Profile, **changes: Any) -> dict[str, Any]:
    """The paper's weak signal with independent columns, or a variant of it."""
    return {"matrix": False, "n_features": profile.n_features, "n_active": profile.n_active, "signal": 0.2, **changes}


def matrix_design(profile: Profile, signal: float) -> dict[str, Any]:
    """The paper's matrix sensing."""
    return {"matrix": True, "shape": profile.shape, "rank": profile.rank, "signal": signal}


def times(t0: int, n_rounds: int, n_points: int = 40) -> tuple[int, ...]:
    """Row counts evenly spaced on a logarithmic scale, from the first round to the last."""
    rounds = np.unique(np.geomspace(1, n_rounds, n_points).round().astype(int))
    return tuple(int(t0 + t) for t in rounds)


def oht(label: str, at: tuple[int, ...], t0: int, size: int, n_steps: int, step_size: float = 0.001) -> Method:
    """Algorithm 1."""
    return Method(label, "oht", at, t0, size, n_steps, step_size)


def os_lasso(label: str, at: tuple[int, ...], t0: int, n_steps: int) -> Method:
    """The paper's baseline, with its step size."""
    return Method(label, "os_lasso", at, t0, 0, n_steps, 0.001)


def beyond(at: tuple[int, ...], t0: int = 0) -> tuple[Method, ...]:
    """What this package does by default, and the oracle."""
    return Method("default", "default", at, t0), Method("oracle", "oracle", at)


def slope(t: Sequence[int], errors: Floats) -> float:
    """The exponent of a power law through medians over seeds, for the last nine tenths of the rows."""
    late = np.asarray(t) >= 0.1 * t[-1]
    return float(np.polyfit(np.log(np.asarray(t)[late]), np.log(np.median(errors, axis=0)[late]), 1)[0])


def verdict(condition: bool) -> str:
    """In words."""
    return "holds" if condition else "does not hold"
