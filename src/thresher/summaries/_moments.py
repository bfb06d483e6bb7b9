"""What can be read off the sums of a Gram: weights, means, variances and co-moments."""

import numpy as np
from numpy.typing import NDArray

from thresher._arrays import add_outer
from thresher.kernels import gram as kernel
from thresher.kernels.gram import (
    CROSS,
    N_BUFFERED,
    SHIFT_X,
    SHIFT_Y,
    SUM_X,
    SUM_XX,
    SUM_Y,
    WEIGHT,
    GramArrays,
)

Floats = NDArray[np.float64]


class Moments:
    """Numbers that follow from shifted, buffered sums, each computed when it is asked for."""

    _arrays: GramArrays

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(self._arrays.totals[WEIGHT])

    @property
    def mean_x(self) -> Floats:
        """Weighted mean of x; zero before the first row."""
        moments = self._arrays.moments
        mean: Floats = moments[SHIFT_X] + moments[SUM_X] / (self.weight or 1.0)
        return mean

    @property
    def mean_y(self) -> float:
        """Weighted mean of y; zero before the first row."""
        totals = self._arrays.totals
        return float(totals[SHIFT_Y] + totals[SUM_Y] / (self.weight or 1.0))

    @property
    def sum_squares_y(self) -> float:
        """Sum w y^2."""
        _, shift, sum_y, sum_yy = self._arrays.totals
        return float(sum_yy + (2.0 * sum_y + self.weight * shift) * shift)

    def variance(self, centred: bool = True) -> Floats:
        """Mean square of each column, about its mean or about zero; exactly zero for a constant column."""
        moments, weight = self._arrays.moments, self.weight or 1.0
        sum_x, shift = moments[SUM_X], moments[SHIFT_X]
        about = -sum_x * (sum_x / weight) if centred else (2.0 * sum_x + weight * shift) * shift
        result: Floats = np.maximum((moments[SUM_XX] + about) / weight, 0.0)
        return result

    def comoment(self) -> Floats:
        """Sum w (x - mean)(x - mean)', as a new d x d array."""
        sum_x = self._arrays.moments[SUM_X]
        return add_outer(self._shifted_scatter(), sum_x, -sum_x / (self.weight or 1.0))

    def second_moment(self) -> Floats:
        """Sum w x x', as a new d x d array."""
        sum_x, shift = self._arrays.moments[SUM_X], self._arrays.moments[SHIFT_X]
        half = sum_x + 0.5 * self.weight * shift
        return add_outer(add_outer(self._shifted_scatter(), shift, half), half, shift)

    def cross_comoment(self) -> Floats:
        """Sum w (x - mean_x)(y - mean_y)."""
        share = self._arrays.totals[SUM_Y] / (self.weight or 1.0)
        result: Floats = self._arrays.moments[CROSS] - share * self._arrays.moments[SUM_X]
        return result

    def cross_moment(self) -> Floats:
        """Sum w x y."""
        moments, totals = self._arrays.moments, self._arrays.totals
        sum_y = totals[SUM_Y] + self.weight * totals[SHIFT_Y]
        result: Floats = moments[CROSS] + moments[SUM_X] * totals[SHIFT_Y] + moments[SHIFT_X] * sum_y
        return result

    def _shifted_scatter(self) -> Floats:
        """Sum w z z' over all rows, z = x - shift, full and symmetric."""
        arrays, n = self._arrays, self._arrays.counts[N_BUFFERED]
        result = np.empty(2 * arrays.moments.shape[1:])
        kernel.symmetric_copy(arrays.scatter, result)
        result += arrays.buffer[:n].T @ arrays.buffer[:n]
        np.fill_diagonal(result, arrays.moments[SUM_XX])  # float64 whatever the storage
        return result
