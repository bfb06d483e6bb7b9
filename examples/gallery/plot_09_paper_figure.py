"""
A figure of the paper
=====================

The setting of the paper's first experiments: 15 of 1000 coefficients are nonzero, with standard deviation 0.2. The
initial batch has 100 rows, and the step is 0.001. Algorithm 1 takes K steps after every row. More steps help at first.
Here are one seed and 2000 rows; ``make reproduce`` runs the real thing: :doc:`/reproducing`.
"""

import matplotlib.pyplot as plt

from thresher import OnlineHardThresholding, SparseRegressor
from thresher.io.sources.synthetic import SparseLinearStream

models = {
    f"Algorithm 1, K = {K}": OnlineHardThresholding(50, n_steps=K, step_size=0.001, n_warmup=100) for K in (1, 5, 20)
}
models["SparseRegressor()"] = SparseRegressor()
stream = SparseLinearStream(n_features=1000, n_active=15, signal=0.2, seed=0)
errors = {name: [] for name in models}
counts = []
for X, y in stream.blocks(2100, block=100):
    counts.append(len(X) + (counts[-1] if counts else 0))
    for name, model in models.items():
        errors[name].append(((model.partial_fit(X, y).coef_ - stream.coef) ** 2).sum())

# %%

fig, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
for (name, values), colour in zip(errors.items(), ("#9aa5b1", "#2166ac", "#762a83", "#d6604d"), strict=True):
    axes.semilogy(counts[1:], values[1:], color=colour, label=name, linestyle="--" if name.startswith("S") else "-")
axes.set(xlabel="rows", ylabel="squared error of the coefficients")
axes.legend()
plt.show()

# %%
# ``SparseRegressor`` is not the algorithm of the paper. It solves the same problem directly, and chooses the size.
