"""
Few rows, many small effects
============================

With few rows, many models explain the data equally well. The default keeps a short list. If prediction is all you want,
``estimate="posterior_mean"`` averages over models; it is not sparse. Here are both beside ``LassoCV``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV

from thresher import SparseRegressor
from thresher.io.sources.synthetic import SparseLinearStream

counts = [50, 100, 200, 400]
methods = {
    "LassoCV": lambda: LassoCV(max_iter=10_000),
    "SparseRegressor()": lambda: SparseRegressor(),
    'estimate="posterior_mean"': lambda: SparseRegressor(estimate="posterior_mean"),
}
errors = {name: np.zeros(len(counts)) for name in methods}
kept = {name: np.zeros(len(counts)) for name in methods}
for seed in range(3):
    stream = SparseLinearStream(n_features=100, n_active=20, signal=0.3, seed=seed)
    X, y = stream.draw(counts[-1])
    for i, n in enumerate(counts):
        for name, make in methods.items():
            coef = make().fit(X[:n], y[:n]).coef_
            errors[name][i] += ((coef - stream.coef) ** 2).sum() / 3
            kept[name][i] += np.count_nonzero(coef) / 3

# %%

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for (name, values), marker, colour in zip(errors.items(), "s^o", ("#d6604d", "#2166ac", "#762a83"), strict=True):
    left.loglog(counts, values, marker=marker, color=colour, label=name)
    right.semilogx(counts, kept[name], marker=marker, color=colour)
left.set(xlabel="rows", ylabel="squared error of the coefficients")
right.set(xlabel="rows", ylabel="nonzero coefficients")
left.legend(fontsize=8)
for ax in (left, right):
    ax.set_xticks(counts, counts)
    ax.minorticks_off()
plt.show()
