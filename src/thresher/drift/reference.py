"""The compiled steps of `_score` and `_refit`, written to be read: NumPy, one formula per line."""

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher.drift.settings import (
    CAP,
    ERROR_HALF_LIFE,
    FAR,
    FEWEST_CARRIERS,
    JITTER,
    LEAST,
    PERIODS,
    PRIOR,
    RATE,
    ROUNDING,
    SHARE,
    VARIANCES,
)


def score(rows: Floats, earlier: Floats, weights: Floats, losses: Floats, errors: Floats) -> tuple[float, float]:
    """Fixed share (Herbster and Warmuth, 1998) over the levels, with squared errors that are capped.

    The noise is the smallest mean squared error so far. If most rows are far beyond it at every level, as after a
    change where there was hardly any noise, the levels are compared in units of these rows.
    """
    w = rows[:, 0] ** 2
    if not w.sum() > 0.0:
        return 0.0, 0.0
    predicted = rows[:, :-1] @ earlier.T
    errors[:] = rows[:, -1] - predicted @ weights
    squares = np.column_stack([(rows[:, -1:] - predicted) ** 2, errors**2])
    if losses[-1] < 0.0:
        losses[:] = squares.sum(axis=0) / w.sum()
    noise = scale = max(losses.min(), ROUNDING)
    if (squares.min(axis=1) > FAR * noise * w)[w > 0.0].mean() > 0.5:
        scale = max((squares.sum(axis=0) / w.sum()).min(), noise)
    decay = 2.0 ** (-w.sum() / ERROR_HALF_LIFE)
    new = np.minimum(squares, CAP * noise * w[:, None]).sum(axis=0) / w.sum()
    losses[:] = decay * losses + (1.0 - decay) * new
    squares = np.minimum(squares, CAP * scale * w[:, None])
    lost = squares[:, :-1].sum(axis=0) / scale
    lost -= lost[weights > 0.0].min()
    posterior = weights * np.exp(-RATE * np.maximum(lost, 0.0))  # negative only where the weight is zero
    stay = (1.0 - SHARE) ** len(rows)
    weights[:] = stay * posterior / posterior.sum() + (1.0 - stay) * PRIOR
    advantage = (squares[:, -2] - squares[:, -1]) / scale
    return float(advantage.sum()), float((advantage**2).sum())


def count(rows: Floats, moments: Floats, squares: Floats, half_lives: Floats, largest: Floats) -> None:
    """Decay by the number of new rows, then add them."""
    counted = rows[rows[:, 0] > 0.0]
    largest[:] = np.maximum(largest, np.abs(counted[:, :-1] / counted[:, :1]).max(axis=0, initial=0.0))
    decay = 2.0 ** (-len(rows) / half_lives)
    moments[:] = decay[:, None, None] * moments + rows.T @ rows
    squares[:] = decay**2 * squares + (rows[:, 0] ** 2).sum()


def refit(
    moments: Floats,
    squares: Floats,
    largest: Floats,
    ridge: Floats,
    overall: Floats,
    centred: bool,
    coef: Floats,
    n_rows: Floats,
    time: int,
) -> None:
    """Ridge regression of all rows, then every level from the longest to the shortest, each a change of the last one.

    A level takes the most likely of these changes: none; of the intercept alone; of all coefficients; of single ones;
    of these and of all. The shortest level changes the intercept alone.
    """
    n_levels, p = moments.shape[:2]
    every = moments[-1]
    used = np.flatnonzero(np.concatenate([[centred], overall]))
    penalty = np.concatenate([[0.0], ridge])[used] + JITTER * every[0, 0]
    coef[-1] = 0.0
    coef[-1, used] = np.linalg.solve(every[np.ix_(used, used)] + np.diag(penalty), every[used, -1])
    n_rows[-1] = every[0, 0]
    fitted = np.arange(0 if centred else 1, p - 1)
    for k in range(n_levels - 2, -1, -1):
        if time % PERIODS[k]:
            continue
        mean = moments[k] / moments[k, 0, 0]
        n = moments[k, 0, 0] ** 2 / squares[k]  # Kish
        parent = coef[k + 1]
        matrix = mean[np.ix_(fitted, fitted)]
        cross = mean[fitted, -1] - matrix @ parent[fitted]
        rest = mean[-1, -1] - parent[fitted] @ (mean[fitted, -1] + cross)
        rest = max(rest, LEAST * mean[-1, -1])
        candidates = [(n * np.log(rest), np.zeros(len(fitted)))]
        if centred:
            candidates += [
                (value, np.append(change, np.zeros(len(fitted) - 1)))
                for value, change in shrunk(matrix[:1, :1], cross[:1], rest, n)
            ]
        if k > 0:
            candidates += shrunk(matrix, cross, rest, n)
            carried = moments[k, 0, 0] * np.diagonal(matrix) >= FEWEST_CARRIERS * largest[fitted] ** 2
            penalty, single, left = single_changes(matrix, cross, rest, n, carried)
            if penalty > 0.0:
                candidates.append((n * np.log(left) + penalty, single))
                others = shrunk(matrix, cross - matrix @ single, left, n)
                candidates += [(value + penalty, single + change) for value, change in others]
        best = min(range(len(candidates)), key=lambda i: candidates[i][0])
        coef[k] = parent
        coef[k, fitted] += candidates[best][1]
        n_rows[k] = n if best and k > 0 else n_rows[k + 1]


def shrunk(matrix: Floats, cross: Floats, rest: float, n: float) -> list[tuple[float, Floats]]:
    """For each variance of the change: minus twice the log of the marginal likelihood, and the expected change."""
    result = []
    for variance in VARIANCES:
        change = np.linalg.solve(matrix + np.eye(len(cross)) / (n * variance), cross)
        left = max(rest - float(change @ cross), LEAST * rest)
        volume = np.linalg.slogdet(np.eye(len(cross)) + n * variance * matrix)[1]
        result.append((n * np.log(left) + volume, change))
    return result


def single_changes(
    matrix: Floats, cross: Floats, rest: float, n: float, carried: NDArray[np.bool_]
) -> tuple[float, Floats, float]:
    """Changes of single coefficients, the most significant first, while the extended BIC falls.

    Each has the variance of an estimate from one row of a feature that varies as here, or as ever: the variance is one
    then. The result is the sum of the penalties, the changes, and what is left of the mean squared residual. Features
    change alone if they are `carried` by several rows: one outlier could move a coefficient that rests on one row.
    """
    change, total, own = np.zeros(len(cross)), 0.0, np.diagonal(matrix)
    penalty = np.log1p(n) + 2.0 * np.log(max(len(cross), 1))
    while (change == 0.0).any():
        left = cross - matrix @ change
        expected = left / (own + np.maximum(own, 1.0) / n)
        gain = np.where((change == 0.0) & carried & (own > 0.0), left * expected, 0.0)
        j = int(np.argmax(gain))
        after = max(rest - gain[j], LEAST * rest)
        if not n * np.log(after) + penalty < n * np.log(rest):
            break
        rest, total, change[j] = after, total + penalty, expected[j]
    return total, change, rest
