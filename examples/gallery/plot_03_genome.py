"""
Genetic variants with linkage
=============================

Each person has 0, 1 or 2 copies of each of 1000 variants. Neighbouring variants are inherited together, so they are
correlated. Eight of them change a trait. The posterior gives the probability that each variant matters. It needs the
cross-products only, not the genotypes.
"""

import matplotlib.pyplot as plt
import numpy as np

from thresher import Gram, posterior

rng = np.random.default_rng(1)
n_people, n_variants = 3000, 1000
causal = np.sort(rng.choice(n_variants, 8, replace=False))


def haplotypes(n):
    """Zeros and ones along the genome; a variant is like its neighbour with a correlation of about 0.8."""
    z = rng.standard_normal((n, n_variants))
    for j in range(1, n_variants):
        z[:, j] = 0.9 * z[:, j - 1] + np.sqrt(1 - 0.9**2) * z[:, j]
    return z > 0.4


genotypes = haplotypes(n_people).astype(float) + haplotypes(n_people)
effects = rng.choice([-1, 1], 8) * rng.uniform(0.2, 0.4, 8)
trait = genotypes[:, causal] @ effects + rng.standard_normal(n_people)

# %%
# The usual test of one variant at a time lights up everything near a causal variant. The posterior asks which variants
# are needed together.

summary = Gram(n_variants).absorb(genotypes, trait)
found = posterior(summary)
correlation = summary.cross_comoment() / n_people / np.sqrt(summary.variance() * summary.response_variance())
one_at_a_time = np.abs(correlation) * np.sqrt(n_people)

fig, (above, below) = plt.subplots(2, sharex=True, figsize=(7, 5), layout="constrained")
above.plot(one_at_a_time, ".", color="#9aa5b1", markersize=3)
above.set_ylabel("one at a time:\n|t| (about)")
below.vlines(np.arange(n_variants), 0, found.inclusion_probabilities, color="#2166ac")
below.plot(causal, np.full(8, 1.08), "v", color="#d6604d", markersize=5, label="causal")
below.set_ylabel("together:\nP(in model)")
below.set_xlabel("position on the genome")
below.legend(loc="center right")
plt.show()

# %%

likely = np.flatnonzero(found.inclusion_probabilities > 0.5)
print("causal:          ", causal)
print("probability > 0.5:", likely)
