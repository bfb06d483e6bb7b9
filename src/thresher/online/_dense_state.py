"""The gradient of a round whose estimate is dense: a matrix of low rank, or whole groups of features.

The estimate theta has p rows and q columns: one row per feature and one column per response. With the shifted sums of
`summaries._shifted`, all rows of the stream are z, and the invariant that every function here keeps is

    pull = (sum w z z') W - cross,                                                                (3)

where W = theta and cross = sum w z v for a Gram (q = 1), and where W = (theta, -I) and cross = 0 for a summary whose
rows z join features and responses. A new row adds z (W'z - v)', a step adds (sum w z z') move.

Where the scatter matrix is large, that last product reads a copy in float32. Its relative error of about 1e-7
applies to the move alone, and once the moves add up to more than a hundredth of theta, pull is computed again
in float64.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher._utils.compile import compiled, compiled_sums
from thresher._utils.tolerances import TINY
from thresher.online._blas import add_symm, add_symv, add_symv_single
from thresher.online._gram import (
    CROSS,
    N_BUFFERED,
    N_SAMPLES,
    SHIFT_X,
    SHIFT_Y,
    SUM_X,
    SUM_Y,
    WEIGHT,
    Floats,
    GramArrays,
    Integers,
    add_scatter_product,
)
from thresher.online._problem import variance
from thresher.online._subspace import dot

# Moves multiplied in float32 may add up to this share of theta.
SINGLE_REACH = 1e-2

# Rows of DenseState.units
ROOT, UNIT = 0, 1
# Places in DenseState.numbers: the way moved since pull was exact; the curvature that steps are made for, and
# the weight of the rows when it was estimated; the last step; what the float32 copy was divided by.
PATH, STIFFNESS, WEIGHT_THEN, LAST_STEP, SINGLE_SCALE = 0, 1, 2, 3, 4
N_NUMBERS = 5
# Places in DenseState.flags: pull is not that of the summary; left, values and right hold a decomposition; the
# float32 copy is that of the scatter matrix.
STALE, WARM, SINGLE_READY = 0, 1, 2
N_FLAGS = 3


class DenseProblem(NamedTuple):
    """What is being solved."""

    by_rank: bool  # else by groups
    n_kept: int  # rank, or number of groups
    centred: bool
    standardized: bool
    single: bool  # products in float32


class DenseState(NamedTuple):
    """Mutable arrays. m columns in the summary, p of them features; theta seen as a d1 x d2 matrix."""

    joined: Floats  # (m, q): W
    pull: Floats  # (m, q)
    move: Floats  # (m, q), zero below the features
    product: Floats  # (m, q): scatter times move
    gradient: Floats  # (p, q)
    mode: Floats  # (p, q): the direction of largest curvature found so far, in the metric
    target: Floats  # (d1, d2), in the metric
    projected: Floats  # (d1, d2), in the metric
    units: Floats  # (2, p): sigma and 1 / sigma (zero for a constant column), or ones
    left: Floats  # (r + spare, d1)
    values: Floats  # (r + spare,)
    right: Floats  # (r + spare, d2)
    groups: Integers  # (p,)
    norms: Floats  # (n_groups,)
    chosen: Integers  # (n_groups,)
    single: NDArray[np.float32]  # (m, m), or empty
    single_in: NDArray[np.float32]  # (m,)
    single_out: NDArray[np.float32]  # (m,)
    numbers: Floats
    flags: Integers
    tallies: Integers


@compiled
def is_joined(state: DenseState) -> bool:
    """Whether the rows of the summary hold the responses."""
    return bool(state.joined.shape[0] > state.gradient.shape[0])


@compiled
def follow_row(gram: GramArrays, state: DenseState) -> None:
    """Restore (3) after a row was absorbed."""
    joined, pull = state.joined, state.pull
    newest = gram.counts[N_BUFFERED] - 1
    row = gram.buffer[newest]
    if joined.shape[1] == 1:
        residual = dot(row, joined.reshape(-1))
        if not is_joined(state):
            residual -= gram.buffer_y[newest]
        for i in range(row.shape[0]):
            pull[i, 0] += residual * row[i]
        return
    residuals = np.dot(row, joined)
    for i in range(row.shape[0]):
        for j in range(residuals.shape[0]):
            pull[i, j] += row[i] * residuals[j]


@compiled
def add_buffer_product(gram: GramArrays, block: Floats, out: Floats) -> None:
    """Out += (sum over buffered rows of z z') block."""
    n = gram.counts[N_BUFFERED]
    if block.shape[1] > 1:
        rows = gram.buffer[:n]
        out += np.dot(rows.T, np.dot(rows, block))
        return
    vector, flat = block.reshape(-1), out.reshape(-1)
    for i in range(n):
        row = gram.buffer[i]
        along = dot(row, vector)
        for j in range(flat.shape[0]):
            flat[j] += along * row[j]


@compiled
def add_scatter(gram: GramArrays, blas: Any, block: Floats, out: Floats, problem: DenseProblem) -> None:
    """Out += scatter block, in float64."""
    if gram.counts[N_SAMPLES] == gram.counts[N_BUFFERED]:
        return  # nothing was folded yet
    if block.shape[1] > 1:
        add_symm(blas, gram.scatter, block, out)
    elif problem.by_rank:
        add_symv(blas, gram.scatter, block.reshape(-1), out.reshape(-1))
    else:  # few groups, few entries
        add_scatter_product(gram.scatter, block.reshape(-1), out.reshape(-1))


@compiled
def copy_in_single(gram: GramArrays, state: DenseState) -> None:
    """The upper triangle of the scatter matrix in float32, divided by its largest entry to stay in range."""
    scatter, single = gram.scatter, state.single
    largest = 0.0
    for i in range(scatter.shape[0]):
        largest = max(largest, scatter[i, i])
    scale = 1.0 / largest if largest > 0.0 else 1.0
    for i in range(scatter.shape[0]):
        row, copy = scatter[i, i:], single[i, i:]
        for j in range(row.shape[0]):
            copy[j] = row[j] * scale
    state.numbers[SINGLE_SCALE] = scale
    state.flags[SINGLE_READY] = 1


@compiled
def add_scatter_single(gram: GramArrays, blas: Any, state: DenseState) -> None:
    """Product += scatter move, from the float32 copy."""
    move, product = state.move.reshape(-1), state.product.reshape(-1)
    if not state.flags[SINGLE_READY]:
        copy_in_single(gram, state)
    size = np.sqrt(dot(move, move))
    if not (size > 0.0 and size < np.inf):
        add_symv(blas, gram.scatter, move, product)  # zero, or out of range
        return
    per, vector, image = 1.0 / size, state.single_in, state.single_out
    for i in range(move.shape[0]):
        vector[i] = move[i] * per
        image[i] = 0.0
    add_symv_single(blas, state.single, vector, image)
    scale = size / state.numbers[SINGLE_SCALE]
    for i in range(move.shape[0]):
        product[i] += scale * image[i]


@compiled
def fill_product(gram: GramArrays, blas: Any, state: DenseState, problem: DenseProblem) -> None:
    """Product = (sum w z z') move over all rows."""
    state.product[:] = 0.0
    if problem.single and gram.counts[N_SAMPLES] > gram.counts[N_BUFFERED]:
        add_scatter_single(gram, blas, state)
    else:
        add_scatter(gram, blas, state.move, state.product, problem)
    add_buffer_product(gram, state.move, state.product)


@compiled
def refresh(gram: GramArrays, blas: Any, state: DenseState, problem: DenseProblem) -> None:
    """Compute (3) from the summary."""
    pull = state.pull
    pull[:] = 0.0
    if not is_joined(state):
        for i in range(pull.shape[0]):
            pull[i, 0] = -gram.moments[CROSS, i]
    add_scatter(gram, blas, state.joined, pull, problem)
    add_buffer_product(gram, state.joined, pull)
    state.numbers[PATH] = 0.0
    state.flags[STALE] = 0


@compiled
def fill_units(gram: GramArrays, state: DenseState, problem: DenseProblem) -> None:
    """The scales of the features for this round."""
    for i in range(state.units.shape[1]):
        square = variance(gram.moments, gram.totals, i, problem.centred) if problem.standardized else 1.0
        constant = square < TINY
        state.units[ROOT, i] = 0.0 if constant else np.sqrt(square)
        state.units[UNIT, i] = 0.0 if constant else 1.0 / np.sqrt(square)


@compiled
def along(gram: GramArrays, block: Floats, place: int) -> Floats:
    """Row `place` of the moments, times the block."""
    row, total = gram.moments[place], np.empty(block.shape[1])
    if block.shape[1] > 1:
        total[:] = np.dot(row, block)
    else:
        total[0] = dot(row, block.reshape(-1))
    return total


@compiled
def fill_gradient(gram: GramArrays, state: DenseState, problem: DenseProblem) -> None:
    """The gradient of the loss in theta: equation (1) of `online._problem`, response by response."""
    weight = gram.totals[WEIGHT]
    sums, shifts = along(gram, state.joined, SUM_X), along(gram, state.joined, SHIFT_X)
    if not is_joined(state):
        sums[0] -= gram.totals[SUM_Y]
        shifts[0] -= gram.totals[SHIFT_Y]
    write_gradient(gram, state.pull, sums, shifts, weight, problem.centred, state.gradient)


@compiled
def write_gradient(
    gram: GramArrays, pull: Floats, sums: Floats, shifts: Floats, weight: float, centred: bool, out: Floats
) -> None:
    """Out = (pull + shift alpha' + sum_x beta') / weight, on the features."""
    alpha, beta, per = (sums + weight * shifts) / weight, shifts / weight, 1.0 / weight
    if centred:
        alpha, beta = np.zeros_like(sums), -sums / weight / weight
    shift, total = gram.moments[SHIFT_X], gram.moments[SUM_X]
    if out.shape[1] == 1:
        flat, along_shift, along_sum = out.reshape(-1), alpha[0], beta[0]
        column = pull.reshape(-1)
        for i in range(flat.shape[0]):
            flat[i] = column[i] * per + shift[i] * along_shift + total[i] * along_sum
        return
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = pull[i, j] * per + shift[i] * alpha[j] + total[i] * beta[j]


@compiled_sums
def weighted_square(block: Floats, scale: Floats) -> float:
    """The squared norm of a block (or of its first rows) whose rows are multiplied by a scale."""
    total = 0.0
    if block.shape[1] == 1:
        flat = block.reshape(-1)
        for i in range(scale.shape[0]):
            total += (scale[i] * flat[i]) * (scale[i] * flat[i])
        return total
    for i in range(scale.shape[0]):
        for j in range(block.shape[1]):
            total += (scale[i] * block[i, j]) * (scale[i] * block[i, j])
    return total


@compiled
def measure_move(gram: GramArrays, state: DenseState, centred: bool) -> tuple[float, float, float]:
    """|move|^2 in the metric, move . g and move' G move / weight, given the product."""
    weight, n = gram.totals[WEIGHT], state.gradient.size
    move = state.move.reshape(-1)[:n]  # the rest is zero
    slope = dot(move, state.gradient.reshape(-1))
    quadratic = dot(move, state.product.reshape(-1)[:n])
    length = weighted_square(state.move, state.units[ROOT])
    sums, shifts = along(gram, state.move, SUM_X), along(gram, state.move, SHIFT_X)
    for j in range(sums.shape[0]):
        if centred:
            quadratic -= sums[j] * (sums[j] / weight)
        else:
            quadratic += (2.0 * sums[j] + weight * shifts[j]) * shifts[j]
    return length, slope, max(quadratic / weight, 0.0)
