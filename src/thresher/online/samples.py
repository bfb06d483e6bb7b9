"""Samples that were checked: what rounds absorb, cut as they need them."""

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from thresher._utils.arrays import Floats

Integers = NDArray[np.int64]


class Samples(Protocol):
    """Samples in their order."""

    def __len__(self) -> int: ...

    def cut(self, start: int, stop: int) -> Self:
        """Some of them."""


def _cut(array: Any, start: int, stop: int) -> Any:
    return None if array is None else array[start:stop]


@dataclass(frozen=True)
class Rows:
    """Rows of features with one response, or a row of responses, each."""

    X: Any  # dense or CSR
    y: Floats
    weights: Floats | None = None
    times: Any = None  # in seconds, once they were checked

    def __len__(self) -> int:
        return len(self.y)

    def dense(self) -> Floats:
        """The features as a dense array in float64."""
        return np.ascontiguousarray(self.X.toarray() if issparse(self.X) else self.X, np.float64)

    def cut(self, start: int, stop: int) -> "Rows":
        """Some of the rows."""
        if start == 0 and stop == len(self):
            return self
        return Rows(
            self.X[start:stop], self.y[start:stop], _cut(self.weights, start, stop), _cut(self.times, start, stop)
        )


@dataclass(frozen=True)
class Observations:
    """Observed entries of a matrix."""

    rows: Integers
    cols: Integers
    values: Floats
    weights: Floats | None = None

    def __len__(self) -> int:
        return len(self.values)

    def cut(self, start: int, stop: int) -> "Observations":
        """Some of the observations."""
        part = slice(start, stop)
        return Observations(self.rows[part], self.cols[part], self.values[part], _cut(self.weights, start, stop))
