"""The pieces of one hard-thresholding step on the working set.

One step of Algorithm 1 is theta <- P_s(theta - eta g(theta)). In the metric of the column scales it is
theta_j - eta g_j / sigma_j^2, keeping the largest sigma_j |theta_j|; without standardisation sigma_j = 1.
"""

import numpy as np

from thresher._utils.compile import compiled, compiled_sums
from thresher._utils.tolerances import TINY
from thresher.online._certificate import nth_largest, tie_band
from thresher.online._gram import CROSS, SHIFT_X, SHIFT_Y, SUM_X, SUM_Y, SUM_YY, WEIGHT, Floats, Integers
from thresher.online._problem import Problem, curvature, tilt, variance
from thresher.online._working_set import AT_REFERENCE, DRIFT, REFERENCE, THETA, local_product

# Rows of WorkingSet.slots that are filled again in every round, after THETA, REFERENCE, DRIFT:
PULL, SUM, SHIFT = 3, 4, 5  # A r - b, sum_x and shift of the feature
ROOT, UNIT, INVERSE = 6, 7, 8  # sigma_j, 1 / sigma_j and its square (zero for a constant column), or ones
GRADIENT = 9
TARGET, KEY = 10, 11  # theta_j - eta g_j / sigma_j^2, and sigma_j |target_j|
DIRECTION, ALONG, BEND = 12, 13, 14  # q: g_j / sigma_j^2 on the support, A q and G q / weight
MOVE, PRODUCT = 15, 16  # a change of theta, and A times it
N_SLOT_ROWS = 17


@compiled
def fill_round(
    moments: Floats,
    totals: Floats,
    wide: Floats,
    slots: Floats,
    features: Integers,
    size: int,
    problem: Problem,
) -> None:
    """Gather what a round needs to know of each feature in the working set."""
    for k in range(size):
        j = features[k]
        slots[PULL, k] = wide[AT_REFERENCE, j]
        slots[SUM, k] = moments[SUM_X, j]
        slots[SHIFT, k] = moments[SHIFT_X, j]
        slots[ROOT, k] = 1.0
        if problem.standardized:
            slots[ROOT, k] = variance(moments, totals, j, problem.centred)
    for k in range(size):
        slots[INVERSE, k] = 1.0 / slots[ROOT, k] if slots[ROOT, k] >= TINY else 0.0
    for k in range(size):
        slots[ROOT, k] = np.sqrt(slots[ROOT, k])
        slots[UNIT, k] = np.sqrt(slots[INVERSE, k])


@compiled_sums
def fill_gradient(totals: Floats, slots: Floats, size: int, centred: bool) -> float:
    """The gradient on the working set. Returns sqrt(D' G D / weight), the slack of the certificate."""
    quadratic, away_sum, away_shift, along_sum, along_shift = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(size):
        away = slots[THETA, k] - slots[REFERENCE, k]
        quadratic += away * slots[DRIFT, k]
        away_sum += away * slots[SUM, k]
        away_shift += away * slots[SHIFT, k]
        along_sum += slots[THETA, k] * slots[SUM, k]
        along_shift += slots[THETA, k] * slots[SHIFT, k]
    alpha, beta = tilt(totals, along_sum, along_shift, centred)
    per = 1.0 / totals[WEIGHT]
    for k in range(size):
        known = slots[PULL, k] + slots[DRIFT, k]
        slots[GRADIENT, k] = (known + slots[SHIFT, k] * alpha + slots[SUM, k] * beta) * per
    return float(np.sqrt(curvature(totals, quadratic, away_sum, away_shift, centred)))


@compiled_sums
def bend_direction(totals: Floats, slots: Floats, local: Floats, n_kept: int, size: int, centred: bool) -> float:
    """ALONG = A q and BEND = G q / weight for the direction q. Returns q' G q / weight."""
    local_product(local, slots, DIRECTION, ALONG, n_kept, size)
    weight = totals[WEIGHT]
    along_sum, along_shift = 0.0, 0.0
    for k in range(n_kept):
        along_sum += slots[DIRECTION, k] * slots[SUM, k]
        along_shift += slots[DIRECTION, k] * slots[SHIFT, k]
    alpha, beta = along_sum + weight * along_shift, along_shift
    if centred:
        alpha, beta = 0.0, -along_sum / weight
    per = 1.0 / weight
    for k in range(size):
        slots[BEND, k] = (slots[ALONG, k] + slots[SHIFT, k] * alpha + slots[SUM, k] * beta) * per
    bend = 0.0
    for k in range(n_kept):
        bend += slots[DIRECTION, k] * slots[BEND, k]
    return float(max(bend, 0.0))


