r"""What the theory promises, in numbers: how large s and K must be, and how far off an estimate can be.

Statements are cited by their labels in the source of "Online Generalized Sparse Regression"; theorems and corollaries
are numbered in order of appearance. Vectors with s entries and matrices of rank s share every formula except the one
of ``descent_bound``; read Frobenius norms, and the spectral norm of the noise, for matrices.

===============  =======================================================================================
s, s_star        size the projection keeps, and size of the truth Theta* (nonzero entries, or rank)
eta, K           step size, and steps per round
alpha            least curvature: for squared loss, the least eigenvalue of the Gram / n over 2s-sparse
                 vectors, which (s, s)-sparse strong convexity amounts to (difference of two)
smoothness       L, the largest such eigenvalue; at level 3s, (2s, s), where no batch starts the stream
delta            contraction of the squared error per round, from ``contraction``
squared_error    squared distance to Theta* (in expectation) before the first round that is counted
sigma_x          root of a bound on E max_j (sum_i eps_i X_ij)^2 / n, Assumption (assumption:noise)
t, t0            rounds (an int or an array of them), and rows of the initial batch
===============  =======================================================================================
"""

from thresher.theory.contraction import (
    contraction,
    critical_steps,
    hard_thresholding_concavity,
    minimum_size,
    minimum_size_at_longest_step,
    minimum_steps,
    reciprocal_thresholding_concavity,
)
from thresher.theory.error_bounds import (
    best_subset_error_bound,
    burn_in,
    descent_bound,
    discounted_sum,
    loss_gap_bound,
    next_round_bound,
    offline_loss_gap_bound,
    online_error_bound,
    squared_error_from_loss_gap,
)
from thresher.theory.iht import (
    iht_error_bound,
    iht_recursion_bound,
    rip_constant,
)
from thresher.theory.no_batch import (
    no_batch_error_bound,
    no_batch_loss_bound,
    no_batch_online_bound,
)
from thresher.theory.noise import (
    noise_constant,
)

__all__ = [
    "best_subset_error_bound",
    "burn_in",
    "contraction",
    "critical_steps",
    "descent_bound",
    "discounted_sum",
    "hard_thresholding_concavity",
    "iht_error_bound",
    "iht_recursion_bound",
    "loss_gap_bound",
    "minimum_size",
    "minimum_size_at_longest_step",
    "minimum_steps",
    "next_round_bound",
    "no_batch_error_bound",
    "no_batch_loss_bound",
    "no_batch_online_bound",
    "noise_constant",
    "offline_loss_gap_bound",
    "online_error_bound",
    "reciprocal_thresholding_concavity",
    "rip_constant",
    "squared_error_from_loss_gap",
]
