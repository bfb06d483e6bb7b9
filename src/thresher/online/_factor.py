"""Least squares on the support, from a Cholesky factor that rows and support changes keep up to date.

The factor U is upper triangular with U'U the second moments of the *members*: with an intercept those of (1, z_S), the
constant as member zero, z = x - shift; without one those of x_S. A new row, a new member and a member that leaves
cost O(s^2) each. Members are linearly independent: a feature that the others determine cannot enter, and the
least-squares solution has zero for it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher._utils.compile import compiled, compiled_sums
from thresher._utils.tolerances import OWN_SHARE
from thresher.online._gram import (
    CROSS,
    N_BUFFERED,
    SHIFT_X,
    SHIFT_Y,
    SUM_X,
    SUM_Y,
    WEIGHT,
    Floats,
    GramArrays,
    Integers,
)
from thresher.online._problem import variance
from thresher.online._step import MOVE, PRODUCT
from thresher.online._working_set import DRIFT, N_KEPT, SIZE, THETA, WorkingSet, keep, local_product

# A feature may enter if this share of its variance is its own, that is, not explained by the members.
OWN, OWN_SINGLE = OWN_SHARE[np.dtype(np.float64)], OWN_SHARE[np.dtype(np.float32)]
# Members were independent when they entered; when the factor is built again, only rounding can say otherwise.
REBUILT_SHARE = 1e-5  # of the above


class Factor(NamedTuple):
    """Mutable arrays; d features, room for C members."""

    upper: Floats  # (C + 1, C + 1)
    vectors: Floats  # (2, C + 1): a vector to work on, and the solution
    members: Integers  # (C,), features in the order in which they entered
    place: Integers  # (d,), one plus the place among the members, or zero
    counts: Integers  # (1,), number of members


@compiled
def own_share(scatter: NDArray[np.floating]) -> float:
    """The share of its variance that a feature must have of its own, for co-moments stored like these."""
    return OWN if scatter.itemsize == 8 else OWN_SINGLE


@compiled
def clear(factor: Factor) -> None:
    """Forget all members."""
    for m in range(factor.counts[0]):
        factor.place[factor.members[m]] = 0
    factor.counts[0] = 0


@compiled
def add_row(gram: GramArrays, factor: Factor, weight: float, centred: bool) -> None:
    """Restore U'U after the newest row of the buffer was absorbed, by one rotation per member.

    G. H. Golub and C. F. Van Loan, Matrix Computations, Section 6.5.4.
    """
    n_members = factor.counts[0]
    if n_members == 0 or weight == 0.0:
        return
    upper, row, members = factor.upper, factor.vectors[0], factor.members
    newest, root = gram.counts[N_BUFFERED] - 1, np.sqrt(weight)
    first = 1 if centred else 0
    row[0] = root
    for m in range(n_members):
        j = members[m]
        row[first + m] = gram.buffer[newest, j] + (0.0 if centred else root * gram.moments[SHIFT_X, j])
    n = first + n_members
    for k in range(n):
        longer = np.hypot(upper[k, k], row[k])
        cosine, sine = upper[k, k] / longer, row[k] / longer
        upper[k, k] = longer
        line = upper[k]
        for m in range(k + 1, n):
            old = line[m]
            line[m] = cosine * old + sine * row[m]
            row[m] = cosine * row[m] - sine * old


@compiled
def remove(factor: Factor, m: int, centred: bool) -> None:
    """Let member m go: its column is cut out, and rotations make what is left triangular again."""
    upper, members, place = factor.upper, factor.members, factor.place
    first = 1 if centred else 0
    n = first + factor.counts[0]
    place[members[m]] = 0
    for k in range(m, factor.counts[0] - 1):
        members[k] = members[k + 1]
        place[members[k]] = k + 1
    factor.counts[0] -= 1
    for i in range(n):
        for k in range(max(first + m, i - 1), n - 1):
            upper[i, k] = upper[i, k + 1]
    for k in range(first + m, n - 1):
        longer = np.hypot(upper[k, k], upper[k + 1, k])
        cosine, sine = upper[k, k] / longer, upper[k + 1, k] / longer
        for i in range(k, n - 1):
            above, below = upper[k, i], upper[k + 1, i]
            upper[k, i] = cosine * above + sine * below
            upper[k + 1, i] = cosine * below - sine * above


@compiled_sums
def solve_transposed(upper: Floats, vector: Floats, n: int) -> float:
    """Vector <- U'^-1 vector in its first n places; returns its squared length."""
    length = 0.0
    for k in range(n):
        vector[k] /= upper[k, k]
        length += vector[k] * vector[k]
        for m in range(k + 1, n):
            vector[m] -= upper[k, m] * vector[k]
    return length


