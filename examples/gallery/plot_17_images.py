"""
One number from each image
==========================

Each sample is a 20 x 20 image and one measurement. The coefficients are an image too, of low rank. This is matrix
sensing, the second problem of the paper. ``LowRankRegressor`` runs its Algorithm 1.
"""

import matplotlib.pyplot as plt
import numpy as np

from thresher import LowRankRegressor

rng = np.random.default_rng(0)
shape = (20, 20)
truth = np.zeros(shape)
truth[4:16, 4:7] = 1.0
truth[4:7, 4:16] = 1.0
truth[13:16, 4:16] = 1.0  # a letter C: rank 2

model = LowRankRegressor(shape=shape, n_steps=3)
pictures = {}
for _ in range(8):
    X = rng.standard_normal((100, *shape))
    y = (X * truth).sum(axis=(1, 2)) + rng.standard_normal(100)
    model.partial_fit(X, y)
    pictures[model.n_samples_seen_] = (model.rank_, model.coef_.copy())

# %%

fig, axes = plt.subplots(1, 5, figsize=(9, 2.4), layout="constrained")
for ax, n in zip(axes, (100, 200, 400, 800), strict=False):
    r, coef = pictures[n]
    ax.imshow(coef, cmap="RdBu_r", vmin=-1.2, vmax=1.2)
    ax.set_title(f"{n} samples, rank {r}", fontsize=9)
axes[-1].imshow(truth, cmap="RdBu_r", vmin=-1.2, vmax=1.2)
axes[-1].set_title("true, rank 2", fontsize=9)
for ax in axes:
    ax.set_axis_off()
plt.show()
