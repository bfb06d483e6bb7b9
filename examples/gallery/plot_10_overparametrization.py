"""
How does overparametrisation help?
==================================

The question of the paper's title. The truth has s* = 15 nonzero coefficients. Algorithm 1 keeps s of them. With short
steps and s = 15 it stays with wrong features, and a somewhat larger s finds the right ones. Each feature more than
needed adds noise. Certified steps (``step_size="auto"``) do best at s = s*.
"""

import matplotlib.pyplot as plt
import numpy as np

from thresher import OnlineHardThresholding
from thresher.io.sources.synthetic import SparseLinearStream

sizes = [15, 20, 30, 50, 100]
steps = {"eta = 0.001, as in the paper": 0.001, "eta = 0.1": 0.1, "certified steps": "auto"}
errors = {name: [] for name in steps}
for s in sizes:
    for name, step in steps.items():
        found = []
        for seed in (0, 1):
            stream = SparseLinearStream(n_features=500, n_active=15, signal=0.2, seed=seed)
            model = OnlineHardThresholding(s, n_steps=5, step_size=step, n_warmup=100).partial_fit(*stream.draw(2100))
            found.append(((model.coef_ - stream.coef) ** 2).sum())
        errors[name].append(np.mean(found))

# %%

fig, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, values), marker, colour in zip(errors.items(), "os^", ("#2166ac", "#d6604d", "#1b7837"), strict=True):
    axes.plot(sizes, values, marker=marker, color=colour, label=name)
axes.axvline(15, color="#9aa5b1", linestyle=":", label="s*")
axes.set(xlabel="projection size s", ylabel="squared error after 2000 rounds", ylim=(0, None))
axes.legend()
plt.show()
