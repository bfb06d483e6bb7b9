"""Rounds with different settings on the same rows, which are folded once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher._utils.interrupts import InterruptsDeferred
from thresher.online.dense import DenseRounds
from thresher.online.sparse import SparseRounds
from thresher.online.step_size import StepSize
from thresher.summaries._shifted import buffer_rows
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]


class _Member(NamedTuple):
    rounds: SparseRounds | DenseRounds
    step_size: StepSize
    n_steps: int
    n_warmup: int


class Bank:
    """Several rounds on one Gram: each ends where it would end alone, to the last bit, and rows are folded once.

    The members take turns. Each writes the same rows to the same places of the buffer and adds them to O(d) sums of its
    own; the rows count once. Beyond the Gram, a member costs what its rounds cost.

    Parameters
    ----------
    gram : Gram
        The summary, which this object fills.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.bank import Bank
    >>> from thresher import Gram
    >>> from thresher.online.sparse import SparseRounds
    >>> gram = Gram(3)
    >>> one, two = (SparseRounds(gram, s, False, False) for s in (1, 2))
    >>> bank = Bank(gram)
    >>> bank.add(one, step_size=0.5)
    >>> bank.add(two, step_size=0.5)
    >>> bank.absorb(np.eye(3), np.array([3.0, 2.0, 1.0]))
    >>> int(np.count_nonzero(one.coef)), int(np.count_nonzero(two.coef))
    (1, 2)
    """

    def __init__(self, gram: Gram) -> None:
        self._gram = gram
        self._members: list[_Member] = []

    def add(
        self, rounds: SparseRounds | DenseRounds, step_size: StepSize = "auto", n_steps: int = 5, n_warmup: int = 0
    ) -> None:
        """Add rounds on the Gram: K steps of given size after every row past the first `n_warmup`."""
        self._members.append(_Member(rounds, step_size, n_steps, n_warmup))

    def absorb(self, X: Floats, y: Floats) -> None:
        """Absorb checked rows, with a round of every member after each."""
        gram = self._gram
        with InterruptsDeferred() as interrupts:
            for block in gram.blocks(X, y, None):
                n_samples, n_buffered = gram.state.n_samples, gram.state.n_buffered
                for rounds, step_size, n_steps, n_warmup in self._members:
                    steps = rounds.steps_for(len(block[1]), step_size, n_steps, n_warmup, 1)
                    rounds.run_block(block, steps, n_warmup)
                    gram.state.n_samples, gram.state.n_buffered = n_samples, n_buffered
                buffer_rows(gram.state, *block)
                moved = gram.fold_if_full()
                for member in self._members:
                    member.rounds.follow_fold(moved)
                interrupts.check()