@compiled_sums
def fill_direction(
    totals: Floats, slots: Floats, local: Floats, n_kept: int, size: int, centred: bool
) -> tuple[float, float, float]:
    """The direction q = g / sigma^2 of a step on the support, with ALONG and BEND.

    Returns q . g, q' G q / weight and |theta|^2 in the metric.
    """
    slope, extent = 0.0, 0.0
    for k in range(n_kept):
        slots[DIRECTION, k] = slots[INVERSE, k] * slots[GRADIENT, k]
        slope += slots[DIRECTION, k] * slots[GRADIENT, k]
        extent += (slots[ROOT, k] * slots[THETA, k]) * (slots[ROOT, k] * slots[THETA, k])
    for k in range(n_kept, size):
        slots[DIRECTION, k] = 0.0
    return slope, bend_direction(totals, slots, local, n_kept, size, centred), extent


@compiled
def aim(slots: Floats, n_kept: int, size: int, eta: float) -> tuple[float, float, float]:
    """Where a gradient step of size eta leads, before projection.

    Returns the smallest key on the support, the largest among the spare features, and the largest of all.
    """
    for k in range(size):
        target = slots[THETA, k] - eta * (slots[INVERSE, k] * slots[GRADIENT, k])
        slots[TARGET, k] = target
        slots[KEY, k] = slots[ROOT, k] * abs(target)
    lowest, highest, largest = np.inf, -1.0, 0.0
    for k in range(n_kept):
        lowest = min(lowest, slots[KEY, k])
        largest = max(largest, slots[KEY, k])
    for k in range(n_kept, size):
        highest = max(highest, slots[KEY, k])
    return lowest, highest, max(largest, highest)


@compiled
def choose(slots: Floats, features: Integers, chosen: Integers, size: int, sparsity: int, largest: float) -> float:
    """Mark the slots of the s largest keys: the projection, when nothing outside can be chosen.

    Returns the smallest key among them. Ties go to the lowest feature.
    """
    n = min(sparsity, size)
    cut = nth_largest(slots[KEY, :size], n)
    band = tie_band(cut, largest)
    for k in range(size):
        chosen[k] = slots[KEY, k] > cut + band
        n -= chosen[k]
    while n > 0:
        best = -1
        for k in range(size):
            tied = not chosen[k] and slots[KEY, k] >= cut - band
            if tied and (best < 0 or features[k] < features[best]):
                best = k
        chosen[best] = 1
        n -= 1
    lowest = np.inf
    for k in range(size):
        if chosen[k]:
            lowest = min(lowest, slots[KEY, k])
    return lowest


@compiled_sums
def measure_move(totals: Floats, slots: Floats, size: int, centred: bool) -> tuple[float, float, float]:
    """|move|^2 in the metric, move . g and move' G move / weight, given MOVE and PRODUCT."""
    length, slope, quadratic, along_sum, along_shift = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(size):
        move = slots[MOVE, k]
        length += (move * slots[ROOT, k]) * (move * slots[ROOT, k])
        slope += move * slots[GRADIENT, k]
        quadratic += move * slots[PRODUCT, k]
        along_sum += move * slots[SUM, k]
        along_shift += move * slots[SHIFT, k]
    return length, slope, curvature(totals, quadratic, along_sum, along_shift, centred)


@compiled_sums
def measure_change(
    totals: Floats,
    slots: Floats,
    chosen: Integers,
    local: Floats,
    n_kept: int,
    size: int,
    eta: float,
    centred: bool,
) -> tuple[float, float, float]:
    """The move of a step that changes the support, A times it, and what it does to the loss.

    Away from the slots that enter or leave, the move is -eta times the direction, so A times it is
    known but for those few columns. Returns |move|^2 in the metric, move . g and move' G move / weight.
    """
    for k in range(size):
        slots[PRODUCT, k] = -eta * slots[ALONG, k]
        slots[MOVE, k] = (slots[TARGET, k] if chosen[k] else 0.0) - slots[THETA, k]
    for k in range(size):
        if chosen[k] != (k < n_kept):
            extra = slots[MOVE, k] + eta * slots[DIRECTION, k]
            for m in range(size):
                slots[PRODUCT, m] += local[k, m] * extra
    return measure_move(totals, slots, size, centred)


