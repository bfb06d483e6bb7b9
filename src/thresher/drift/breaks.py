"""Whether coefficients changed at once, a short while ago."""

import numpy as np

from thresher._utils.arrays import Floats
from thresher.drift.levels import Levels
from thresher.drift.recent import Recent
from thresher.drift.settings import BREAK_ERROR, BREAK_EVIDENCE, BREAK_ROWS, LEAST, ROWS_PER_COEFFICIENT, VARIANCES


def rows_since_break(recent: Recent, levels: Levels, coef: Floats, noise: float) -> int:
    """How many rows ago coefficients changed at once, by the marginal likelihood of the rows since; zero if not.

    The mean squared error of `coef` must have become some times `noise`, in units of the levels, and other
    coefficients must explain that. Their means do not matter, if there is an intercept: a level of y that wanders is
    not a break. There must be two rows for each coefficient, as levels will know these rows alone.
    """
    u = recent.standardised(*levels.units)
    newest_first = np.arange(recent.n_rows - 1, recent.n_rows - 1 - len(u), -1) % len(u)
    most, found = BREAK_EVIDENCE, 0
    for n_rows in BREAK_ROWS:
        if n_rows > recent.n_rows - recent.since:
            break
        rows = u[newest_first[:n_rows]]
        if np.count_nonzero(rows[:, 0]) < ROWS_PER_COEFFICIENT * (len(levels.features) + 1):
            continue
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
    weight = float(root @ root)
    if not weight > 0.0 or not Z.shape[1]:
        return 0.0
    if centred:
        Z = Z - root[:, None] * (root @ Z / weight)
        errors = errors - root * (root @ errors / weight)
    rest = float(errors @ errors) / weight
    if not rest > least:
        return 0.0
    products = Z * errors[:, None]
    products = products - products.mean(axis=0)
    r = float((products[1:] * products[:-1]).sum() / max((products**2).sum(), 1e-300))
    n = weight * ((1.0 - r) / (1.0 + r) if r > 0.0 else 1.0)
    # In the eigenvectors of Z'Z, every variance of a change costs O(s).
    values, vectors = np.linalg.eigh(Z.T @ Z / weight)
    values = np.maximum(values, 0.0)
    explained = (errors @ Z @ vectors / weight) ** 2
    ratios = n * VARIANCES[:, None]
    left = np.maximum(rest - (explained / (values + 1.0 / ratios)).sum(axis=1), LEAST * rest)
    return float(n * np.log(rest) - (n * np.log(left) + np.log1p(ratios * values).sum(axis=1)).min())
