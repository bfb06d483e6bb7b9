"""Gram or MultiResponse x Rank or Groups, compiled: rounds that keep the whole gradient."""

from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from thresher._utils.interrupts import InterruptsDeferred
from thresher.online import _dense_round as dense_round
from thresher.online import _dense_stream as dense_stream
from thresher.online._blas import addresses
from thresher.online._dense_round import (
    N_FOLLOWED,
    N_OVERFLOWS,
    N_REFRESHED,
    N_RISES,
    N_SHORTENED,
    N_STEPS,
    N_TALLIES,
)
from thresher.online._dense_state import (
    LAST_STEP,
    N_FLAGS,
    N_NUMBERS,
    SINGLE_READY,
    STALE,
    DenseProblem,
    DenseState,
)
from thresher.online._subspace import SPARE
from thresher.online.progress import Progress
from thresher.online.running import RunningSums
from thresher.online.samples import Rows
from thresher.online.step_size import StepSize, step_table
from thresher.sparsity.groups import Groups
from thresher.sparsity.rank import Rank
from thresher.summaries.gram import Gram
from thresher.summaries.multiresponse import MultiResponse

Floats = NDArray[np.float64]

# From this many columns on, products of the Gram with a dense vector are bound by memory, and float32 pays.
SINGLE_FROM = 400


