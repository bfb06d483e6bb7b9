"""Hard-thresholding steps on a Gram, at a cost that depends on s rather than on d.

One step of Algorithm 1 is theta <- P_s(theta - eta g(theta)). In the metric of the column scales it is
theta_j - eta g_j / sigma_j^2, keeping the largest sigma_j |theta_j|; without standardisation sigma_j = 1.
The gradient is known exactly on the working set, and `certificate` proves that nothing outside is chosen.
"""

import numpy as np

from thresher.kernels._compile import compiled, compiled_sums
from thresher.kernels.certificate import (
    CEILING,
    LAST_STEP,
    QUIET,
    REACH,
    TIE,
    TOO_MANY,
    WIDTH,
    nth_largest,
    reach_holds,
    rebase,
    scan_outside,
    usual_size,
    widen,
)
from thresher.kernels.gram import (
    N_BUFFERED,
    SHIFT_X,
    SUM_X,
    WEIGHT,
    Floats,
    GramArrays,
    Integers,
)
from thresher.kernels.problem import TINY, Problem, curvature, tilt, variance
from thresher.kernels.step_grid import ROUNDING, on_grid
from thresher.kernels.working_set import (
    AT_REFERENCE,
    DRIFT,
    N_KEPT,
    REFERENCE,
    SIZE,
    STALE,
    THETA,
    WorkingSet,
    keep,
    local_product,
)

# Rows of WorkingSet.slots that are filled anew in every round, after THETA, REFERENCE, DRIFT:
PULL, SUM, SHIFT = 3, 4, 5  # A r - b, sum_x and shift of the feature
ROOT, INVERSE = 6, 7  # sigma_j and 1 / sigma_j^2 (zero for a constant column), or one
GRADIENT = 8
TARGET, KEY = 9, 10  # theta_j - eta g_j / sigma_j^2, and sigma_j |target_j|
DIRECTION, ALONG = 11, 12  # g_j / sigma_j^2 on the support, and A times it
MOVE, PRODUCT = 13, 14  # the change of theta in a step that changes the support, and A times it
N_SLOT_ROWS = 15

# Places in `tallies`: steps; those without any work of order d s; moved references; steps after which the
# loss was higher; steps not taken because they overflow.
N_STEPS, N_CERTIFIED, N_MOVED, N_RISES, N_OVERFLOWS = 0, 1, 2, 3, 4

# A step that is rejected shrinks at least by this factor, so that the search ends.
SHRINK = 0.9
# A support that would move by less than this, relatively, rests: what pulls it is rounding, and the
# direction of rounding must not decide how far to look for better features.
RESTING = 1e-10
# REACH and WIDTH shrink as rows come in: after this many rows they are tightened even where they hold.
ROWS_PER_SCAN = 16


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
def fill_direction(
    totals: Floats, slots: Floats, local: Floats, n_kept: int, size: int, centred: bool
) -> tuple[float, float, float]:
    """The direction q of a step on the support, and A q.

    Returns q . g, q' G q / weight and |theta|^2 in the metric.
    """
    for k in range(n_kept):
        slots[DIRECTION, k] = slots[INVERSE, k] * slots[GRADIENT, k]
    for k in range(n_kept, size):
        slots[DIRECTION, k] = 0.0
    local_product(local, slots, DIRECTION, ALONG, n_kept, size)
    slope, quadratic, along_sum, along_shift, extent = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(n_kept):
        q, size_of_theta = slots[DIRECTION, k], slots[ROOT, k] * slots[THETA, k]
        extent += size_of_theta * size_of_theta
        slope += q * slots[GRADIENT, k]
        quadratic += q * slots[ALONG, k]
        along_sum += q * slots[SUM, k]
        along_shift += q * slots[SHIFT, k]
    return slope, curvature(totals, quadratic, along_sum, along_shift, centred), extent


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
def choose(slots: Floats, features: Integers, chosen: Integers, size: int, sparsity: int, band: float) -> float:
    """Mark the slots of the s largest keys: the projection, when nothing outside can be chosen.

    Returns the smallest key among them. Keys within `band` of the cut are tied; ties go to the lowest feature.
    """
    n = min(sparsity, size)
    cut = nth_largest(slots[KEY, :size], n)
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
    length, slope, quadratic, along_sum, along_shift = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(size):
        move = slots[MOVE, k]
        length += (move * slots[ROOT, k]) * (move * slots[ROOT, k])
        slope += move * slots[GRADIENT, k]
        quadratic += move * slots[PRODUCT, k]
        along_sum += move * slots[SUM, k]
        along_shift += move * slots[SHIFT, k]
    return length, slope, curvature(totals, quadratic, along_sum, along_shift, centred)


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
            slots[KEY, k] = np.sqrt(slots[INVERSE, k]) * abs(slots[GRADIENT, k])
        band = TIE * np.max(slots[KEY, :size])
        choose(slots, features, chosen, size, problem.sparsity, band)
    for k in range(size):
        if n_kept == 0:
            slots[MOVE, k] = slots[INVERSE, k] * slots[GRADIENT, k] if chosen[k] else 0.0
        else:
            slots[MOVE, k] = slots[THETA, k]
    local_product(local, slots, MOVE, PRODUCT, size, size)
    length, quadratic, along_sum, along_shift = 0.0, 0.0, 0.0, 0.0
    for k in range(size):
        move = slots[MOVE, k]
        length += (move * slots[ROOT, k]) * (move * slots[ROOT, k])
        quadratic += move * slots[PRODUCT, k]
        along_sum += move * slots[SUM, k]
        along_shift += move * slots[SHIFT, k]
    bend = curvature(totals, quadratic, along_sum, along_shift, problem.centred)
    return length / bend if bend > 0.0 else 0.0


