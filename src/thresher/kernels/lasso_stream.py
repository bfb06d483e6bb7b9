"""What lassos that are kept current row by row share: the pull of all rows so far on every coefficient."""

from typing import NamedTuple

import numpy as np

from thresher.kernels._compile import compiled
from thresher.kernels.columns import ABSENT, add_row, deviation, drop_idle, read_column, with_room
from thresher.kernels.gram import N_BUFFERED, N_SAMPLES, SUM_YY, WEIGHT, Floats, GramArrays, Integers, absorb_row
from thresher.kernels.problem import variance
from thresher.kernels.single_rows import ABSURD

# Places in LassoState.numbers: sum of squared errors of one-step-ahead predictions, sum of squares of the responses,
# the penalty last used.
SUM_ERRORS, SUM_RESPONSES, PENALTY = 0, 1, 2

# Columns kept beyond twice the support before idle ones are forgotten.
SPARE = 32


class LassoState(NamedTuple):
    """An estimate and where the rows pull it; M and target are (co)moments of x with x and with y, as totals."""

    values: Floats  # (capacity, d): columns of M, of the support and a few more
    features: Integers  # (capacity,): whose they are
    place: Integers  # (d,): where a feature's column is
    n_kept: Integers  # (1,)
    coef: Floats  # (d,)
    pull: Floats  # (d,): target - M coef
    v: Floats  # (d,): workspace
    numbers: Floats  # (3,)


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
        numbers=np.zeros(3),
    )


def penalties(penalty: float, noise: float | str, d: int, n_before: int, n_rows: int) -> Floats:
    """C sigma sqrt(log(d) / t) for the next rows t; empty if sigma is to be estimated."""
    if isinstance(noise, str):
        return np.empty(0)
    t = np.arange(n_before + 1, n_before + n_rows + 1)
    levels: Floats = penalty * noise * np.sqrt(np.log(max(d, 2)) / t)
    return levels


@compiled
def follow_row(gram: GramArrays, state: LassoState, X: Floats, y: Floats, i: int, centred: bool) -> bool:
    """Absorb row i and follow its pull; False, and nothing happens, if its prediction is absurd."""
    _, buffer, buffer_y, moments, totals, counts = gram
    values, features, _, n_kept, coef, pull, v, numbers = state
    v_y, share = deviation(X, y, i, moments, totals, centred, v)
    error = v_y
    for j in range(v.shape[0]):
        error -= v[j] * coef[j]
    squares = numbers[SUM_RESPONSES] + v_y * v_y
    if not (error * error) * (totals[WEIGHT] + 1.0) <= ABSURD * ABSURD * squares:
        return False
    numbers[SUM_ERRORS] += error * error
    numbers[SUM_RESPONSES] = squares
    for j in range(v.shape[0]):
        pull[j] += share * error * v[j]
    add_row(values, features, n_kept[0], v, share)
    absorb_row(buffer, buffer_y, moments, totals, counts, X, y, np.empty(0), i)
    return True


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


@compiled
def tolerance_in_units(gram: GramArrays, relative: float) -> float:
    """A share of the length of the responses about their shift, in units of which moves are measured."""
    return float(relative * np.sqrt(gram.totals[SUM_YY]))
