"""What lassos that are kept current row by row share: columns of the Gram, and where all rows so far pull to."""

from typing import NamedTuple

import numpy as np

from thresher._utils.compile import compiled
from thresher.baselines._moment_columns import ABSENT, add_row, deviation, drop_idle, read_column, with_room
from thresher.baselines._single_rows import is_sane
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
    absorb_row,
)
from thresher.online._problem import variance

# Places in LassoState.numbers: sum of squared errors of one-step-ahead predictions, sum of squares of the responses,
# the penalty last used, whether the last solution was given up.
SUM_ERRORS, SUM_RESPONSES, PENALTY, UNSOLVED = 0, 1, 2, 3

# Columns kept beyond twice the support before idle ones are forgotten.
SPARE = 32


class LassoState(NamedTuple):
    """An estimate and where the rows pull it; M and target are (co)moments of x with x and with y, as totals."""

    values: Floats  # (capacity, d): columns of M, of the support and a few more
    features: Integers  # (capacity,): whose they are
    place: Integers  # (d,): where a feature's column is
    n_kept: Integers  # (1,)
    coef: Floats  # (d,)
    pull: Floats  # (d,): target - M coef, when it was last computed
    v: Floats  # (d,): workspace
    numbers: Floats  # (4,)


def new_state(d: int) -> LassoState:
    """The state before the first row."""
    capacity = min(d, 2 * SPARE)
    return LassoState(
        values=np.zeros((capacity, d)),
        features=np.zeros(capacity, np.int64),
        place=np.full(d, ABSENT),
        n_kept=np.zeros(1, np.int64),
        coef=np.zeros(d),
        pull=np.zeros(d),
        v=np.zeros(d),
        numbers=np.zeros(4),
    )


def penalties(penalty: float, noise: float | str, d: int, n_before: int, n_rows: int) -> Floats:
    """C sigma sqrt(log(d) / t) for the next rows t; empty if sigma is to be estimated."""
    if isinstance(noise, str):
        return np.empty(0)
    t = np.arange(n_before + 1, n_before + n_rows + 1)
    levels: Floats = penalty * noise * np.sqrt(np.log(max(d, 2)) / t)
    return levels


@compiled
def follow_row(gram: GramArrays, state: LassoState, X: Floats, y: Floats, i: int, centred: bool, watch: bool) -> bool:
    """Absorb row i; False, and nothing happens, if estimates are watched and this one has diverged."""
    _, buffer, buffer_y, buffer_root, moments, totals, counts = gram
    values, features, _, n_kept, coef, _, v, numbers = state
    v_y, share = deviation(X, y, i, moments, totals, centred, v)
    prediction = 0.0
    for j in range(v.shape[0]):
        prediction += v[j] * coef[j]
    error = v_y - prediction
    squares, errors = numbers[SUM_RESPONSES] + v_y * v_y, numbers[SUM_ERRORS] + error * error
    if watch and not is_sane(prediction, totals[WEIGHT] + 1.0, squares, errors):
        return False
    numbers[SUM_ERRORS], numbers[SUM_RESPONSES] = errors, squares
    add_row(values, features, n_kept[0], v, share)
    absorb_row(buffer, buffer_y, buffer_root, moments, totals, counts, X, y, np.empty(0), i)
    return True


@compiled
def find_pull(gram: GramArrays, state: LassoState, centred: bool) -> None:
    """Compute target - M coef: O(d) for each nonzero coefficient, all of whose columns must be there."""
    moments, totals, coef, pull = gram.moments, gram.totals, state.coef, state.pull
    weight, sum_y, shift_y = totals[WEIGHT], totals[SUM_Y], totals[SHIFT_Y]
    for j in range(pull.shape[0]):
        if centred:
            pull[j] = moments[CROSS, j] - (sum_y / weight) * moments[SUM_X, j]
        else:
            pull[j] = moments[CROSS, j] + moments[SUM_X, j] * shift_y + moments[SHIFT_X, j] * (sum_y + weight * shift_y)
    for k in range(state.n_kept[0]):
        theta = coef[state.features[k]]
        if theta != 0.0:
            for j in range(pull.shape[0]):
                pull[j] -= theta * state.values[k, j]


@compiled
def current_penalty(
    gram: GramArrays, state: LassoState, given: Floats, i: int, multiple: float, centred: bool
) -> float:
    """The penalty for row i: the one given, or from the errors of one-step-ahead predictions.

    Those are honest about the noise from the first row on, which residuals of a fit to few rows are not. They are
    multiplied by the root of the mean variance of the columns, so that units do not matter.
    """
    if given.shape[0]:
        state.numbers[PENALTY] = given[i]
        return float(given[i])
    d, t = state.coef.shape[0], gram.counts[N_SAMPLES]
    size = 0.0
    for j in range(d):
        size += variance(gram.moments, gram.totals, j, centred) / d
    level = multiple * np.sqrt(state.numbers[SUM_ERRORS] / t) * np.sqrt(size) * np.sqrt(np.log(max(d, 2)) / t)
    state.numbers[PENALTY] = level
    return float(level)


@compiled
def with_column(gram: GramArrays, state: LassoState, j: int, centred: bool) -> LassoState:
    """The state with the column of feature j in it."""
    if state.place[j] != ABSENT:
        return state
    n = state.n_kept[0]
    values, features = with_room(state.values, state.features, n)
    read_column(gram.scatter, gram.buffer, gram.counts[N_BUFFERED], gram.moments, gram.totals, j, centred, values[n])
    features[n] = j
    state.place[j] = n
    state.n_kept[0] = n + 1
    return LassoState(values, features, state.place, state.n_kept, state.coef, state.pull, state.v, state.numbers)


@compiled
def tidy(state: LassoState) -> None:
    """Forget columns that nobody needs, once they are many: each costs O(d) per row."""
    if state.n_kept[0] > 2 * np.count_nonzero(state.coef) + SPARE:
        state.n_kept[0] = drop_idle(state.values, state.features, state.place, state.n_kept[0], state.coef)
