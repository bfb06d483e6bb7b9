"""Rounds of matrices with different settings, step by step side by side: one pass over the moments serves them all."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from thresher._interrupts import InterruptsDeferred
from thresher.kernels import dense_lockstep
from thresher.kernels._blas import addresses
from thresher.kernels.dense_state import STALE, DenseState
from thresher.kernels.gram import N_BUFFERED, N_SAMPLES, absorb_rows
from thresher.rounds.dense import DenseRounds
from thresher.sparsity.rank import Rank
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]


class _Member(NamedTuple):
    rounds: DenseRounds
    state: DenseState
    step_size: float
    n_steps: int
    n_warmup: int


class Lockstep:
    """Rounds of matrices on one Gram, side by side: each ends where it would end alone, up to rounding.

    A step costs one product of the moments with the move, which is bound by reading the moments. Here the moves of all
    members are multiplied at once, by BLAS-3. Ten members take about a third of the time of ten runs. Rounding differs
    from that of a member alone, as products do: in float32, relative to the move.

    Parameters
    ----------
    gram : Gram
        The summary, which this object fills.
    shape : tuple of int
        Of the coefficient matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import Gram
    >>> from thresher.rounds.lockstep import Lockstep
    >>> together = Lockstep(Gram(4), (2, 2)).add(1, step_size=0.5, n_steps=5).add(2, step_size=0.5, n_steps=9)
    >>> together = together.absorb(np.eye(4), np.array([3.0, 0.0, 0.0, 1.0]))
    >>> [int(np.linalg.matrix_rank(together.coef(i))) for i in range(2)]
    [1, 2]
    """

    def __init__(self, gram: Gram, shape: tuple[int, int]) -> None:
        self.gram, self._shape = gram, shape
        self._members: list[_Member] = []
        self._moves = self._products = np.zeros((0, gram.n_features))
        self._mirrored: tuple[NDArray[Any], float] | None = None
        self._rows: NDArray[Any] = np.zeros((0, 0))
        self._row_sizes = np.zeros(0)
        self._n_kept = 0

    def add(self, rank: int, step_size: float, n_steps: int = 5, n_warmup: int = 0) -> Self:
        """Another member: Algorithm 1 with K steps of given size, beginning after `n_warmup` rows."""
        rounds = DenseRounds(self.gram, Rank(rank, self._shape), False, False)
        self._members.append(_Member(rounds, rounds.state, float(step_size), int(n_steps), int(n_warmup)))
        # Moves and products of all members lie side by side, and each member works on its own column of them.
        self._moves, self._products = (np.zeros((len(self._members), self.gram.n_features)) for _ in range(2))
        for i, member in enumerate(self._members):
            state = member.rounds.state._replace(
                move=self._moves[i].reshape(-1, 1), product=self._products[i].reshape(-1, 1)
            )
            self._members[i] = member._replace(state=state)
        return self

    @property
    def n_members(self) -> int:
        """How many there are."""
        return len(self._members)

    def coef(self, i: int) -> Floats:
        """The estimate of a member. A live view."""
        return self._members[i].rounds.coef

    def absorb(self, X: Floats, y: Floats) -> Self:
        """Absorb checked rows, with a round of every member after each."""
        with InterruptsDeferred() as interrupts:
            for rows, responses, weights in self.gram.blocks(X, y, None):
                for i in range(len(responses)):
                    absorb_rows(self.gram.arrays, rows[i : i + 1], responses[i : i + 1], weights)
                    if self._members:
                        self._follow_buffer()
                        self._run_round()
                self.gram.fold_if_full()
                if self.gram.arrays.counts[N_BUFFERED] == 0:
                    self._mirrored = None
                    for member in self._members:
                        member.state.flags[STALE] = 1
                interrupts.check()
        return self

    def _run_round(self) -> None:
        arrays, blas = self.gram.arrays, addresses()
        active = []
        for i, member in enumerate(self._members):
            dense_lockstep.start_round(arrays, member.state, member.rounds.problem)
            if arrays.counts[N_SAMPLES] > member.n_warmup:
                active.append(i)
        for step in range(max((self._members[i].n_steps for i in active), default=0)):
            moving = []
            for i in active:
                _, state, eta, n_steps, _ = member = self._members[i]
                if step < n_steps and dense_lockstep.start_step(arrays, blas, state, eta, member.rounds.problem):
                    moving.append(i)
            self._products[moving] = self._product(self._moves[moving])
            for i in moving:
                member = self._members[i]
                dense_lockstep.finish_step(arrays, member.state, member.step_size, member.rounds.problem)

    def _product(self, moves: Floats) -> Floats:
        """Moves, one per row, times the second moments of all rows so far."""
        counts = self.gram.arrays.counts
        # Each move is brought to length one, the moments to one at most, to stay in the range of float32.
        size = np.linalg.norm(moves, axis=1, keepdims=True)
        per = np.divide(1.0, size, out=np.zeros_like(size), where=(size > 0.0) & np.isfinite(size))
        units = (per * moves).astype(self._dtype)
        rows, sizes = self._rows[: counts[N_BUFFERED]], self._row_sizes[: counts[N_BUFFERED]]
        largest = np.max(sizes, initial=0.0) or 1.0
        along = (np.dot(units, rows.T) * (sizes / largest) ** 2).astype(self._dtype)
        result = (size * largest) * (np.dot(along, rows) * largest)
        if counts[N_SAMPLES] > counts[N_BUFFERED]:
            mirrored, scale = self._mirror()
            result += (size / scale) * np.dot(units, mirrored)
        return np.asarray(result)

    @property
    def _dtype(self) -> type[np.floating[Any]]:
        return np.float32 if self._members[0].rounds.problem.single else np.float64

    def _follow_buffer(self) -> None:
        """Keep the buffered rows in the precision of products, each divided by its largest entry."""
        buffer, n = self.gram.arrays.buffer, int(self.gram.arrays.counts[N_BUFFERED])
        if n == 1 or self._rows.shape != buffer.shape or self._rows.dtype != self._dtype:
            self._rows, self._row_sizes = np.zeros(buffer.shape, self._dtype), np.zeros(len(buffer))
            self._n_kept = 0
        for i in range(self._n_kept, n):
            self._row_sizes[i] = size = float(np.max(np.abs(buffer[i])))
            self._rows[i] = buffer[i] / (size or 1.0)
        self._n_kept = n

    def _mirror(self) -> tuple[NDArray[Any], float]:
        """The folded moments as a full matrix, and what they were multiplied by; made anew after each fold."""
        if self._mirrored is None:
            scatter = self.gram.arrays.scatter
            largest = float(np.max(np.diagonal(scatter), initial=0.0))
            scale = 1.0 / largest if largest > 0.0 else 1.0
            full: NDArray[Any] = np.empty(scatter.shape, self._dtype)
            dense_lockstep.mirror(scatter, scale, full)
            self._mirrored = full, scale
        return self._mirrored
