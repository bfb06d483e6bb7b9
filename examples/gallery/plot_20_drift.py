"""
A stream that changes
=====================

A plant has twenty sensors. After half of the rows, the effects of two of them turn around. Nobody tells the model.
`SparseRegressor` notices: once recent rows predict better than all rows, its coefficients follow recent rows.
:doc:`/changing` explains how.
"""

import matplotlib.pyplot as plt
import numpy as np

from thresher import SparseRegressor
from thresher.plotting import DriftDisplay, PrequentialDisplay

rng = np.random.default_rng(0)
n = 6000
X = rng.standard_normal((n, 20))
turn = np.where(np.arange(n) < 3000, 1.0, -1.0)
y = turn * (2.0 * X[:, 0] - X[:, 2]) + 0.8 * X[:, 3] + rng.standard_normal(n)

model = SparseRegressor()
equal = SparseRegressor(drift=None)  # all rows count equally
for start in range(0, n, 100):
    model.partial_fit(X[start : start + 100], y[start : start + 100])
    equal.partial_fit(X[start : start + 100], y[start : start + 100])

# %%
# The coefficients in use, beside those of all rows. The true ones are now -2, 1 and 0.8.

print("drift detected:", model.drift_detected_)
print("effective rows:", round(model.effective_rows_))
print("recent rows   :", model.coef_[[0, 2, 3]].round(2))
print("all rows      :", equal.coef_[[0, 2, 3]].round(2))

# %%
# When it changed. The first rows after the change are predicted badly. Then the model follows.

fig, (above, below) = plt.subplots(2, 1, figsize=(6.4, 7.6), layout="constrained")
DriftDisplay.from_estimator(model, ax=above)
PrequentialDisplay.from_estimator(model, ax=below)
plt.show()
