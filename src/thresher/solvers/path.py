"""A path: one candidate estimate for every size, all from one summary."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from thresher._utils.arrays import Floats


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
    """

    sizes: NDArray[np.intp]
    loss: Floats
    freedom: Floats
    log_models: Floats
    weight: float

    @abstractmethod
    def coef(self, size: int) -> Floats:
        """The candidate of this size."""

    @property
    def null(self) -> float:
        """The loss of the empty model, beside which a loss may be nothing but rounding."""
        return float(self.loss[0])
