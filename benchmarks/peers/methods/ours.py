"""thresher; like the others, it is told that drawn rows have no intercept."""

import pickle

from learner import Learner, Method

from thresher import Gram, OnlineHardThresholding, SparseRegressor

BLOCK = 100
# What the paper's figures have: s = 50, K = 5, eta = 0.001, t0 = 100.
PAPER = {"sparsity": 50, "n_steps": 5, "step_size": 0.001, "n_warmup": 100}


def whole(X):
    """Rows as the first argument of a call."""
    return (X,)


def unchanged(coef):
    return coef


class Ours(Learner):
    """An estimator, and how it takes rows (`feed`) and gives coefficients (`orient`)."""

    def __init__(self, model, feed=whole, orient=unchanged):
        self.model, self.feed, self.orient = model, feed, orient

    def estimate(self):
        self.coef, self.intercept = self.orient(self.model.coef_), getattr(self.model, "intercept_", 0.0)

    def state_bytes(self):
        return len(pickle.dumps(self.model, protocol=5))


class Streamed(Ours):
    """Fed by calls of `block` rows, and read after each call; the coefficients are the same for any block."""

    def __init__(self, model, block=BLOCK, **how):
        super().__init__(model, **how)
        self.block = block

    def learn(self, X, y):
        for start in range(0, len(y), self.block):
            self.model.partial_fit(*self.feed(X[start : start + self.block]), y[start : start + self.block])
            # SparseRegressor solves when it is read, so that reading belongs to the time of a current estimate.
            getattr(self.model, "coef_", None)

    def predict(self, X):
        return self.model.predict(X) if hasattr(self.model, "coef_") else 0.0 * X[:, 0]


class AtCheckpoints(Ours):
    """Rows go into a summary, and the estimator is fitted to it when asked."""

    def __init__(self, model, summary, **how):
        super().__init__(model, **how)
        self.summary = summary

    def learn(self, X, y):
        for start in range(0, len(y), BLOCK):
            self.summary.absorb(*self.feed(X[start : start + BLOCK]), y[start : start + BLOCK])

    def estimate(self):
        self.model.fit_summary(self.summary)
        super().estimate()

    def state_bytes(self):
        return len(pickle.dumps(self.summary, protocol=5))


def thresholding(real):
    """The paper's algorithm: with the settings of its figures, or on real rows with s chosen as its Section 6 says."""
    if real:
        return OnlineHardThresholding(fit_intercept=True, standardize=True)
    return OnlineHardThresholding(**PAPER)


def tuned(real, s, eta, n_steps):
    """Algorithm 1 at its best: its three numbers chosen as those of the baselines are."""
    scaled = {"fit_intercept": True, "standardize": True} if real else {}
    return OnlineHardThresholding(s, step_size=eta, n_steps=n_steps, n_warmup=100, **scaled)


# The step of the paper's figures, longer ones, and certified steps; K as in the paper.
STEPS = {"eta": (0.001, 0.01, 0.1, 0.3, "auto"), "n_steps": (1, 5, 20)}

METHODS = [
    Method(
        "thresher",
        lambda d, real=False: Streamed(SparseRegressor(fit_intercept=real)),
        estimates="block",
        note="SparseRegressor(), calls of 100 rows",
    ),
    Method(
        "thresher, row by row",
        lambda d, real=False: Streamed(SparseRegressor(fit_intercept=real), block=1),
        note="SparseRegressor(), a call per row, coefficients read after each",
    ),
    Method(
        "thresher, posterior mean",
        lambda d, real=False: AtCheckpoints(SparseRegressor(estimate="posterior_mean", fit_intercept=real), Gram(d)),
        estimates="checkpoint",
        note="SparseRegressor(estimate='posterior_mean'), fitted to a summary",
    ),
    Method(
        "thresher, cv",
        lambda d, real=False: Streamed(SparseRegressor(selection="cv", fit_intercept=real)),
        estimates="block",
        note="SparseRegressor(selection='cv'), calls of 100 rows",
    ),
    Method(
        "thresher, Algorithm 1",
        lambda d, real=False: Streamed(thresholding(real)),
        note="OnlineHardThresholding: s = 50, eta = 0.001, K = 5, t0 = 100; on real rows its defaults, standardised",
    ),
    Method(
        "thresher, Algorithm 1, tuned",
        lambda d, real=False, **setting: Streamed(tuned(real, **setting)),
        {"s": (15, 20, 30, 50), **STEPS},
        note="OnlineHardThresholding: s, eta and K from a grid, t0 = 100",
        real_grid={"s": (10, 20, 50), **STEPS},
        quick=True,
    ),
]
