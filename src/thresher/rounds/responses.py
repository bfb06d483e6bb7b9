"""MultiResponse x Rank: gradient rounds while rows are few, reduced-rank regression of all rows from then on."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, eigh
from scipy.linalg.lapack import dpotrf, dpotri

from thresher._interrupts import InterruptsDeferred
from thresher._threads import blas_threads_for
from thresher.kernels._blas import addresses
from thresher.kernels.gram import N_BUFFERED
from thresher.kernels.recursive import LeastSquares, run_rows
from thresher.rounds.dense import DenseRounds
from thresher.rounds.step_size import StepSize, step_table
from thresher.sparsity.rank import Rank
from thresher.summaries.multiresponse import MultiResponse

Floats = NDArray[np.float64]

# With fewer rows than this for every feature least squares is all variance, and rounds stop well short of it.
ROWS_PER_FEATURE = 2.0
# A scaled feature that keeps less than this standard deviation beside the others is collinear: then an inverse that
# rows keep up to date would lose more digits than least squares itself.
OWN_DEVIATION = 1e-4


class ResponseRounds(DenseRounds):
    """Online estimation of the coefficients of many responses, of a given rank.

    The steps of `DenseRounds` until the summary folds its rows and they are twice as many as the features, and wherever
    features are collinear or a step size is given. Otherwise every round ends at the minimum that such steps approach,
    which is known in closed form: least squares, projected on the r leading directions of its fitted values (Izenman,
    1975). Least squares is computed anew when the summary folds its rows, O(p^3), and follows each row in between,
    O(p^2 + p q). The projection is made where somebody may look, O(p q^2 + q^3). Memory beyond the summary is 8 p^2
    bytes.

    Parameters
    ----------
    summary : MultiResponse
        The summary, which this object fills.
    sparsity : Rank
        The rank.
    centred, standardized : bool
        Second moments about the mean, and steps in units of the column scales.
    """

    summary: MultiResponse

    def __init__(self, summary: MultiResponse, sparsity: Rank, centred: bool, standardized: bool) -> None:
        super().__init__(summary, sparsity, centred, standardized)
        self._fit: LeastSquares | None = None  # of the rows that were followed
        self._exact = True  # whether the last round was free to end at the minimum

    def absorb(self, *data: Any) -> Self:
        """Absorb checked rows, with rounds, as `DenseRounds` do."""
        with blas_threads_for(len(self.summary.arrays.scatter)):
            return super().absorb(*data)

    def run_block(
        self, block: tuple[Floats, Floats, Floats], steps: Floats, n_warmup: int = 0, round_size: int = 1
    ) -> None:
        """Absorb checked rows that the buffer of the summary has room for, with their rounds."""
        self._follow_summary()
        self._exact = not steps.any() and self.n_seen + len(block[0]) > n_warmup
        fit, arrays, (X, y, w) = self._fit, self.summary.arrays, block
        n_rows = len(X)
        if fit is None or not self._exact or self.n_seen < n_warmup:
            self._fit = None
            super().run_block(block, steps, n_warmup, round_size)
            return
        until_first = max(round_size - self.n_pending, 1)
        n_open = n_rows if n_rows < until_first else (n_rows - until_first) % round_size  # wait for the next round
        # At a fold least squares is computed anew, so if a round ends there nobody sees what it was before.
        unseen = n_open == 0 and arrays.counts[N_BUFFERED] + n_rows == len(arrays.buffer)
        cut = n_rows - n_open
        for rows in (slice(0, cut), slice(cut, n_rows)):
            n_rounds = self.n_rounds
            run_rows(
                arrays,
                addresses(),
                fit,
                X[rows],
                y[rows],
                w[rows],
                not unseen,
                int(round_size),
                self.problem.centred,
                self._progress,
            )
            if self.n_rounds > n_rounds and not unseen:
                self._project()
        self._n_followed = self.n_seen

    def follow_fold(self, moved: bool) -> None:
        """Take note of a possible fold of the summary; least squares is computed anew there."""
        super().follow_fold(moved)
        if self.summary.arrays.counts[N_BUFFERED] == 0:
            self._fit = None  # whose memory the next one may take
            if self._exact:
                self._fit = self._least_squares()
            if self._fit is not None and self.up_to_date:
                self._project()

    def run_round(self, step_size: StepSize, n_steps: int) -> Self:
        """One round on the rows absorbed so far."""
        self._follow_summary()
        self._exact = not step_table(step_size, self.n_rounds + 1, 1, n_steps).any()
        if self._fit is None or not self._exact:
            self._fit = None
            return super().run_round(step_size, n_steps)
        with InterruptsDeferred():
            self.count_round()
            self._project()
        return self

    def adopt(self, other: Any) -> Self:
        """Go on from the estimate of other rounds on the same summary; what does not fit is projected."""
        super().adopt(other)
        if isinstance(other, ResponseRounds) and other.problem.centred == self.problem.centred:
            self._fit, self._exact, self._n_followed = other._fit, other._exact, other._n_followed
        return self

    def _least_squares(self) -> LeastSquares | None:
        """Least squares of all rows; None if it is not to be relied on."""
        p, q = self.summary.n_features, self.summary.n_responses
        if not self.summary.weight >= ROWS_PER_FEATURE * p:
            return None
        matrix, cross = self.summary.moments(self.problem.centred)
        squares = np.diagonal(matrix)
        if not squares.min() > 0.0:
            return None
        unit = 1.0 / np.sqrt(squares)
        scaled = matrix * unit
        scaled *= unit[:, None]
        # All in one array: its transpose is Fortran's, whose lower triangle is our upper one.
        factor, failed = dpotrf(scaled.T, lower=1, overwrite_a=1)
        if failed or not np.diagonal(factor).min() >= OWN_DEVIATION:
            return None
        coef = unit[:, None] * cho_solve((factor, True), unit[:, None] * cross)
        inverse = dpotri(factor, lower=1, overwrite_c=1)[0].T
        inverse *= unit
        inverse *= unit[:, None]
        return LeastSquares(inverse, cross.copy(), np.ascontiguousarray(coef), np.empty(p + q), np.empty(p))

    def _project(self) -> None:
        """Put the estimate at the minimum. It stays where it is if that overflows."""
        assert self._fit is not None
        coef, rank, q = self._fit.coef, self.problem.n_kept, self.summary.n_responses
        of_fit = coef.T @ self._fit.cross
        if not (np.isfinite(of_fit).all() and np.isfinite(coef).all()):
            self._fit = None
            return
        if rank < min(coef.shape):
            _, leading = eigh(of_fit + of_fit.T, subset_by_index=(q - rank, q - 1))
            coef = (coef @ leading) @ leading.T
        self.coef = coef

    def _follow_summary(self) -> None:
        if self._n_followed != self.n_seen:
            self._fit = None
        super()._follow_summary()
