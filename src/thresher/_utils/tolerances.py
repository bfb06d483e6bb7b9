"""What counts as nothing beside rounding."""

import numpy as np

# A residual sum of squares below this share of that of no features is zero.
PERFECT = 1e-12
# A feature is collinear with others if it has less than this share of its variance of its own: co-moments are good to
# about 1e-15 of the scales in float64 and to 1e-6 in float32.
OWN_SHARE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}
# The smallest variance that can be inverted; a column below it counts as constant.
TINY = float(np.finfo(np.float64).tiny)
# Numbers that differ by less, relatively, are tied; the lowest index wins.
TIE = 1e-10
