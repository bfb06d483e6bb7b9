"""
Films that nobody has rated yet
===============================

300 people have each rated some of 120 films. Taste is explained by a few directions, so the matrix of ratings has a low
rank. ``MatrixCompleter`` predicts the ratings that are missing, while new ones arrive.
"""

import matplotlib.pyplot as plt
import numpy as np

from thresher import MatrixCompleter

rng = np.random.default_rng(0)
n_people, n_films, rank = 300, 120, 3
taste = rng.standard_normal((n_people, rank)) @ rng.standard_normal((rank, n_films)) / 2
quality = 3.2 + 0.5 * rng.standard_normal(n_films)
people, films = np.divmod(rng.permutation(n_people * n_films), n_films)
ratings = quality[films] + taste[people, films] + 0.4 * rng.standard_normal(len(people))

# %%
# The last 3000 ratings are kept for a test. The others arrive in batches.

test = slice(len(people) - 3000, None)
model = MatrixCompleter(shape=(n_people, n_films), offsets=True)
counts, errors, ranks = [], [], []
for start in range(0, 18_000, 2000):
    batch = slice(start, start + 2000)
    model.partial_fit(people[batch], films[batch], ratings[batch])
    counts.append(start + 2000)
    errors.append(np.sqrt(np.mean((model.predict(people[test], films[test]) - ratings[test]) ** 2)))
    ranks.append(model.rank_)
print("rank", model.rank_, "error", round(errors[-1], 2), "stars")

# %%

fig, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
axes.plot(counts, errors, "o-", color="#2166ac", label="MatrixCompleter")
axes.axhline(0.4, color="#9aa5b1", linestyle="--", label="noise of a rating")
axes.axhline(ratings[test].std(), color="#d6604d", linestyle=":", label="predicting the mean")
axes.set(xlabel="ratings seen", ylabel="error on unseen ratings (stars)", ylim=(0, None))
axes.legend()
for count, error, rank in zip(counts[::3], errors[::3], ranks[::3], strict=True):
    axes.annotate(f"rank {rank}", (count, error), xytext=(0, 8), textcoords="offset points", fontsize=8)
plt.show()
