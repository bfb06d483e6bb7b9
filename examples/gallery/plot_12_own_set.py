"""
Your own sparsity set
=====================

The paper's algorithm works for any set with a projection. Here the coefficients belong to places along a line and
must be nonnegative, in one interval. ``ConstrainedRegressor`` needs a class with ``project``.
:doc:`/projections` has more.
"""

import matplotlib.pyplot as plt
import numpy as np

from thresher import ConstrainedRegressor, SparseRegressor


class OneInterval:
    """Vectors that are nonnegative, and zero outside an interval of at most s places."""

    def __init__(self, s):
        self.s = s

    def project(self, theta):
        positive = np.maximum(theta, 0.0)
        energy = np.convolve(positive**2, np.ones(self.s), mode="valid")  # what each interval would keep
        start = int(np.argmax(energy))
        result = np.zeros_like(theta)
        result[start : start + self.s] = positive[start : start + self.s]
        return result


rng = np.random.default_rng(0)
truth = np.zeros(80)
truth[30:42] = np.hanning(14)[1:-1]
X = rng.standard_normal((150, 80))
y = X @ truth + 2.0 * rng.standard_normal(150)

inside = ConstrainedRegressor(OneInterval(12)).fit(X, y)
free = SparseRegressor(12).fit(X, y)
for name, model in {"one interval": inside, "any 12 features": free}.items():
    print(f"{name:16} squared error {((model.coef_ - truth) ** 2).sum():.2f}")

# %%

fig, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
axes.fill_between(np.arange(80), truth, color="#9aa5b1", alpha=0.5, label="true", step="mid")
axes.step(np.arange(80), inside.coef_, color="#2166ac", where="mid", label="one interval, nonnegative")
axes.plot(free.support_, free.coef_[free.support_], "x", color="#d6604d", label="any 12 features")
axes.set(xlabel="place", ylabel="coefficient")
axes.legend()
plt.show()
