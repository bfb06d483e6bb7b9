"""river's linear regression: plain gradient steps with an L1 penalty, and FTRL."""

import numpy as np
import pandas as pd
from learner import Learner, Method, standardised
from river import linear_model, optim

BLOCK = 100


class River(Learner):
    """`learn_one` on a dictionary per row, or `learn_many` on a frame of `block` rows (one step per block)."""

    def __init__(self, d, block, optimizer, l1):
        self.d, self.block = d, block
        self.model = linear_model.LinearRegression(optimizer=optimizer, l1=l1, intercept_lr=0.0)

    def learn(self, X, y):
        if self.block == 1:
            for row, response in zip(X.tolist(), y.tolist(), strict=True):
                self.model.learn_one(dict(enumerate(row)), response)
            return
        for start in range(0, len(y), self.block):
            rows = slice(start, start + self.block)
            self.model.learn_many(pd.DataFrame(X[rows]), pd.Series(y[rows]))

    def estimate(self):
        self.coef = np.zeros(self.d)
        for j, value in self.model.weights.items():
            self.coef[j] = value

    def predict(self, X):
        self.estimate()
        return X @ self.coef


def maker(block):
    def make(d, real=False, rate=None, l1=0.0, **ftrl):
        if rate is None:
            learner = River(d, block, optim.FTRLProximal(l1=l1, **ftrl), 0.0)
        else:
            learner = River(d, block, optim.SGD(rate / d), l1)
        return standardised(learner, d, real, block)

    return make


# Rates in units of one over the number of columns.
STEPS = {"rate": (0.1, 0.3, 1.0), "l1": (0.03, 0.1)}
MANY = {"rate": (1.0, 3.0, 10.0, 30.0, 100.0), "l1": (0.01, 0.03, 0.1)}
FTRL = {"alpha": (0.05, 0.1), "l1": (200.0, 300.0, 400.0)}
MANY_FTRL = {"alpha": (0.05, 0.1, 0.2, 0.5), "l1": (1.0, 3.0, 10.0, 30.0)}
REAL_STEPS = {"rate": (0.1, 0.3, 1.0), "l1": (1e-4, 1e-3, 1e-2)}
REAL_MANY = {"rate": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0), "l1": (1e-4, 1e-3, 1e-2)}
REAL_FTRL = {"alpha": (0.02, 0.05, 0.2), "l1": (1.0, 10.0, 100.0)}
METHODS = [
    Method("river l1, learn_one", maker(1), STEPS, slow=True, real_grid=REAL_STEPS),
    Method(
        "river l1, learn_many",
        maker(BLOCK),
        MANY,
        estimates="block",
        quick=True,
        note="frames of 100 rows",
        real_grid=REAL_MANY,
    ),
    Method("river FTRL, learn_one", maker(1), FTRL, slow=True, real_grid=REAL_FTRL),
    Method(
        "river FTRL, learn_many",
        maker(BLOCK),
        MANY_FTRL,
        estimates="block",
        quick=True,
        note="frames of 100 rows",
        real_grid=REAL_FTRL,
    ),
]
