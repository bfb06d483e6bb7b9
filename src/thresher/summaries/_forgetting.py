"""What a Gram offers whose rows count less as they age, or leave."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.locks import locked
from thresher._utils.times import next_times
from thresher.summaries import _shifted
from thresher.summaries._decay import check_factor, effective_rows, rescale, scale_later, undecayed, weight_and_scale
from thresher.summaries._shifted import State
from thresher.summaries._window import BlockWindow, RowWindow, Waiting


class Forgetting:
    """Sums whose rows may have been scaled, may fade (`_decay`), or may leave (`_window`)."""

    _state: State
    _window: BlockWindow | RowWindow | None

    @property
    @abstractmethod
    def block_size(self) -> int:
        """Rows that are folded at once."""

    @abstractmethod
    def copy(self) -> Self:
        """An independent copy."""

    @property
    def half_life(self) -> float | None:
        """Age at which a row counts half as much, in rows or seconds; None if all rows count equally."""
        decay = self._state.decay
        return None if decay is None or decay.half_life == np.inf else decay.half_life

    @property
    def window(self) -> float | None:
        """How many of the last rows count, or seconds; None if all do."""
        return None if self._window is None else self._window.length

    @property
    def exact_window(self) -> bool:
        """Whether each row leaves the window on its own."""
        return isinstance(self._window, RowWindow)

    @property
    def horizon(self) -> int:
        """How many rows count, whatever their weights: all, those in the window, or the effective number."""
        state = self._state
        if self._window is not None:
            n_rows: float = self._window.n_rows(state)
        elif state.decay is not None:
            n_rows = effective_rows(state, state.decay)
        else:
            return state.n_samples
        return min(state.n_samples, max(int(n_rows), 1))

    @property
    def last_time(self) -> float | None:
        """Time of the newest row in seconds; None if rows had no times."""
        clock = self._window or self._state.decay
        return clock.now if clock is not None and clock.timed and self._state.n_samples else None

    @property
    def forgets(self) -> bool:
        """Whether rows were scaled, or count less as they age, or leave."""
        return self._state.decay is not None or self._window is not None

    # -- rows ------------------------------------------------------------------------------------------

    def check_times(self, times: Any, n_rows: int) -> Floats | None:
        """Times of the next rows in seconds; an error if they go back, or if there should be some, or none."""
        clock = self._window or self._state.decay
        if clock is None or (self._window is None and self.half_life is None):
            if times is not None:
                raise ValueError("times go with half_life or window, and there is neither: all rows count equally.")
            return None
        seconds = next_times(times, n_rows, clock.timed, self.last_time)
        if self._window is not None:
            if seconds is None and self._window.length % 1.0:
                raise ValueError(f"window={self.window} is no whole number of rows; with seconds, give times=.")
            self._window.require_room(self._state, seconds)
        return seconds

    def rows_until_close(self, n_rows: int, times: Floats | None) -> int:
        """How many of the next rows can be put before a block of rows leaves a window."""
        if self._window is None or not self._state.n_samples:
            return n_rows
        return self._window.rows_until_close(n_rows, times)

    def close(self, times: Floats | None) -> None:
        """Let a block of rows leave a window, as the next row demands."""
        assert isinstance(self._window, BlockWindow)
        self._state = self._window.close(self._state, float(self._window.span_of(self._window.clock(1, times))[0]))

    def waiting(self) -> Waiting:
        """The rows that came in since the last block was full, whatever their age."""
        state, n = self._state, self._state.n_buffered
        if isinstance(self._window, RowWindow):
            return self._window.waiting(state)
        now = Waiting(state.buffer[:n], state.buffer_y[:n], state.buffer_root[:n])
        if state.decay is None:
            return now
        factors = state.decay.factors[:n]
        per = np.divide(1.0, np.sqrt(factors), out=np.zeros(n), where=factors > 0.0)
        return Waiting(now.rows * per[:, None], now.responses * per, now.root * per)

    # -- values ----------------------------------------------------------------------------------------

    @locked
    def scaled(self, factor: float) -> Self:
        """The summary of the same rows, each counting `factor` times as much beside rows of others, as a new object.

        It matters when this one is merged, or absorbs more rows. What is read of it alone stays the same.

        Examples
        --------
        >>> from thresher import Gram
        >>> old = Gram(1).absorb([[0.0], [0.0]], [0.0, 0.0])
        >>> new = Gram(1).absorb([[1.0]], [1.0])
        >>> both = old.scaled(0.25).merge(new)
        >>> both.mean_y.__round__(6), both.weight  # (0.25 + 0.25 + 1)^2 / (0.25^2 + 0.25^2 + 1^2)
        (0.666667, 2.0)
        """
        check_factor(factor)
        result = self.plain() if self._window is not None else self.copy()
        state = result._state
        if state.decay is None:
            state.decay = undecayed(state, self.horizon)
        scale_later(state.decay, float(factor))
        return result

    @locked
    def plain(self) -> Self:
        """A summary with the same sums that does not forget, as a new object: of as many rows as are effective."""
        result = self.copy()
        if self._window is not None:
            _shifted.fold(result._state)
            result._state.buffer = np.zeros((self.block_size, len(self._state.sum_x)))
            result._state.buffer_y, result._state.buffer_root = np.zeros(self.block_size), np.zeros(self.block_size)
            result._window = None
        else:
            rescale(result._state, weight_and_scale(result._state)[1])
            result._state.decay = None
        return result
