"""The O(d) sums of a summary, kept up to date row by row for kernels that need them after every row."""

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import NO_WEIGHTS, read_only
from thresher.online._gram import (
    CROSS,
    N_BUFFERED,
    N_SAMPLES,
    SHIFT_X,
    SHIFT_Y,
    SUM_X,
    SUM_XX,
    SUM_Y,
    SUM_YY,
    WEIGHT,
    GramArrays,
)
from thresher.summaries._shifted import start_shift
from thresher.summaries.gram import Gram
from thresher.summaries.multiresponse import MultiResponse

Floats = NDArray[np.float64]
Block = tuple[Floats, Floats, Floats]


class RunningSums:
    """Sums over all rows of a summary, rows in its buffer included, which kernels add rows to.

    A summary computes these sums when its buffer is folded; a round after every row needs them after every row.
    Kernels write new rows to the buffer of the summary and to these sums: call ``begin`` before and ``end`` after.
    """

    def __init__(self, n_columns: int) -> None:
        self._moments = np.zeros((4, n_columns))
        self._totals = np.zeros(4)
        self._counts = np.zeros(2, np.int64)

    def arrays(self, summary: Gram | MultiResponse) -> GramArrays:
        """What kernels read and write."""
        state = summary.state
        self._counts[N_SAMPLES], self._counts[N_BUFFERED] = state.n_samples, state.n_buffered
        return GramArrays(
            state.scatter,
            state.buffer,
            state.buffer_y,
            state.buffer_root,
            self._moments,
            self._totals,
            self._counts,
        )

    def read(self, summary: Gram | MultiResponse) -> None:
        """Take the sums from the summary, after it has folded its rows about another shift or absorbed rows itself."""
        sums = summary.sums()
        for row, values in ((SHIFT_X, sums.shift_x), (SUM_X, sums.sum_x), (SUM_XX, sums.sum_xx), (CROSS, sums.cross)):
            self._moments[row] = values
        totals = {WEIGHT: sums.weight, SHIFT_Y: sums.shift_y, SUM_Y: sums.sum_y, SUM_YY: sums.sum_yy}
        for place, value in totals.items():
            self._totals[place] = value

    def begin(self, summary: Gram | MultiResponse, block: tuple[Floats, Floats, Floats | None]) -> Block:
        """Make ready for the rows of a block; returns them as kernels take them."""
        X, y, weights = block
        if not summary.state.started:
            start_shift(summary.state, X, y, weights)
            self.read(summary)
        return read_only(X), read_only(y), NO_WEIGHTS if weights is None else read_only(weights)

    def end(self, summary: Gram | MultiResponse) -> None:
        """Tell the summary how many rows a kernel has written to its buffer."""
        state = summary.state
        state.n_samples, state.n_buffered = int(self._counts[N_SAMPLES]), int(self._counts[N_BUFFERED])

    def widened(self, n_columns: int) -> "RunningSums":
        """The same with columns of zeros appended."""
        result = RunningSums(n_columns)
        result._moments[:, : self._moments.shape[1]] = self._moments
        result._totals[:] = self._totals
        return result
