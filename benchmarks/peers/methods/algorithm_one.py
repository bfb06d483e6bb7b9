"""The paper's Algorithm 1 in plain NumPy."""

import numpy as np
from learner import Learner, Method, standardised

from thresher import SparseRegressor


class AlgorithmOne(Learner):
    """Algorithm 1 line by line, with only the support's columns in the gradient.

    Rows are skipped through `SparseRegressor`, whose iterates with these settings are Algorithm 1's.
    """

    can_skip = True

    def __init__(self, d, s, eta, n_steps=5, n_warmup=100):
        self.s, self.eta, self.n_steps, self.n_warmup = min(s, d), eta, n_steps, n_warmup
        self.products, self.response, self.n = np.zeros((d, d)), np.zeros(d), 0
        self.coef = np.zeros(d)
        self.twin = SparseRegressor(
            s, step_size=eta, n_steps=n_steps, n_warmup=n_warmup, fit_intercept=False, standardize=False
        )

    def skip(self, X, y):
        self.twin.partial_fit(X, y)
        self.products += X.T @ X
        self.response += X.T @ y
        self.n += len(y)
        self.coef = self.twin.coef_.copy()

    def learn(self, X, y):
        for x, response in zip(X, y, strict=True):
            self.products += np.outer(x, x)
            self.response += response * x
            self.n += 1
            if self.n > self.n_warmup:
                for _ in range(self.n_steps):
                    self.coef = self.step()

    def step(self):
        support = np.flatnonzero(self.coef)
        gradient = (self.coef[support] @ self.products[support] - self.response) / self.n
        moved = self.coef - self.eta * gradient
        kept = np.argpartition(-np.abs(moved), self.s - 1)[: self.s]
        result = np.zeros_like(moved)
        result[kept] = moved[kept]
        return result

    def catch_up(self, X, y):
        """Let the twin see rows that were learned line by line; returns how far apart the two are."""
        self.twin.partial_fit(X, y)
        return float(np.abs(self.twin.coef_ - self.coef).max())

    def state_bytes(self):
        return self.products.nbytes + self.response.nbytes + self.coef.nbytes


def make(d, real=False, **setting):
    return standardised(AlgorithmOne(d, **setting), d, real)


METHODS = [
    Method(
        "Algorithm 1, NumPy",
        make,
        {"s": (15, 20, 30, 50), "eta": (0.001, 0.003, 0.01, 0.03)},
        note="the paper: K = 5, t0 = 100",
        real_grid={"s": (10, 20, 50), "eta": (0.003, 0.01, 0.03)},
    ),
]
