"""What a sparse round solves, and its gradient in terms of the shifted sums.

The problem is min over s-sparse theta of (theta' G theta - 2 theta' h) / (2 weight), where G and h are the second
moments of the rows: about the mean with an intercept (`centred`), about zero without. With the shifted
sums of `summaries._shifted`, A = scatter and b = cross over all rows, its gradient is

    weight g_j = (A theta - b)_j + shift_j alpha + sum_x_j beta                                  (1)

with two numbers alpha, beta that depend on theta. With standardisation lengths are measured in the metric
of the column scales, sigma_j^2 = G_jj / weight.
"""

from typing import NamedTuple

from thresher._utils.compile import compiled
from thresher.online._gram import SHIFT_X, SHIFT_Y, SUM_X, SUM_XX, SUM_Y, WEIGHT, Floats

# How the estimate moves: the paper's step; the same, with least squares on the support after it; reciprocal
# thresholding, which shrinks what is kept by an amount that vanishes for the large ones.
HARD, PURSUIT, RECIPROCAL = 0, 1, 2


class Problem(NamedTuple):
    """What is being solved, and how carefully."""

    sparsity: int
    centred: bool
    standardized: bool
    bound_scale: float  # multiplies the certificate's bound: 1 is sound, infinity switches it off
    rule: int = 0  # how the estimate moves: HARD, PURSUIT or RECIPROCAL


@compiled
def variance(moments: Floats, totals: Floats, j: int, centred: bool) -> float:
    """G_jj / weight."""
    weight, sum_x, shift = totals[WEIGHT], moments[SUM_X, j], moments[SHIFT_X, j]
    if centred:
        total = moments[SUM_XX, j] - sum_x * (sum_x / weight)
    else:
        total = moments[SUM_XX, j] + (2.0 * sum_x + weight * shift) * shift
    return float(max(total / weight, 0.0))


@compiled
def tilt(totals: Floats, along_sum: float, along_shift: float, centred: bool) -> tuple[float, float]:
    """(alpha, beta) of (1) for a theta with sum_x . theta and shift . theta given."""
    weight, sum_y = totals[WEIGHT], totals[SUM_Y]
    if centred:
        return 0.0, -(along_sum - sum_y) / weight
    beta = along_shift - totals[SHIFT_Y]
    return along_sum - sum_y + weight * beta, beta


@compiled
def curvature(totals: Floats, quadratic: float, along_sum: float, along_shift: float, centred: bool) -> float:
    """V' G v / weight for a v with v' A v, sum_x . v and shift . v given."""
    weight = totals[WEIGHT]
    if centred:
        total = quadratic - along_sum * (along_sum / weight)
    else:
        total = quadratic + (2.0 * along_sum + weight * along_shift) * along_shift
    return float(max(total / weight, 0.0))
