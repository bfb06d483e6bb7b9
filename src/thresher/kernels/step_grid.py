"""Certified steps live on a coarse grid."""

import math

from thresher.kernels._compile import compiled

# How far above the condition of the descent lemma a step may be: rounding, nothing more.
ROUNDING = 1e-9


@compiled
def on_grid(eta: float) -> float:
    """The largest number of the form (8, 9, ..., 15) 2^k that is not above eta.

    The minimiser of a quadratic along its gradient depends so sensitively on the point that steepest descent
    amplifies rounding errors without limit. With the step rounded down to three binary digits a
    trajectory is a product of the same linear maps whatever the rounding, and the loss still falls.
    """
    mantissa, exponent = math.frexp(eta * (1.0 + ROUNDING))
    return math.ldexp(math.floor(mantissa * 16.0) / 16.0, exponent)
