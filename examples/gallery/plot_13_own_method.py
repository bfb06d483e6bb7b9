"""
Add a method to compare
=======================

``compare`` runs methods on the same rows and measures error, support, time and memory. A method is any estimator with
``partial_fit``, ``predict`` and ``coef_``. Here is the simplest one: least squares on the Gram, of which the s largest
coefficients are kept.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from thresher import OnlineHardThresholding, SparseRegressor
from thresher.baselines import OnlineLasso, compare
from thresher.io.sources.synthetic import SparseLinearStream


class LargestCoefficients(RegressorMixin, BaseEstimator):
    """Ridge regression on all rows so far, without the small coefficients."""

    def __init__(self, s=10, ridge=1.0):
        self.s = s
        self.ridge = ridge

    def partial_fit(self, X, y):
        if not hasattr(self, "gram_"):
            self.gram_, self.cross_ = self.ridge * np.eye(X.shape[1]), np.zeros(X.shape[1])
        self.gram_ += X.T @ X
        self.cross_ += X.T @ y
        coef = np.linalg.solve(self.gram_, self.cross_)
        coef[np.argsort(np.abs(coef))[: -self.s]] = 0.0
        self.coef_ = coef
        return self

    def predict(self, X):
        return X @ self.coef_


# %%
# Anything goes into the dictionary. The stream is called once for each seed.

found = compare(
    {
        "largest coefficients": LargestCoefficients(5),
        "Algorithm 1": OnlineHardThresholding(5),
        "SparseRegressor": SparseRegressor(),
        "lasso": OnlineLasso(),
    },
    partial(SparseLinearStream, n_features=100, n_active=5, signal=0.5, correlation=0.5),
    checkpoints=[100, 200, 500, 1000, 2000],
    seeds=range(3),
    n_jobs=1,
)
print(found)

# %%

found.plot("mse")
plt.show()