@compiled
def run_round(
    gram: GramArrays,
    work: WorkingSet,
    coef: Floats,
    steps: Floats,
    which: int,
    problem: Problem,
    numbers: Floats,
    tallies: Integers,
) -> None:
    """One round on the rows absorbed so far: Algorithm 1, lines 4 to 6, with the K steps steps[which].

    A step of zero asks for the certified step: the minimiser of the loss along the gradient on the
    support, as in normalised iterative hard thresholding, shrunk until eta <= |move|^2 / (move' G move).
    That is the descent lemma's condition, so the loss does not rise.
    """
    moments, totals, wide = gram.moments, gram.totals, work.wide
    slots, features, chosen, local = work.slots, work.features, work.chosen, work.local
    counts = work.counts
    d, centred = coef.shape[0], problem.centred
    if totals[WEIGHT] == 0.0:
        return
    fresh = counts[STALE] == 1 or counts[N_KEPT] == 0
    if fresh:
        rebase(gram, work, coef, problem, usual_size(problem))
    size, n_kept = counts[SIZE], counts[N_KEPT]
    fill_round(moments, totals, wide, slots, features, size, problem)
    if (
        fresh
        or gram.counts[N_BUFFERED] % ROWS_PER_SCAN == 0
        or not reach_holds(moments, totals, wide, slots, features, size, numbers, problem)
    ):
        scan_outside(gram, work, problem, numbers)
    numbers[CEILING] = np.inf

    for step in range(steps.shape[1]):
        eta = steps[which, step]
        automatic = eta == 0.0
        certified = True  # no work of order d s was needed
        again = problem.caution == np.inf
        exhausted = False  # the working set holds every feature that could be chosen
        searching, rejected = True, False
        slack, slope, bend = 0.0, 0.0, 0.0
        while True:
            if searching:
                slack = fill_gradient(totals, slots, size, centred)
                slope, bend, extent = fill_direction(totals, slots, local, n_kept, size, centred)
                if automatic:
                    eta = slope / bend if bend > 0.0 else 0.0
                    if eta * (eta * slope) <= RESTING * (RESTING * extent):
                        eta = resting_step(totals, slots, features, chosen, local, n_kept, size, problem)
                    eta = min(on_grid(eta), numbers[CEILING])
                searching = False
            lowest, highest, largest = aim(slots, n_kept, size, eta)
            band = TIE * largest
            changed = n_kept < min(problem.sparsity, size) or not highest + band < lowest
            if changed:
                lowest = choose(slots, features, chosen, size, problem.sparsity, band)

            if not exhausted and size < d:
                bound = numbers[REACH] + numbers[WIDTH] * slack
                lowest -= 2.0 * band
                if bound > 0.0 and not problem.caution * (eta * bound) < lowest:
                    limit = lowest / eta if eta > 0.0 else 0.0
                    found = widen(gram, work, coef, problem, numbers, slack, limit, again)
                    if found == TOO_MANY:
                        certified, exhausted, again = False, again, True
                        tallies[N_MOVED] += 1
                    if found != QUIET:
                        size, searching = counts[SIZE], True
                        fill_round(moments, totals, wide, slots, features, size, problem)
                        continue
            if eta == 0.0:
                break  # the gradient vanishes everywhere

            if changed:
                length, fall, rise = measure_change(totals, slots, chosen, local, n_kept, size, eta, centred)
            else:
                length, fall, rise = eta * (eta * slope), -eta * slope, eta * (eta * bend)
            if not abs(fall) + rise < np.inf:
                tallies[N_OVERFLOWS] += 1
                break
            if automatic and eta * rise > length * (1.0 + ROUNDING):
                eta, rejected = on_grid(min(SHRINK * eta, length / rise)), True
                continue
            if not automatic and fall + 0.5 * rise > 1e-9 * abs(fall):
                tallies[N_RISES] += 1

            if changed:
                for k in range(size):
                    slots[THETA, k] = slots[TARGET, k] if chosen[k] else 0.0
                    slots[DRIFT, k] += slots[PRODUCT, k]
                    coef[features[k]] = slots[THETA, k]
                keep(work, gram.counts[N_BUFFERED])
                n_kept = counts[N_KEPT]
                fill_round(moments, totals, wide, slots, features, size, problem)
                numbers[CEILING] = np.inf
            else:
                for k in range(n_kept):
                    slots[THETA, k] = slots[TARGET, k]
                for k in range(size):
                    slots[DRIFT, k] -= eta * slots[ALONG, k]
                if rejected:
                    # The same exchange would be tried and rejected again within this round.
                    numbers[CEILING] = eta
            numbers[LAST_STEP] = eta
            tallies[N_STEPS] += 1
            tallies[N_CERTIFIED] += certified
            break

    for k in range(n_kept):
        coef[features[k]] = slots[THETA, k]
