"""
A customer asks to be forgotten
===============================

The model must become what it would be without the rows of one customer. Subtract the summary of those rows, and fit.
No other row is needed.
"""

import matplotlib.pyplot as plt
import numpy as np

from thresher import Gram, SparseRegressor

rng = np.random.default_rng(0)
n_customers, n_features = 50, 20
X = rng.standard_normal((n_customers, 40, n_features))
y = 2 * X[..., 3] - X[..., 8] + rng.standard_normal((n_customers, 40))
y[7] += 4 * X[7, :, 12]  # one customer is unlike the others

model = SparseRegressor()
for rows, responses in zip(X, y, strict=True):
    model.partial_fit(rows, responses)
model.finish()

# %%
# Subtract customer 7, and compare with a model that has never seen them.

forgotten = Gram(n_features).absorb(X[7], y[7])
without = SparseRegressor().fit_summary(model.summary_.subtract(forgotten))
others = np.arange(n_customers) != 7
never = SparseRegressor().fit(X[others].reshape(-1, n_features), y[others].ravel())
print("difference from a model that never saw them:", np.abs(without.coef_ - never.coef_).max())

# %%

fig, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
at = np.arange(n_features)
axes.bar(at - 0.2, model.coef_, 0.4, color="#9aa5b1", label="with customer 7")
axes.bar(at + 0.2, without.coef_, 0.4, color="#2166ac", label="after subtracting them")
axes.axhline(0, color="#1f2a36", linewidth=0.8)
axes.set(xlabel="feature", ylabel="coefficient", xticks=at)
axes.legend()
plt.show()
