"""A round of hard-thresholding steps on a dense estimate."""

from typing import Any

import numpy as np

from thresher._utils.compile import compiled
from thresher.online._dense_projection import project, restrict, size_of_estimate
from thresher.online._dense_state import (
    LAST_STEP,
    PATH,
    ROOT,
    SINGLE_REACH,
    STALE,
    STIFFNESS,
    UNIT,
    WEIGHT_THEN,
    DenseProblem,
    DenseState,
    along,
    fill_gradient,
    fill_product,
    fill_units,
    measure_move,
    refresh,
    write_gradient,
)
from thresher.online._gram import SHIFT_X, SUM_X, WEIGHT, Floats, GramArrays
from thresher.online._step_grid import GROWTH, N_POWER, ROUNDING, SHRINK, STABLE, on_grid
from thresher.online._subspace import dot

# Places in `tallies`: steps; projections without a full decomposition; gradients computed again; steps after
# which the loss was higher; steps not taken because they overflow; certified steps that were shortened.
N_STEPS, N_FOLLOWED, N_REFRESHED, N_RISES, N_OVERFLOWS, N_SHORTENED = 0, 1, 2, 3, 4, 5
N_TALLIES = 6
# A move of less than the root of rounding, relatively, changes the loss by less than rounding.
UNFELT = 1e-8


@compiled
def aim(state: DenseState, eta: float) -> bool:
    """Target = theta - eta g in the metric. False if that overflows."""
    q, target = state.gradient.shape[1], state.target.reshape(-1)
    root, unit = state.units[ROOT], state.units[UNIT]
    if q == 1:  # a plain loop, which the compiler can vectorise
        theta, gradient = state.joined.reshape(-1), state.gradient.reshape(-1)
        for i in range(target.shape[0]):
            target[i] = root[i] * theta[i] - eta * (unit[i] * gradient[i])
    else:
        for i in range(state.gradient.shape[0]):
            for j in range(q):
                target[i * q + j] = root[i] * state.joined[i, j] - eta * (unit[i] * state.gradient[i, j])
    return bool(dot(target, target) < np.inf)


@compiled
def fill_move(state: DenseState) -> None:
    """Move = the projected point, back in the units of the data, less theta."""
    q, projected, unit = state.gradient.shape[1], state.projected.reshape(-1), state.units[UNIT]
    if q == 1:
        theta, move = state.joined.reshape(-1), state.move.reshape(-1)
        for i in range(projected.shape[0]):
            move[i] = unit[i] * projected[i] - theta[i]
        return
    for i in range(state.gradient.shape[0]):
        for j in range(q):
            state.move[i, j] = unit[i] * projected[i * q + j] - state.joined[i, j]


@compiled
def apply_move(state: DenseState) -> None:
    """Take the step."""
    q, projected, unit = state.gradient.shape[1], state.projected.reshape(-1), state.units[UNIT]
    if q == 1:
        theta = state.joined.reshape(-1)
        for i in range(projected.shape[0]):
            theta[i] = unit[i] * projected[i]
    else:
        for i in range(state.gradient.shape[0]):
            for j in range(q):
                state.joined[i, j] = unit[i] * projected[i * q + j]
    pull, product = state.pull.reshape(-1), state.product.reshape(-1)
    for i in range(pull.shape[0]):
        pull[i] += product[i]


@compiled
def estimate_stiffness(gram: GramArrays, blas: Any, state: DenseState, problem: DenseProblem) -> None:
    """STIFFNESS: the largest curvature of the loss tangent to the set, by power iteration from the last estimate.

    Too small an estimate is harmless: steps are certified, and below twice the true inverse they are stable.
    """
    mode, weight = state.mode, gram.totals[WEIGHT]
    if not aim(state, 0.0):
        return
    pull = 0.0
    for i in range(mode.shape[0]):
        for j in range(mode.shape[1]):
            pull = max(pull, abs(state.units[UNIT, i] * state.gradient[i, j]))
    last = np.max(np.abs(mode))
    if last > 0.0:
        mode /= last
    at_zero, flat, q = size_of_estimate(state) == 0.0, state.target.reshape(-1), mode.shape[1]
    if pull > 0.0:
        for i in range(mode.shape[0]):
            for j in range(q):
                slope = (state.units[UNIT, i] * state.gradient[i, j]) / pull
                mode[i, j] += slope  # what pulls now must not be orthogonal to the start
                if at_zero:  # the directions that the gradient opens
                    flat[i * q + j] = slope
    project(state, problem)
    largest = 0.0
    for _ in range(N_POWER):
        restrict(state, problem, mode)
        largest_entry = np.max(np.abs(mode))
        if not (largest_entry > 0.0 and largest_entry < np.inf):
            mode[:] = 0.0
            break
        mode /= largest_entry  # so that squares stay in range
        size = np.sqrt(np.sum(mode * mode))
        for i in range(mode.shape[0]):
            for j in range(mode.shape[1]):
                mode[i, j] /= size
                state.move[i, j] = state.units[UNIT, i] * mode[i, j]
        fill_product(gram, blas, state, problem)
        largest = max(largest, measure_move(gram, state, problem.centred)[2])
        sums, shifts = along(gram, state.move, SUM_X), along(gram, state.move, SHIFT_X)
        write_gradient(gram, state.product, sums, shifts, weight, problem.centred, mode)
        for i in range(mode.shape[0]):
            for j in range(mode.shape[1]):
                mode[i, j] *= state.units[UNIT, i]
    state.numbers[STIFFNESS] = largest
    state.numbers[WEIGHT_THEN] = weight


