"""
Write your own selection criterion
==================================

A criterion says what a model of each size costs. Subclass ``Criterion`` and implement ``penalty``. Here is the risk
inflation criterion of Foster and George (1994), in which each parameter costs 2 log d.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from thresher import Ebic, SparseRegressor
from thresher.selection.criteria import Criterion


@dataclass(frozen=True)
class RiskInflation(Criterion):
    """Each parameter costs 2 log d."""

    name = "ric"

    def penalty(self, weight, freedom, log_models):
        return 2.0 * log_models[1] * freedom  # there are d models of one feature


rng = np.random.default_rng(0)
X = rng.standard_normal((300, 100))
y = X[:, 3] - X[:, 5] + 0.3 * X[:, 8] + rng.standard_normal(300)
models = {
    "RIC": SparseRegressor(selection=RiskInflation()),
    "extended BIC": SparseRegressor(selection="ebic"),
    "BIC": SparseRegressor(selection=Ebic(gamma=0.0)),
}

# %%
# ``penalty`` gets the total weight of the rows, the number of parameters of each size, and the logarithm of the number
# of models of each size. ``selection_`` keeps the criterion for every size.

fig, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for (name, model), colour in zip(models.items(), ("#2166ac", "#d6604d", "#9aa5b1"), strict=True):
    chosen = model.fit(X, y).selection_
    axes.plot(chosen.sizes, chosen.criterion - chosen.criterion.min(), "o-", color=colour, markersize=4, label=name)
    print(f"{name:13} keeps {model.support_}")
axes.set(xlabel="number of features", ylabel="criterion above its minimum")
axes.legend()
plt.show()
