"""Rows in, estimates out: the loop over a block of rows."""

from thresher._utils.compile import compiled
from thresher.online._factor import Factor, add_row
from thresher.online._gram import (
    N_BUFFERED,
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
from thresher.online._problem import PURSUIT, Problem
from thresher.online._sparse_round import run_round
from thresher.online._working_set import N_KEPT, SIZE, STALE, WorkingSet, follow_row
from thresher.online.progress import N_AT_ROUND, N_PENDING, N_ROUNDS

# From this many rows per round on, it is cheaper to build the working set again than to keep it up to date row by row.
LONG_ROUND = 64


@compiled
def best_intercept(moments: Floats, totals: Floats, coef: Floats, features: Integers, n_kept: int) -> float:
    """The intercept that minimises the loss for a coef that is zero outside the first n_kept features."""
    weight = totals[WEIGHT]
    if weight == 0.0:
        return 0.0
    total = totals[SHIFT_Y] + totals[SUM_Y] / weight
    for k in range(n_kept):
        j = features[k]
        total -= (moments[SHIFT_X, j] + moments[SUM_X, j] / weight) * coef[j]
    return float(total)


@compiled
def run_rows(
    gram: GramArrays,
    work: WorkingSet,
    factor: Factor,
    coef: Floats,
    intercept: Floats,
    X: Floats,
    y: Floats,
    w: Floats,
    steps: Floats,
    n_warmup: int,
    round_size: int,
    problem: Problem,
    numbers: Floats,
    tallies: Integers,
    progress: Integers,
) -> None:
    """Absorb rows that fit in the buffer, with a round after every `round_size` of them.

    `steps` has a row of K step sizes for each round that falls in this block, or one row for all.
    """
    _, buffer, buffer_y, buffer_root, moments, totals, counts = gram
    wide, slots, features, _, local, rows, status = work
    n_done = 0
    for i in range(X.shape[0]):
        absorb_row(buffer, buffer_y, buffer_root, moments, totals, counts, X, y, w, i)
        if not status[STALE]:
            newest = counts[N_BUFFERED] - 1
            follow_row(buffer, buffer_y, wide, slots, features, local, rows, status[SIZE], newest)
            if problem.rule == PURSUIT:
                add_row(gram, factor, w[i] if w.shape[0] else 1.0, problem.centred)
        if counts[N_SAMPLES] > n_warmup:
            progress[N_PENDING] += 1
            if progress[N_PENDING] >= round_size:
                which = min(n_done, steps.shape[0] - 1)
                run_round(gram, work, factor, coef, steps, which, problem, numbers, tallies)
                n_done += 1
                progress[N_ROUNDS] += 1
                progress[N_PENDING] = 0
                progress[N_AT_ROUND] = counts[N_SAMPLES]
                if problem.centred:
                    intercept[0] = best_intercept(moments, totals, coef, features, status[N_KEPT])
                if round_size >= LONG_ROUND:
                    status[STALE] = 1
        elif problem.centred and progress[N_ROUNDS] == 0:
            intercept[0] = best_intercept(moments, totals, coef, features, 0)  # the mean
