"""The working set of a sparse round: the few features whose gradient is known exactly at all times.

Write A for the scatter matrix over all rows, b for the cross moment (both about the Gram's shift),
theta for the estimate and r for the *reference*, an earlier estimate. Slots hold features; the first
N_KEPT slots are the support, the rest are spare features that may enter it. The invariants, which every
function here keeps, are

    AT_REFERENCE = A r - b              for all d features, O(d) per row
    DRIFT = A (theta - r)               on the working set
    local = A                           on the working set, |V|^2 per row
    rows = the Gram's buffer            on the working set
    theta = 0 in the spare slots; theta = r = 0 outside the working set

so (A theta - b) on the working set is AT_REFERENCE + DRIFT, at no cost that grows with d.
"""

from typing import NamedTuple

import numpy as np

from thresher._utils.compile import compiled
from thresher.online._gram import (
    CROSS,
    N_BUFFERED,
    Floats,
    GramArrays,
    Integers,
    add_scatter_product,
)

# Rows of WorkingSet.wide. OUTSIDE is 1.0 for features outside the working set, 0.0 inside.
AT_REFERENCE, OUTSIDE, STRENGTH = 0, 1, 2
# Rows of WorkingSet.slots that last from round to round; `step` has the others.
THETA, REFERENCE, DRIFT = 0, 1, 2
# Places in WorkingSet.counts. STALE: the arrays do not describe the summary any more.
SIZE, N_KEPT, STALE = 0, 1, 2


class WorkingSet(NamedTuple):
    """Mutable arrays; d features, room for C of them, B buffered rows."""

    wide: Floats  # (3, d)
    slots: Floats  # (17, C)
    features: Integers  # (C,), which feature sits in a slot
    chosen: Integers  # (C,), 1 for the slots that a projection keeps
    local: Floats  # (C, C)
    rows: Floats  # (B, C)
    counts: Integers  # (3,)


@compiled
def follow_row(
    buffer: Floats,
    buffer_y: Floats,
    wide: Floats,
    slots: Floats,
    features: Integers,
    local: Floats,
    rows: Floats,
    size: int,
    newest: int,
) -> None:
    """Restore the invariants after row `newest` of the buffer was absorbed."""
    at_reference, moved = -buffer_y[newest], 0.0
    for k in range(size):
        z = buffer[newest, features[k]]
        rows[newest, k] = z
        at_reference += z * slots[REFERENCE, k]
        moved += z * (slots[THETA, k] - slots[REFERENCE, k])
    for k in range(size):
        z = rows[newest, k]
        slots[DRIFT, k] += moved * z
        for m in range(size):
            local[k, m] += z * rows[newest, m]
    for j in range(wide.shape[1]):
        wide[AT_REFERENCE, j] += at_reference * buffer[newest, j]


@compiled
def load(gram: GramArrays, work: WorkingSet, feature: int) -> None:
    """Take one more feature in, as a spare. The set must have room."""
    scatter, buffer = gram.scatter, gram.buffer
    slots, features, local, rows = work.slots, work.features, work.local, work.rows
    k = work.counts[SIZE]
    work.counts[SIZE] = k + 1
    features[k] = feature
    work.wide[OUTSIDE, feature] = 0.0
    slots[THETA, k] = 0.0
    slots[REFERENCE, k] = 0.0
    for m in range(k + 1):
        local[k, m] = scatter[min(feature, features[m]), max(feature, features[m])]
    for i in range(gram.counts[N_BUFFERED]):
        z = buffer[i, feature]
        rows[i, k] = z
        for m in range(k + 1):
            local[k, m] += z * rows[i, m]
    drift = 0.0
    for m in range(k + 1):
        local[m, k] = local[k, m]
        drift += local[k, m] * (slots[THETA, m] - slots[REFERENCE, m])
    slots[DRIFT, k] = drift


