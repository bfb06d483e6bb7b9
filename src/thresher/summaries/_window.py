"""Rows that leave: windows of the last rows, or of a span of time.

A window of blocks cuts time into spans of a tenth of its length. It keeps the sums of each of the last ten spans and
of the current one, so the window has up to a tenth too much. Whenever a span ends, the sums of the whole window are
added up from two parts, of older and of newer spans. Nothing is subtracted, so nothing cancels. When the older spans
are used up, the newer become the older: the two stacks of sliding windows (Tangwongsan, Hirzel, Schneider and Wu, 2015,
General incremental sliding-window aggregation, PVLDB 8(7)).

Spans of rows are whole rows. With m = floor(w / 10), any eleven spans in a row have w + m rows, and each has m or
m + 1. So the window has at most w + m rows, and at least w when its eleventh span has only begun. If w is below ten,
spans are single rows, and the window has exactly w.

A window of rows keeps the rows themselves, in the buffer, and folds none. The next row takes the place of one that has
left, so the window is exact to the row.

Both depend on the rows and their times alone, not on how they were cut into calls.
"""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.memory import require_bytes
from thresher._utils.times import LONGEST, SHORTEST, as_duration, is_timedelta
from thresher.io.schema import Array, Count, Flag, Is, List, Number, Schema, part
from thresher.summaries._buffer import put_rows
from thresher.summaries._combining import add, copied
from thresher.summaries._shifted import STRIPE, State, buffer_rows, fold, mean_left_shift, new_state, start_shift, sums
from thresher.summaries._widening import room_for, widened

# Spans of a window of blocks.
N_SPANS = 10
# Summaries that a window of blocks holds: of each span, of this one, of newer ones, of all, and one more on the way.
N_SUMMARIES = N_SPANS + 4
# Places for rows that a window of time begins with.
FIRST_PLACES = 128


class Waiting(NamedTuple):
    """Rows that came in since the last block was full, as they are in the buffer."""

    rows: Floats  # sqrt(w) (x - shift)
    responses: Floats  # sqrt(w) (y - shift_y)
    root: Floats  # sqrt(w)


@dataclass(eq=False)
class Window:
    """What both kinds of windows know of time."""

    _schema = part(
        lambda window: window.timed is not False or window.length == int(window.length),
        length=Number(least=SHORTEST, most=LONGEST),
        now=Number(least=-LONGEST, most=LONGEST),
        timed=Flag() | None,
    )
    length: float  # in rows or seconds
    now: float = 0.0  # of the newest row: its time, or how many there were
    timed: bool | None = None  # whether the length is in seconds; None if that is not known yet

    def require_room(self, state: State, times: Floats | None) -> None:
        """Raise MemoryError if there is no room for the next rows."""

    def rows_until_close(self, n_rows: int, times: Floats | None) -> int:
        """How many of the next rows come before something has to be done."""
        return n_rows

    def clock(self, n_rows: int, times: Floats | None) -> Floats:
        """The times of the next rows, or their numbers."""
        return self.now + np.arange(1.0, n_rows + 1.0) if times is None else times


