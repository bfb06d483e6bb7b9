"""A round of hard-thresholding steps on a Gram, at a cost that depends on s rather than on d.

The gradient is known exactly on the working set, and `certificate` proves that nothing outside is chosen.
"""

import numpy as np

from thresher.kernels._compile import compiled
from thresher.kernels.certificate import (
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
from thresher.kernels.gram import N_BUFFERED, WEIGHT, Floats, GramArrays, Integers
from thresher.kernels.leap import FEWEST_TO_LEAP, leap
from thresher.kernels.problem import Problem
from thresher.kernels.step import (
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
    measure_change,
    resting_step,
    stiffness,
)
from thresher.kernels.step_grid import RESTING, ROUNDING, SHRINK, STABLE, on_grid
from thresher.kernels.working_set import DRIFT, N_KEPT, SIZE, STALE, THETA, WorkingSet, keep

# Places in `tallies`: steps; those without any work of order d s; moved references; steps after which the
# loss was higher; steps not taken because they overflow; rounds that were one leap.
N_STEPS, N_CERTIFIED, N_MOVED, N_RISES, N_OVERFLOWS, N_LEAPS = 0, 1, 2, 3, 4, 5
N_TALLIES = 6

# REACH and WIDTH shrink as rows come in: after this many rows they are tightened even where they hold.
ROWS_PER_SCAN = 16


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
        or not reach_within(moments, totals, wide, slots, features, size, numbers[REACH], numbers[WIDTH], problem)
    ):
        scan_outside(gram, work, problem, numbers)
    numbers[CEILING], stiff = np.inf, -1.0

    slack, loose = -1.0, False  # of the certificate; negative while the gradient is not known
    first = 0
    if steps.shape[1] >= FEWEST_TO_LEAP:
        first = leap(totals, slots, local, n_kept, size, steps, which, problem, numbers)
        tallies[N_STEPS] += first
        tallies[N_CERTIFIED] += first
        tallies[N_LEAPS] += first > 0
    for step in range(first, steps.shape[1]):
        eta = steps[which, step]
        automatic = eta == 0.0
        certified = True  # no work of order d s was needed
        again = problem.caution == np.inf
        exhausted = False  # the working set holds every feature that could be chosen
        searching, rejected = True, False
        slope, bend = 0.0, 0.0
        while True:
            if searching:
                if slack < 0.0:
                    slack, loose = fill_gradient(totals, slots, size, centred), False
                slope, bend, extent = fill_direction(totals, slots, local, n_kept, size, centred)
                if automatic:
                    if stiff < 0.0:
                        stiff = stiffness(totals, slots, local, n_kept, centred)
                    eta = slope / bend if bend > 0.0 else 0.0
                    if eta * (eta * slope) <= RESTING * (RESTING * extent):
                        eta = resting_step(totals, slots, features, chosen, local, n_kept, size, problem)
                    if stiff > 0.0:
                        eta = min(eta, STABLE / stiff)
                    eta = min(on_grid(eta), numbers[CEILING])
                searching = False
            lowest, highest, largest = aim(slots, n_kept, size, eta)
            band = tie_band(lowest, largest)
            changed = n_kept < min(problem.sparsity, size) or not highest + band < lowest
            if changed:
                lowest = choose(slots, features, chosen, size, problem.sparsity, largest)
                band = tie_band(lowest, largest)

            if not exhausted and size < d:
                bound = numbers[REACH] + numbers[WIDTH] * slack
                lowest -= 2.0 * band
                if bound > 0.0 and not problem.caution * (eta * bound) < lowest:
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
            numbers[LAST_STEP] = eta
            tallies[N_STEPS] += 1
            tallies[N_CERTIFIED] += certified
            break

    for k in range(n_kept):
        coef[features[k]] = slots[THETA, k]
