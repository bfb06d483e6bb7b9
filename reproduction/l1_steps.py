"""A few steps per round on the penalised problem, as Section 2 of the paper considers and rejects them.

After every row, K steps towards min L_t(theta) + lambda_t |theta|_1 from the last iterate, and no more: subgradient
steps, or proximal ones (soft thresholding). lambda_t = 2 sigma sqrt(2 log(2 d) / n) is at least twice the largest entry
of the gradient at the truth with high probability, which is what keeps the exact solution in the cone C(3, S).
"""

import math

import numpy as np
from numpy.typing import NDArray

from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]


class L1Steps:
    """Rounds of subgradient or proximal steps on a Gram that somebody else fills, one row at a time.

    Parameters
    ----------
    gram : Gram
    update : {"subgradient", "proximal"}
    n_steps, step_size, n_warmup
        K, eta and t0.
    sigma : float
        Standard deviation of the noise, which is known here.
    """

    def __init__(
        self, gram: Gram, update: str, n_steps: int, step_size: float, n_warmup: int, sigma: float = 1.0
    ) -> None:
        self._gram, self._proximal = gram, update == "proximal"
        self._n_steps, self._step_size, self._n_warmup, self._sigma = n_steps, step_size, n_warmup, sigma
        self.coef = np.zeros(gram.n_features)

    def round(self) -> None:
        """K steps on the rows so far, if the batch is over."""
        n, d = self._gram.n_samples, self._gram.n_features
        if n <= self._n_warmup:
            return
        penalty = 2.0 * self._sigma * math.sqrt(2.0 * math.log(2.0 * d) / n)
        for _ in range(self._n_steps):
            gradient = self._gram.gradient(self.coef)
            if self._proximal:
                moved = self.coef - self._step_size * gradient
                self.coef = np.sign(moved) * np.maximum(np.abs(moved) - self._step_size * penalty, 0.0)
            else:
                self.coef = self.coef - self._step_size * (gradient + penalty * np.sign(self.coef))


def cone_ratio(coef: Floats, truth: Floats) -> float:
    """|(theta - theta*) outside S|_1 over that on S: at most 3 within the cone C(3, S)."""
    error, support = np.abs(coef - truth), truth != 0.0
    on = float(error[support].sum())
    return float(error[~support].sum()) / on if on > 0.0 else math.inf
