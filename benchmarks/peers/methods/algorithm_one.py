"""The paper's Algorithm 1 in plain NumPy."""

import numpy as np
from learner import Learner, Method

from methods.gram_solvers import OnGram
from thresher import OnlineHardThresholding


def steps(products, response, n, coef, s, eta, n_steps=5):
    """A round: gradient steps, each followed by hard thresholding."""
    for _ in range(n_steps):
        support = np.flatnonzero(coef)
        moved = coef - eta * (coef[support] @ products[support] - response) / n
        kept = np.argpartition(-np.abs(moved), s - 1)[:s]
        coef = np.zeros_like(moved)
        coef[kept] = moved[kept]
    return coef


class AlgorithmOne(Learner):
    """Algorithm 1 line by line, with only the support's columns in the gradient.

    Rows are skipped through `OnlineHardThresholding`, which has the same iterates and is faster.
    """

    can_skip = True

    def __init__(self, d, s, eta, n_steps=5, n_warmup=100):
        self.s, self.eta, self.n_steps, self.n_warmup = min(s, d), eta, n_steps, n_warmup
        self.products, self.response, self.n = np.zeros((d, d)), np.zeros(d), 0
        self.coef = np.zeros(d)
        self.twin = OnlineHardThresholding(s, step_size=eta, n_steps=n_steps, n_warmup=n_warmup)

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
                self.coef = steps(self.products, self.response, self.n, self.coef, self.s, self.eta, self.n_steps)

    def catch_up(self, X, y):
        """Let the twin see rows that were learned line by line; returns how far apart the two are."""
        self.twin.partial_fit(X, y)
        return float(np.abs(self.twin.coef_ - self.coef).max())

    def state_bytes(self):
        return self.products.nbytes + self.response.nbytes + self.coef.nbytes


class OnStandardisedMoments(OnGram):
    """The same on the moments of real rows, centred and scaled over all rows so far, a round after every row."""

    def __init__(self, d, s, eta, n_warmup=100):
        def solve(products, response, square, n, start):
            return steps(products, response, n, start, min(s, d), eta) if n > n_warmup else start

        super().__init__(d, solve, real=True)

    def learn_block(self, X, y):
        self.learn(X, y)

    def state_bytes(self):
        return self.products.nbytes + 3 * self.response.nbytes


def make(d, real=False, **setting):
    return OnStandardisedMoments(d, **setting) if real else AlgorithmOne(d, **setting)


METHODS = [
    Method(
        "Algorithm 1, NumPy",
        make,
        {"s": (15, 20, 30, 50), "eta": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)},
        note="the paper: K = 5, t0 = 100",
        real_grid={"s": (10, 20, 50), "eta": (0.003, 0.01, 0.03, 0.1)},
    ),
]
