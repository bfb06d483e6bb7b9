"""A whole round of short steps as one polynomial.

While the support holds, K steps of one size eta are linear: with q = g / sigma^2 on the support and
B = (G / weight) / sigma^2 there,

    theta_K - theta_0 = -eta sum_{k<K} (I - eta B)^k q = -sum_j c_j B^j q,   c_j = (-1)^j C(K, j + 1) eta^(j + 1).

For steps far below 1 / L, the terms fall so fast that a few of them give the sum to the last bit: K = 20 steps
cost as much as eight. Their sizes also bound how far any of the K iterates is from theta_0,
which is what it takes to prove that none of them leaves the support.
"""

import numpy as np

from thresher._utils.compile import compiled
from thresher.online._certificate import LAST_STEP, REACH, WIDTH, tie_band
from thresher.online._gram import Floats
from thresher.online._problem import Problem
from thresher.online._step import (
    ALONG,
    BEND,
    DIRECTION,
    GRADIENT,
    INVERSE,
    PRODUCT,
    ROOT,
    TARGET,
    UNIT,
    bend_direction,
    fill_direction,
    fill_gradient,
)
from thresher.online._working_set import DRIFT, THETA

# With fewer steps there is nothing to save.
FEWEST_TO_LEAP = 8
# The second term must be below this share of the first: then no digits are lost to alternating signs.
LARGEST_RATIO = 0.1
# Terms below this share of the sum do not change it.
NEGLIGIBLE = 1e-18


@compiled
def leap(
    totals: Floats,
    slots: Floats,
    local: Floats,
    n_kept: int,
    size: int,
    steps: Floats,
    which: int,
    problem: Problem,
    numbers: Floats,
) -> int:
    """All steps of a round at once, if they are equal, short, and provably leave the support alone.

    Returns how many steps were taken: all or none.
    """
    n_steps, eta = steps.shape[1], steps[which, 0]
    if eta == 0.0 or n_kept < problem.sparsity:
        return 0
    for k in range(1, n_steps):
        if steps[which, k] != eta:
            return 0
    slack = fill_gradient(totals, slots, size, problem.centred)
    slope, bend, _ = fill_direction(totals, slots, local, n_kept, size, problem.centred)

    coefficient = n_steps * eta
    for k in range(size):
        slots[TARGET, k] = slots[THETA, k] - coefficient * slots[DIRECTION, k]
        slots[PRODUCT, k] = -coefficient * slots[ALONG, k]
    # Bounds on |theta_k - theta_0| for every k <= K, in the metric and in data space
    way, work = coefficient * np.sqrt(slope), coefficient * np.sqrt(bend)
    for j in range(1, n_steps):
        length = 0.0
        for k in range(n_kept):  # the next power of B
            slots[DIRECTION, k] = slots[INVERSE, k] * slots[BEND, k]
            length += (slots[ROOT, k] * slots[DIRECTION, k]) * (slots[ROOT, k] * slots[DIRECTION, k])
        bend = bend_direction(totals, slots, local, n_kept, size, problem.centred)
        coefficient *= -eta * (n_steps - j) / (j + 1)
        for k in range(size):
            slots[TARGET, k] -= coefficient * slots[DIRECTION, k]
            slots[PRODUCT, k] -= coefficient * slots[ALONG, k]
        term = abs(coefficient) * np.sqrt(length)
        if j == 1 and not term <= LARGEST_RATIO * way:
            return 0
        way += term
        work += abs(coefficient) * np.sqrt(bend)
        if term <= NEGLIGIBLE * way:
            break

    lowest, largest, pull = np.inf, 0.0, numbers[REACH] + numbers[WIDTH] * slack
    for k in range(n_kept):
        key = slots[ROOT, k] * abs(slots[THETA, k])
        lowest, largest = min(lowest, key), max(largest, key)
    for k in range(n_kept, size):
        pull = max(pull, slots[UNIT, k] * abs(slots[GRADIENT, k]))
    reach = problem.bound_scale * (eta * (pull + numbers[WIDTH] * work))
    if not reach < lowest - way - 2.0 * tie_band(lowest, largest + way):
        return 0
    for k in range(n_kept):
        slots[THETA, k] = slots[TARGET, k]
    for k in range(size):
        slots[DRIFT, k] += slots[PRODUCT, k]
    numbers[LAST_STEP] = eta
    return int(n_steps)
