"""Batch methods refitted on all rows at checkpoints: memory grows, and there is no estimate in between."""

import warnings

import numpy as np
from learner import Learner, Method
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV


class Refit(Learner):
    """All rows so far, and a fit when asked."""

    def __init__(self, d, fit):
        self.d, self.fit, self.rows, self.responses = d, fit, [], []

    def learn(self, X, y):
        self.rows.append(X.copy())
        self.responses.append(y.copy())

    def estimate(self):
        self.rows, self.responses = [np.concatenate(self.rows)], [np.concatenate(self.responses)]
        self.coef, self.intercept = self.fit(self.rows[0], self.responses[0])

    def state_bytes(self):
        return sum(rows.nbytes for rows in self.rows) + sum(values.nbytes for values in self.responses)


def lasso(real, eps):
    def fit(X, y):
        scales = X.std(axis=0) if real else np.ones(X.shape[1])
        scales[scales == 0.0] = 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LassoCV(eps=eps, cv=5, precompute=True, fit_intercept=real).fit(X / scales, y)
        return model.coef_ / scales, model.intercept_

    return fit


def splicing(real, sizes, criterion):
    def fit(X, y):
        from abess import LinearRegression

        varies = np.flatnonzero(X.max(axis=0) > X.min(axis=0))  # it refuses constant columns
        limit = min(len(varies), len(y) // 2)
        support_size = [s for s in sizes if s <= limit] or [limit]
        model = LinearRegression(support_size=support_size, ic_type=criterion, fit_intercept=real)
        model.fit(X[:, varies], y)
        coef = np.zeros(X.shape[1])
        coef[varies] = model.coef_
        return coef, float(np.squeeze(model.intercept_))

    return fit


def scope(real, s):
    def fit(X, y):
        import jax.numpy as jnp
        from skscope import ScopeSolver

        means, mean = (X.mean(axis=0), y.mean()) if real else (np.zeros(X.shape[1]), 0.0)
        scales = X.std(axis=0) if real else np.ones(X.shape[1])
        scales[scales == 0.0] = 1.0
        rows, responses = jnp.array((X - means) / scales), jnp.array(y - mean)

        def loss(params):
            return jnp.mean((responses - rows @ params) ** 2)

        coef = np.array(ScopeSolver(X.shape[1], min(s, X.shape[1], len(y) // 2)).solve(loss, jit=True)) / scales
        return coef, mean - means @ coef

    return fit


SIZES = (5, 8, 10, 12, 15, 20, 30, 60)
REAL_SIZES = (5, 10, 20, 40)
METHODS = [
    Method(
        "LassoCV refit",
        lambda d, real=False, **k: Refit(d, lasso(real, **k)),
        {"eps": (0.02,)},  # the best penalty lies between 0.05 and 0.5 of the largest, and the grid is finer so
        "checkpoint",
        real_grid={"eps": (1e-3,)},
    ),
    Method(
        "abess refit, automatic",
        lambda d, real=False, **k: Refit(d, splicing(real, range(101), **k)),
        {"criterion": ("ebic", "gic", "bic")},
        "checkpoint",
        real_grid={"criterion": ("ebic", "gic", "bic")},
        note="sizes up to 100; its own limit would take it minutes",
    ),
    Method(
        "abess refit, fixed size",
        lambda d, real=False, s=15: Refit(d, splicing(real, [s], "ebic")),
        {"s": SIZES},
        "checkpoint",
        real_grid={"s": REAL_SIZES},
    ),
    Method(
        "skscope refit",
        lambda d, real=False, **k: Refit(d, scope(real, **k)),
        {"s": SIZES},
        "checkpoint",
        like="abess refit, fixed size",
    ),
]
