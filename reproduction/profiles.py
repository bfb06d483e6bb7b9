"""How large the experiments are, and the designs and methods they share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction.cells import Method

STEPS = (1, 5, 10, 20)
# Labels of what every figure shows besides the paper's methods.
REFERENCES = ("default", "oracle")


@dataclass(frozen=True)
class Profile:
    """Sizes of the experiments.

    Parameters
    ----------
    name : str
    n_rounds, n_rounds_matrix_free : int
        T, and T of low rank without a batch.
    step_size : float
        eta.
    n_features, n_active : int
        d and s* of the sparse experiments.
    spectrum : tuple of float
        Leading eigenvalues of the ill-conditioned design.
    shape, rank : tuple of int, int
        Of the coefficient matrix.
    batches : tuple of int
        Batch sizes of the figure against them.
    n_points : int
        Points of a curve.
    vector_seeds, matrix_seeds : int
    """

    name: str
    n_rounds: int
    n_rounds_matrix_free: int
    step_size: float
    n_features: int
    n_active: int
    spectrum: tuple[float, ...]
    shape: tuple[int, int]
    rank: int
    batches: tuple[int, ...]
    n_points: int
    vector_seeds: int
    matrix_seeds: int

    @property
    def is_full(self) -> bool:
        """Whether sizes are the paper's, so that its numbers can be compared with ours."""
        return self.name == "full"

    def times(self, t0: int, n_rounds: int) -> tuple[int, ...]:
        """Row counts of a curve that begins after t0 rows: half of them evenly spaced, half of them geometrically."""
        even = np.linspace(0, n_rounds, self.n_points // 2 + 1)[1:]
        ratios = np.geomspace(1, n_rounds, self.n_points // 2)
        return tuple(int(t0 + t) for t in np.unique(np.r_[even, ratios].round().astype(int)))

    def sparse_design(self, **changes: Any) -> dict[str, Any]:
        """The weak signal with independent columns, or a variant of it."""
        weak = {"matrix": False, "n_features": self.n_features, "n_active": self.n_active, "signal": 0.2}
        return weak | changes

    def matrix_design(self, signal: float) -> dict[str, Any]:
        """Matrix sensing."""
        return {"matrix": True, "shape": self.shape, "rank": self.rank, "signal": signal}

    def oht(
        self, label: str, at: Sequence[int], t0: int, size: int, n_steps: int, step_size: float | None = None
    ) -> Method:
        """Algorithm 1."""
        return Method(label, "oht", tuple(at), t0, size, n_steps, self.step_size if step_size is None else step_size)

    def os_lasso(self, label: str, at: Sequence[int], t0: int, n_steps: int) -> Method:
        """The paper's baseline."""
        return Method(label, "os_lasso", tuple(at), t0, 0, n_steps, self.step_size)

    def references(self, at: Sequence[int], matrix: bool = False) -> tuple[Method, Method]:
        """The default of this package, and the oracle as soon as it has twice as many rows as unknowns."""
        (d1, d2), r = self.shape, self.rank
        n_unknown = r * (d1 + d2 - r) if matrix else self.n_active
        known = [t for t in at if t >= 2 * n_unknown]
        return Method("default", "default", tuple(at)), Method("oracle", "oracle", tuple(known))


EIGENVALUES = (500.0, 100.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0)

FULL = Profile(
    name="full",
    n_rounds=10_000,
    n_rounds_matrix_free=2000,
    step_size=0.001,
    n_features=1000,
    n_active=15,
    spectrum=EIGENVALUES,
    shape=(50, 50),
    rank=5,
    batches=tuple(range(20, 501, 20)),
    n_points=60,
    vector_seeds=10,
    matrix_seeds=5,
)

# A fifth of the rows with steps five times as long, so the effect of the start decays as much as in the full profile.
QUICK = Profile(
    name="quick",
    n_rounds=2000,
    n_rounds_matrix_free=1000,
    step_size=0.005,
    n_features=200,
    n_active=15,
    spectrum=(100.0, 50.0, *EIGENVALUES[2:]),
    shape=(16, 16),
    rank=3,
    batches=(20, 60, 100, 150, 200, 300, 400, 500),
    n_points=30,
    vector_seeds=3,
    matrix_seeds=2,
)
