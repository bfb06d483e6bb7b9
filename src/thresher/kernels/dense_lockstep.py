"""The two halves of a step of given size, for rounds that share the product between them."""

from typing import Any

import numpy as np

from thresher.kernels._compile import compiled
from thresher.kernels.dense_round import N_OVERFLOWS, accept, find_gradient, propose
from thresher.kernels.dense_state import STALE, DenseProblem, DenseState, fill_units, follow_row, measure_move
from thresher.kernels.gram import GramArrays


@compiled
def start_round(gram: GramArrays, state: DenseState, problem: DenseProblem) -> None:
    """Take note of the newest row."""
    if not state.flags[STALE]:
        follow_row(gram, state)
    fill_units(gram, state, problem)


@compiled
def start_step(gram: GramArrays, blas: Any, state: DenseState, eta: float, problem: DenseProblem) -> bool:
    """Propose a move, of which the product with the moments is wanted next. False if there is none."""
    find_gradient(gram, blas, state, problem)
    return propose(state, eta, problem)


@compiled
def finish_step(gram: GramArrays, state: DenseState, eta: float, problem: DenseProblem) -> None:
    """Take the move, given the product."""
    length, fall, rise = measure_move(gram, state, problem.centred)
    if not abs(fall) + rise < np.inf:
        state.tallies[N_OVERFLOWS] += 1
        return
    accept(state, eta, length, fall, rise, False, problem)


@compiled
def mirror(scatter: Any, scale: float, copy: Any) -> None:
    """Both triangles of the scatter matrix, of which the upper one is kept, times a scale; tile by tile."""
    d, tile = scatter.shape[0], 64
    for top in range(0, d, tile):
        for left in range(top, d, tile):
            for i in range(top, min(top + tile, d)):
                for j in range(max(left, i), min(left + tile, d)):
                    copy[i, j] = scatter[i, j] * scale
                    copy[j, i] = copy[i, j]
