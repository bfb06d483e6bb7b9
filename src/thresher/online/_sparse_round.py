"""A round of hard-thresholding steps on a Gram, at a cost that depends on s rather than on d.

The gradient is known exactly on the working set, and `certificate` proves that nothing outside is chosen.
"""

import numpy as np

from thresher._utils.compile import compiled
from thresher._utils.tolerances import PERFECT
from thresher.online._certificate import (
    CEILING,
    LAST_STEP,
    QUIET,
    REACH,
    TOO_MANY,
    WIDTH,
    reach_within,
    rebase,
    scan_outside,
    tie_band,
    usual_size,
    widen,
)
from thresher.online._factor import Factor, clear, refit
from thresher.online._gram import N_BUFFERED, WEIGHT, Floats, GramArrays, Integers
from thresher.online._leap import FEWEST_TO_LEAP, leap
from thresher.online._problem import HARD, PURSUIT, RECIPROCAL, Problem
from thresher.online._step import (
    ALONG,
    BEND,
    GRADIENT,
    PRODUCT,
    TARGET,
    aim,
    choose,
    fill_direction,
    fill_gradient,
    fill_round,
    measure_any,
    measure_change,
    residual,
    resting_step,
    shrink,
    stiffness,
)
from thresher.online._step_grid import RESTING, ROUNDING, SHRINK, STABLE, on_grid
from thresher.online._working_set import DRIFT, N_KEPT, SIZE, STALE, THETA, WorkingSet, keep

# Places in `tallies`: steps; those without any work of order d s; moved references; steps after which the
# loss was higher; steps not taken because they overflow; rounds that were one leap.
N_STEPS, N_CERTIFIED, N_MOVED, N_RISES, N_OVERFLOWS, N_LEAPS = 0, 1, 2, 3, 4, 5
N_TALLIES = 6

# REACH and WIDTH shrink as rows come in: after this many rows they are tightened even where they hold.
ROWS_PER_SCAN = 16
# A step of reciprocal thresholding is halved at most so often.
MOST_HALVINGS = 10


