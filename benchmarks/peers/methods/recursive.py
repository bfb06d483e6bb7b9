"""Recursive least squares, of which the s largest coefficients are kept."""

import numpy as np
from learner import Learner, Method, RunningScale
from scipy.linalg.blas import dger, dsymv


class RecursiveLeastSquares(Learner):
    """The inverse of X'X + ridge, updated by Sherman and Morrison's formula for every row.

    After any rows the estimate is the ridge solution, so that rows may be skipped by solving for it.
    """

    can_skip = True

    def __init__(self, d, s, ridge):
        self.s, self.ridge = min(s, d), ridge
        self.inverse, self.full = np.asfortranarray(np.eye(d) / ridge), np.zeros(d)
        self.coef = np.zeros(d)

    def skip(self, X, y):
        products = np.linalg.inv(self.inverse)
        response = products @ self.full + X.T @ y
        self.inverse = np.asfortranarray(np.linalg.inv(products + X.T @ X))
        self.full = self.inverse @ response

    def learn(self, X, y):
        for x, response in zip(X, y, strict=True):
            gain = dsymv(1.0, self.inverse, x)
            denominator = 1.0 + x @ gain
            self.full += gain * ((response - x @ self.full) / denominator)
            self.inverse = dger(-1.0 / denominator, gain, gain, a=self.inverse, overwrite_a=True)
            kept = np.argpartition(-np.abs(self.full), self.s - 1)[: self.s]
            self.coef = np.zeros_like(self.full)
            self.coef[kept] = self.full[kept]


class WithIntercept(Learner):
    """The same on rows as they are, with a column of ones; the s coefficients that matter most in units of the columns.

    The intercept makes up, at the means, for what is left out.
    """

    def __init__(self, d, s, ridge):
        self.s, self.inner, self.rows = min(s, d), RecursiveLeastSquares(d + 1, d + 1, ridge), RunningScale(d)

    def learn(self, X, y):
        self.rows.absorb(X)
        self.inner.learn(np.column_stack([X, np.ones(len(y))]), y)

    def estimate(self):
        full = self.inner.full[:-1]
        kept = np.argpartition(-np.abs(full) * self.rows.scales, self.s - 1)[: self.s]
        self.coef = np.zeros_like(full)
        self.coef[kept] = full[kept]
        self.intercept = self.inner.full[-1] + self.rows.means @ (full - self.coef)

    def predict(self, X):
        self.estimate()
        return super().predict(X)


def make(d, real=False, **setting):
    return WithIntercept(d, **setting) if real else RecursiveLeastSquares(d, **setting)


METHODS = [
    Method(
        "recursive least squares, top s",
        make,
        {"s": (5, 8, 10, 12, 15, 20, 30, 60), "ridge": (1.0, 100.0, 1000.0)},
        real_grid={"s": (10, 20, 40, 80, 10_000), "ridge": (0.01, 1.0, 100.0)},
    ),
]
