"""Recursive least squares, of which the s largest coefficients are kept."""

import numpy as np
from learner import Learner, Method, standardised
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


def make(d, real=False, **setting):
    return standardised(RecursiveLeastSquares(d, **setting), d, real)


METHODS = [
    Method(
        "recursive least squares, top s",
        make,
        {"s": (5, 8, 10, 12, 15, 20, 30, 60), "ridge": (1.0, 100.0, 1000.0)},
        real_grid={"s": (10, 20, 40, 80, 10_000), "ridge": (1.0, 10.0, 100.0)},
    ),
]