@compiled
def run_round(
    gram: GramArrays,
    work: WorkingSet,
    factor: Factor,
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

    With pursuit, theta is least squares on the support at the start and after each step that changes the support; a
    step that does not ends the round. With reciprocal thresholding, which the descent lemma does not cover, a certified
    step is halved until the loss falls, and not taken if it does not.
    """
    moments, totals, wide = gram.moments, gram.totals, work.wide
    slots, features, chosen, local = work.slots, work.features, work.chosen, work.local
    counts = work.counts
    d, centred = coef.shape[0], problem.centred
    if totals[WEIGHT] == 0.0 or problem.sparsity == 0:
        return
    fresh = counts[STALE] == 1 or counts[N_KEPT] == 0
    if fresh:
        rebase(gram, work, coef, problem, usual_size(problem))
    size, n_kept = counts[SIZE], counts[N_KEPT]
    fill_round(moments, totals, wide, slots, features, size, problem)
    if (
        fresh
        or gram.counts[N_BUFFERED] % ROWS_PER_SCAN == 0
        or not reach_within(moments, totals, wide, slots, features, size, numbers[REACH], numbers[WIDTH], problem)
    ):
        scan_outside(gram, work, problem, numbers)
    numbers[CEILING], stiff = np.inf, -1.0
    pursuing, fitted, done = problem.rule == PURSUIT, False, False
    if pursuing and fresh:
        clear(factor)
    if pursuing and n_kept > 0:
        if refit(gram, work, factor, coef, centred, fresh):
            n_kept = counts[N_KEPT]
            fill_round(moments, totals, wide, slots, features, size, problem)
        fitted = True

    slack, loose = -1.0, False  # of the certificate; negative while the gradient is not known
    first = 0
    if steps.shape[1] >= FEWEST_TO_LEAP and problem.rule == HARD:
        first = leap(totals, slots, local, n_kept, size, steps, which, problem, numbers)
        tallies[N_STEPS] += first
        tallies[N_CERTIFIED] += first
        tallies[N_LEAPS] += first > 0
    for step in range(first, steps.shape[1]):
        eta = steps[which, step]
        automatic = eta == 0.0
        certified = True  # no work of order d s was needed
        again = problem.bound_scale == np.inf
        exhausted = False  # the working set holds every feature that could be chosen
        searching, rejected, n_halved = True, False, 0
        slope, bend = 0.0, 0.0
        while True:
            if searching:
                if slack < 0.0:
                    slack, loose = fill_gradient(totals, slots, size, centred), False
                slope, bend, extent = fill_direction(totals, slots, local, n_kept, size, centred)
                if fitted:
                    left, total = residual(moments, totals, slots, features, n_kept, centred)
                    if left <= PERFECT * total:
                        done = True  # nothing is left but rounding
                        break
                if automatic:
                    if stiff < 0.0:
                        stiff = stiffness(totals, slots, local, n_kept, centred)
                    eta = slope / bend if bend > 0.0 else 0.0
                    if fitted or eta * (eta * slope) <= RESTING * (RESTING * extent):
                        eta = resting_step(totals, slots, features, chosen, local, n_kept, size, problem)
                    if stiff > 0.0:
                        eta = min(eta, STABLE / stiff)
                    eta = min(on_grid(eta), numbers[CEILING])
                searching = False
            lowest, highest, largest = aim(slots, n_kept, size, eta)
            band = tie_band(lowest, largest)
            changed = n_kept < min(problem.sparsity, size) or not highest + band < lowest
            changed |= problem.rule == RECIPROCAL
            if changed:
                lowest = choose(slots, features, chosen, size, problem.sparsity, largest)
                if problem.rule == RECIPROCAL:
                    lowest = shrink(slots, chosen, size)  # which must be certain as well
                band = tie_band(lowest, largest)

            if not exhausted and size < d:
                bound = numbers[REACH] + numbers[WIDTH] * slack
                lowest -= 2.0 * band
                if bound > 0.0 and not problem.bound_scale * (eta * bound) < lowest:
                    if loose:  # the slack was only bounded; look again with the exact one
                        loose, searching, slack = False, True, -1.0
                        continue
                    limit = lowest / eta if eta > 0.0 else 0.0
                    found = widen(gram, work, coef, problem, numbers, slack, limit, again)
                    if found == TOO_MANY:
                        certified, exhausted, again = False, again, True
                        tallies[N_MOVED] += 1
                    if found != QUIET:
                        size, searching, slack = counts[SIZE], True, -1.0
                        fill_round(moments, totals, wide, slots, features, size, problem)
                        continue
            if eta == 0.0:
                break  # the gradient vanishes everywhere

            if problem.rule == RECIPROCAL:
                length, fall, rise = measure_any(totals, slots, chosen, local, size, centred)
            elif changed:
                length, fall, rise = measure_change(totals, slots, chosen, local, n_kept, size, eta, centred)
            else:
                length, fall, rise = eta * (eta * slope), -eta * slope, eta * (eta * bend)
            if not abs(fall) + rise < np.inf:
                tallies[N_OVERFLOWS] += 1
                break
            gain = -(fall + 0.5 * rise)
            if automatic and problem.rule == RECIPROCAL:
                if not gain > ROUNDING * (abs(fall) + rise):
                    if n_halved == MOST_HALVINGS:
                        break
                    eta, n_halved = 0.5 * eta, n_halved + 1
                    continue
            elif automatic and eta * rise > length * (1.0 + ROUNDING):
                eta, rejected = on_grid(min(SHRINK * eta, length / rise)), True
                continue
            if not automatic and -gain > 1e-9 * abs(fall):
                tallies[N_RISES] += 1

            numbers[LAST_STEP] = eta
            tallies[N_STEPS] += 1
            tallies[N_CERTIFIED] += certified
            if fitted and not changed:
                done = True
                break
            if changed:
                exchanged = False
                for k in range(size):
                    slots[THETA, k] = slots[TARGET, k] if chosen[k] else 0.0
                    slots[DRIFT, k] += slots[PRODUCT, k]
                    coef[features[k]] = slots[THETA, k]
                    chosen[k] = slots[THETA, k] != 0.0
                    exchanged |= chosen[k] != (k < n_kept)
                keep(work, gram.counts[N_BUFFERED])
                n_kept = counts[N_KEPT]
                fill_round(moments, totals, wide, slots, features, size, problem)
                if pursuing:
                    if refit(gram, work, factor, coef, centred, False):
                        n_kept = counts[N_KEPT]
                        fill_round(moments, totals, wide, slots, features, size, problem)
                    fitted = True
                stiff, slack = -1.0, -1.0
                if exchanged:
                    numbers[CEILING], rejected = np.inf, False
            else:
                for k in range(n_kept):
                    slots[THETA, k] = slots[TARGET, k]
                for k in range(size):
                    slots[DRIFT, k] -= eta * slots[ALONG, k]
                    slots[GRADIENT, k] -= eta * slots[BEND, k]
                slack, loose = slack + eta * np.sqrt(bend), True  # triangle inequality in data space
            if rejected:
                # The same exchange would be tried and rejected again within this round.
                numbers[CEILING] = eta
            break
        if done:
            break

    for k in range(n_kept):
        coef[features[k]] = slots[THETA, k]
