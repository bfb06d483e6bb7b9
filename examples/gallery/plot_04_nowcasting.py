"""
Nowcasting with a half-life
===========================

A number that is published once a month is estimated every week from forty indicators. What drives it changes: after
half of the weeks, one indicator loses its effect and another one takes over. A model in which all weeks count equally
mixes the two. With ``half_life=100`` a row counts half after a hundred weeks, so the model follows. The default
notices the change by itself and then follows, too. :doc:`/changing` explains the choice.
"""

import matplotlib.pyplot as plt
import numpy as np

from thresher import SparseRegressor

rng = np.random.default_rng(0)
n_weeks, n_indicators = 1200, 40
X = rng.standard_normal((n_weeks, n_indicators))
effects = np.zeros((n_weeks, n_indicators))
effects[:, 2] = 1.0
effects[:600, 5], effects[600:, 9] = 1.0, 1.0
y = (X * effects).sum(axis=1) + 0.7 * rng.standard_normal(n_weeks)

# %%
# Each week is predicted before it is learned.

models = {
    "all weeks equal": SparseRegressor(drift=None),
    "half_life=100": SparseRegressor(half_life=100),
    "default": SparseRegressor(),
}
errors = {name: np.zeros(n_weeks) for name in models}
coefficients = {name: np.zeros((n_weeks, 3)) for name in models}
for week in range(n_weeks):
    for name, model in models.items():
        if week:
            errors[name][week] = (y[week] - model.predict(X[[week]])[0]) ** 2
        model.partial_fit(X[[week]], y[[week]])
        coefficients[name][week] = model.coef_[[2, 5, 9]]
for name, values in errors.items():
    print(f"{name:16} mean squared error in the last 400 weeks: {values[-400:].mean():.2f}")

# %%

fig, axes = plt.subplots(2, 3, figsize=(10, 5), layout="constrained", sharex=True, sharey="row")
for (above, below), (name, values) in zip(axes.T, errors.items(), strict=True):
    for k, (indicator, colour) in enumerate({2: "#2166ac", 5: "#d6604d", 9: "#1b7837"}.items()):
        above.plot(coefficients[name][:, k], color=colour, label=f"indicator {indicator}")
    above.set_title(name)
    above.axvline(600, color="#9aa5b1", linestyle=":")
    below.plot(np.convolve(values, np.ones(50) / 50, mode="same")[25:-25], color="#1f2a36")
    below.set_xlabel("week")
axes[0, 0].set_ylabel("coefficient")
axes[1, 0].set_ylabel("squared error,\nmean of 50 weeks")
axes[0, 1].legend(fontsize=8)
plt.show()
