"""Summaries in units that keep powers of the data from overflowing."""

import numpy as np
from numpy.typing import NDArray

from thresher.kernels.gram import CROSS, HIGH, N_BUFFERED, SHIFT_X, SHIFT_Y, SUM_X, SUM_XX, SUM_Y, SUM_YY
from thresher.kernels.problem import TINY
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]
Powers = NDArray[np.int32]

# Scales up to 2 to this power, or down to its inverse, are left alone: they are far from trouble.
ORDINARY = 20
LARGEST = float(np.finfo(np.float64).max)


class OrderOne:
    """A summary in which columns and response are of order one.

    Units are powers of two, which change no digit of any result. Within ordinary scales they are one, and the summary
    is not copied.

    Parameters
    ----------
    summary : Gram
        In the units of the data.
    scales : ndarray of shape (d,)
        What is of order one for each column.
    centred : bool
        Whether the scale of the response is about its mean.

    Attributes
    ----------
    summary : Gram
        In the new units.
    scales : ndarray of shape (d,)
        The scales in them, from a half to one unless they were ordinary before, or zero.
    """

    def __init__(self, summary: Gram, scales: Floats, centred: bool) -> None:
        # A column too small for its square to be told from zero counts as constant, and must go on to do so.
        powers: Powers = np.where(scales * scales >= TINY, np.frexp(scales)[1], 0)
        power_y = int(np.frexp(response_scale(summary, centred))[1])
        if max(np.abs(powers).max(), abs(power_y)) <= ORDINARY:
            powers, power_y = np.zeros_like(powers), 0
        else:
            summary = _rescaled(summary, -powers, -power_y)
        self.summary, self.scales = summary, np.ldexp(scales, -powers)
        self._powers, self._power_y = powers, power_y

    def coef(self, coef: Floats) -> Floats:
        """Coefficients of this summary in the units of the data; infinite if they overflow."""
        with np.errstate(over="ignore"):
            result: Floats = np.ldexp(coef, self._power_y - self._powers)
        return result

    def step(self, step_size: float) -> float:
        """A step on coefficients of the data, all columns having one unit, as one on those of this summary."""
        with np.errstate(over="ignore"):
            step = float(np.ldexp(step_size, 2 * int(self._powers[0])))
        return min(max(step, TINY), LARGEST)


def response_scale(summary: Gram, centred: bool) -> float:
    """Root mean square of the response, about its mean or about zero."""
    return float(np.sqrt(summary.response_variance(centred)))


def _rescaled(summary: Gram, x: Powers, y: int) -> Gram:
    """The summary of the same rows with 2^x times the columns and 2^y times the response."""
    result = summary.copy()
    arrays = result.arrays
    n = arrays.counts[N_BUFFERED]
    moments, totals = np.zeros(arrays.moments.shape, np.int32), np.zeros(arrays.totals.shape, np.int32)
    moments[SHIFT_X] = moments[SUM_X] = moments[HIGH:] = x
    moments[SUM_XX], moments[CROSS] = 2 * x, x + y
    totals[SHIFT_Y] = totals[SUM_Y] = y
    totals[SUM_YY] = 2 * y
    for array, power in (
        (arrays.scatter, x),
        (arrays.scatter, x[:, None]),
        (arrays.buffer[:n], x),
        (arrays.buffer_y[:n], y),
        (arrays.moments, moments),
        (arrays.totals, totals),
    ):
        np.ldexp(array, power, out=array)
    return result
