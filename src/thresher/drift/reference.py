"""The compiled steps of `_follow`, written to be read: NumPy, one formula per line."""

import numpy as np

from thresher._utils.arrays import Floats
from thresher.drift.settings import CAP, ERROR_HALF_LIFE, JITTER, LEAST, PERIODS, PRIOR, RATE, SHARE, VARIANCES


def score(rows: Floats, earlier: Floats, weights: Floats, losses: Floats, errors: Floats) -> tuple[float, float]:
    """Fixed share (Herbster and Warmuth, 1998) over the levels, with squared errors that are capped."""
    w = rows[:, 0] ** 2
    if not w.sum() > 0.0:
        return 0.0, 0.0
    predicted = rows[:, :-1] @ earlier.T
    errors[:] = rows[:, -1] - predicted @ weights
    squares = np.column_stack([(rows[:, -1:] - predicted) ** 2, errors**2])
    if losses[-1] < 0.0:
        losses[:] = squares.sum(axis=0) / w.sum()
    noise = losses.min() or 1e-300
    squares = np.minimum(squares, CAP * noise * w[:, None])
    decay = 2.0 ** (-w.sum() / ERROR_HALF_LIFE)
    losses[:] = decay * losses + (1.0 - decay) * squares.sum(axis=0) / w.sum()
    lost = squares[:, :-1].sum(axis=0) / noise
    lost -= lost[weights > 0.0].min()
    posterior = weights * np.exp(-RATE * np.maximum(lost, 0.0))  # negative only where the weight is zero
    stay = (1.0 - SHARE) ** len(rows)
    weights[:] = stay * posterior / posterior.sum() + (1.0 - stay) * PRIOR
    advantage = (squares[:, -2] - squares[:, -1]) / noise
    return float(advantage.sum()), float((advantage**2).sum())


def count(rows: Floats, moments: Floats, squares: Floats, half_lives: Floats) -> None:
    """Decay by the number of new rows, then add them."""
    decay = 2.0 ** (-len(rows) / half_lives)
    moments[:] = decay[:, None, None] * moments + rows.T @ rows
    squares[:] = decay**2 * squares + (rows[:, 0] ** 2).sum()


def refit(
    moments: Floats,
    squares: Floats,
    ridge: Floats,
    overall: Floats,
    centred: bool,
    coef: Floats,
    n_rows: Floats,
    time: int,
) -> None:
    """Ridge regression of all rows, then every level from the longest to the shortest, each shrunk to the last one."""
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
        cross = mean[fitted, -1] - mean[np.ix_(fitted, fitted)] @ parent[fitted]
        rest = mean[-1, -1] - parent[fitted] @ (mean[fitted, -1] + cross)
        rest = max(rest, LEAST * mean[-1, -1])
        candidates = [(n * np.log(rest), np.zeros(p - 1))]
        for some in ([fitted[:1]] if centred else []) + [fitted]:
            candidates += shrunk(mean[np.ix_(some, some)], cross[: len(some)], rest, n, some, p - 1)
        best = min(range(len(candidates)), key=lambda i: candidates[i][0])
        coef[k] = parent + candidates[best][1]
        n_rows[k] = n if best else n_rows[k + 1]


def shrunk(
    matrix: Floats, cross: Floats, rest: float, n: float, some: np.ndarray, size: int
) -> list[tuple[float, Floats]]:
    """For each variance of the change: minus twice the log of the marginal likelihood, and the expected change."""
    result = []
    for variance in VARIANCES:
        change = np.zeros(size)
        change[some] = np.linalg.solve(matrix + np.eye(len(some)) / (n * variance), cross)
        left = max(rest - float(change[some] @ cross), LEAST * rest)
        volume = np.linalg.slogdet(np.eye(len(some)) + n * variance * matrix)[1]
        result.append((n * np.log(left) + volume, change))
    return result
