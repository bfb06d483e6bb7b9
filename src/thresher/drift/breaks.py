"""Whether coefficients changed at once, a short while ago."""

import numpy as np

from thresher._utils.arrays import Floats
from thresher.drift.levels import Levels
from thresher.drift.recent import Recent
from thresher.drift.reference import shrunk
from thresher.drift.settings import BREAK_ERROR, BREAK_EVIDENCE, BREAK_ROWS


def rows_since_break(recent: Recent, levels: Levels, coef: Floats, noise: float) -> int:
    """How many rows ago coefficients changed at once, by the marginal likelihood of the rows since; zero if not.

    The errors of `coef` must have become some times larger than `noise`, in units of the levels, and other
    coefficients must explain that. Their means do not matter, if there is an intercept: a level of y that wanders is
    not a break.
    """
    u = recent.standardised(levels.features, levels.origin, levels.scale, levels.origin_y, levels.scale_y)
    newest_first = np.arange(recent.n_rows - 1, recent.n_rows - 1 - len(u), -1) % len(u)
    most, found = BREAK_EVIDENCE, 0
    for n_rows in BREAK_ROWS:
        if n_rows > recent.n_rows - recent.since:
            break
        rows = u[newest_first[:n_rows]]
        value = evidence(rows, coef, levels.centred, BREAK_ERROR * noise)
        if value > most:
            most, found = value, n_rows
    return found


def evidence(rows: Floats, coef: Floats, centred: bool, least: float) -> float:
    """Twice the log of the Bayes factor of other coefficients in these rows; zero if errors are below `least`.

    Neighbouring rows that say the same count less: n (1 - r) / (1 + r), with r the autocorrelation of the products of
    features and errors.
    """
    root, Z, errors = rows[:, 0], rows[:, 1:-1], rows[:, -1] - rows[:, :-1] @ coef
    n = float(root @ root)
    if not n > 0.0 or not Z.shape[1]:
        return 0.0
    if centred:
        Z = Z - root[:, None] * (root @ Z / n)
        errors = errors - root * (root @ errors / n)
    rest = float(errors @ errors) / n
    if not rest > least:
        return 0.0
    products = Z * errors[:, None]
    products = products - products.mean(axis=0)
    r = float((products[1:] * products[:-1]).sum() / max((products**2).sum(), 1e-300))
    n *= (1.0 - r) / (1.0 + r) if r > 0.0 else 1.0
    weight, size = float(root @ root), Z.shape[1]
    candidates = shrunk(Z.T @ Z / weight, Z.T @ errors / weight, rest, n, np.arange(size), size)
    return float(n * np.log(rest) - min(value for value, _ in candidates))
