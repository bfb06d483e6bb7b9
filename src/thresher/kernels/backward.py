"""Backward elimination: the features of a least-squares fit one after another, each time the one that explains least.

With V the inverse of their second moments and c their coefficients, leaving out feature j raises the residual sum of
squares by c_j^2 / V_jj. What is left is a rank-one update of both, so that all n features go in O(n^3).
"""

import numpy as np

from thresher.kernels._compile import compiled
from thresher.kernels.certificate import TIE
from thresher.kernels.gram import Floats, Integers


@compiled
def eliminate(inverse: Floats, coef: Floats, order: Integers, rises: Floats) -> None:
    """Fill `order` with positions so that the first k are the last k to go; `inverse` and `coef` are used up.

    `rises[k]` becomes what the residual sum of squares rises by when k features are left. Of features that explain the
    same, the one that comes later goes first.
    """
    n = coef.shape[0]
    kept = np.ones(n, np.bool_)
    for place in range(n - 1, -1, -1):
        out, least = -1, np.inf
        for j in range(n - 1, -1, -1):
            if kept[j]:
                rise = coef[j] * (coef[j] / inverse[j, j])
                if out < 0 or rise < least * (1.0 - TIE):
                    out, least = j, rise
        order[place], rises[place], kept[out] = out, least, False
        pivot = inverse[out, out]
        for i in range(n):
            if kept[i]:
                share = inverse[i, out] / pivot
                coef[i] -= share * coef[out]
                for j in range(n):
                    if kept[j]:
                        inverse[i, j] -= share * inverse[out, j]