@dataclass(eq=False)
class BlockWindow(Window):
    """The sums of each span of time, or of rows, in the window."""

    _schema = Schema(
        lambda window: len(window.spans) == len(window.closed) <= N_SPANS,
        lambda window: all(same_layout(state, window.current) for state in window.closed),
        lambda window: not any(state.n_buffered for state in window.closed),
        lambda window: window.n_summed <= len(window.closed),
        lambda window: (window.newer is not None) == (window.n_summed < len(window.closed)),
        lambda window: (
            window.newer is None or (same_layout(window.newer, window.current) and not window.newer.n_buffered)
        ),
        lambda window: (
            not len(window.spans) or window.span - N_SPANS <= window.spans[0] <= window.spans[-1] < window.span
        ),
        closed=List(Is(State)),
        n_summed=Count(),
        newer=Is(State) | None,
        spans=Array("closed", ascending=True),
        current=Is(State),
        span=Number(),
    )
    closed: list[State] = field(default_factory=list)  # of spans that are over
    spans: Floats = field(default_factory=lambda: np.zeros(0))  # their numbers
    n_summed: int = 0  # the first so many of `closed` are sums up to the last of these spans, not of one alone
    newer: State | None = None  # the sum of the others
    current: State = field(kw_only=True)  # of the last span, which may go on
    span: float = 0.0

    def span_of(self, clock: Floats) -> Floats:
        """The numbers of the spans in which rows are."""
        if not self.timed:  # whole numbers of rows, so that spans are exact
            result: Floats = np.floor((clock - 1.0) * (N_SPANS + 1) / (self.length + self.length // N_SPANS))
            return result
        return np.floor(clock / (self.length / N_SPANS))

    def rows_until_close(self, n_rows: int, times: Floats | None) -> int:
        """How many of the next rows are in the span of the last one; all are if there is no last one."""
        spans = self.span_of(self.clock(n_rows, times))
        return int(np.searchsorted(spans, self.span, side="right"))

    def put(self, state: State, X: Floats, y: Floats, weights: Floats | None, times: Floats | None) -> State:
        """Add rows to the sums of the window and to those of their span; returns the former."""
        self.timed = times is not None
        clock = self.clock(len(y), times)
        spans = self.span_of(clock)
        if not state.n_samples:
            self.span = float(spans[0])
        start = 0
        while start < len(y):
            if spans[start] != self.span:
                state = self.close(state, float(spans[start]))
            stop = int(np.searchsorted(spans, self.span, side="right"))
            piece = slice(start, stop)
            for one in (state, self.current):
                buffer_rows(one, X[piece], y[piece], None if weights is None else weights[piece])
            start = stop
        self.now = float(clock[-1])
        return state

    def n_rows(self, state: State) -> int:
        """How many rows are in the window."""
        older = self.closed[0].n_samples if self.n_summed else 0
        return older + (0 if self.newer is None else self.newer.n_samples) + self.current.n_samples

    def close(self, state: State, span: float) -> State:
        """Begin another span: the sums of the window are those of the spans that are still in it."""
        fold(self.current)
        self.closed.append(self.current)
        self.spans = np.append(self.spans, self.span)
        self.newer = duplicate(self.current) if self.newer is None else merged(self.newer, self.current)
        self.current, self.span = new_state(len(state.sum_x), len(state.buffer), state.scatter.dtype), span
        n_left = int(np.searchsorted(self.spans, span - N_SPANS))
        self.closed, self.spans = self.closed[n_left:], self.spans[n_left:]
        if n_left <= self.n_summed:
            self.n_summed -= n_left
        else:  # spans leave that no sum begins after: let sums begin after each
            for k in range(len(self.closed) - 1, 0, -1):
                self.closed[k - 1] = merged(self.closed[k - 1], self.closed[k])
            self.n_summed, self.newer = len(self.closed), None
        parts = [*self.closed[: min(self.n_summed, 1)], *([self.newer] if self.newer is not None else [])]
        if len(parts) == 2:
            result = merged(*parts)
        elif parts:
            result = duplicate(parts[0])
        else:
            result = new_state(len(state.sum_x), len(state.buffer), state.scatter.dtype)
        result.n_samples = state.n_samples
        return result

    def fold(self, state: State) -> bool:
        """Fold the rows that wait. True if the shift moved."""
        fold(self.current)
        return fold(state)

    def fits(self, state: State) -> bool:
        """Whether these can be the sums of the window."""
        return same_layout(state, self.current) and state.n_buffered == self.current.n_buffered

    def copy(self) -> "BlockWindow":
        """An independent copy."""
        return self._with([duplicate(state) for state in self._states()])

    def grown(self, n_features: int, block: int) -> "BlockWindow":
        """The same with columns of zeros appended."""
        return self._with([widened(state, n_features, room_for(state, n_features), block) for state in self._states()])

    def _states(self) -> list[State]:
        return [self.current, *self.closed, *([] if self.newer is None else [self.newer])]

    def _with(self, states: list[State]) -> "BlockWindow":
        n = len(self.closed) + 1
        newer = None if self.newer is None else states[n]
        return replace(self, current=states[0], closed=states[1:n], newer=newer, spans=self.spans.copy())


def duplicate(state: State) -> State:
    """The same sums in arrays of their own."""
    d = len(state.sum_x)
    return copied(state, np.zeros((d, d), state.scatter.dtype))


def merged(one: State, other: State) -> State:
    """The sums of both, whose buffers are empty."""
    large, small = (one, other) if one.weight >= other.weight else (other, one)
    result = duplicate(large)  # about the shift of the heavier one, which is closer to the common mean
    add(result, duplicate(small), 1.0)
    return result


@dataclass(eq=False)
class RowWindow(Window):
    """The rows in the window, in places of the buffer: the row with number i in place i modulo their number."""

    _schema = Schema(
        n_places=Count(1),
        oldest=Count(),
        n_waiting=Count(),
        times=Array("n_places"),
    )
    n_places: int = FIRST_PLACES
    oldest: int = 0  # number of the first row in the window, from zero
    n_waiting: int = 0  # rows since the last block was full
    times: Floats = field(default_factory=lambda: np.zeros(FIRST_PLACES))  # of the row in each place, if it has one

    def require_room(self, state: State, times: Floats | None) -> None:
        """Raise MemoryError if there is no room for the next rows."""
        if times is not None:
            require_window_of_rows(self._places_for(state, times)[1], len(state.sum_x))
        elif not state.n_samples:
            require_window_of_rows(int(self.length), len(state.sum_x))

    def rows_until_fold(self, state: State, block: int) -> int:
        """How many more rows make a block."""
        return block - self.n_waiting

    def put(self, state: State, X: Floats, y: Floats, weights: Floats | None, times: Floats | None) -> State:
        """Add rows, and let others leave."""
        start_shift(state, X, y, weights)
        first, stop = state.n_samples, state.n_samples + len(y)
        if times is None:
            oldest = max(stop - int(self.length), 0)
            if not first:
                self._move(state, int(self.length))
        else:
            oldest, n_places = self._places_for(state, times)
            if n_places > self.n_places or not first:
                self._move(state, n_places)
            left = np.arange(self.oldest, min(oldest, first)) % self.n_places
            for array in (state.buffer, state.buffer_y, state.buffer_root, self.times):
                array[left] = 0.0
        self.timed = times is not None
        start = max(first, oldest)
        while start < stop:
            place = start % self.n_places
            end = min(stop, start + self.n_places - place)
            piece = slice(start - first, end - first)
            put_rows(
                X[piece],
                y[piece],
                None if weights is None else weights[piece],
                state.shift_x,
                state.shift_y,
                state.buffer,
                state.buffer_y,
                state.buffer_root,
                place,
            )
            if times is not None:
                self.times[place : place + end - start] = times[piece]
            start = end
        state.n_samples, state.n_buffered = stop, min(stop, self.n_places)
        self.oldest, self.n_waiting = oldest, self.n_waiting + len(y)
        self.now = self.now + len(y) if times is None else float(times[-1])
        return state

    def _places_for(self, state: State, times: Floats) -> tuple[int, int]:
        """The number of the oldest row after these, and how many places they need on the way."""
        first = state.n_samples
        known = np.concatenate([self.times[np.arange(self.oldest, first) % self.n_places], times])
        oldest = self.oldest + np.searchsorted(known, times - self.length, side="right")  # after each new row
        needed, n_places = int((np.arange(first, first + len(times)) - oldest).max()) + 1, self.n_places
        while n_places < needed:
            n_places *= 2
        return int(oldest[-1]), n_places

    def _move(self, state: State, n_places: int) -> None:
        """Let rows have other places."""
        numbers = np.arange(self.oldest, state.n_samples)
        before, after = numbers % self.n_places, numbers % n_places
        length = max(n_places + 1, len(state.buffer))
        for holder, name, size in (
            (state, "buffer", length),
            (state, "buffer_y", length),
            (state, "buffer_root", length),
            (self, "times", n_places),
        ):
            array = getattr(holder, name)
            moved = np.zeros((size, *array.shape[1:]))
            moved[after] = array[before]
            setattr(holder, name, moved)
        self.n_places = n_places

    def fold(self, state: State) -> bool:
        """Begin another block. True if the shift moved, to follow the mean."""
        self.n_waiting = 0
        total = sums(state)
        if not total.weight or not mean_left_shift(total):
            return False
        shift, shift_y = total.mean_x, total.mean_y
        move, move_y = shift - state.shift_x, shift_y - state.shift_y  # what the rounded shift really moves by
        root = state.buffer_root
        for start in range(0, state.n_buffered, STRIPE):
            some = slice(start, start + STRIPE)
            state.buffer[some] -= np.outer(root[some], move)
        state.buffer_y -= root * move_y
        state.shift_x, state.shift_y = shift, shift_y
        return True

    def n_rows(self, state: State) -> int:
        """How many rows are in the window."""
        return state.n_samples - self.oldest

    def waiting(self, state: State) -> Waiting:
        """The rows that came in since the last block was full, as far as they have not left."""
        n = min(self.n_waiting, state.n_samples - self.oldest)
        place = np.arange(state.n_samples - n, state.n_samples) % self.n_places
        return Waiting(state.buffer[place], state.buffer_y[place], state.buffer_root[place])

    def fits(self, state: State) -> bool:
        """Whether the buffer can hold the rows of the window."""
        n, n_rows = state.n_samples, state.n_samples - self.oldest
        return bool(
            self.n_places < len(state.buffer)
            and 0 <= n_rows <= self.n_places
            and state.n_buffered == min(n, self.n_places)
            and state.weight == 0.0
            and self.n_waiting <= n
            and (self.timed is not False or self.n_places == self.length)
        )

    def copy(self) -> "RowWindow":
        """An independent copy."""
        return replace(self, times=self.times.copy())

    def grown(self, n_features: int, block: int) -> "RowWindow":
        """The same with columns of zeros appended."""
        return self


def new_window(length: float | timedelta, exact: bool, state: State) -> BlockWindow | RowWindow:
    """A window of a summary that has seen nothing."""
    number, timed = as_duration(length, "window"), True if is_timedelta(length) else None
    if exact:
        return RowWindow(number, timed=timed)
    d, storage = len(state.sum_x), state.scatter.dtype
    require_bytes(
        N_SUMMARIES * d * d * storage.itemsize,
        f"A window of {d:,} features, which holds {N_SUMMARIES} summaries in {storage},",
        "Use fewer features, or a half-life, which needs no more than one summary.",
    )
    return BlockWindow(number, timed=timed, current=new_state(d, len(state.buffer), storage))


def require_window_of_rows(n_rows: int, n_features: int) -> None:
    """Raise MemoryError if there is no room for the rows of a window."""
    require_bytes(
        8 * n_rows * (n_features + 3),
        f"A window of {n_rows:,} rows with {n_features:,} features",
        "Use a shorter window, or one that is exact only to a tenth of it, or a half-life, which needs no rows.",
    )


def same_layout(one: State, other: State) -> bool:
    """Whether sums can be added."""
    return (
        len(one.sum_x) == len(other.sum_x)
        and one.scatter.dtype == other.scatter.dtype
        and len(one.buffer) == len(other.buffer)
    )
