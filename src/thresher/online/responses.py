"""MultiResponse x Rank: gradient rounds while rows are few, reduced-rank regression of all rows from then on."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, eigh
from scipy.linalg.lapack import dpotrf, dpotri

from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.threads import blas_threads_for
from thresher.online._blas import addresses
from thresher.online._recursive import LeastSquares, run_rows
from thresher.online.dense import DenseRounds
from thresher.online.samples import Rows
from thresher.online.step_size import StepSize, step_table
from thresher.sparsity.rank import Rank
from thresher.summaries.multiresponse import MultiResponse

Floats = NDArray[np.float64]

# With fewer rows than this for every feature least squares is all variance, and rounds stop well short of it.
ROWS_PER_FEATURE = 2.0
# A scaled feature that keeps less than this standard deviation beside the others counts as collinear here: an inverse
# that rows keep up to date would lose more digits than least squares itself, which is content with less.
TOLD_APART = 1e-4


Block = tuple[Floats, Floats, Floats | None]


def _cut(block: Block, start: int, stop: int) -> Block:
    X, y, weights = block
    return X[start:stop], y[start:stop], None if weights is None else weights[start:stop]


class ResponseRounds(DenseRounds):
    """Online estimation of the coefficients of many responses, of a given rank.

    The steps of `DenseRounds` while there are fewer than two rows for each feature, and wherever features are collinear
    or a step size is given. Otherwise every round ends at the minimum that such steps approach, which is known in
    closed form: least squares, projected on the r leading directions of its fitted values (Izenman, 1975). Least
    squares is computed again when the summary folds its rows, O(p^3), and follows each row in between,
    O(p^2 + p q); the projection is made where somebody may look, O(p q^2 + q^3). It begins at a fold or where a rank is
    chosen, which depend on counts alone, so the estimate does not depend on how the stream is cut. Memory beyond the
    summary is 8 p^2 bytes.

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

    def absorb(self, rows: Rows, steps: Floats, n_warmup: int = 0, round_size: int = 1) -> Self:
        """Absorb checked rows, with rounds, as `DenseRounds` do."""
        with blas_threads_for(len(self.summary.state.scatter)):
            return super().absorb(rows, steps, n_warmup, round_size)

    def run_block(
        self, block: tuple[Floats, Floats, Floats | None], steps: Floats, n_warmup: int = 0, round_size: int = 1
    ) -> None:
        """Absorb checked rows that the buffer of the summary has room for, with their rounds."""
        self._follow_summary()
        X = block[0]
        self._exact = not steps.any()
        start = 0
        while start < len(X):
            if self._fit is None or not self._exact or self.n_seen < n_warmup:
                self._fit = None
                super().run_block(_cut(block, start, len(X)), steps, n_warmup, round_size)
                return
            # Long rounds one by one, for each ends with a projection.
            stop = len(X) if round_size == 1 else min(len(X), start + max(round_size - self.n_pending, 1))
            rows = self._running.begin(self.summary, _cut(block, start, stop))
            n_done = run_rows(
                self._running.arrays(self.summary),
                addresses(),
                self._fit,
                *rows,
                int(round_size),
                self.problem.centred,
                self._progress,
            )
            self._running.end(self.summary)
            start += n_done
            self._n_followed = self.n_seen
            if n_done:
                self._project()
            if start < stop:  # a row far from all others: a gradient round for it, then least squares again
                self._fit = None
                super().run_block(_cut(block, start, start + 1), steps, n_warmup, round_size)
                self._find_fit()
                self._project()
                start += 1

    def follow_fold(self, moved: bool) -> None:
        """Take note of a possible fold of the summary; least squares is computed again there."""
        super().follow_fold(moved)
        if self.summary.state.n_buffered == 0:
            self._fit = None
            self._find_fit()
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

    def settle(self, step_size: StepSize, n_steps: int, tol: float, max_rounds: int) -> bool:
        """Rounds on this one summary until a round moves nothing by more than `tol`, relatively."""
        settled = super().settle(step_size, n_steps, tol, max_rounds)
        self._find_fit()
        return settled

    def start_from(self, coef: Floats) -> Self:
        """Go on from another estimate in the set."""
        super().start_from(coef)
        self._find_fit()
        return self

    def adopt(self, other: Any) -> Self:
        """Go on from the estimate of other rounds on the same summary; what does not fit is projected."""
        super().adopt(other)
        self._follow_summary()
        if isinstance(other, ResponseRounds):
            self._exact = other._exact
            if other.problem.centred == self.problem.centred and other._n_followed == self.n_seen:
                self._fit = other._fit
        self._find_fit()
        return self

    def _find_fit(self) -> None:
        """Let least squares begin here, if there is none that follows the rows, and none is in its way."""
        self._follow_summary()
        if self._exact and self._fit is None:
            self._fit = self._least_squares()

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
        if failed or not np.diagonal(factor).min() >= TOLD_APART:
            return None
        coef = unit[:, None] * cho_solve((factor, True), unit[:, None] * cross)
        inverse = dpotri(factor, lower=1, overwrite_c=1)[0].T
        inverse *= unit
        inverse *= unit[:, None]
        return LeastSquares(inverse, cross.copy(), np.ascontiguousarray(coef), np.empty(p + q), np.empty(p))

    def _project(self) -> None:
        """Put the estimate at the minimum, if least squares is known, does not overflow and a round has just ended."""
        if self._fit is None or not self.up_to_date:
            return
        coef, cross, rank = self._fit.coef, self._fit.cross, self.problem.n_kept
        if not (np.isfinite(coef).all() and np.isfinite(cross).all()):
            self._fit = None
            return
        if rank < min(coef.shape):
            # The directions are eigenvectors of coef' cross. Those of small responses are lost among large ones, unless
            # they are looked for again, among the directions that were found first.
            basis = np.linalg.qr(cross.T)[0] if coef.shape[1] > coef.shape[0] else np.eye(coef.shape[1])
            factors = [factor / (np.abs(factor).max() or 1.0) for factor in (coef, cross)]
            for _ in range(2):
                of_fit = (factors[0] @ basis).T @ (factors[1] @ basis)
                basis = basis @ eigh(of_fit + of_fit.T)[1][:, ::-1]
            leading = basis[:, :rank]
            coef = (coef @ leading) @ leading.T
        self.coef = coef

    def _follow_summary(self) -> None:
        if self._n_followed != self.n_seen:
            self._fit = None
        super()._follow_summary()
