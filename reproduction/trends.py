"""Trends of lines: how fast they fall, whether they converge, which of two is lower."""

import numpy as np
from numpy.typing import NDArray

from reproduction.item import Claim, Line, Table, partly

Floats = NDArray[np.float64]

# "The slope is about -1": this far off at most.
SLOPE_TOLERANCE = 0.25
ABOUT_INVERSE = f"slope within {SLOPE_TOLERANCE} of -1"
AT_LEAST_INVERSE = f"slope below {-1.0 + SLOPE_TOLERANCE}"
# A number of a single draw may lie this factor outside the range of a few others.
NEARLY = 1.1
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


def table_within_seeds(table: Table) -> Claim:
    """Whether the numbers that the paper prints, which are of a single draw, look like one of our seeds."""
    inside, outside = 0, []
    for label, printed in table.printed.items():
        for column, number, errors in zip(table.columns, printed, table.rows[label], strict=True):
            low, high = float(errors.min()) / NEARLY, float(errors.max()) * NEARLY
            if low <= number <= high:
                inside += 1
            else:
                outside.append(f"{label.removeprefix('OHT ')}, {column}: {number:g} (ours {low:.3g} to {high:.3g})")
    n = inside + len(outside)
    return Claim(
        "The numbers that the paper prints lie within the range of our seeds.",
        partly(inside, n),
        f"{inside} of {n}." + (f" Outside: {'; '.join(outside)}." if outside else ""),
        f"in the range of the seeds, widened by a factor of {NEARLY}, in nine tenths of the table; a change in 2/3",
        "table",
    )
