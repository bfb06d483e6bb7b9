"""Least squares of many responses on all features, kept up to date row by row.

With G the (co)moments of the features and C those with the responses, a row adds a a' and a v' to them: (a, v) is the
row itself where there is no intercept, and otherwise its distance from the mean of the rows so far, times a number
(Welford, 1962). So with u = G^-1 a, where G is that before the row,

    G^-1 <- G^-1 - u u' / (1 + a'u),    B <- B + u (v - B'a)' / (1 + a'u)

(Plackett, 1950). A row costs O(p^2 + p q).
"""

from typing import Any, NamedTuple

import numpy as np

from thresher.kernels._blas import add_symv
from thresher.kernels._compile import compiled
from thresher.kernels.gram import (
    N_BUFFERED,
    N_SAMPLES,
    SHIFT_X,
    SUM_X,
    WEIGHT,
    Floats,
    GramArrays,
    Integers,
    absorb_row,
)
from thresher.kernels.progress import N_AT_ROUND, N_PENDING, N_ROUNDS
from thresher.kernels.subspace import dot


class LeastSquares(NamedTuple):
    """Mutable arrays; p features, q responses."""

    inverse: Floats  # (p, p), upper triangle: G^-1
    cross: Floats  # (p, q): C
    coef: Floats  # (p, q): B
    row: Floats  # (p + q,): a and v
    along: Floats  # (p,): u


@compiled
def add_row(gram: GramArrays, blas: Any, fit: LeastSquares, weight: float, before: float, centred: bool) -> None:
    """Follow the newest row of the buffer; `before` is the weight of all rows before it, which is positive."""
    if weight == 0.0:
        return
    inverse, cross, coef, row, along = fit
    p, moments, newest, total = len(along), gram.moments, gram.counts[N_BUFFERED] - 1, gram.totals[WEIGHT]
    root, stretch = np.sqrt(weight), np.sqrt(total / before) if centred else 1.0
    for j in range(row.shape[0]):
        away = moments[SUM_X, j] / total if centred else -moments[SHIFT_X, j]
        row[j] = stretch * (gram.buffer[newest, j] - root * away)
    a, v = row[:p], row[p:]
    along[:] = 0.0
    add_symv(blas, inverse, a, along)
    errors, per = v - np.dot(a, coef), 1.0 / (1.0 + dot(a, along))
    for i in range(p):
        share = along[i] * per
        for k in range(errors.shape[0]):
            coef[i, k] += share * errors[k]
            cross[i, k] += a[i] * v[k]
        for j in range(i, p):
            inverse[i, j] -= share * along[j]


@compiled
def run_rows(
    gram: GramArrays,
    blas: Any,
    fit: LeastSquares,
    X: Floats,
    y: Floats,
    w: Floats,
    follow: bool,
    round_size: int,
    centred: bool,
    progress: Integers,
) -> None:
    """Absorb rows that fit in the buffer, count their rounds and, if asked to, let least squares follow them."""
    _, buffer, buffer_y, moments, totals, counts = gram
    for i in range(X.shape[0]):
        before = totals[WEIGHT]
        absorb_row(buffer, buffer_y, moments, totals, counts, X, y, w, i)
        if follow:
            add_row(gram, blas, fit, w[i] if w.shape[0] else 1.0, before, centred)
        progress[N_PENDING] += 1
        if progress[N_PENDING] >= round_size:
            progress[N_ROUNDS] += 1
            progress[N_PENDING] = 0
            progress[N_AT_ROUND] = counts[N_SAMPLES]
