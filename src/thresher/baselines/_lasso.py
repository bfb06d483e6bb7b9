"""The lasso on second moments, by coordinate descent."""

import numpy as np

from thresher._utils.compile import compiled
from thresher.baselines._soft_threshold import soft
from thresher.online._gram import Floats, Integers


@compiled
def descend(
    columns: Floats,
    features: Integers,
    n_features: int,
    penalty: float,
    coef: Floats,
    pull: Floats,
    tolerance: float,
    most_sweeps: int,
) -> bool:
    """Minimise coef' M coef / 2 - target' coef + penalty |coef|_1 over some coordinates, in place.

    The first `n_features` of `features` may move; columns[k] is the column of M that belongs to features[k]. `pull` is
    target - M coef for all coordinates, before and after. It ends when no move, in units of
    the response (times the root of the curvature M_kk), exceeds the tolerance. Coordinates without curvature stay
    where they are. False if so many sweeps were not enough.
    """
    p = coef.shape[0]
    for _ in range(most_sweeps):
        furthest = 0.0
        for k in range(n_features):
            feature = features[k]
            curvature = columns[k, feature]
            if curvature <= 0.0:
                continue
            move = soft(pull[feature] + curvature * coef[feature], penalty) / curvature - coef[feature]
            if move != 0.0:
                for i in range(p):
                    pull[i] -= columns[k, i] * move
                coef[feature] += move
                furthest = max(furthest, abs(move) * np.sqrt(curvature))
        if furthest <= tolerance:
            return True
    return False
