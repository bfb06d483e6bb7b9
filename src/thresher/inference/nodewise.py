"""One column explained by few others, from co-moments: what debiased estimates need to know about a design."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats, Integers
from thresher._utils.tolerances import OWN_SHARE
from thresher.inference.correlations import Correlations

# A column with less than this share of its variance left, given others, is a linear combination of them.
COLLINEAR = OWN_SHARE[np.dtype(np.float64)]
# A column with less of its variance left than this has nothing to say beyond the active ones.
NEGLIGIBLE = 1e-12
# Two events of a path that are closer than this, relatively, are one.
ROUNDING = 1e-12
NOTHING = np.zeros(0, np.intp)
# A path with more active columns than this is left where it is.
MOST_ACTIVE = 500


class Residual(NamedTuple):
    """Column j, standardised, less what other columns explain: x_j - X_others weights."""

    others: Integers
    weights: Floats
    products: Floats  # its co-moment with every standardised column


def relaxed_nodewise(
    correlations: Correlations, feature: int, free: Integers, weight: float, without: Integers = NOTHING
) -> Residual:
    """Nodewise regression at the universal penalty: once, and again with all it picked free of penalty.

    Columns in `without` take no part.
    """
    level = float(np.sqrt(2.0 * np.log(max(int(correlations.varies.sum()), 1)) / weight))
    first = nodewise(correlations, feature, free, level, without)
    picked = np.union1d(free, first.others)
    # Too many free columns would explain x_j by chance; then the penalty has to do.
    if len(picked) == len(free) or 2 * len(picked) > weight:
        return first
    return nodewise(correlations, feature, picked, level, without)


def nodewise(
    correlations: Correlations, feature: int, free: Integers, level: float, without: Integers = NOTHING
) -> Residual:
    """Scaled lasso (Sun and Zhang, 2012) of one standardised column on all others, those in `free` without penalty.

    It minimises, jointly in the weights w and sigma, |x_j - X w|^2 / (2 n sigma) + sigma / 2 + level |w|_1. The free
    columns are projected out, which is exact however collinear they are. The rest is followed along the path of the
    lasso (Osborne, Presnell and Turlach, 2000), down to the penalty lambda that is level times its own sigma: O(d k)
    for each of the k columns on the way. Stopping early would do no harm beyond a slightly larger bias: what is
    returned holds for the weights as they are.
    """
    basis = correlations.rows(free)
    projection = np.asarray(np.linalg.lstsq(basis[:, free], basis, rcond=1e-12)[0], np.float64)
    target = correlations.rows([feature])[0]
    target = target - target[free] @ projection
    variance = float(target[feature])
    closed = ~correlations.varies  # columns that cannot enter
    closed[free] = closed[feature] = closed[without] = True
    active: list[int] = []
    signs, rows = np.zeros(0), np.zeros((0, len(target)))
    coef, products = np.zeros(0), target
    penalty = float(np.abs(np.where(closed, 0.0, target)).max(initial=0.0))
    just_left = -1
    while variance > COLLINEAR and penalty > level * np.sqrt(variance):
        first = int(np.argmax(np.where(closed, 0.0, np.abs(target))))
        rows = _partial(correlations, [first], free, projection)
        if rows[0, first] > NEGLIGIBLE:
            active, signs = [first], np.sign(target[[first]])
            break
        closed[first] = True
        rows = rows[:0]
        penalty = float(np.abs(np.where(closed, 0.0, target)).max(initial=0.0))
    while active and len(active) <= MOST_ACTIVE:
        # While signs and active columns stay, the weights are a - lambda b, and sigma^2 is linear in lambda^2.
        inverse = np.linalg.inv(rows[:, active])
        a, b = inverse @ target[active], inverse @ signs
        explained, slope = float(target[active] @ a), level * level * float(signs @ b)
        left = max(variance - explained, 0.0)
        wanted = level * np.sqrt(left / (1.0 - slope)) if slope < 1.0 else np.inf
        reached, event, entering = _next_event(target - a @ rows, b @ rows, a, b, penalty, closed, active, just_left)
        just_left = -1
        if wanted >= reached or left <= COLLINEAR:
            penalty = min(max(wanted, reached), penalty)
            coef = a - penalty * b
            products = target - coef @ rows
            break
        penalty, coef = reached, a - reached * b
        products = target - coef @ rows
        if entering:
            row = _partial(correlations, [event], free, projection)
            own = row[0, event] - row[0, active] @ inverse @ row[0, active]
            if own <= NEGLIGIBLE:
                closed[event] = True
                continue
            active, signs, rows = [*active, event], np.append(signs, np.sign(products[event])), np.vstack([rows, row])
        else:
            just_left = event
            kept = [place for place, member in enumerate(active) if member != event]
            active, signs, rows = [active[place] for place in kept], signs[kept], rows[kept]
            coef = coef[kept]
    others = np.array(active, np.intp)
    return Residual(
        others=np.append(free, others),
        weights=np.append(projection[:, feature] - projection[:, others] @ coef, coef),
        products=products,
    )


def _partial(correlations: Correlations, columns: list[int], free: Integers, projection: Floats) -> Floats:
    """Rows of the correlation matrix, less what the free columns explain."""
    rows = correlations.rows(columns)
    rows -= rows[:, free] @ projection
    return rows


def _next_event(
    u: Floats,
    w: Floats,
    a: Floats,
    b: Floats,
    penalty: float,
    closed: NDArray[np.bool_],
    active: list[int],
    just_left: int,
) -> tuple[float, int, bool]:
    """The next lambda at which a column enters, |u + lambda w| = lambda, or leaves, a - lambda b = 0."""
    below = penalty * (1.0 - ROUNDING)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = penalty * (1.0 + ROUNDING)
        one, two = u / (1.0 - w), -u / (1.0 + w)
        enter = np.minimum(np.maximum(_under(one, above), _under(two, above)), penalty)
        if just_left >= 0:
            enter[just_left] = max(_under(one, below)[just_left], _under(two, below)[just_left])
        leave = _under(a / b, below)
    enter[closed] = 0.0
    enter[active] = 0.0
    column, place = int(np.argmax(enter)), int(np.argmax(leave))
    if enter[column] >= leave[place]:
        return float(enter[column]), column, True
    return float(leave[place]), active[place], False


def _under(values: Floats, limit: float) -> Floats:
    """The values that are positive and below the limit; zero elsewhere."""
    result: Floats = np.where((values > 0.0) & (values < limit), values, 0.0)
    return result
