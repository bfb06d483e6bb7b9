"""Rows in, dense estimates out: the loop over a block of rows."""

from typing import Any

from thresher._utils.compile import compiled
from thresher.online._dense_round import run_round
from thresher.online._dense_state import STALE, DenseProblem, DenseState, follow_row, is_joined
from thresher.online._gram import (
    N_SAMPLES,
    SHIFT_X,
    SHIFT_Y,
    SUM_X,
    SUM_Y,
    WEIGHT,
    Floats,
    GramArrays,
    Integers,
    absorb_row,
)
from thresher.online.progress import N_AT_ROUND, N_PENDING, N_ROUNDS


@compiled
def fill_intercept(gram: GramArrays, state: DenseState, intercept: Floats) -> None:
    """The intercepts that minimise the loss: those for which residuals are zero on average."""
    weight, moments = gram.totals[WEIGHT], gram.moments
    if weight == 0.0:
        return
    for j in range(intercept.shape[0]):
        total = 0.0
        if not is_joined(state):
            total = gram.totals[SHIFT_Y] + gram.totals[SUM_Y] / weight
        for i in range(state.joined.shape[0]):
            total -= (moments[SHIFT_X, i] + moments[SUM_X, i] / weight) * state.joined[i, j]
        intercept[j] = total


@compiled
def run_rows(
    gram: GramArrays,
    blas: Any,
    state: DenseState,
    intercept: Floats,
    X: Floats,
    y: Floats,
    w: Floats,
    steps: Floats,
    n_warmup: int,
    round_size: int,
    problem: DenseProblem,
    progress: Integers,
) -> None:
    """Absorb rows that fit in the buffer, with a round after every `round_size` of them.

    `steps` has a row of K step sizes for each round that falls in this block, or one row for all.
    """
    _, buffer, buffer_y, buffer_root, moments, totals, counts = gram
    n_done = 0
    for i in range(X.shape[0]):
        absorb_row(buffer, buffer_y, buffer_root, moments, totals, counts, X, y, w, i)
        if not state.flags[STALE]:
            follow_row(gram, state)
        if counts[N_SAMPLES] > n_warmup:
            progress[N_PENDING] += 1
            if progress[N_PENDING] >= round_size:
                run_round(gram, blas, state, steps, min(n_done, steps.shape[0] - 1), problem)
                n_done += 1
                progress[N_ROUNDS] += 1
                progress[N_PENDING] = 0
                progress[N_AT_ROUND] = counts[N_SAMPLES]
                if problem.centred:
                    fill_intercept(gram, state, intercept)
        elif problem.centred and progress[N_ROUNDS] == 0:
            fill_intercept(gram, state, intercept)  # the mean
