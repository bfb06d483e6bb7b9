"""thresher with its defaults; like the others, it is told that drawn rows have no intercept."""

import pickle

from learner import Learner, Method

from thresher import Ebic, Gram, SparseRegressor

BLOCK = 100


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
    """Fed by calls of `block` rows; the coefficients are the same for any block."""

    def __init__(self, model, block=BLOCK, **how):
        super().__init__(model, **how)
        self.block = block

    def learn(self, X, y):
        for start in range(0, len(y), self.block):
            self.model.partial_fit(*self.feed(X[start : start + self.block]), y[start : start + self.block])

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


def default(real):
    return SparseRegressor(fit_intercept=real)


METHODS = [
    Method("thresher", lambda d, real=False: Streamed(default(real)), note="SparseRegressor(), calls of 100 rows"),
    Method(
        "thresher, row by row",
        lambda d, real=False: Streamed(default(real), block=1),
        note="SparseRegressor(), a call per row",
    ),
    Method(
        "thresher refit",
        lambda d, real=False: AtCheckpoints(default(real), Gram(d)),
        estimates="checkpoint",
        note="SparseRegressor().fit_summary(gram)",
    ),
    Method(
        "thresher, every feature",
        lambda d, real=False: Streamed(SparseRegressor(selection=Ebic(parsimony=0.0), fit_intercept=real)),
        real_only=True,
        note="SparseRegressor(selection=Ebic(parsimony=0.0))",
    ),
    Method(
        "thresher, all rows alike",
        lambda d, real=False: Streamed(SparseRegressor(follow_drift=False, fit_intercept=real)),
        real_only=True,
        note="SparseRegressor(follow_drift=False)",
    ),
    Method(
        "thresher, least squares",
        lambda d, real=False: Streamed(SparseRegressor(prudent=False, fit_intercept=real)),
        real_only=True,
        note="SparseRegressor(prudent=False)",
    ),
]
