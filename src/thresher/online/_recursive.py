"""Least squares of many responses on all features, kept up to date row by row.

With G the (co)moments of the features and C those with the responses, a row adds a a' and a v' to them: (a, v) is the
row itself where there is no intercept, and otherwise its distance from the mean of the rows so far, times a number
(Welford, 1962). So with u = G^-1 a, where G is that before the row,

    G^-1 <- G^-1 - u u' / (1 + a'u),    B <- B + u (v - B'a)' / (1 + a'u)

(Plackett, 1950). A row costs O(p^2 + p q). The rounding of an update is a'u times that of a number.
"""

from typing import Any, NamedTuple

import numpy as np

from thresher._utils.compile import compiled
from thresher.online._blas import add_symv
from thresher.online._gram import (
    N_SAMPLES,
    SHIFT_X,
    SUM_X,
    WEIGHT,
    Floats,
    GramArrays,
    Integers,
    absorb_row,
)
from thresher.online._subspace import dot
from thresher.online.progress import N_AT_ROUND, N_PENDING, N_ROUNDS

# Above this a'u the subtraction would cost more than ten digits: least squares has to be computed again.
STEEPEST = 1e6


class LeastSquares(NamedTuple):
    """Mutable arrays; p features, q responses."""

    inverse: Floats  # (p, p), upper triangle: G^-1
    cross: Floats  # (p, q): C
    coef: Floats  # (p, q): B
    row: Floats  # (p + q,): a and v
    along: Floats  # (p,): u


@compiled
def look_ahead(
    gram: GramArrays, blas: Any, fit: LeastSquares, X: Floats, i: int, weight: float, centred: bool
) -> float:
    """Find a, v and u of row i, which the summary has not seen, and return a'u. The rows before have a weight."""
    row, along = fit.row, fit.along
    moments, before = gram.moments, gram.totals[WEIGHT]
    stretch = np.sqrt(weight * (before / (before + weight)) if centred else weight)
    for j in range(row.shape[0]):
        away = moments[SUM_X, j] / before if centred else -moments[SHIFT_X, j]
        row[j] = stretch * (X[i, j] - moments[SHIFT_X, j] - away)
    a = row[: along.shape[0]]
    along[:] = 0.0
    add_symv(blas, fit.inverse, a, along)
    return float(dot(a, along))


@compiled
def add_row(fit: LeastSquares, steepness: float) -> None:
    """Follow the row that was looked at last; `steepness` is its a'u."""
    inverse, cross, coef, row, along = fit
    p = along.shape[0]
    a, v = row[:p], row[p:]
    errors, per = v - np.dot(a, coef), 1.0 / (1.0 + steepness)
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
    round_size: int,
    centred: bool,
    progress: Integers,
) -> int:
    """Absorb rows that fit in the buffer, let least squares follow them and count their rounds.

    Stops before a row that is too far from all others for that, and returns how many rows came before.
    """
    _, buffer, buffer_y, buffer_root, moments, totals, counts = gram
    for i in range(X.shape[0]):
        weight = w[i] if w.shape[0] else 1.0
        if weight > 0.0:
            steepness = look_ahead(gram, blas, fit, X, i, weight, centred)
            if not steepness <= STEEPEST:
                return i
            add_row(fit, steepness)
        absorb_row(buffer, buffer_y, buffer_root, moments, totals, counts, X, y, w, i)
        progress[N_PENDING] += 1
        if progress[N_PENDING] >= round_size:
            progress[N_ROUNDS] += 1
            progress[N_PENDING] = 0
            progress[N_AT_ROUND] = counts[N_SAMPLES]
    return len(X)
