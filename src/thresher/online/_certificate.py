"""Proof that the projection stays within the working set, without looking at all d features.

For every feature j, theta = r + D and any positive semi-definite G, Cauchy-Schwarz in data space gives

    |g_j(theta)| <= |g_j(r)| + sqrt(G_jj / weight) sqrt(D' G D / weight)                         (2)

When eta times the right-hand side, over sigma_j, is below the smallest kept magnitude for every j outside
the working set, none of them can be chosen. Features that (2) cannot rule out are loaded into the set; if they
are many, the reference moves to theta, which makes (2) exact.
"""

import numpy as np

from thresher._utils.compile import compiled
from thresher._utils.tolerances import TIE, TINY
from thresher.online._gram import (
    N_BUFFERED,
    SHIFT_X,
    SUM_X,
    SUM_XX,
    WEIGHT,
    Floats,
    GramArrays,
    Integers,
)
from thresher.online._problem import Problem, tilt, variance
from thresher.online._working_set import (
    AT_REFERENCE,
    N_KEPT,
    OUTSIDE,
    REFERENCE,
    SIZE,
    STALE,
    STRENGTH,
    WorkingSet,
    evict,
    load,
    move_reference,
    reload,
)
from thresher.sparsity._common import ROUNDOFF

# How many features the bound may fail to rule out before it is cheaper to move the reference.
MAX_SUSPECTS = 12
# Features beyond the support that a moved reference loads.
SPARE = 16
# REACH and WIDTH are set this much above the maxima they stand for, so that they hold for some rows.
HEADROOM = 1.02

# Places in the array `numbers` that the rounds keep: the largest |g_j(r)| / sigma_j and sqrt(G_jj / weight) / sigma_j
# outside the working set; the largest step worth trying in this round; the last step taken.
REACH, WIDTH, CEILING, LAST_STEP = 0, 1, 2, 3

# Squares outside these are not trusted.
SMALL, LARGE = 1e-290, 1e300

# What `rule_out` found
QUIET, LOADED, TOO_MANY = 0, 1, 2


@compiled
def tie_band(cut: float, largest: float) -> float:
    """How far from the cut a magnitude counts as tied with it: rounding must not choose between equal columns."""
    return TIE * cut + ROUNDOFF * largest


@compiled
def reference_tilt(
    moments: Floats,
    totals: Floats,
    slots: Floats,
    features: Integers,
    size: int,
    centred: bool,
) -> tuple[float, float]:
    """(alpha, beta) of the gradient at the reference point."""
    along_sum, along_shift = 0.0, 0.0
    for k in range(size):
        along_sum += slots[REFERENCE, k] * moments[SUM_X, features[k]]
        along_shift += slots[REFERENCE, k] * moments[SHIFT_X, features[k]]
    return tilt(totals, along_sum, along_shift, centred)


@compiled
def reach_within(
    moments: Floats,
    totals: Floats,
    wide: Floats,
    slots: Floats,
    features: Integers,
    size: int,
    reach: float,
    width: float,
    problem: Problem,
) -> bool:
    """Whether |g_j(r)| <= reach sigma_j and sqrt(G_jj / weight) <= width sigma_j for every feature outside.

    Squares are compared, so that the loops need neither roots nor divisions; where they would overflow or
    vanish, the answer is no.
    """
    weight = totals[WEIGHT]
    alpha, beta = reference_tilt(moments, totals, slots, features, size, problem.centred)
    mean, zero = (-1.0 / weight, 0.0) if problem.centred else (0.0, 1.0)
    squared = reach * (reach * weight)
    d, n_beyond = wide.shape[1], 0
    if problem.standardized:
        for j in range(d):
            sum_x, shift = moments[SUM_X, j], moments[SHIFT_X, j]
            g = wide[OUTSIDE, j] * (wide[AT_REFERENCE, j] + shift * alpha + sum_x * beta)
            about = mean * (sum_x * sum_x) + zero * ((2.0 * sum_x + weight * shift) * shift)
            limit = squared * (moments[SUM_XX, j] + about)
            n_beyond += (g * g > limit) | (limit > LARGE) | ((limit < SMALL) & (g != 0.0))
    else:
        widest = width * width * weight
        if not widest < LARGE:
            return False
        for j in range(d):
            sum_x, shift = moments[SUM_X, j], moments[SHIFT_X, j]
            g = wide[OUTSIDE, j] * (wide[AT_REFERENCE, j] + shift * alpha + sum_x * beta)
            about = mean * (sum_x * sum_x) + zero * ((2.0 * sum_x + weight * shift) * shift)
            n_beyond += abs(g) > reach * weight
            n_beyond += moments[SUM_XX, j] + about > widest
    return n_beyond == 0


@compiled
def fill_strength(gram: GramArrays, work: WorkingSet, problem: Problem, slack: float) -> None:
    """STRENGTH: bound (2) over sigma_j for every feature, with slack = sqrt(D' G D / weight)."""
    moments, totals, wide = gram.moments, gram.totals, work.wide
    alpha, beta = reference_tilt(moments, totals, work.slots, work.features, work.counts[SIZE], problem.centred)
    for j in range(wide.shape[1]):
        g = wide[AT_REFERENCE, j] + moments[SHIFT_X, j] * alpha + moments[SUM_X, j] * beta
        g = abs(g) / totals[WEIGHT]
        scale = variance(moments, totals, j, problem.centred)
        if not problem.standardized:
            wide[STRENGTH, j] = g + np.sqrt(scale) * slack
        elif scale >= TINY:
            wide[STRENGTH, j] = g / np.sqrt(scale) + slack
        else:
            wide[STRENGTH, j] = 0.0


