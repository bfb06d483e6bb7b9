"""scikit-learn's stochastic gradient descent with an L1 or elastic-net penalty."""

from learner import Learner, Method, standardised
from sklearn.linear_model import SGDRegressor

BLOCK = 100


class Sgd(Learner):
    """`SGDRegressor.partial_fit`: one step per row. Every call restarts its account of the L1 penalty."""

    def __init__(self, block, penalty, alpha, eta0, power_t):
        self.block = block
        self.model = SGDRegressor(
            penalty=penalty,
            l1_ratio=0.5,
            alpha=alpha,
            eta0=eta0,
            power_t=power_t,
            fit_intercept=False,
            shuffle=False,
        )

    def learn(self, X, y):
        for start in range(0, len(y), self.block):
            self.model.partial_fit(X[start : start + self.block], y[start : start + self.block])

    def estimate(self):
        self.coef = self.model.coef_

    def predict(self, X):
        return X @ self.model.coef_ if hasattr(self.model, "coef_") else 0.0 * X[:, 0]


def maker(block, penalty):
    def make(d, real=False, **setting):
        return standardised(Sgd(block, penalty, **setting), d, real, block)

    return make


REAL = {"alpha": (1e-4, 1e-3, 1e-2), "eta0": (0.0003, 0.001, 0.003, 0.01), "power_t": (0.0, 0.25)}
GRID = {"alpha": (0.003, 0.01, 0.03, 0.1), "eta0": (0.0003, 0.001, 0.003, 0.01), "power_t": (0.0, 0.25, 0.5)}
METHODS = [
    method
    for name, penalty in (("SGD l1", "l1"), ("SGD elastic net", "elasticnet"))
    for method in (
        Method(
            name,
            maker(BLOCK, penalty),
            GRID,
            real_grid=REAL,
            takes_steps=True,
            quick=True,
            note="scikit-learn, calls of 100 rows",
        ),
        Method(f"{name}, row by row", maker(1, penalty), GRID, like=name),
    )
]
