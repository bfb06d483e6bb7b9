"""What the projections have in common: which of several sizes are the largest, and how concave keeping them is."""

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher._utils.tolerances import TIE

# The share of the largest magnitude that rounding may add to any.
ROUNDOFF = 1e-13


def tie_band(cut: float, largest: float) -> float:
    """How far from the cut a magnitude counts as tied with it."""
    return TIE * cut + ROUNDOFF * largest


def largest(size: Floats, n: int) -> NDArray[np.bool_]:
    """Which n entries of `size` are the largest; ties, as `tie_band` has them, go to the lowest index."""
    if len(size) <= n:
        return np.ones(len(size), np.bool_)
    cut = np.partition(size, len(size) - n)[len(size) - n]
    band = tie_band(cut, size.max())
    keep: NDArray[np.bool_] = size > cut + band
    tied = np.flatnonzero(~keep & (size >= cut - band))
    keep[tied[: n - np.count_nonzero(keep)]] = True
    return keep


def relative_concavity(kept: int, s_star: int, name: str) -> float:
    """sqrt(s*/s)/2: Lemmas (relative_concavity) and (relative_concavity_lowrank) of the paper."""
    if not 1 <= s_star <= kept:
        raise ValueError(f"s_star must be between 1 and {name} = {kept}, got {s_star!r}")
    return float(np.sqrt(s_star / kept) / 2.0)
