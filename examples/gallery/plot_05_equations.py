"""
The equations of a system from its samples
==========================================

Samples of the Lorenz system, with noise. Which terms are in its equations? This is sparse identification of nonlinear
dynamics (SINDy). The candidates are all products of up to three variables. Each window of samples becomes one row:
integration by parts avoids derivatives of noisy samples. :doc:`/dynamics` compares this with PySINDy.
"""

from itertools import combinations_with_replacement

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

from thresher import Ebic, SparseRegressor


def lorenz(t, u):
    x, y, z = u
    return [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z]


dt, n = 0.002, 60_000
clean = solve_ivp(lorenz, (0, dt * n), [1, 1, 20], t_eval=dt * np.arange(n), rtol=1e-8).y.T
samples = clean + 0.01 * clean.std(axis=0) * np.random.default_rng(0).standard_normal(clean.shape)

# %%
# For a smooth bump that vanishes at both ends of a window, the integral of bump times dx/dt is minus that of its
# derivative times x. So the samples are averaged, not differentiated.

length = 30
s = np.linspace(-1, 1, length)
bump, slope = (1 - s**2) ** 2, -4 * s * (1 - s**2) * 2 / ((length - 1) * dt)
windows = samples.reshape(-1, length, 3)
terms = [term for k in (1, 2, 3) for term in combinations_with_replacement("xyz", k)]
column = dict(zip("xyz", np.moveaxis(windows, 2, 0), strict=True))
features = np.stack([np.prod([column[v] for v in term], axis=0) @ bump for term in terms], axis=1)

# %%
# One regression for each equation. No term should be one too many, so the criterion is strict.

for k, name in enumerate("xyz"):
    model = SparseRegressor(selection=Ebic(gamma=1.0)).fit(features, -windows[:, :, k] @ slope)
    found = [f"{model.coef_[j]:+.2f} {''.join(terms[j])}" for j in model.support_]
    print(f"d{name}/dt =", " ".join(found))

# %%

fig = plt.figure(figsize=(5, 4))
axes = fig.add_subplot(projection="3d")
axes.plot(*samples[:8000].T, linewidth=0.5, color="#2166ac")
axes.set(xlabel="x", ylabel="y", zlabel="z", title="samples with 1 % noise")
plt.show()
