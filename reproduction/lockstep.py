"""Rounds of matrices with different settings in lockstep: one pass over the moments serves them all."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.span import Span
from thresher._utils.interrupts import InterruptsDeferred
from thresher.online._dense_round import DenseRound
from thresher.online.dense import SINGLE_FROM, DenseRounds
from thresher.summaries._shifted import buffer_rows, shifted_scatter
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]


class _Member(NamedTuple):
    rounds: DenseRounds
    step_size: float
    n_steps: int
    n_warmup: int


class Lockstep:
    """Rounds of matrices on one Gram, step by step together: each ends where it would end alone, up to rounding.

    A step costs one product of the moments with the move, which is bound by reading the moments. Here the moves of all
    members are multiplied at once, by BLAS-3, and only what is new in them (`reproduction.span`). Rounding differs from
    that of a member alone, as products do: in float32, relative to the move.

    Parameters
    ----------
    gram : Gram
        The summary, which this object fills.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.lockstep import Lockstep
    >>> from thresher import Gram, Rank
    >>> from thresher.online.dense import DenseRounds
    >>> gram = Gram(4)
    >>> one, two = (DenseRounds(gram, Rank(r, (2, 2)), False, False) for r in (1, 2))
    >>> together = Lockstep(gram)
    >>> together.add(one, step_size=0.5, n_steps=5)
    >>> together.add(two, step_size=0.5, n_steps=9)
    >>> together.absorb(np.eye(4), np.array([3.0, 0.0, 0.0, 1.0]))
    >>> int(np.linalg.matrix_rank(one.coef)), int(np.linalg.matrix_rank(two.coef))
    (1, 2)
    """

    def __init__(self, gram: Gram) -> None:
        self._gram = gram
        self._members: list[_Member] = []
        self._dtype = np.dtype(np.float32 if gram.n_features >= SINGLE_FROM else np.float64)
        self._follow_fold()

    def add(self, rounds: DenseRounds, step_size: float, n_steps: int = 5, n_warmup: int = 0) -> None:
        """Add rounds on the Gram: K steps of given size after every row past the first `n_warmup`."""
        self._members.append(_Member(rounds, float(step_size), n_steps, n_warmup))
        # Those that still move come before those that are done.
        self._members.sort(key=lambda member: -member.n_steps)
        shape = len(self._members), self._members[0].n_steps, self._gram.n_features
        self._span = Span(self._product, *shape, self._dtype)

    def absorb(self, X: Floats, y: Floats) -> None:
        """Absorb checked rows, with a round of every member after each."""
        gram, state = self._gram, self._gram.state
        with InterruptsDeferred() as interrupts:
            for block in gram.blocks(X, y, None):
                n_samples, n_buffered = state.n_samples, state.n_buffered
                kernels = [member.rounds.begin(block) for member in self._members]
                # Each member writes the same rows to the same places of the buffer again, and to sums of its own.
                buffer_rows(state, *block)
                for i, (x, v) in enumerate(zip(*block[:2], strict=True)):
                    for kernel in kernels:
                        kernel.absorb_row(x, v)
                    self._scale_row(n_buffered + i)
                    together = zip(self._members, kernels, strict=True)
                    self._run_round([pair for pair in together if n_samples + i >= pair[0].n_warmup])
                for member in self._members:
                    member.rounds.end()
                moved = gram.fold_if_full()
                for member in self._members:
                    member.rounds.follow_fold(moved)
                if state.n_buffered == 0:
                    self._follow_fold()
                interrupts.check()

    def _run_round(self, active: list[tuple[_Member, DenseRound]]) -> None:
        if not active:
            return
        self._span.clear()
        for step in range(active[0][0].n_steps):
            active = [pair for pair in active if step < pair[0].n_steps]
            proposed = [kernel.propose_move(member.step_size) for member, kernel in active]
            still = np.zeros(self._gram.n_features)
            products = self._span.multiply(np.stack([still if move is None else move for move in proposed]))
            for (member, kernel), move, product in zip(active, proposed, products, strict=True):
                if move is not None:
                    kernel.take_move(member.step_size, product)

    def _product(self, units: NDArray[np.floating]) -> Floats:
        """Vectors of length one, as rows, times the second moments of all rows so far."""
        # The moments are brought to one at most, to stay in the range of float32.
        rows, sizes = self._rows[: self._n_rows], self._row_sizes[: self._n_rows]
        largest = np.max(sizes, initial=0.0) or 1.0
        along = (np.dot(units, rows.T) * (sizes / largest) ** 2).astype(self._dtype)
        result: Floats = largest * (np.dot(along, rows) * largest)
        if self._gram.n_folded:
            result += np.dot(units, self._scatter).astype(np.float64) / self._scale
        return result

    def _scale_row(self, i: int) -> None:
        """Copy the newest row of the buffer, row i, in the precision of products, divided by its largest entry."""
        row = self._gram.state.buffer[i]
        self._row_sizes[i] = size = float(np.max(np.abs(row)))
        self._rows[i] = row / (size or 1.0)
        self._n_rows = i + 1

    def _follow_fold(self) -> None:
        """Copy the moments, of which the buffer is empty, in the precision of products, divided by the largest."""
        state = self._gram.state
        scatter = shifted_scatter(state)
        largest = float(np.max(np.diagonal(scatter)))
        self._scale = 1.0 / largest if largest > 0.0 else 1.0
        self._scatter = (self._scale * scatter).astype(self._dtype)
        self._rows, self._row_sizes = np.zeros(state.buffer.shape, self._dtype), np.zeros(len(state.buffer))
        self._n_rows = 0
