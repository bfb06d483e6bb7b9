"""Rounds of matrices with different settings in lockstep: one pass over the moments serves them all."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher._utils.interrupts import InterruptsDeferred
from thresher.online._blas import addresses
from thresher.online._dense_round import accept, find_gradient, propose
from thresher.online._dense_state import STALE, fill_units, follow_row, measure_move
from thresher.online._gram import N_BUFFERED, N_SAMPLES, GramArrays, absorb_rows
from thresher.online.dense import SINGLE_FROM, DenseRounds
from thresher.online.running import RunningSums
from thresher.summaries._shifted import shifted_scatter
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
    members are multiplied at once, by BLAS-3. For 50 x 50 matrices this is faster than separate runs with 24 members,
    as in the paper's experiments, and slower with ten. Rounding differs from that of a member alone, as products do: in
    float32, relative to the move.

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
        self._running = RunningSums(gram.n_features)
        self._dtype = np.dtype(np.float32 if gram.n_features >= SINGLE_FROM else np.float64)
        self._follow_fold()

    def add(self, rounds: DenseRounds, step_size: float, n_steps: int = 5, n_warmup: int = 0) -> None:
        """Add rounds on the Gram: K steps of given size after every row past the first `n_warmup`."""
        self._members.append(_Member(rounds, float(step_size), n_steps, n_warmup))

    def absorb(self, X: Floats, y: Floats) -> None:
        """Absorb checked rows, with a round of every member after each."""
        gram, running = self._gram, self._running
        with InterruptsDeferred() as interrupts:
            for block in gram.blocks(X, y, None):
                rows, responses, weights = running.begin(gram, block)
                arrays = running.arrays(gram)
                for i in range(len(responses)):
                    absorb_rows(arrays, rows[i : i + 1], responses[i : i + 1], weights)
                    self._scale_newest(arrays)
                    self._run_round(arrays)
                running.end(gram)
                if gram.fold_if_full():
                    running.read(gram)
                if gram.state.n_buffered == 0:
                    self._follow_fold()
                interrupts.check()

    def _run_round(self, arrays: GramArrays) -> None:
        active = [member for member in self._members if arrays.counts[N_SAMPLES] > member.n_warmup]
        for rounds, *_ in active:
            if not rounds.state.flags[STALE]:
                follow_row(arrays, rounds.state)
            fill_units(arrays, rounds.state, rounds.problem)
        for step in range(max((member.n_steps for member in active), default=0)):
            moving = [member for member in active if step < member.n_steps and _propose(arrays, member)]
            if not moving:
                break
            products = self._product(np.hstack([member.rounds.state.move for member in moving]).T)
            for (rounds, eta, *_), product in zip(moving, products, strict=True):
                rounds.state.product[:, 0] = product
                length, fall, rise = measure_move(arrays, rounds.state, rounds.problem.centred)
                if abs(fall) + rise < np.inf:
                    accept(rounds.state, eta, length, fall, rise, False, rounds.problem)

    def _product(self, moves: Floats) -> Floats:
        """Moves, one per row, times the second moments of all rows so far."""
        # Each move is brought to length one, the moments to one at most, to stay in the range of float32.
        size = np.linalg.norm(moves, axis=1, keepdims=True)
        per = np.divide(1.0, size, out=np.zeros_like(size), where=(size > 0.0) & np.isfinite(size))
        units = (per * moves).astype(self._dtype)
        rows, sizes = self._rows[: self._n_rows], self._row_sizes[: self._n_rows]
        largest = np.max(sizes, initial=0.0) or 1.0
        along = (np.dot(units, rows.T) * (sizes / largest) ** 2).astype(self._dtype)
        result: Floats = (size * largest) * (np.dot(along, rows) * largest)
        if self._gram.n_folded:
            result += (size / self._scale) * np.dot(units, self._scatter)
        return result

    def _scale_newest(self, arrays: GramArrays) -> None:
        """Copy the newest row of the buffer in the precision of products, divided by its largest entry."""
        i = int(arrays.counts[N_BUFFERED]) - 1
        self._row_sizes[i] = size = float(np.max(np.abs(arrays.buffer[i])))
        self._rows[i] = arrays.buffer[i] / (size or 1.0)
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
        for member in self._members:
            member.rounds.state.flags[STALE] = 1


def _propose(arrays: GramArrays, member: _Member) -> bool:
    """Find the gradient and where a step leads, of which the product with the moments is wanted next."""
    rounds = member.rounds
    find_gradient(arrays, addresses(), rounds.state, rounds.problem)
    return propose(rounds.state, member.step_size, rounds.problem)
