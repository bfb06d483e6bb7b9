"""How far a stream of rounds has come: the counts that all kinds of rounds keep."""

from abc import ABC
from typing import Any

from thresher._utils.arrays import Floats
from thresher.io.schema import Count, part
from thresher.online.step_size import StepCount, StepSize, step_table


class Progress(ABC):
    """Counts of rounds and of samples that wait for one.

    Attributes
    ----------
    summary : Gram or Entries
        What the samples left behind.
    n_rounds : int
        Rounds done.
    n_pending : int
        Samples absorbed since the last round.
    n_at_round : int
        Samples seen by the last round.
    """

    _schema = part(
        lambda rounds: rounds.n_at_round + rounds.n_pending <= rounds.n_seen,
        n_rounds=Count(),
        n_pending=Count(),
        n_at_round=Count(),
    )
    summary: Any
    _round: Any  # the kernel

    def __init__(self) -> None:
        self.n_rounds = self.n_pending = self.n_at_round = 0

    @property
    def n_seen(self) -> int:
        """Samples in the summary."""
        return int(self.summary.n_samples)

    @property
    def last_step(self) -> float:
        """The step size of the last step taken; zero before the first."""
        return float(self._round.last_step)

    @property
    def tallies(self) -> dict[str, int]:
        """How the steps went."""
        tallies: dict[str, int] = self._round.tallies
        return tallies

    @property
    def up_to_date(self) -> bool:
        """Whether the last round has seen every sample."""
        return self.n_at_round == self.n_seen

    def steps_for(self, n_rows: int, step_size: StepSize, n_steps: StepCount, n_warmup: int, round_size: int) -> Floats:
        """The table of step sizes for the rounds that fall into the next `n_rows` samples."""
        n_past = n_rows - max(n_warmup - self.n_seen, 0)  # samples past the warm-up
        until_first = max(round_size - self.n_pending, 1)
        n_rounds = 0 if n_past < until_first else 1 + (n_past - until_first) // round_size
        return step_table(step_size, self.n_rounds + 1, n_rounds, n_steps)

    def steps_left(self, steps: Floats, first: int) -> Floats:
        """The rows of a table that begins after `first` rounds which are still to come; one row is for all rounds."""
        return steps[self.n_rounds - first :] if len(steps) > 1 else steps

    def count_rounds(self, n_rounds: int, n_pending: int) -> None:
        """Note how many rounds there were while samples came in, and how many samples wait for the next."""
        self.n_rounds += n_rounds
        self.n_pending = n_pending
        if n_rounds:
            self.n_at_round = self.n_seen - n_pending

    def count_round(self) -> None:
        """Note that a round has seen every sample."""
        self.count_rounds(1, 0)

    def adopt_counts(self, other: "Progress") -> None:
        """Go on counting where other rounds stand."""
        self.n_rounds, self.n_pending, self.n_at_round = other.n_rounds, other.n_pending, other.n_at_round
