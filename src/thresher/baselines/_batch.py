"""Rows that wait until there are enough of them."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Batch:
    """Room for a fixed number of rows."""

    def __init__(self, size: int, n_features: int) -> None:
        self._X, self._y = np.zeros((size, n_features)), np.zeros(size)
        self._n = 0

    @property
    def n_missing(self) -> int:
        """Rows that are still missing."""
        return len(self._y) - self._n

    def add(self, X: Floats, y: Floats) -> None:
        """Add rows; there must be room for them."""
        stop = self._n + len(y)
        self._X[self._n : stop], self._y[self._n : stop] = X, y
        self._n = stop

    def drop(self, n_rows: int) -> None:
        """Forget the rows that came last."""
        self._n -= n_rows

    @property
    def rows(self) -> tuple[Floats, Floats]:
        """The rows and their responses."""
        return self._X[: self._n], self._y[: self._n]
