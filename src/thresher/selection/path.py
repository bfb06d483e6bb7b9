"""A path: one candidate estimate for every size, all from one summary."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Floats = NDArray[np.float64]


@lru_cache(maxsize=8)
def log_choices(n: int, n_most: int) -> Floats:
    """Logarithm of the number of ways to choose 0, 1, ..., n_most of n."""
    k = np.arange(n_most + 1)
    result: Floats = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    result.setflags(write=False)  # all paths share it
    return result


@dataclass(frozen=True, eq=False)
class Path(ABC):
    """Candidates by size, and what an information criterion needs to know of them.

    Attributes
    ----------
    sizes : ndarray of int
        The sizes, ascending by one.
    loss : ndarray
        Half the mean squared residual of each candidate on the rows that the path comes from.
    freedom : ndarray
        Parameters that each candidate fits.
    log_models : ndarray
        Logarithm of the number of models of each size.
    weight : float
        Total weight of the rows.
    spread : float
        Half the variance of the response about its mean, intercept or not; zero where sizes count no features.
    """

    sizes: NDArray[np.intp]
    loss: Floats
    freedom: Floats
    log_models: Floats
    weight: float
    spread: float = field(default=0.0, kw_only=True)

    @abstractmethod
    def coef(self, size: int) -> Floats:
        """The candidate of this size."""

    @property
    def null(self) -> float:
        """The loss of the empty model, beside which a loss may be nothing but rounding."""
        return float(self.loss[0])


class Family(ABC):
    """A kind of model with a size: what selection needs to know to choose among its members."""

    #: Whether an estimate is small enough to be remembered at every milestone.
    memorable: ClassVar[bool] = True

    @abstractmethod
    def path(self, summary: Any, n_most: int | None = None) -> Path:
        """Candidates of all sizes worth considering; of sizes up to `n_most`, if given."""

    @abstractmethod
    def largest(self, summary: Any) -> int:
        """The largest size that there is."""

    def candidate(self, summary: Any, size: int) -> Floats | None:
        """An estimate of this size to compare with, if one comes cheaply."""
        return None

    @abstractmethod
    def new_rounds(self, summary: Any, size: int) -> Any:
        """Rounds at a size."""

    @abstractmethod
    def loss(self, summary: Any, coef: Floats) -> float:
        """Half the mean squared residual of an estimate."""

    def start(self, rounds: Any, path: Path, size: int, changed: bool) -> None:
        """Let rounds go on from a candidate, if their size has `changed` or they have not come as far."""
        loss = float(path.loss[np.searchsorted(path.sizes, size)])
        if changed or loss < self.loss(rounds.summary, rounds.coef) * (1.0 - 1e-12):
            rounds.start_from(path.coef(size))

    @abstractmethod
    def fallback(self) -> Any:
        """The criterion that chooses while there is nothing to hold out."""

    @abstractmethod
    def part(self, path: Path, summary: Any) -> Any:
        """What of a summary the losses of all candidates depend on, as a summary of its own."""

    @abstractmethod
    def loss_of_part(self, path: Path, part: Any) -> Floats:
        """Half the mean squared error of every candidate on the rows of such a part."""

    def loss_elsewhere(self, path: Path, summary: Any) -> Floats:
        """Half the mean squared error of every candidate on the rows of another summary."""
        return self.loss_of_part(path, self.part(path, summary))
