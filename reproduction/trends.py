"""Trends of lines: how fast they fall, whether they converge, which of two is lower."""

import numpy as np
from numpy.typing import NDArray

from reproduction.item import Line

Floats = NDArray[np.float64]

# "The slope is about -1": this far off at most.
SLOPE_TOLERANCE = 0.25
ABOUT_INVERSE = f"slope within {SLOPE_TOLERANCE} of -1"
AT_LEAST_INVERSE = f"slope below {-1.0 + SLOPE_TOLERANCE}"
CONVERGES = "the median error falls to a tenth or less, and at the end with a slope below -0.5"


def slope(line: Line) -> float:
    """The slope of the log median in log x, for the last two thirds of the x axis."""
    x = np.asarray(line.x, np.float64)
    late = x >= x[-1] / 3.0
    return float(np.polyfit(np.log(x[late]), np.log(line.medians[late]), 1)[0])


def is_inverse(line: Line) -> bool:
    """Whether errors fall about like 1/x."""
    return abs(slope(line) + 1.0) < SLOPE_TOLERANCE


def converges(line: Line) -> bool:
    """Whether the median error fell to a tenth, and at the end still falls with a slope below -0.5."""
    return bool(line.medians[-1] < 0.1 * line.medians[0]) and slope(line) < -0.5


def is_inverse_or_faster(line: Line) -> bool:
    """Whether errors fall at least about like 1/x."""
    return slope(line) < -1.0 + SLOPE_TOLERANCE


def ratio(line: Line, other: Line) -> Floats:
    """The ratio of the errors of two lines, point by point: the median over seeds, which are paired."""
    return np.asarray(np.median(line.errors / other.errors, axis=0))


def listed(values: dict[int, float], symbol: str = "K") -> str:
    """Numbers by setting, in words."""
    return ", ".join(f"{value:.3g} ({symbol} = {key})" for key, value in values.items())
