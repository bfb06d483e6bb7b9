"""Rounds with different settings on the same rows, which are folded once."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from thresher._interrupts import InterruptsDeferred
from thresher.kernels.gram import absorb_rows
from thresher.rounds.step_size import StepSize
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]


class Member(NamedTuple):
    """Rounds and how they move."""

    rounds: Any
    step_size: StepSize
    n_steps: int
    n_warmup: int


class Bank:
    """Several rounds on one Gram: each ends where it would end alone, to the last bit, and rows are folded once.

    Each member sees the Gram through a twin, with O(d) sums of its own. All absorb the same rows one after another,
    block by block, and write the same numbers to the buffer that they share. Beyond the Gram,
    a member costs what its rounds cost.

    Parameters
    ----------
    gram : Gram
        The summary, which this object fills.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import Gram
    >>> from thresher.rounds.bank import Bank
    >>> from thresher.rounds.sparse import SparseRounds
    >>> bank = Bank(Gram(3))
    >>> for s in (1, 2):
    ...     bank = bank.add(lambda gram, s=s: SparseRounds(gram, s, False, False), step_size=0.5)
    >>> bank = bank.absorb(np.eye(3), np.array([3.0, 2.0, 1.0]))
    >>> [int(np.count_nonzero(member.rounds.coef)) for member in bank.members]
    [1, 2]
    """

    def __init__(self, gram: Gram) -> None:
        self.gram = gram
        self.members: list[Member] = []

    def add(
        self, new_rounds: Callable[[Gram], Any], step_size: StepSize = "auto", n_steps: int = 5, n_warmup: int = 0
    ) -> Self:
        """Another member: rounds for the Gram they are given, with their steps."""
        self.members.append(Member(new_rounds(self.gram.twin()), step_size, n_steps, n_warmup))
        return self

    def absorb(self, X: Any, y: Floats) -> Self:
        """Absorb checked rows, with a round of every member after each."""
        with InterruptsDeferred() as interrupts:
            for block in self.gram.blocks(X, y, None):
                for member in self.members:
                    rounds = member.rounds
                    steps = rounds.steps_for(len(block[1]), member.step_size, member.n_steps, member.n_warmup, 1)
                    rounds.run_block(block, steps, member.n_warmup)
                absorb_rows(self.gram.arrays, *block)
                moved = self.gram.fold_if_full()
                for member in self.members:
                    member.rounds.summary.catch_up(self.gram)
                    member.rounds.follow_fold(moved)
                interrupts.check()
        return self
