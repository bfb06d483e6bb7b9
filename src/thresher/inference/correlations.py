"""Rows of the correlation matrix of a Gram, read when they are asked for: no d x d temporary."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]


class Correlations:
    """The moments of x in units in which every column has a mean square of one, row by row.

    Equivalent to rows of ``np.corrcoef(X.T)``; with ``centred=False`` means are not taken away. A constant
    column (an all-zero one, if not centred) has `scale` zero and correlation zero with every other. A row costs
    O(d) and, for rows still in the buffer, O(d) for each of those; it is kept, so asking again is free.
    """

    def __init__(self, summary: Gram, centred: bool) -> None:
        self._moments, self._weight = summary.moments(centred), summary.weight
        self.scale: Floats = np.sqrt(self._moments.squares / self._weight)
        self.varies: NDArray[np.bool_] = self.scale > 0.0
        self._inverse = 1.0 / np.where(self.varies, self.scale, np.inf)
        self._known: dict[int, Floats] = {}

    def rows(self, features: Iterable[int]) -> Floats:
        """The rows `features`, as a new array."""
        wanted = [int(i) for i in features]
        missing = sorted(set(wanted) - self._known.keys())
        if missing:
            self._known.update(zip(missing, self._read(np.array(missing)), strict=True))
        return np.array([self._known[i] for i in wanted]).reshape(len(wanted), len(self.scale))

    def _read(self, index: NDArray[np.intp]) -> Floats:
        result = np.array([self._moments.column(int(j)) for j in index]).reshape(len(index), len(self.scale))
        result *= (self._inverse[index] / self._weight)[:, None]
        result *= self._inverse
        result[np.arange(len(index)), index] = self.varies[index]
        return np.clip(result, -1.0, 1.0, out=result)
