"""
Many responses through few directions
=====================================

Forty sensors respond to thirty settings of a machine. Behind them are three causes. ``ReducedRankRegressor`` finds the
number of causes and predicts better than one regression for each sensor, above all while rows are few.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from thresher import ReducedRankRegressor

rng = np.random.default_rng(0)
p, q, rank = 30, 40, 3
truth = rng.standard_normal((p, rank)) @ rng.standard_normal((rank, q)) / 4


def rows(n):
    X = rng.standard_normal((n, p))
    return X, X @ truth + 2.0 * rng.standard_normal((n, q))


X_test, Y_test = rows(2000)
X, Y = rows(1000)
counts = [40, 60, 100, 200, 400, 1000]
model, errors, plain, ranks = ReducedRankRegressor(), [], [], []
for start, stop in zip([0, *counts], counts, strict=False):
    model.partial_fit(X[start:stop], Y[start:stop])
    ranks.append(model.rank_)
    errors.append(((model.predict(X_test) - X_test @ truth) ** 2).mean())
    least_squares = LinearRegression().fit(X[:stop], Y[:stop])
    plain.append(((least_squares.predict(X_test) - X_test @ truth) ** 2).mean())
print("ranks chosen:", dict(zip(counts, ranks, strict=True)))

# %%

fig, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
axes.loglog(counts, plain, "s-", color="#d6604d", label="one regression for each sensor")
axes.loglog(counts, errors, "o-", color="#2166ac", label="ReducedRankRegressor")
for count, error, r in zip(counts, errors, ranks, strict=True):
    axes.annotate(f"rank {r}", (count, error), xytext=(0, -14), textcoords="offset points", fontsize=8, ha="center")
axes.set(xlabel="rows", ylabel="squared error of the mean response")
axes.legend()
plt.show()
