"""Entries x Rank: rounds of matrix completion."""

from typing import Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import blas

from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.memory import require_bytes
from thresher._utils.threads import one_blas_thread
from thresher.online import _entry_steps as kernel
from thresher.online import _subspace as subspace
from thresher.online._step_grid import GROWTH, N_POWER, RESTING, ROUNDING, SHRINK, on_grid
from thresher.online.progress import N_PENDING, Progress
from thresher.online.samples import Observations
from thresher.online.step_size import CERTIFIED, StepSize, step_table
from thresher.sparsity.rank import Rank, fix_signs
from thresher.summaries.entries import Entries, Indices

Floats = NDArray[np.float64]

# Entries per round, unless told otherwise: one for so many cells, which bounds the time per entry, but no more
# than so many for each row and column.
CELLS_PER_ENTRY, ENTRIES_PER_SIDE = 500, 2
# Subspace iteration on a large matrix: a full decomposition costs as much as very many iterations.
PATIENCE, SLOW = 100, 0.95
# A fresh start is tried when this much more was observed than at the last, until there are so many observations for
# each parameter, with this many rounds' steps.
FRESH_GROWTH, FRESH_UNTIL, FRESH_STEPS = 1.5, 16, 4
# Below this, a full decomposition is as cheap as a proof.
SMALL_SIDE = 100
# What belongs to an estimate, and moves with it.
ESTIMATE = ("coef", "row_offsets", "col_offsets", "last_step", "_left", "_values", "_right", "_warm", "_bounded")
ESTIMATE_OF_CURVATURE = ("_mode", "_stiffness", "_weight_then")


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

    def __init__(self, summary: Entries, rank: int, offsets: bool = False, growing: bool = False) -> None:
        super().__init__()
        self.rank, self.offsets, self.growing = int(rank), bool(offsets), bool(growing)
        self.last_step, self.inflation = 0.0, 0.0
        self.tallies = {"steps": 0, "followed": 0, "rises": 0, "overflows": 0, "shortened": 0, "fresh": 0}
        self.coef, self.row_offsets, self.col_offsets = np.zeros((0, 0)), np.zeros(0), np.zeros(0)
        self._round_length, self._weight_fresh = 0, 0.0
        self._enlarge(summary)
        self._round_length = usual_round(summary.shape)

    def _enlarge(self, summary: Entries) -> None:
        """Go on with a summary of the same entries that may have more rows and columns."""
        d1, d2 = summary.shape
        require_bytes(40 * d1 * d2, f"An estimate of {d1:,} x {d2:,} entries", "Use fewer rows or columns.")
        self.summary = summary
        corner = np.s_[: self.coef.shape[0], : self.coef.shape[1]]
        coef, row_offsets, col_offsets = self.coef, self.row_offsets, self.col_offsets
        self.coef, self.row_offsets, self.col_offsets = np.zeros((d1, d2)), np.zeros(d1), np.zeros(d2)
        self.coef[corner], self.row_offsets[corner[0]], self.col_offsets[corner[1]] = coef, row_offsets, col_offsets
        n = min(self.rank + subspace.SPARE, d1, d2)
        self._target, self._projected = np.zeros((d1, d2)), np.zeros((d1, d2))
        self._left, self._values, self._right = np.zeros((n, d1)), np.zeros(n), np.zeros((n, d2))
        self._warm = False
        self._bounded: tuple[Floats, float] | None = None  # a matrix, and a bound on its next singular value
        self._mode = np.zeros((d1, d2))
        self._stiffness, self._weight_then = 0.0, 0.0

    @property
    def n_seen(self) -> int:
        """Entries in the summary."""
        return self.summary.n_samples

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
                    self._progress[N_PENDING] += len(piece)
                    if self.n_pending >= length:
                        self._run_round(steps[min(self.n_rounds - first, len(steps) - 1)])
                elif self.offsets and not self.n_rounds:
                    # From zero, so that they do not depend on how the warm-up is cut into calls.
                    self.row_offsets[:], self.col_offsets[:] = 0.0, 0.0
                    self._fit_offsets()
                interrupts.check()
        return self

    def run_round(self, step_size: StepSize, n_steps: int) -> Self:
        """One round on the entries absorbed so far: Algorithm 1, lines 4 to 6."""
        self._run_round(step_table(step_size, self.n_rounds + 1, 1, n_steps)[0])
        return self

    def round_length(self, round_size: int | None) -> int:
        """Entries per round, now."""
        return round_size or self._round_length

    def _run_round(self, steps: Floats) -> None:
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
        if self.offsets:
            self._fit_offsets()
        for eta in steps:
            if not self._step(float(eta)):
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
        losses = [kernel.squared_residuals(*one._observed(), self.summary.sum_squares) for one in (self, other)]
        if losses[1] < losses[0]:
            for name in ESTIMATE + ESTIMATE_OF_CURVATURE:
                setattr(self, name, getattr(other, name))
            self.tallies["fresh"] += 1

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
            total = kernel.squared_residuals(*self._observed(), self.summary.sum_squares)
            # Few degrees of freedom say little about the noise: until there are as many as parameters, assume less.
            variance = max(total, 0.0) / max(weight - n_fitted, n_fitted)
            self.inflation = variance * (d1 * d2 / weight) * (d1 + d2 - 2 * r)

    def _observed(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        return self.summary.counts, self.summary.sums, self.coef, self.row_offsets, self.col_offsets

    def loss(self) -> float:
        """Half the mean squared residual of the estimate, with its offsets."""
        total = kernel.squared_residuals(*self._observed(), self.summary.sum_squares)
        return max(float(total), 0.0) / (2.0 * self.summary.weight)

    def factors(self) -> tuple[Floats, Floats, Floats]:
        """U, singular values and V' of the estimate."""
        if not self._warm or not self.coef.any():
            return Rank(self.rank).factors(self.coef)
        r = self.rank
        return fix_signs(self._left[:r].T.copy(), self._values[:r].copy(), self._right[:r].copy())

    def _reach(self, rows: Indices, cols: Indices) -> None:
        """Enlarge the matrix so that it holds these entries."""
        d1, d2 = self.summary.shape
        shape = max(d1, int(rows.max()) + 1), max(d2, int(cols.max()) + 1)
        if shape != (d1, d2):
            self._enlarge(self.summary.resized(shape))

    def settle(self, step_size: StepSize, n_steps: int, tol: float, max_rounds: int) -> bool:
        """Rounds on this one summary until a round moves nothing by more than `tol`, relatively."""
        for _ in range(max_rounds):
            before = self.coef
            self.run_round(step_size, n_steps)
            if np.abs(self.coef - before).max() <= tol * np.abs(self.coef).max():
                return True
        return False

    def _fit_offsets(self) -> None:
        kernel.fit_offsets(self.summary.counts, self.summary.sums, self.coef, self.row_offsets, self.col_offsets)

    def _step(self, eta: float) -> bool:
        """One step; zero asks for a certified one. False if there is nowhere to go."""
        weight = self.summary.weight
        observed = self._observed()
        automatic = eta == 0.0
        if automatic:
            if not weight < GROWTH * self._weight_then:
                self._estimate_stiffness()
            if self._stiffness == 0.0:
                self._weight_then = 0.0  # nothing pulls yet: look again in the next step
                return False
            eta = on_grid(1.0 / self._stiffness)
        while True:
            total = kernel.aim(*observed, eta / weight, self._target)
            if not total < np.inf:
                self.tallies["overflows"] += 1
                return False
            self.tallies["followed"] += self._project()
            length, fall, rise = kernel.measure_move(*observed, self._projected)
            if not abs(fall) + rise < np.inf:
                self.tallies["overflows"] += 1
                self._warm = False  # the triplets are those of a step that is not taken
                return False
            if automatic and eta * rise > weight * length * (1.0 + ROUNDING):
                eta = on_grid(min(SHRINK * eta, weight * length / rise))
                if eta * self._stiffness < 1.0:  # it was underestimated: look again in the next step
                    self._stiffness, self._weight_then = 1.0 / eta, 0.0
                self.tallies["shortened"] += 1
                continue
            felt = length > RESTING * (RESTING * total)  # below that, a move is rounding
            self.tallies["rises"] += not automatic and felt and fall + 0.5 * rise > 1e-9 * abs(fall)
            self.tallies["steps"] += 1
            self.coef, self._projected = self._projected, np.empty_like(self.coef)
            self.last_step = eta
            return True

    def _project(self) -> bool:
        """Projected = the projection of the target. True if it took no full decomposition."""
        triplets, side = (self._left, self._values, self._right), min(self._target.shape)
        if self.rank >= side:
            self._projected[...] = self._target
            return True
        known = np.inf
        if self._bounded is not None:
            known = self._bounded[1] + kernel.distance(self._target, self._bounded[0])
        small = side < SMALL_SIDE
        limits = (subspace.MAX_ITERATIONS, subspace.SLOW) if small else (PATIENCE, SLOW)
        cheap = self._warm and (
            subspace.follow(self._target, *triplets, self.rank, known, *limits) or (not small and self._prove())
        )
        if not cheap:
            subspace.decompose(self._target, *triplets)
            self._warm = True
            if self.rank < len(self._values):
                self._bounded = self._target.copy(), float(self._values[self.rank]) * (1.0 + 1e-12)
        subspace.multiply_out(*triplets, self.rank, self._projected)
        return cheap

    def _prove(self) -> bool:
        """Follow the singular vectors on the assumption of a bound, then prove the bound.

        If c^2 - N N' has a Cholesky factor, with N = (I - UU') M, no singular value of N reaches c, and the next one of
        M is at most that of N.
        """
        target, left, values = self._target, self._left, self._values
        if self.rank >= len(values):
            return False
        bound = 0.5 * float(values[self.rank - 1] + values[self.rank])
        if not subspace.follow(target, left, values, self._right, self.rank, bound, PATIENCE, SLOW):
            return False
        kept = left[: self.rank]
        rest = target - kept.T @ (kept @ target)
        if rest.shape[0] > rest.shape[1]:
            rest = rest.T
        gap = -blas.dsyrk(1.0, rest)
        gap[np.diag_indices_from(gap)] += bound * bound * (1.0 - 1e-10)
        _, failed = scipy.linalg.lapack.dpotrf(gap, overwrite_a=1)
        if failed:
            return False
        self._bounded = target.copy(), bound
        return True

    def _estimate_stiffness(self) -> None:
        """The largest curvature of the loss tangent to the set, by power iteration from the last estimate."""
        summary, weight = self.summary, self.summary.weight
        observed = self._observed()
        kernel.aim(*observed, 1.0 / weight, self._target)
        pull = self._target - self.coef  # minus the gradient
        for array in (self._mode, pull):
            array /= float(np.abs(array).max()) or 1.0
        self._mode += pull  # what pulls now must not be orthogonal to the start
        self._target[...] = self.coef if self.coef.any() else pull
        self._project()
        largest = 0.0
        for _ in range(N_POWER):
            if self.rank < min(self.coef.shape):
                subspace.keep_tangent(self._left, self._right, self.rank, self._mode)
            size = float(np.abs(self._mode).max())
            if not 0.0 < size < np.inf:
                self._mode[...] = 0.0
                break
            self._mode /= size  # so that squares stay in range
            length, bend = kernel.weigh(summary.counts, self._mode)
            largest = max(largest, bend / (length * weight))
        self._stiffness, self._weight_then = largest, weight

    def adopt(self, other: "EntriesRounds") -> Self:
        """Go on from the estimate of other rounds on the same summary; what does not fit is projected."""
        self.coef = other.coef.copy() if self.rank >= other.rank else Rank(self.rank).project(other.coef)
        if self.offsets:
            self.row_offsets, self.col_offsets = other.row_offsets.copy(), other.col_offsets.copy()
        self._progress[:] = other._progress
        self._weight_fresh = other._weight_fresh
        self._round_length, self.last_step = other._round_length, other.last_step
        self.tallies.update(other.tallies)
        self._measure_inflation()
        return self

    def start_from(self, coef: Floats, row_offsets: Floats, col_offsets: Floats) -> Self:
        """Go on from another estimate in the set."""
        self.coef[...], self.row_offsets[:], self.col_offsets[:] = coef, row_offsets, col_offsets
        self._warm = False
        self._measure_inflation()
        return self


def usual_round(shape: tuple[int, int]) -> int:
    """Entries per round unless told otherwise."""
    d1, d2 = shape
    return max(min(d1 * d2 // CELLS_PER_ENTRY, ENTRIES_PER_SIDE * (d1 + d2)), 1)
