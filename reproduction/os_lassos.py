"""OS_LASSO with several K after the same batch, whose lasso is fitted once."""

import copy

import numpy as np
from numpy.typing import NDArray

from thresher.baselines import OSLasso

Floats = NDArray[np.float64]


class OSLassos:
    """``OSLasso(t0, n_steps=K, step_size=eta)`` for several K on the same rows, to the last bit.

    They are one model until the batch is over. The cross-validated lasso takes longer than all the rest.

    Parameters
    ----------
    t0 : int
        Rows of the batch.
    step_size : float
        eta.
    """

    def __init__(self, t0: int, step_size: float) -> None:
        self._t0 = t0
        self._batch = OSLasso(t0, step_size=step_size)
        self._models: dict[int, OSLasso] = {}

    def add(self, n_steps: int) -> None:
        """Add one with K steps per round, before there are rows."""
        self._models[n_steps] = self._batch

    def partial_fit(self, X: Floats, y: Floats) -> None:
        """Feed rows to all."""
        n_left = self._t0 - getattr(self._batch, "n_samples_seen_", 0)
        if n_left > 0:
            self._batch.partial_fit(X[:n_left], y[:n_left])
            if n_left <= len(y):
                self._models = {K: copy.deepcopy(self._batch).set_params(n_steps=K) for K in self._models}
        if n_left < len(y):
            for model in self._models.values():
                model.partial_fit(X[max(n_left, 0) :], y[max(n_left, 0) :])

    def coef(self, n_steps: int) -> Floats:
        """The estimate of one of them."""
        return np.asarray(self._models[n_steps].coef_)
