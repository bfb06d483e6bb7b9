"""Estimates of every size, as users see them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats


@dataclass(frozen=True, eq=False)
class Candidates:
    """The estimates of every size, features or ranks, from one summary.

    Attributes
    ----------
    sizes : ndarray of int
        The sizes, ascending by one: numbers of features from zero, or ranks from one.
    loss : ndarray
        What the estimator minimises, for each: half the mean squared residual over all samples so far.
    criterion : ndarray
        What decides between them.
    coef : sequence of ndarray
        The coefficients of each, shaped as those of the estimator.
    intercept : ndarray, optional
        The intercept of each model with few features.
    """

    sizes: NDArray[np.intp]
    loss: Floats
    criterion: Floats
    coef: Sequence[Floats] | Floats
    intercept: Floats | None = None

    def __repr__(self) -> str:
        best = int(self.sizes[np.argmin(self.criterion)])
        return f"Candidates(sizes={self.sizes[0]}..{self.sizes[-1]}, best={best})"
