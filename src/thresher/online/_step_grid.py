"""How certified steps are chosen: the constants, and the coarse grid they live on."""

import math

from thresher._utils.compile import compiled

# A step that is rejected shrinks at least by this factor, so that the search ends.
SHRINK = 0.9
# A support that would move by less than this, relatively, rests: what pulls it is rounding, and the
# direction of rounding must not decide how far to look for better features.
RESTING = 1e-10
# Steps stay below this over the largest eigenvalue on the support. Below 2 the steps of a round are
# contractions there, so rounding errors do not grow.
STABLE = 1.9
# How far above the condition of the descent lemma a step may be: rounding, nothing more.
ROUNDING = 1e-9
# Where steps are made for the largest tangent curvature, it is estimated again when the data weigh this much more than
# the last time, by so many products.
GROWTH, N_POWER = 1.25, 12


@compiled
def on_grid(eta: float) -> float:
    """The largest number of the form (8, 9, ..., 15) 2^k that is not above eta.

    The minimiser of a quadratic along its gradient depends so sensitively on the point that steepest descent
    amplifies rounding errors without limit. With the step rounded down to three binary digits a
    trajectory is a product of the same linear maps whatever the rounding, and the loss still falls.
    """
    mantissa, exponent = math.frexp(eta * (1.0 + ROUNDING))
    return math.ldexp(math.floor(mantissa * 16.0) / 16.0, exponent)
