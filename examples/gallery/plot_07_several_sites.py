"""
A study at several hospitals
============================

Four hospitals may not share the rows of their patients. They may share sums. Each fills a ``Gram``, and the merged
summary gives the model of all patients, to rounding.
"""

from functools import reduce

import matplotlib.pyplot as plt
import numpy as np

from thresher import Gram, SparseRegressor

rng = np.random.default_rng(0)
d = 60
truth = np.zeros(d)
truth[[3, 17, 40]] = [0.5, -0.3, 0.25]


def patients(n):
    X = rng.standard_normal((n, d))
    return X, X @ truth + rng.standard_normal(n)


sites = {name: patients(n) for name, n in {"A": 150, "B": 300, "C": 80, "D": 500}.items()}

# %%
# At each hospital:

summaries = {name: Gram(d).absorb(X, y) for name, (X, y) in sites.items()}

# %%
# At the centre. A saved summary also contains a buffer of the last rows, at most 256. See :doc:`/guide/machines`.

together = SparseRegressor().fit_summary(reduce(Gram.merge, summaries.values()))
pooled = SparseRegressor().fit(
    np.vstack([X for X, _ in sites.values()]), np.concatenate([y for _, y in sites.values()])
)
print("merged: ", together.support_)
print("largest difference from pooled rows:", np.abs(together.coef_ - pooled.coef_).max())

# %%
# One hospital alone is much less sure.

alone = {name: SparseRegressor().fit_summary(summary) for name, summary in summaries.items()}
fig, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for place, (name, model) in enumerate({**alone, "all": together}.items()):
    found = model.confidence_intervals(features=[3, 17, 40])
    at = np.arange(3) + 0.14 * (place - 2)
    error = [found.estimate - found.lower, found.upper - found.estimate]
    colour = "#2166ac" if name == "all" else "#9aa5b1"
    axes.errorbar(at, found.estimate, error, fmt="o", color=colour, markersize=4)
    for j in range(3):
        axes.annotate(name, (at[j], found.upper[j]), ha="center", va="bottom", fontsize=8, color=colour)
axes.hlines(truth[[3, 17, 40]], np.arange(3) - 0.4, np.arange(3) + 0.4, color="#d6604d", label="true")
axes.set_xticks(range(3), ["x3", "x17", "x40"])
axes.set_ylabel("coefficient, 95 % interval")
axes.legend()
plt.show()
