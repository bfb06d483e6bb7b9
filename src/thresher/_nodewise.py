"""One column explained by few others, from co-moments: what debiased estimates need to know about a design."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher.kernels.nodewise import scaled_lasso
from thresher.summaries._correlations import Correlations

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

# A column with less than this share of its variance left, given others, is a linear combination of them: co-moments
# are good to about 1e-15 of the scales in float64 and 1e-6 in float32, and those of later rows are differences.
COLLINEAR_SHARE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-5}


class Residual(NamedTuple):
    """Column j, standardised, less what other columns explain: x_j - X_others weights."""

    others: Integers
    weights: Floats
    products: Floats  # its co-moment with every standardised column


def relaxed_nodewise(correlations: Correlations, feature: int, free: Integers, weight: float) -> Residual:
    """Nodewise regression at the universal penalty: once, and again with all it picked free of penalty."""
    level = float(np.sqrt(2.0 * np.log(max(int(correlations.varies.sum()), 1)) / weight))
    first = nodewise(correlations, feature, free, level)
    picked = np.union1d(free, first.others)
    # Too many free columns would explain x_j by chance; then the penalty has to do.
    if len(picked) == len(free) or 2 * len(picked) > weight:
        return first
    return nodewise(correlations, feature, picked, level)


def nodewise(correlations: Correlations, feature: int, free: Integers, level: float) -> Residual:
    """Scaled lasso of one standardised column on all others, those in `free` without penalty.

    The free columns are projected out, which is exact however collinear they are. Descent then works on the few
    columns whose pull exceeds the penalty, more of them until none outside does. An unfinished descent
    would do no harm beyond a slightly larger bias: what is returned holds for the weights as they are.
    """
    basis = correlations.rows(free)
    projection = np.linalg.lstsq(basis[:, free], basis, rcond=1e-12)[0]
    partial = correlations.rows([feature])[0]
    partial = partial - partial[free] @ projection
    eligible = correlations.varies.copy()
    eligible[free] = eligible[feature] = False
    active, coef, products = np.empty(0, np.intp), np.empty(0), partial
    sigma = float(np.sqrt(max(partial[feature], 0.0)))
    while True:
        excess = np.where(eligible, np.abs(products), 0.0)
        excess[active] = 0.0
        pulled = np.flatnonzero(excess > (1.0 + 1e-9) * level * sigma)
        if not len(pulled) or sigma * sigma <= COLLINEAR_SHARE[np.dtype(np.float64)]:
            break
        strongest = pulled[np.argsort(-excess[pulled], kind="stable")[: max(10, len(active))]]
        active, coef = np.append(active, strongest), np.append(coef, np.zeros(len(strongest)))
        rows = correlations.rows(active)
        rows -= rows[:, free] @ projection
        sigma = scaled_lasso(np.ascontiguousarray(rows[:, active]), partial[active], partial[feature], level, coef)
        products = partial - coef @ rows
    chosen = coef != 0.0
    active, coef = active[chosen], coef[chosen]
    return Residual(
        others=np.append(free, active),
        weights=np.append(projection[:, feature] - projection[:, active] @ coef, coef),
        products=products,
    )
