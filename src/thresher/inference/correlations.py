"""Rows of the correlation matrix of a Gram, read when they are asked for: no d x d temporary."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher.summaries.gram import Gram


class Correlations:
    """The moments of x in units in which every column has a mean square of one, row by row.

    Equivalent to rows of ``np.corrcoef(X.T)``; with ``centred=False`` means are not taken away. A constant
    column (an all-zero one, if not centred) has `scale` zero and correlation zero with every other. A row costs
    O(d) and, the first time, O(d) for each row still in the buffer.
    """

    def __init__(self, summary: Gram, centred: bool) -> None:
        self._moments, self._weight = summary.moments(centred), summary.weight
        self.scale: Floats = np.sqrt(self._moments.squares / self._weight)
        self.varies: NDArray[np.bool_] = self.scale > 0.0
        self._inverse = 1.0 / np.where(self.varies, self.scale, np.inf)

    def rows(self, features: Iterable[int]) -> Floats:
        """The rows `features`, as a new array."""
        index = np.fromiter(features, np.intp)
        result = np.array([self._moments.column(int(j)) for j in index]).reshape(len(index), len(self.scale))
        result *= (self._inverse[index] / self._weight)[:, None]
        result *= self._inverse
        result[np.arange(len(index)), index] = self.varies[index]
        return np.clip(result, -1.0, 1.0, out=result)