class DenseRounds(Progress):
    """Online hard thresholding of a matrix, or by groups: the iterates of `reference.run_round`.

    A step is one product of the moments with the move: m^2 for m columns, half of it read, and in float32
    where that pays. The projection onto ranks follows the singular vectors from step to step and proves that they are
    right (`online._subspace`), so a full decomposition is rare.

    Parameters
    ----------
    summary : Gram or MultiResponse
        The summary, which this object fills.
    sparsity : Rank or Groups
        A rank for a Gram needs its `shape`.
    centred, standardized : bool
        Second moments about the mean, and steps in units of the column scales.
    single : bool, optional
        Whether products with the moves are made in float32. By default where that pays.
    """

    def __init__(
        self,
        summary: Gram | MultiResponse,
        sparsity: Rank | Groups,
        centred: bool,
        standardized: bool,
        single: bool | None = None,
    ) -> None:
        super().__init__()
        self.summary, self.sparsity = summary, sparsity
        if summary.state.scatter.dtype != np.float64:  # compiled code passes bare pointers to BLAS
            raise ValueError("Ranks and groups need co-moments in float64; Gram(n_features).merge(summary) has them.")
        by_rank = isinstance(sparsity, Rank)
        if isinstance(summary, Gram):
            summary.trim()
        m, p = len(summary.state.scatter), summary.n_features
        q = summary.n_responses if isinstance(summary, MultiResponse) else 1
        d1, d2 = (sparsity.shape or (p, q)) if isinstance(sparsity, Rank) else (p, q)
        kept = sparsity.r if isinstance(sparsity, Rank) else sparsity.s
        followed = min(kept + SPARE, d1, d2) if by_rank else 0
        single = bool(by_rank and q == 1 and (m >= SINGLE_FROM if single is None else single))
        self.problem = DenseProblem(by_rank, int(kept), bool(centred), bool(standardized), single)
        groups = sparsity.index if isinstance(sparsity, Groups) else np.zeros(0, np.int64)
        n_groups = sparsity.n_groups if isinstance(sparsity, Groups) else 0
        self._state = DenseState(
            joined=np.vstack([np.zeros((p, q)), -np.eye(m - p, q)]),
            pull=np.zeros((m, q)),
            move=np.zeros((m, q)),
            product=np.zeros((m, q)),
            gradient=np.zeros((p, q)),
            mode=np.zeros((p, q)),
            target=np.zeros((d1, d2)),
            projected=np.zeros((d1, d2)),
            units=np.zeros((2, p)),
            left=np.zeros((followed, d1)),
            values=np.zeros(followed),
            right=np.zeros((followed, d2)),
            groups=groups,
            norms=np.zeros(n_groups),
            chosen=np.zeros(n_groups, np.int64),
            single=np.zeros((m, m) if single else (0, 0), np.float32),
            single_in=np.zeros(m if single else 0, np.float32),
            single_out=np.zeros(m if single else 0, np.float32),
            numbers=np.zeros(N_NUMBERS),
            flags=np.zeros(N_FLAGS, np.int64),
            tallies=np.zeros(N_TALLIES, np.int64),
        )
        self._state.flags[STALE] = 1
        self._intercept = np.zeros(q)
        self._running = RunningSums(m)
        self._n_followed = -1  # rows of the summary that the state describes

    # -- where it stands -------------------------------------------------------------------------------

    @property
    def state(self) -> DenseState:
        """The arrays that rounds work on."""
        return self._state

    @property
    def coef(self) -> Floats:
        """The estimate: features by responses, or the matrix itself if the summary is a Gram. A live view."""
        theta = self._state.joined[: self.summary.n_features]
        return theta.reshape(self._state.target.shape) if self.problem.by_rank else theta

    @coef.setter
    def coef(self, value: Floats) -> None:
        self._state.joined[: self.summary.n_features] = value.reshape(self.summary.n_features, -1)
        self._state.flags[STALE] = 1
        self._update_intercept()

    @property
    def intercept(self) -> Floats:
        """The best intercepts as of the last round, one per response; zero if not centred."""
        return self._intercept

    @property
    def n_seen(self) -> int:
        """Rows in the summary."""
        return self.summary.n_samples

    @property
    def last_step(self) -> float:
        """The step size of the last step taken; zero before the first."""
        return float(self._state.numbers[LAST_STEP])

    @property
    def tallies(self) -> dict[str, int]:
        """How the steps went."""
        places = {
            "steps": N_STEPS,
            "followed": N_FOLLOWED,
            "refreshed": N_REFRESHED,
            "rises": N_RISES,
            "overflows": N_OVERFLOWS,
            "shortened": N_SHORTENED,
        }
        return {name: int(self._state.tallies[place]) for name, place in places.items()}

    # -- moving ----------------------------------------------------------------------------------------

    def absorb(self, rows: Rows, steps: Floats, n_warmup: int = 0, round_size: int = 1) -> Self:
        """Absorb checked rows, with a round after every `round_size` of them past the first `n_warmup`."""
        first = self.n_rounds
        with InterruptsDeferred() as interrupts:
            for block in self.summary.blocks(rows.X, rows.y, rows.weights):
                self.run_block(block, self.steps_left(steps, first), n_warmup, round_size)
                self.follow_fold(self.summary.fold_if_full())
                interrupts.check()
        return self

    def run_block(
        self, block: tuple[Floats, Floats, Floats | None], steps: Floats, n_warmup: int = 0, round_size: int = 1
    ) -> None:
        """Absorb checked rows that the buffer of the summary has room for, with their rounds."""
        self._follow_summary()
        rows = self._running.begin(self.summary, block)
        dense_stream.run_rows(
            self._running.arrays(self.summary),
            addresses(),
            self._state,
            self._intercept,
            *rows,
            steps,
            int(n_warmup),
            int(round_size),
            self.problem,
            self._progress,
        )
        self._running.end(self.summary)
        self._n_followed = self.n_seen

    def follow_fold(self, moved: bool) -> None:
        """Take note of a possible fold of the summary, and whether its shift moved."""
        if self.summary.state.n_buffered == 0:
            self._state.flags[STALE], self._state.flags[SINGLE_READY] = 1, 0
        if moved:
            self._running.read(self.summary)

    def run_round(self, step_size: StepSize, n_steps: int) -> Self:
        """One round on the rows absorbed so far."""
        steps = step_table(step_size, self.n_rounds + 1, 1, n_steps)
        self._follow_summary()
        with InterruptsDeferred():
            dense_round.run_round(self._running.arrays(self.summary), addresses(), self._state, steps, 0, self.problem)
            self.count_round()
            self._update_intercept()
        return self

    def settle(self, step_size: StepSize, n_steps: int, tol: float, max_rounds: int) -> bool:
        """Rounds on this one summary until a round moves nothing by more than `tol`, relatively.

        Where the limit is known in closed form it is put in place; the next round shows whether it is a fixed point.
        False if `max_rounds` were not enough.
        """
        scale = np.sqrt(self.summary.variance(self.problem.centred))[:, None]
        theta = self._state.joined[: self.summary.n_features]
        for number in range(max_rounds):
            before = theta.copy()
            self.run_round(step_size, n_steps)
            if np.max(scale * np.abs(theta - before)) <= tol * np.max(scale * np.abs(theta)):
                return True
            if not self.problem.by_rank and np.array_equal(theta != 0.0, before != 0.0):
                self._refit_groups(scale)
            elif number == 0 and isinstance(self.summary, MultiResponse) and self.problem.by_rank:
                self._refit_rank()
        return False

    def _refit_groups(self, scale: Floats) -> None:
        """Least squares on the kept groups (the shortest solution, in units of the scales, if not unique)."""
        theta = self._state.joined[: self.summary.n_features]
        support = np.flatnonzero(theta.any(axis=1) & (scale[:, 0] > 0.0))
        if not len(support):
            return
        matrix, vectors = self.summary.normal_equations(support, self.problem.centred)
        unit = 1.0 / scale[support]
        vectors = unit * vectors.reshape(len(support), -1)
        solution = np.linalg.lstsq(unit * matrix * unit.T, vectors, rcond=1e-12)[0]
        coef = np.zeros_like(theta)
        coef[support] = unit * solution
        self.coef = coef

    def _refit_rank(self) -> None:
        """Reduced-rank regression in closed form: least squares, projected on the r leading directions of the fit.

        Izenman (1975). Left alone if the features are collinear: then least squares is not unique.
        """
        assert isinstance(self.summary, MultiResponse)
        matrix, vectors = self.summary.moments(self.problem.centred)
        features = np.flatnonzero((self.summary.variance(self.problem.centred) > 0.0) & (np.diagonal(matrix) > 0.0))
        if not len(features):
            return
        if len(features) < len(matrix):
            matrix, vectors = matrix[np.ix_(features, features)], vectors[features]
        unit = 1.0 / np.sqrt(np.diagonal(matrix))
        matrix *= unit[:, None]
        matrix *= unit
        try:
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return
        if not np.min(np.diagonal(factor)) >= 1e-6:
            return
        half = scipy.linalg.solve_triangular(factor, unit[:, None] * vectors, lower=True)
        fit = Rank(self.problem.n_kept).project(half)
        coef = np.zeros((self.summary.n_features, vectors.shape[1]))
        coef[features] = unit[:, None] * scipy.linalg.solve_triangular(factor.T, fit)
        self.coef = coef

    def adopt(self, other: Any) -> Self:
        """Go on from the estimate of other rounds on the same summary; what does not fit is projected."""
        theta = other.coef.reshape(self.summary.n_features, -1)
        scale = (
            np.sqrt(self.summary.variance(self.problem.centred)) if self.problem.standardized else np.ones(len(theta))
        )
        unit = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
        scaled = (scale[:, None] * theta).reshape(self._state.target.shape)
        self.coef = unit[:, None] * self.sparsity.project(scaled).reshape(theta.shape)
        self._progress[:] = other._progress
        self._state.numbers[LAST_STEP] = other.last_step
        if isinstance(other, DenseRounds):
            self._state.tallies[:] = other._state.tallies
        return self

    def start_from(self, coef: Floats) -> Self:
        """Go on from another estimate in the set."""
        self.coef = coef
        return self

    def _update_intercept(self) -> None:
        if self.problem.centred:
            self._follow_summary()
            dense_stream.fill_intercept(self._running.arrays(self.summary), self._state, self._intercept)

    def _follow_summary(self) -> None:
        """Start over from the summary if rows were absorbed by somebody else."""
        if self._n_followed != self.n_seen:
            self._state.flags[STALE], self._state.flags[SINGLE_READY] = 1, 0
            self._running.read(self.summary)
            self._n_followed = self.n_seen