@compiled_sums
def solve(upper: Floats, vector: Floats, n: int) -> None:
    """Vector <- U^-1 vector in its first n places."""
    for k in range(n - 1, -1, -1):
        total = vector[k]
        for m in range(k + 1, n):
            total -= upper[k, m] * vector[m]
        vector[k] = total / upper[k, k]


@compiled
def enter(gram: GramArrays, work: WorkingSet, factor: Factor, slot: int, centred: bool, smallest_share: float) -> None:
    """Make the feature in a slot of the working set a member, unless the members determine it."""
    moments, totals, features, local = gram.moments, gram.totals, work.features, work.local
    weight, j, n_members = totals[WEIGHT], work.features[slot], factor.counts[0]
    column, place = factor.vectors[0], factor.place
    first = 1 if centred else 0
    if n_members == 0 and centred:
        factor.upper[0, 0] = np.sqrt(weight)
    column[0] = moments[SUM_X, j]
    square = local[slot, slot]
    shift, lever = 0.0, 0.0
    if not centred:  # sum w x_j x_k = A_jk + shift_j sum_k + (sum_j + weight shift_j) shift_k
        shift, lever = moments[SHIFT_X, j], moments[SUM_X, j] + weight * moments[SHIFT_X, j]
        square += shift * moments[SUM_X, j] + lever * shift
    for k in range(work.counts[SIZE]):
        f = features[k]
        if place[f] > 0:
            column[first + place[f] - 1] = local[slot, k] + shift * moments[SUM_X, f] + lever * moments[SHIFT_X, f]
    n = first + n_members
    square -= solve_transposed(factor.upper, column, n)
    if not square > smallest_share * (weight * variance(moments, totals, j, centred)):
        return
    for k in range(n):
        factor.upper[k, n] = column[k]
    factor.upper[n, n] = np.sqrt(square)
    factor.members[n_members] = j
    place[j] = n_members + 1
    factor.counts[0] += 1


@compiled
def follow_support(gram: GramArrays, work: WorkingSet, factor: Factor, centred: bool, rebuilt: bool) -> None:
    """Make the members the support. Features that enter do so in ascending order."""
    features, place, n_kept = work.features, factor.place, work.counts[N_KEPT]
    n_found = 0
    for k in range(n_kept):
        n_found += place[features[k]] > 0
    if n_found < factor.counts[0]:
        for m in range(factor.counts[0] - 1, -1, -1):
            stays = False
            for k in range(n_kept):
                stays |= features[k] == factor.members[m]
            if not stays:
                remove(factor, m, centred)
    tried = -1
    for _ in range(n_kept - n_found):
        slot = -1
        for k in range(n_kept):
            if place[features[k]] == 0 and features[k] > tried and (slot < 0 or features[k] < features[slot]):
                slot = k
        tried = features[slot]
        share = own_share(gram.scatter)
        enter(gram, work, factor, slot, centred, REBUILT_SHARE * share if rebuilt else share)


@compiled
def refit(gram: GramArrays, work: WorkingSet, factor: Factor, coef: Floats, centred: bool, rebuilt: bool) -> bool:
    """Put theta at least squares on the support; features that the others determine leave it.

    `rebuilt` says that the factor was cleared and the support is as it was. True if the support changed.
    """
    moments, totals, slots, features = gram.moments, gram.totals, work.slots, work.features
    follow_support(gram, work, factor, centred, rebuilt)
    size, n_kept, weight = work.counts[SIZE], work.counts[N_KEPT], totals[WEIGHT]
    n_members, solution = factor.counts[0], factor.vectors[1]
    first = 1 if centred else 0
    solution[0] = totals[SUM_Y]
    sum_y = 0.0 if centred else totals[SUM_Y] + weight * totals[SHIFT_Y]
    shift_y = 0.0 if centred else totals[SHIFT_Y]
    for m in range(n_members):
        j = factor.members[m]
        solution[first + m] = moments[CROSS, j] + moments[SUM_X, j] * shift_y + moments[SHIFT_X, j] * sum_y
    solve_transposed(factor.upper, solution, first + n_members)
    solve(factor.upper, solution, first + n_members)
    left = False
    for k in range(n_kept):
        place = factor.place[features[k]]
        target = solution[first + place - 1] if place > 0 else 0.0
        slots[MOVE, k] = target - slots[THETA, k]
        slots[THETA, k] = target
        coef[features[k]] = target
        left |= target == 0.0
    local_product(work.local, slots, MOVE, PRODUCT, n_kept, size)
    for k in range(size):
        slots[DRIFT, k] += slots[PRODUCT, k]
    if left:
        for k in range(size):
            work.chosen[k] = k < n_kept and slots[THETA, k] != 0.0
        keep(work, gram.counts[N_BUFFERED])
    return left