@compiled
def shrink(slots: Floats, chosen: Integers, size: int) -> float:
    """Reciprocal thresholding of the targets: z (1 + sqrt(1 - (tau / z)^2)) / 2, tau the largest that is not chosen.

    Returns tau.
    """
    tau = 0.0
    for k in range(size):
        if not chosen[k]:
            tau = max(tau, slots[KEY, k])
    for k in range(size):
        if chosen[k] and slots[KEY, k] > 0.0:
            share = tau / slots[KEY, k]
            slots[TARGET, k] *= 0.5 * (1.0 + np.sqrt(max(1.0 - share * share, 0.0)))
    return tau


@compiled
def measure_any(
    totals: Floats, slots: Floats, chosen: Integers, local: Floats, size: int, centred: bool
) -> tuple[float, float, float]:
    """As `measure_change`, for targets that are not a gradient step away."""
    for k in range(size):
        slots[MOVE, k] = (slots[TARGET, k] if chosen[k] else 0.0) - slots[THETA, k]
    local_product(local, slots, MOVE, PRODUCT, size, size)
    return measure_move(totals, slots, size, centred)


@compiled
def residual(
    moments: Floats, totals: Floats, slots: Floats, features: Integers, n_kept: int, centred: bool
) -> tuple[float, float]:
    """Mean squared residual of theta and of zero, given the gradient: y'y - theta'h + weight theta'g, over weight."""
    weight, sum_y = totals[WEIGHT], totals[SUM_Y]
    along_y, along_shift = totals[SHIFT_Y], sum_y + weight * totals[SHIFT_Y]
    total = totals[SUM_YY] + (sum_y + along_shift) * totals[SHIFT_Y]
    if centred:
        total = totals[SUM_YY] - sum_y * (sum_y / weight)
        along_y, along_shift = -sum_y / weight, 0.0
    explained = 0.0
    for k in range(n_kept):
        h = moments[CROSS, features[k]] + slots[SUM, k] * along_y + slots[SHIFT, k] * along_shift
        explained += slots[THETA, k] * (h - weight * slots[GRADIENT, k])
    return max(total - explained, 0.0) / weight, total / weight


@compiled_sums
def stiffness(totals: Floats, slots: Floats, local: Floats, n_kept: int, centred: bool) -> float:
    """The largest row sum of |G_kl| / (weight sigma_k sigma_l) on the support, which bounds its eigenvalues."""
    weight = totals[WEIGHT]
    worst = 0.0
    for k in range(n_kept):
        # G_kl = A_kl + a sum_x_l + b shift_l, as in curvature()
        a, b = slots[SHIFT, k], slots[SUM, k] + weight * slots[SHIFT, k]
        if centred:
            a, b = -slots[SUM, k] / weight, 0.0
        total = 0.0
        for m in range(n_kept):
            entry = local[k, m] + a * slots[SUM, m] + b * slots[SHIFT, m]
            total += slots[UNIT, m] * abs(entry)
        worst = max(worst, slots[UNIT, k] * total)
    return float(worst / weight)


@compiled
def resting_step(
    totals: Floats,
    slots: Floats,
    features: Integers,
    chosen: Integers,
    local: Floats,
    n_kept: int,
    size: int,
    problem: Problem,
) -> float:
    """A step to try when the support feels no pull: |v|^2 / (v' G v) for v = theta.

    At theta = 0, v is the gradient of the s features that pull hardest; the working set must hold them.
    """
    if n_kept == 0:
        for k in range(size):
            slots[KEY, k] = slots[UNIT, k] * abs(slots[GRADIENT, k])
        choose(slots, features, chosen, size, problem.sparsity, np.max(slots[KEY, :size]))
    for k in range(size):
        if n_kept == 0:
            slots[MOVE, k] = slots[INVERSE, k] * slots[GRADIENT, k] if chosen[k] else 0.0
        else:
            slots[MOVE, k] = slots[THETA, k]
    local_product(local, slots, MOVE, PRODUCT, n_kept if n_kept else size, size)
    length, _, bend = measure_move(totals, slots, size, problem.centred)
    return length / bend if bend > 0.0 else 0.0
