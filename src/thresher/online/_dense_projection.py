"""Projections of a dense estimate, and the directions in which it can move."""

import numpy as np

from thresher._utils.compile import compiled
from thresher.online._certificate import nth_largest, tie_band
from thresher.online._dense_state import ROOT, WARM, DenseProblem, DenseState, weighted_square
from thresher.online._gram import Floats, Integers
from thresher.online._subspace import MAX_ITERATIONS, SLOW, decompose, follow, keep_tangent, multiply_out


@compiled
def choose_groups(norms: Floats, n_kept: int, chosen: Integers) -> None:
    """Mark the groups of largest norm; ties go to the first."""
    n = norms.shape[0]
    if n_kept >= n:
        chosen[:] = 1
        return
    cut = nth_largest(norms, n_kept)
    band = tie_band(cut, np.max(norms))
    room = n_kept
    for g in range(n):
        chosen[g] = norms[g] > cut + band
        room -= chosen[g]
    for g in range(n):
        if room > 0 and not chosen[g] and norms[g] >= cut - band:
            chosen[g] = 1
            room -= 1


@compiled
def fill_norms(state: DenseState, block: Floats) -> None:
    """Squared norms of the groups of a block, one row per feature."""
    state.norms[:] = 0.0
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            state.norms[state.groups[i]] += block[i, j] * block[i, j]


@compiled
def project(state: DenseState, problem: DenseProblem) -> bool:
    """Projected = the projection of the target. True if it took no full decomposition. The target must be finite."""
    target, projected = state.target, state.projected
    if not problem.by_rank:
        fill_norms(state, target)
        for g in range(state.norms.shape[0]):
            state.norms[g] = np.sqrt(state.norms[g])
        choose_groups(state.norms, problem.n_kept, state.chosen)
        for i in range(target.shape[0]):
            kept = state.chosen[state.groups[i]] == 1
            for j in range(target.shape[1]):
                projected[i, j] = target[i, j] if kept else 0.0
        return True
    if problem.n_kept >= min(target.shape[0], target.shape[1]):
        projected[:] = target
        return True
    cheap = state.flags[WARM] == 1 and follow(
        target, state.left, state.values, state.right, problem.n_kept, np.inf, MAX_ITERATIONS, SLOW
    )
    if not cheap:
        decompose(target, state.left, state.values, state.right)
        state.flags[WARM] = 1
    multiply_out(state.left, state.values, state.right, problem.n_kept, projected)
    return cheap


@compiled
def restrict(state: DenseState, problem: DenseProblem, block: Floats) -> None:
    """Leave of a block, in place, what is tangent to the set at the last projected point.

    For groups, that is what lies in the kept ones.
    """
    if not problem.by_rank:
        for i in range(block.shape[0]):
            if not state.chosen[state.groups[i]]:
                block[i] = 0.0
        return
    if problem.n_kept < min(state.target.shape):
        keep_tangent(state.left, state.right, problem.n_kept, block.reshape(state.target.shape))


@compiled
def size_of_estimate(state: DenseState) -> float:
    """|theta|^2 in the metric."""
    return weighted_square(state.joined, state.units[ROOT])