@compiled
def swap(work: WorkingSet, n_buffered: int, a: int, b: int) -> None:
    """Exchange two slots."""
    if a == b:
        return
    slots, features, local, rows = work.slots, work.features, work.local, work.rows
    features[a], features[b] = features[b], features[a]
    for row in (THETA, REFERENCE, DRIFT):
        slots[row, a], slots[row, b] = slots[row, b], slots[row, a]
    for m in range(work.counts[SIZE]):
        local[a, m], local[b, m] = local[b, m], local[a, m]
    for m in range(work.counts[SIZE]):
        local[m, a], local[m, b] = local[m, b], local[m, a]
    for i in range(n_buffered):
        rows[i, a], rows[i, b] = rows[i, b], rows[i, a]


@compiled
def evict(work: WorkingSet, n_buffered: int, k: int) -> None:
    """Let the spare slot k go. theta and the reference must be zero there."""
    last = work.counts[SIZE] - 1
    swap(work, n_buffered, k, last)
    work.wide[OUTSIDE, work.features[last]] = 1.0
    work.counts[SIZE] = last


@compiled
def keep(work: WorkingSet, n_buffered: int) -> None:
    """Make the chosen slots the support, by exchanging slots across the border."""
    n_kept = 0
    for k in range(work.counts[SIZE]):
        if work.chosen[k]:
            swap(work, n_buffered, k, n_kept)
            n_kept += 1
    work.counts[N_KEPT] = n_kept


@compiled
def reload(gram: GramArrays, work: WorkingSet, coef: Floats) -> None:
    """Build the set again around the support of `coef`, for a summary that changed in other ways."""
    for k in range(work.counts[SIZE]):
        work.wide[OUTSIDE, work.features[k]] = 1.0
    work.counts[SIZE] = 0
    for j in range(coef.shape[0]):
        if coef[j] != 0.0:
            load(gram, work, j)
            work.slots[THETA, work.counts[SIZE] - 1] = coef[j]
    work.counts[N_KEPT] = work.counts[SIZE]
    work.counts[STALE] = 0


@compiled
def move_reference(gram: GramArrays, work: WorkingSet) -> None:
    """Make the current estimate the reference: AT_REFERENCE = A theta - b exactly, DRIFT = 0."""
    n_kept = work.counts[N_KEPT]
    wide, slots, rows, buffer = work.wide, work.slots, work.rows, gram.buffer
    for j in range(wide.shape[1]):
        wide[AT_REFERENCE, j] = -gram.moments[CROSS, j]
    dense = np.zeros(wide.shape[1])
    for k in range(n_kept):
        dense[work.features[k]] = slots[THETA, k]
    add_scatter_product(gram.scatter, dense, wide[AT_REFERENCE])
    for i in range(gram.counts[N_BUFFERED]):
        fitted = 0.0
        for k in range(n_kept):
            fitted += rows[i, k] * slots[THETA, k]
        for j in range(wide.shape[1]):
            wide[AT_REFERENCE, j] += fitted * buffer[i, j]
    for k in range(work.counts[SIZE]):
        slots[REFERENCE, k] = slots[THETA, k]
        slots[DRIFT, k] = 0.0


@compiled
def local_product(local: Floats, slots: Floats, vector: int, out: int, n: int, size: int) -> None:
    """slots[out] = A slots[vector] on the working set; the vector lives in the first n slots."""
    for m in range(size):
        slots[out, m] = 0.0
    k = 0
    # Four columns at a time, so that the result is read and written a quarter as often.
    while k + 4 <= n:
        v0, v1, v2, v3 = (
            slots[vector, k],
            slots[vector, k + 1],
            slots[vector, k + 2],
            slots[vector, k + 3],
        )
        for m in range(size):
            slots[out, m] += (local[k, m] * v0 + local[k + 1, m] * v1) + (local[k + 2, m] * v2 + local[k + 3, m] * v3)
        k += 4
    while k < n:
        v0 = slots[vector, k]
        for m in range(size):
            slots[out, m] += local[k, m] * v0
        k += 1
