"""
Columns that belong together
============================

A signal acts over several hours, so each of eight signals has six lags. All lags of a signal are kept, or none. With
``groups`` the model chooses among signals, not among 48 columns.
"""

import matplotlib.pyplot as plt
import numpy as np

from thresher import SparseRegressor

rng = np.random.default_rng(0)
n_signals, n_lags, n_hours = 8, 6, 600
signals = rng.standard_normal((n_hours + n_lags, n_signals))
X = np.hstack([signals[n_lags - lag : n_hours + n_lags - lag, [k]] for k in range(n_signals) for lag in range(n_lags)])
truth = np.zeros((n_signals, n_lags))
truth[2] = 0.5 * 0.7 ** np.arange(n_lags)
truth[5] = -0.4 * np.hanning(n_lags + 2)[1:-1]
y = X @ truth.ravel() + rng.standard_normal(n_hours)

labels = np.repeat([f"signal {k}" for k in range(n_signals)], n_lags)
grouped = SparseRegressor(groups=labels).fit(X, y)
single = SparseRegressor().fit(X, y)
print("kept:", *grouped.selected_groups_)

# %%

fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained", sharey=True)
for ax, (title, coef) in zip(
    axes, {"true": truth.ravel(), "groups": grouped.coef_, "single columns": single.coef_}.items(), strict=True
):
    ax.imshow(coef.reshape(n_signals, n_lags), cmap="RdBu_r", vmin=-0.5, vmax=0.5)
    ax.set(title=title, xlabel="lag (hours)")
axes[0].set_ylabel("signal")
plt.show()
