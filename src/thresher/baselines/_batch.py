"""Rows that wait until there are enough of them."""

from collections.abc import Callable

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.checks import LARGEST
from thresher.io.schema import Array, Count, Schema

LIMIT = LARGEST[np.dtype(np.float64)]


class Batch:
    """Room for a fixed number of rows."""

    _schema = Schema(
        _X=Array("size", "d", least=-LIMIT, most=LIMIT),
        _y=Array("size", least=-LIMIT, most=LIMIT),
        _n=Count(below="size"),
    )

    def __init__(self, size: int, n_features: int) -> None:
        self._X, self._y = np.zeros((size, n_features)), np.zeros(size)
        self._n = 0

    @property
    def n_missing(self) -> int:
        """Rows that are still missing."""
        return len(self._y) - self._n

    def add(self, X: Floats, y: Floats, learn: Callable[[Floats, Floats], None]) -> bool:
        """Add rows, for which there must be room. A batch that is full is learned from and emptied; whether it was."""
        stop = self._n + len(y)
        self._X[self._n : stop], self._y[self._n : stop] = X, y
        if stop < len(self._y):
            self._n = stop
            return False
        learn(self._X, self._y)  # if it fails, these rows do not count
        self._n = 0
        return True