@compiled
def find_gradient(gram: GramArrays, blas: Any, state: DenseState, problem: DenseProblem) -> None:
    """The gradient where the estimate is, from scratch if need be."""
    if state.flags[STALE] or state.numbers[PATH] > SINGLE_REACH * np.sqrt(size_of_estimate(state)):
        refresh(gram, blas, state, problem)
        state.tallies[N_REFRESHED] += 1
    fill_gradient(gram, state, problem)


@compiled
def propose(state: DenseState, eta: float, problem: DenseProblem) -> bool:
    """Where a step of that size leads, and the move there. False if that overflows."""
    if not aim(state, eta):
        state.tallies[N_OVERFLOWS] += 1
        return False
    state.tallies[N_FOLLOWED] += project(state, problem)
    fill_move(state)
    return True


@compiled
def accept(
    state: DenseState, eta: float, length: float, fall: float, rise: float, automatic: bool, problem: DenseProblem
) -> None:
    """Take the step that was proposed, measured by `measure_move`."""
    felt = length > UNFELT * (UNFELT * size_of_estimate(state))
    if not automatic and felt and fall + 0.5 * rise > 1e-9 * abs(fall):
        state.tallies[N_RISES] += 1
    apply_move(state)
    if problem.single:
        state.numbers[PATH] += np.sqrt(length)
    state.numbers[LAST_STEP] = eta
    state.tallies[N_STEPS] += 1


@compiled
def run_round(gram: GramArrays, blas: Any, state: DenseState, steps: Floats, which: int, problem: DenseProblem) -> None:
    """One round on the rows absorbed so far: Algorithm 1, lines 4 to 6, with the K steps steps[which].

    A step of zero asks for the certified step: one over the largest curvature, shortened until
    eta <= |move|^2 / (move' G move). That is the descent lemma's condition, so the loss does not rise.
    """
    numbers, tallies, weight = state.numbers, state.tallies, gram.totals[WEIGHT]
    if weight == 0.0:
        return
    fill_units(gram, state, problem)
    for step in range(steps.shape[1]):
        find_gradient(gram, blas, state, problem)
        eta = steps[which, step]
        automatic = eta == 0.0
        if automatic:
            if not weight < GROWTH * numbers[WEIGHT_THEN]:
                estimate_stiffness(gram, blas, state, problem)
            if numbers[STIFFNESS] == 0.0:
                numbers[WEIGHT_THEN] = 0.0
                break  # nothing pulls, or nothing bends
            # For groups the longest stable step, which exchanges them most easily, at the price of a second product
            # when it is rejected.
            eta = on_grid((1.0 if problem.by_rank else STABLE) / numbers[STIFFNESS])
        while propose(state, eta, problem):
            fill_product(gram, blas, state, problem)
            length, fall, rise = measure_move(gram, state, problem.centred)
            if not abs(fall) + rise < np.inf:
                tallies[N_OVERFLOWS] += 1
                break
            if automatic and eta * rise > length * (1.0 + ROUNDING):
                eta = on_grid(min(SHRINK * eta, length / rise))
                if eta * numbers[STIFFNESS] < 1.0:  # it was underestimated: look again in the next step
                    numbers[STIFFNESS] = 1.0 / eta
                    numbers[WEIGHT_THEN] = 0.0
                tallies[N_SHORTENED] += 1
                continue
            accept(state, eta, length, fall, rise, automatic, problem)
            break
