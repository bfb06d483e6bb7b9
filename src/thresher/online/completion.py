"""Entries x Rank: rounds of matrix completion."""

from typing import Self

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.memory import require_bytes
from thresher._utils.threads import one_blas_thread
from thresher.io.schema import Count, Flag, Is, Number, Schema
from thresher.online._entry_round import EntryRound
from thresher.online.progress import Progress
from thresher.online.samples import Observations
from thresher.online.step_size import CERTIFIED, StepCount, StepSize, step_table
from thresher.sparsity.rank import Rank, fix_signs
from thresher.summaries.entries import Entries, Indices

# Entries per round, unless told otherwise: one for so many cells, which bounds the time per entry, but no more
# than so many for each row and column.
CELLS_PER_ENTRY, ENTRIES_PER_SIDE = 500, 2
# A fresh start is tried when this much more was observed than at the last, until there are so many observations for
# each parameter, with this many rounds' steps.
FRESH_GROWTH, FRESH_UNTIL, FRESH_STEPS = 1.5, 16, 4


class EntriesRounds(Progress):
    """Online hard thresholding of a partly observed matrix: the iterates of `reference.run_round`.

    A step goes over the d1 x d2 counts and sums twice and over the target a few times more, to follow its leading
    singular vectors: O(d1 d2 r). That they are the leading ones is proved by a bound on the next singular value: from
    the norm of the rest, from a bound that held for a similar target (Weyl), or from a Cholesky factorisation.

    Parameters
    ----------
    summary : Entries
        The summary, which this object fills.
    rank : int
    offsets : bool
        Whether every row and column has an offset, improved by a sweep of least squares in each round.
    growing : bool
        Whether indices beyond the shape enlarge it.
    """

    _schema = Schema(
        lambda rounds: rounds.coef.shape == rounds.summary.shape,
        lambda rounds: rounds._round.triplets.rank == min(rounds.rank, *rounds.summary.shape),
        summary=Is(Entries, shared=True),
        rank=Count(1),
        offsets=Flag(),
        growing=Flag(),
        inflation=Number(least=0.0),
        _weight_fresh=Number(least=0.0),
        _round=Is(EntryRound),
        _round_length=Count(1),
    )
    summary: Entries

    def __init__(self, summary: Entries, rank: int, offsets: bool = False, growing: bool = False) -> None:
        super().__init__()
        self.rank, self.offsets, self.growing = int(rank), bool(offsets), bool(growing)
        self.inflation = 0.0
        self._weight_fresh = 0.0
        self._begin(summary)
        self._round_length = usual_round(summary.shape)

    def _begin(self, summary: Entries) -> None:
        """Start with an estimate of zero."""
        d1, d2 = summary.shape
        require_bytes(40 * d1 * d2, f"An estimate of {d1:,} x {d2:,} entries", "Use fewer rows or columns.")
        self.summary, self._round = summary, EntryRound(d1, d2, self.rank)

    def _enlarge(self, summary: Entries) -> None:
        """Go on with a summary of the same entries that has more rows and columns."""
        before = self._round
        self._begin(summary)
        rows, cols = (slice(d) for d in before.coef.shape)
        self.coef[rows, cols] = before.coef
        self.row_offsets[rows], self.col_offsets[cols] = before.row_offsets, before.col_offsets
        self._round.last_step, self._round.tallies = before.last_step, before.tallies

    @property
    def coef(self) -> Floats:
        """The estimate without its offsets. A live view until the next step."""
        coef: Floats = self._round.coef
        return coef

    @property
    def row_offsets(self) -> Floats:
        """The offsets of the rows. A live view."""
        offsets: Floats = self._round.row_offsets
        return offsets

    @property
    def col_offsets(self) -> Floats:
        """The offsets of the columns. A live view."""
        offsets: Floats = self._round.col_offsets
        return offsets

    # -- moving ----------------------------------------------------------------------------------------

    def absorb(self, observed: Observations, steps: Floats, n_warmup: int = 0, round_size: int | None = None) -> Self:
        """Absorb checked entries, with a round after every `round_size` of them past the first `n_warmup`."""
        start, stop, first = 0, len(observed), self.n_rounds
        with InterruptsDeferred() as interrupts:
            while start < stop:
                warming = max(n_warmup - self.n_seen, 0)
                length = self.round_length(round_size)
                end = min(start + (warming or max(length - self.n_pending, 1)), stop)
                piece, start = observed.cut(start, end), end
                if self.growing:
                    self._reach(piece.rows, piece.cols)
                self.summary.add(piece.rows, piece.cols, piece.values, piece.weights)
                if not warming:
                    self.n_pending += len(piece)
                    if self.n_pending >= length:
                        self._run_round(steps[min(self.n_rounds - first, len(steps) - 1)])
                elif self.offsets and not self.n_rounds:
                    # From zero, so that they do not depend on how the warm-up is cut into calls.
                    self.row_offsets[:], self.col_offsets[:] = 0.0, 0.0
                    self._round.begin(self.summary).fit_offsets()
                interrupts.check()
        return self

    def run_round(self, step_size: StepSize, n_steps: StepCount) -> Self:
        """One round on the entries absorbed so far: Algorithm 1, lines 4 to 6."""
        self._run_round(step_table(step_size, self.n_rounds + 1, 1, n_steps)[0])
        return self

    def round_length(self, round_size: int | None) -> int:
        """Entries per round, now."""
        return round_size or self._round_length

    def _run_round(self, steps: Floats) -> None:
        steps = steps[~np.isnan(steps)]  # of longer rounds
        with InterruptsDeferred(), one_blas_thread():
            self._take_steps(steps)
            if steps[0] == CERTIFIED:
                self._compare_with_fresh_start(len(steps))
            self._measure_inflation()
            self.count_round()
            # Not later: it must not depend on how entries of the next round are cut into calls.
            self._round_length = usual_round(self.summary.shape)

    def _take_steps(self, steps: Floats) -> None:
        if self.summary.weight == 0.0:
            return
        self._round.begin(self.summary)
        if self.offsets:
            self._round.fit_offsets()
        for eta in steps:
            if not self._round.step(eta):
                break

    def _compare_with_fresh_start(self, n_steps: int) -> None:
        """Start again from zero if that is better.

        An estimate that began with fewer observations than it has parameters can be caught in a poor local
        minimum. While there are few for each parameter, and whenever there are so many more of them, a second
        estimate takes some steps from zero, and the one with the lower loss stays.
        """
        (d1, d2), weight = self.summary.shape, self.summary.weight
        n_parameters = self.rank * max(d1 + d2 - self.rank, 1)
        if not self._weight_fresh:
            self._weight_fresh = weight  # this very round started from zero
        if weight < FRESH_GROWTH * self._weight_fresh or not n_parameters <= weight <= FRESH_UNTIL * n_parameters:
            return
        self._weight_fresh = weight
        other = EntriesRounds(self.summary, self.rank, self.offsets)
        other._take_steps(np.full(FRESH_STEPS * n_steps, CERTIFIED))
        if other._squared_residuals() < self._squared_residuals():
            other._round.tallies = self.tallies | {"fresh": self.tallies["fresh"] + 1}
            self._round = other._round

    def _measure_inflation(self) -> None:
        """What noise adds to a singular value, times that value.

        Errors tangent to the set have variance tau^2 = residual variance over observations per cell. To second
        order they inflate a singular value s by tau^2 (d1 + d2 - 2r) / (2s), and they turn its vectors so that
        the best multiple of the pair is lower than s by as much again.
        """
        (d1, d2), weight = self.summary.shape, self.summary.weight
        r = min(self.rank, d1, d2)
        n_fitted = r * (d1 + d2 - r) + (d1 + d2 if self.offsets else 0)
        self.inflation = 0.0
        if weight > n_fitted:
            total = self._squared_residuals()
            # Few degrees of freedom say little about the noise: until there are as many as parameters, assume less.
            variance = max(total, 0.0) / max(weight - n_fitted, n_fitted)
            self.inflation = variance * (d1 * d2 / weight) * (d1 + d2 - 2 * r)

    def _squared_residuals(self) -> float:
        return float(self._round.begin(self.summary).squared_residuals())

    def loss(self) -> float:
        """Half the mean squared residual of the estimate, with its offsets."""
        return max(self._squared_residuals(), 0.0) / (2.0 * self.summary.weight)

    def factors(self) -> tuple[Floats, Floats, Floats]:
        """U, singular values and V' of the estimate."""
        found = self._round.triplets
        if not found.warm or not self.coef.any():
            return Rank(self.rank).factors(self.coef)
        left, values, right = (np.array(side[: found.rank]) for side in (found.left, found.values, found.right))
        return fix_signs(left.T.copy(), values, right)

    def _reach(self, rows: Indices, cols: Indices) -> None:
        """Enlarge the matrix so that it holds these entries."""
        d1, d2 = self.summary.shape
        shape = max(d1, int(rows.max()) + 1), max(d2, int(cols.max()) + 1)
        if shape != (d1, d2):
            self._enlarge(self.summary.resized(shape))

    def settle(self, step_size: StepSize, n_steps: StepCount, tol: float, max_rounds: int) -> bool:
        """Rounds on this one summary until a round moves nothing by more than `tol`, relatively."""
        for _ in range(max_rounds):
            before = self.coef
            self.run_round(step_size, n_steps)
            if np.abs(self.coef - before).max() <= tol * np.abs(self.coef).max():
                return True
        return False

    def adopt(self, other: "EntriesRounds") -> Self:
        """Go on from the estimate of other rounds on the same summary; what does not fit is projected."""
        self.coef[...] = other.coef if self.rank >= other.rank else Rank(self.rank).project(other.coef)
        if self.offsets:
            self.row_offsets[:], self.col_offsets[:] = other.row_offsets, other.col_offsets
        self.adopt_counts(other)
        self._weight_fresh, self._round_length = other._weight_fresh, other._round_length
        self._round.last_step, self._round.tallies = other.last_step, other.tallies
        self._measure_inflation()
        return self

    def start_near(self, coef: Floats) -> Self:
        """Go on from another estimate without offsets; one of a larger rank is projected."""
        zero = (np.zeros(side) for side in self.summary.shape)
        rank = Rank(self.rank)
        return self.start_from(coef if rank.measure(coef) <= self.rank else rank.project(coef), *zero)

    def start_from(self, coef: Floats, row_offsets: Floats, col_offsets: Floats) -> Self:
        """Go on from another estimate in the set."""
        self.coef[...], self.row_offsets[:], self.col_offsets[:] = coef, row_offsets, col_offsets
        self._round.triplets.warm = False
        self._measure_inflation()
        return self


def usual_round(shape: tuple[int, int]) -> int:
    """Entries per round unless told otherwise."""
    d1, d2 = shape
    return max(min(d1 * d2 // CELLS_PER_ENTRY, ENTRIES_PER_SIDE * (d1 + d2)), 1)
