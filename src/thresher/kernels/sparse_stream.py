"""Rows in, estimates out: the loop over a block of rows."""

from thresher.kernels._compile import compiled
from thresher.kernels.drift import LONG, Drift, follow_move, follow_residual, note_estimate
from thresher.kernels.factor import Factor, add_row
from thresher.kernels.gram import (
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
from thresher.kernels.problem import PURSUIT, Problem
from thresher.kernels.progress import N_AT_ROUND, N_PENDING, N_ROUNDS
from thresher.kernels.sparse_round import run_round
from thresher.kernels.working_set import N_KEPT, SIZE, STALE, WorkingSet, follow_row

# From this many rows per round on, it is cheaper to build the working set anew than to keep it up to date row by row.
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
def note_support(features: Integers, n_kept: int, n_rounds: int, held: Floats, held_total: Floats) -> None:
    """Remember which features a round kept: round t counts for t, so that recent rounds count for more."""
    held_total[0] += n_rounds
    for k in range(n_kept):
        held[features[k]] += n_rounds


@compiled
def list_nonzero(coef: Floats, listed: Integers) -> int:
    """List the places of nonzero coefficients, and count them."""
    n = 0
    for j in range(coef.shape[0]):
        if coef[j] != 0.0:
            listed[n] = j
            n += 1
    return n


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
    held: Floats,
    held_total: Floats,
    drift: Drift,
) -> None:
    """Absorb rows that fit in the buffer, with a round after every `round_size` of them.

    `steps` has a row of K step sizes for each round that falls in this block, or one row for all.
    """
    _, buffer, buffer_y, moments, totals, counts = gram
    wide, slots, features, _, local, rows, status = work
    follows = drift.delta.shape[0] > 0
    kept, n_kept, fitted = features, 0, 0.0
    n_done, n_nonzero = 0, -1  # the nonzero coefficients are not listed
    for i in range(X.shape[0]):
        if follows and progress[N_ROUNDS] > 0:
            kept, n_kept = features, status[N_KEPT]
            if status[STALE]:
                if n_nonzero < 0:
                    n_nonzero = list_nonzero(coef, drift.listed)
                kept, n_kept = drift.listed, n_nonzero
            else:
                n_nonzero = -1
            follow_residual(
                drift,
                moments,
                totals,
                counts[N_SAMPLES],
                coef,
                intercept[0],
                kept,
                n_kept,
                X,
                y,
                w,
                i,
                problem.centred,
            )
        absorb_row(buffer, buffer_y, moments, totals, counts, X, y, w, i)
        if not status[STALE]:
            newest = counts[N_BUFFERED] - 1
            follow_row(buffer, buffer_y, wide, slots, features, local, rows, status[SIZE], newest)
            if problem.rule == PURSUIT:
                add_row(gram, factor, w[i] if w.shape[0] else 1.0, problem.centred)
        if counts[N_SAMPLES] > n_warmup:
            progress[N_PENDING] += 1
            if progress[N_PENDING] >= round_size:
                which = min(n_done, steps.shape[0] - 1)
                moves = progress[N_PENDING] >= LONG and follows and drift.turns[0] > 0
                if moves:
                    fitted = intercept[0] + note_estimate(drift, moments, totals, coef, kept, n_kept)
                run_round(gram, work, factor, coef, steps, which, problem, numbers, tallies)
                n_done += 1
                progress[N_ROUNDS] += 1
                progress[N_PENDING] = 0
                progress[N_AT_ROUND] = counts[N_SAMPLES]
                note_support(features, status[N_KEPT], progress[N_ROUNDS], held, held_total)
                if problem.centred:
                    intercept[0] = best_intercept(moments, totals, coef, features, status[N_KEPT])
                if moves:
                    risen = totals[SHIFT_Y] + totals[SUM_Y] / totals[WEIGHT] - fitted
                    follow_move(drift, moments, totals, coef, risen, features, status[N_KEPT], problem.centred)
                if round_size >= LONG_ROUND:
                    status[STALE], n_nonzero = 1, -1
        elif problem.centred and progress[N_ROUNDS] == 0:
            intercept[0] = best_intercept(moments, totals, coef, features, 0)  # the mean
