"""How far a stream of rounds has come: the counts that all kinds of rounds keep."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from thresher.online.step_size import StepSize, step_table

Floats = NDArray[np.float64]

# Places in the array that kernels share: rounds done, samples that wait for the next, samples seen by the last.
N_ROUNDS, N_PENDING, N_AT_ROUND = 0, 1, 2


class Progress(ABC):
    """Counts of rounds and of samples that wait for one."""

    def __init__(self) -> None:
        self._progress = np.zeros(3, np.int64)

    @property
    @abstractmethod
    def n_seen(self) -> int:
        """Samples in the summary."""

    @property
    def n_rounds(self) -> int:
        """Rounds done."""
        return int(self._progress[N_ROUNDS])

    @property
    def n_pending(self) -> int:
        """Samples absorbed since the last round."""
        return int(self._progress[N_PENDING])

    @property
    def up_to_date(self) -> bool:
        """Whether the last round has seen every sample."""
        return int(self._progress[N_AT_ROUND]) == self.n_seen

    def steps_for(self, n_rows: int, step_size: StepSize, n_steps: int, n_warmup: int, round_size: int) -> Floats:
        """The table of step sizes for the rounds that fall into the next `n_rows` samples."""
        n_past = n_rows - max(n_warmup - self.n_seen, 0)  # samples past the warm-up
        until_first = max(round_size - self.n_pending, 1)
        n_rounds = 0 if n_past < until_first else 1 + (n_past - until_first) // round_size
        return step_table(step_size, self.n_rounds + 1, n_rounds, n_steps)

    def steps_left(self, steps: Floats, first: int) -> Floats:
        """The rows of a table that begins after `first` rounds which are still to come; one row is for all rounds."""
        return steps[self.n_rounds - first :] if len(steps) > 1 else steps

    def count_round(self) -> None:
        """Note that a round has seen every sample."""
        self._progress[N_ROUNDS] += 1
        self._progress[N_PENDING] = 0
        self._progress[N_AT_ROUND] = self.n_seen