@compiled
def scan_outside(gram: GramArrays, work: WorkingSet, problem: Problem, numbers: Floats) -> None:
    """Set REACH and WIDTH."""
    fill_strength(gram, work, problem, 0.0)
    reach, width = 0.0, 0.0
    for j in range(work.wide.shape[1]):
        reach = max(reach, work.wide[OUTSIDE, j] * work.wide[STRENGTH, j])
        if not problem.standardized:
            width = max(width, variance(gram.moments, gram.totals, j, problem.centred))
    numbers[REACH] = HEADROOM * reach
    numbers[WIDTH] = 1.0 if problem.standardized else HEADROOM * np.sqrt(width)


@compiled
def rule_out(gram: GramArrays, work: WorkingSet, problem: Problem, numbers: Floats, slack: float, limit: float) -> int:
    """Apply (2) feature by feature; load those it cannot keep below `limit`, if they are few."""
    # In the metric, (2) reads |g_j(r)| / sigma_j + slack, so what is left outside has a known reach.
    reach = limit / problem.bound_scale - slack
    known = problem.standardized and reach > 0.0
    if known and reach_within(
        gram.moments, gram.totals, work.wide, work.slots, work.features, work.counts[SIZE], reach, 1.0, problem
    ):
        numbers[REACH] = min(numbers[REACH], reach)
        return QUIET
    room = min(MAX_SUSPECTS, work.features.shape[0] - work.counts[SIZE])
    fill_strength(gram, work, problem, slack)
    suspects = np.empty(room, np.int64)
    n = 0
    for j in range(work.wide.shape[1]):
        if work.wide[OUTSIDE, j] == 1.0 and not problem.bound_scale * work.wide[STRENGTH, j] < limit:
            if n == room:
                return TOO_MANY
            suspects[n] = j
            n += 1
    for i in range(n):
        load(gram, work, suspects[i])
    if known:
        numbers[REACH] = reach
    elif n > 0:
        scan_outside(gram, work, problem, numbers)
    return LOADED if n else QUIET


@compiled
def usual_size(problem: Problem) -> int:
    """How many features a moved reference loads."""
    return problem.sparsity + SPARE


@compiled
def nth_largest(values: Floats, n: int) -> float:
    """The n-th largest of `values`, by quickselect (np.partition would take seconds to compile)."""
    work = values.copy()
    low, high, place = 0, work.shape[0] - 1, n - 1
    while low < high:
        pivot = work[(low + high) // 2]
        i, j = low, high
        while i <= j:  # larger values to the left
            while work[i] > pivot:
                i += 1
            while work[j] < pivot:
                j -= 1
            if i <= j:
                work[i], work[j] = work[j], work[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return float(work[place])


@compiled
def rebase(gram: GramArrays, work: WorkingSet, coef: Floats, problem: Problem, n_wanted: int) -> None:
    """Move the reference to the estimate; fill the set to `n_wanted` with what pulls hardest."""
    d = coef.shape[0]
    if work.counts[STALE]:
        reload(gram, work, coef)
    move_reference(gram, work)
    fill_strength(gram, work, problem, 0.0)
    n_kept = work.counts[N_KEPT]
    strength = work.wide[STRENGTH]
    for k in range(n_kept):
        strength[work.features[k]] = -1.0  # in anyway, so out of the contest
    room = min(n_wanted, work.features.shape[0], d) - n_kept
    cut = nth_largest(strength, room) if room > 0 else np.inf
    band = tie_band(cut, np.max(strength)) if room > 0 else 0.0
    wanted = np.zeros(d, np.bool_)
    for j in range(d):
        if room > 0 and strength[j] > cut + band:
            wanted[j] = True
            room -= 1
    for j in range(d):  # ties go to the lowest index
        if room > 0 and not wanted[j] and strength[j] >= max(cut - band, 0.0):
            wanted[j] = True
            room -= 1
    for k in range(work.counts[SIZE] - 1, n_kept - 1, -1):
        if not wanted[work.features[k]]:
            evict(work, gram.counts[N_BUFFERED], k)
    for j in range(d):
        if wanted[j] and work.wide[OUTSIDE, j] == 1.0:
            load(gram, work, j)


@compiled
def widen(
    gram: GramArrays,
    work: WorkingSet,
    coef: Floats,
    problem: Problem,
    numbers: Floats,
    slack: float,
    limit: float,
    again: bool,
) -> int:
    """Bring into the working set whatever (2) cannot keep below `limit`.

    If it is too much, the reference moves: a first time to make (2) exact, and when asked `again` with room
    for a whole new support, so that nothing outside can be chosen any more.
    """
    found = rule_out(gram, work, problem, numbers, slack, limit)
    if found == TOO_MANY:
        rebase(gram, work, coef, problem, work.features.shape[0] if again else usual_size(problem))
        scan_outside(gram, work, problem, numbers)
    return found
