"""Rows that count less as they age: forward decay.

The weight of a row of age u is 2^(-u / half_life), times its own. Ages change with every row, ratios of weights do not:
so the row at time t enters with 2^((t - landmark) / half_life), and nothing that is there already has to change. The
landmark is ahead of the rows, so factors are at most one. When a row passes it, it moves on by `SPAN` half-lives, and
everything is scaled down (Cormode, Shkapenyuk, Srivastava and Xu, 2009). That depends on the rows alone, not on how
they were cut into calls.

What is read is in units in which it does not matter where the landmark is: sums are multiplied by W / Q with W = sum w
and Q = sum w f over all rows, f the factor of a row and w its own weight times f. Their weight is W^2 / Q then, the
effective number of rows (Kish, 1965), a row with weight two being two rows.

A factor that a user gives (`scaled`) waits in `pending` until other rows come in. So it changes nothing that is read of
the rows alone, and float32 does not round them.

How often to choose again goes by the number of rows, whatever their own weights: (sum f)^2 / sum f^2.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.checks import LARGEST_WEIGHT
from thresher._utils.times import LONGEST, SHORTEST, as_duration, is_timedelta
from thresher.io.schema import MOST, Array, Flag, Number, Schema

if TYPE_CHECKING:
    from thresher.summaries._shifted import State

# How many half-lives the landmark is ahead when it moves: factors stay between 2^-SPAN and one.
SPAN = 32.0
# What counts less than this beside newer rows is forgotten.
LEAST = 2.0**-500
# The least factor that a user can give.
LEAST_FACTOR = 1e-100
# By how much sums in a file may be beyond what they can be.
ROUNDING = 1e-9


@dataclass(eq=False)
class Decay:
    """What a summary that forgets holds besides its sums."""

    _schema = Schema(
        lambda decay: decay.landmark >= decay.now,
        lambda decay: decay.half_life < np.inf or decay.timed is None,
        lambda decay: decay.sum_factors_squared <= decay.sum_factors * (1.0 + ROUNDING),
        half_life=Number(least=SHORTEST, most=np.inf),
        factors=Array("block", least=0.0, most=1.0),
        squared=Number(least=0.0),
        sum_factors=Number(least=0.0, most=float(MOST)),
        sum_factors_squared=Number(least=0.0, most=float(MOST)),
        pending=Number(least=LEAST, most=1.0),
        landmark=Number(least=-100.0 * LONGEST, most=100.0 * LONGEST),
        now=Number(least=-LONGEST, most=LONGEST),
        timed=Flag() | None,
    )
    half_life: float  # in rows or seconds; infinite if rows were scaled, but do not age
    factors: Floats  # (B,), of the rows in the buffer
    squared: float = 0.0  # Q, of the rows that were folded
    sum_factors: float = 0.0  # sum f and sum f^2 of the same rows
    sum_factors_squared: float = 0.0
    pending: float = 1.0  # a factor of all rows so far that is not in the sums yet
    landmark: float = 0.0
    now: float = 0.0  # of the newest row: its time, or how many there were
    timed: bool | None = None  # whether ages are in seconds; None before the first row

    def fold(self, root: Floats) -> None:
        """Add the rows in the buffer, with roots of their weights, and empty it."""
        factors = self.factors[: len(root)]
        self.squared += float((root * root) @ factors)
        self.sum_factors += float(factors.sum())
        self.sum_factors_squared += float(factors @ factors)
        factors[:] = 0.0

    def copy(self) -> "Decay":
        """An independent copy."""
        return replace(self, factors=self.factors.copy())

    def folded(self, root: Floats, block: int) -> "Decay":
        """The same with an empty buffer of this length, where there was one of these roots of weights."""
        result = self.copy()
        result.fold(root)
        result.factors = np.zeros(block)
        return result

    def emptied(self, block: int) -> "Decay":
        """The decay of a summary that has seen nothing."""
        return Decay(self.half_life, np.zeros(block), timed=self.timed or None)

    def is_within_reach(self, weight: float) -> bool:
        """Whether rows could have left this weight and this Q."""
        return self.squared == 0.0 or weight * (weight / self.squared) <= LARGEST_WEIGHT


def new_decay(half_life: Any, block: int) -> Decay:
    """The decay of a summary that has seen nothing; a timedelta asks for rows with times."""
    timed = True if is_timedelta(half_life) else None
    return Decay(as_duration(half_life, "half_life"), np.zeros(block), timed=timed)


def undecayed(state: "State", n_rows: int) -> Decay:
    """The decay of so many rows that have all counted equally so far."""
    factors = np.zeros(len(state.buffer))
    factors[: state.n_buffered] = 1.0
    n_folded = float(n_rows - state.n_buffered)
    return Decay(np.inf, factors, state.weight, n_folded, n_folded)


def check_factor(factor: Any) -> None:
    """Raise unless sums can be multiplied by this without overflow, and without vanishing."""
    if isinstance(factor, bool) or not isinstance(factor, Real) or not LEAST_FACTOR <= float(factor) <= 1.0:
        raise ValueError(
            f"factor must be between {LEAST_FACTOR:g} and 1, got {factor!r}; to let rows count more, scale the others."
        )


def refuse_factor(factor: float) -> NoReturn:
    """Raise since rows would count nothing."""
    raise ValueError(
        f"factor={factor!r} leaves rows with so little weight that they no longer count; do not merge them instead."
    )


def weight_and_scale(state: "State") -> tuple[float, float]:
    """The weight of all rows as it is read, and by what all sums are multiplied when they are read."""
    root, decay = state.buffer_root[: state.n_buffered], state.decay
    weight = state.weight + float(root @ root)
    if decay is None:
        return weight, 1.0
    squared = decay.squared + float((root * root) @ decay.factors[: state.n_buffered])
    if squared == 0.0:  # nothing, or forgotten
        return 0.0, 1.0
    return weight * (weight / squared), weight / squared


def effective_rows(state: "State", decay: Decay) -> float:
    """The effective number of rows, whatever their own weights."""
    factors = decay.factors[: state.n_buffered]
    total = decay.sum_factors + float(factors.sum())
    squared = decay.sum_factors_squared + float(factors @ factors)
    return min(total * (total / squared), float(state.n_samples)) if squared else 0.0


def rescale(state: "State", factor: float) -> None:
    """Let all rows so far count `factor` times as much."""
    root, n, decay = np.sqrt(factor), state.n_buffered, state.decay
    state.scatter *= state.scatter.dtype.type(factor)
    state.buffer[:n] *= root
    state.buffer_y[:n] *= root
    state.buffer_root[:n] *= root
    state.sum_x, state.sum_xx, state.cross = factor * state.sum_x, factor * state.sum_xx, factor * state.cross
    state.weight *= factor
    state.sum_y *= factor
    state.sum_yy *= factor
    if decay is not None:
        decay.factors[:n] *= factor
        decay.squared *= factor * factor
        decay.sum_factors *= factor
        decay.sum_factors_squared *= factor * factor


def scale_later(decay: Decay, factor: float) -> None:
    """Let all rows so far count `factor` times as much, from the next row or merge on."""
    total = decay.pending * factor
    if total < LEAST:
        refuse_factor(factor)
    decay.pending = total


def apply_pending(state: "State", decay: Decay, but_for: float = 1.0) -> None:
    """Bring the pending factor into the sums, but for a factor that it has in common with other rows."""
    if decay.pending < but_for:
        rescale(state, decay.pending / but_for)
    decay.pending = but_for


def move_landmark(state: "State", decay: Decay, landmark: float) -> None:
    """Let weights be relative to a later landmark."""
    if state.n_samples:
        factor = float(np.exp2((decay.landmark - landmark) / decay.half_life))
        rescale(state, factor if factor >= LEAST else 0.0)
    decay.landmark = landmark


def decayed(state: "State", decay: Decay, n_rows: int, times: Floats | None) -> Iterator[tuple[slice, Floats]]:
    """The next rows in pieces, each with the factors of its rows; the landmark moves where it has to."""
    apply_pending(state, decay)
    if decay.half_life == np.inf:
        yield slice(0, n_rows), np.ones(n_rows)
        return
    decay.timed = times is not None
    clock = decay.now + np.arange(1.0, n_rows + 1.0) if times is None else times
    start = 0
    while start < n_rows:
        if clock[start] > decay.landmark or not state.n_samples:
            move_landmark(state, decay, float(clock[start]) + SPAN * decay.half_life)
        stop = int(np.searchsorted(clock, decay.landmark, side="right"))
        decay.now = float(clock[stop - 1])
        yield slice(start, stop), np.exp2((clock[start:stop] - decay.landmark) / decay.half_life)
        start = stop


def align(ours: "State", theirs: "State") -> None:
    """Let the weights of two states be relative to one landmark; both buffers must be empty.

    Ages are by the clock if rows have times. Otherwise the newest rows of both have the same age.
    """
    for state in (ours, theirs):
        if state.decay is None and (ours.decay or theirs.decay):
            state.decay = undecayed(state, state.n_samples)
    if ours.decay is None or theirs.decay is None:
        return
    own, other = ours.decay, theirs.decay
    largest = max((state.decay.pending for state in (ours, theirs) if state.decay and state.n_samples), default=1.0)
    apply_pending(ours, own, largest)
    apply_pending(theirs, other, largest)
    if own.half_life == np.inf:
        return
    if own.timed is not None and other.timed is not None and own.timed != other.timed:
        raise ValueError("Cannot merge a summary whose rows have times with one whose rows have none.")
    if not ours.n_samples or not theirs.n_samples:
        started = own if ours.n_samples else other
        own.landmark, own.now = started.landmark, started.now
        own.timed = other.timed if own.timed is None else own.timed
        return
    if own.timed:
        now, landmark = max(own.now, other.now), max(own.landmark, other.landmark)
        ahead = landmark - own.landmark, landmark - other.landmark
    else:
        gaps = own.landmark - own.now, other.landmark - other.now
        now, ahead = own.now + other.now, (max(gaps) - gaps[0], max(gaps) - gaps[1])
        landmark = now + max(gaps)
    for state, decay, step in ((ours, own, ahead[0]), (theirs, other, ahead[1])):
        move_landmark(state, decay, decay.landmark + step)
    own.now, own.landmark = now, landmark
