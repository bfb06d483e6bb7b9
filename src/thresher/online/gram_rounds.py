"""What rounds on a Gram have in common: rows go in, and a kernel moves the estimate."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from thresher._utils.arrays import Floats, padded
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.locks import lock_of
from thresher.io.schema import Count, Flag, Is, part
from thresher.online.prequential import Prequential
from thresher.online.progress import Progress
from thresher.online.samples import Rows
from thresher.online.step_size import StepCount, StepSize, step_table
from thresher.summaries._shifted import block_sums
from thresher.summaries.gram import Gram

Block = tuple[Floats, Floats, Floats | None]


class GramRounds(Progress):
    """Online hard thresholding of a Gram: the iterates of `reference.run_round`.

    A subclass sets the kernel (`_round`), and knows its set (`_project`), what the kernel must forget when the estimate
    or the summary changes (`_forget`, `follow_fold`), and when rounds converge to least squares (`_is_refitted`).

    Parameters
    ----------
    summary : Gram
        The summary, which this object fills.
    centred, standardized : bool
        Second moments about the mean, and steps in units of the column scales.
    """

    _schema = part(
        lambda rounds: rounds._n_followed <= rounds.n_seen,
        lambda rounds: len(rounds._round.coef) == rounds.summary.n_features,
        lambda rounds: rounds.prequential.fits(rounds.summary),
        lambda rounds: rounds._n_followed < rounds.n_seen or rounds._round.sums.agree_with(rounds.summary.sums()),
        summary=Is(Gram, shared=True),
        centred=Flag(),
        standardized=Flag(),
        _n_followed=Count(-1),
        prequential=Is(Prequential),
    )
    summary: Gram

    def __init__(self, summary: Gram, centred: bool, standardized: bool) -> None:
        super().__init__()
        self.summary, self.centred, self.standardized = summary, bool(centred), bool(standardized)
        self._n_followed = -1  # rows of the summary that the kernel describes
        self.prequential = Prequential()

    @property
    def coef(self) -> Floats:
        """The estimate. A live view."""
        coef: Floats = self._round.coef
        return coef

    @property
    def intercept(self) -> float:
        """The best intercept as of the last round; zero if not centred."""
        return float(self._round.intercept)

    # -- what a subclass provides ----------------------------------------------------------------------

    @abstractmethod
    def follow_fold(self, moved: bool) -> None:
        """Take note of a possible fold of the summary, and whether its shift moved."""

    @abstractmethod
    def _forget(self, summary_too: bool) -> None:
        """Forget what the kernel has computed from another estimate, and from another summary."""

    @abstractmethod
    def _project(self, coef: Floats, scale: Floats) -> Floats:
        """The projection of coefficients in units of these scales."""

    @abstractmethod
    def _is_refitted(self, step_size: StepSize) -> bool:
        """Whether rounds converge to least squares on the support, while it holds."""

    # -- moving ----------------------------------------------------------------------------------------

    def absorb(self, rows: Rows, steps: Floats, n_warmup: int = 0, round_size: int = 1) -> Self:
        """Absorb checked rows, with a round after every `round_size` of them past the first `n_warmup`."""
        first = self.n_rounds
        with InterruptsDeferred() as interrupts:
            for block in self.summary.blocks(rows.X, rows.y, rows.weights):
                with lock_of(self.summary):
                    self.run_block(block, self.steps_left(steps, first), n_warmup, round_size)
                    self._fold_if_full()
                interrupts.check()
        return self

    def _fold_if_full(self) -> None:
        full = self.summary.rows_until_fold == 0
        if full:
            self.prequential.score(self.summary)
        self.follow_fold(self.summary.fold_if_full())
        if full and self.n_rounds and self.summary.n_samples >= self.prequential.due:
            self.prequential.follow(self.coef.reshape(-1), self.intercept, self.summary, self.centred)

    def run_block(self, block: Block, steps: Floats, n_warmup: int = 0, round_size: int = 1) -> None:
        """Absorb checked rows that the buffer of the summary has room for, with their rounds."""
        started = self.n_rounds > 0
        kernel = self.begin(block)
        n_rounds, n_pending = kernel.run_rows(*block, steps, n_warmup, round_size, self.n_pending, started)
        self.end()
        self.count_rounds(n_rounds, n_pending)

    def begin(self, block: Block) -> Any:
        """Make ready for checked rows that the buffer of the summary has room for; returns what absorbs them."""
        self._follow_summary()
        self._round.begin(self.summary, *block)
        return self._round

    def end(self) -> None:
        """Tell the summary that they were absorbed."""
        self._round.sums.end(self.summary)
        self._n_followed = self.n_seen

    def run_round(self, step_size: StepSize, n_steps: StepCount) -> Self:
        """One round on the rows absorbed so far."""
        steps = step_table(step_size, self.n_rounds + 1, 1, n_steps)
        self._follow_summary()
        with InterruptsDeferred():
            self._round.begin(self.summary)
            self._round.run_round(steps[0])
            self.count_round()
            self._update_intercept()
        return self

    def settle(self, step_size: StepSize, n_steps: StepCount, tol: float, max_rounds: int, refit: bool = True) -> bool:
        """Rounds on this one summary until a round moves nothing by more than `tol`, relatively.

        Where rounds converge to least squares on the support, that limit is put in place at once, with `refit`; the
        next round shows whether it is a fixed point. Without, it ends where rounds end, which may have changed the
        support on the way. False if `max_rounds` were not enough.
        """
        scale, theta = np.sqrt(self.summary.variance(self.centred)), self._round.coef
        for _ in range(max_rounds):
            before = theta.copy()
            self.run_round(step_size, n_steps)
            if np.max(scale * np.abs(theta - before)) <= tol * np.max(scale * np.abs(theta)):
                return True
            if refit and self._is_refitted(step_size) and np.array_equal(theta != 0.0, before != 0.0):
                self._refit(scale)
        return False

    def _refit(self, scale: Floats) -> None:
        """Least squares on the support (the shortest solution, in units of the scales, if not unique)."""
        support = np.flatnonzero((self._round.coef != 0.0) & (scale > 0.0))
        if not len(support):
            return
        # As rounds see it: what is stored in float32 has a diagonal in float32, and the limit must be one of theirs.
        matrix, sums = block_sums(self.summary.state, support)
        sums.recentre(matrix, sums, self.centred)
        vector = sums.products_y(self.centred)
        unit, coef = 1.0 / scale[support], np.zeros(len(scale))
        coef[support] = unit * np.linalg.lstsq(unit[:, None] * matrix * unit, unit * vector, rcond=1e-12)[0]
        self.start_from(coef)

    def adopt(self, other: Any) -> Self:
        """Go on from the estimate of other rounds; what does not fit is projected.

        Their summary is this one, or was before columns of zeros were appended.
        """
        self.start_near(padded(other.coef.reshape(-1), self.summary.n_features))
        self.adopt_counts(other)
        self.prequential = other.prequential
        self._round.last_step = other.last_step
        if type(other) is type(self):
            self._round.tallies = other.tallies
        return self

    def start_near(self, coef: Floats) -> Self:
        """Go on from another estimate; what is not in the set is projected, in units of the scales if there are any."""
        coef = coef.reshape(-1)
        scaled = self.standardized and self.summary.weight > 0.0
        scale = np.sqrt(self.summary.variance(self.centred)) if scaled else np.ones(len(coef))
        return self.start_from(self._project(coef, scale))

    def start_from(self, coef: Floats) -> Self:
        """Go on from another estimate in the set."""
        self._round.coef[:] = coef.reshape(-1)
        self._forget(summary_too=False)
        self._update_intercept()
        return self

    def _update_intercept(self) -> None:
        if self.centred:
            self._round.intercept = self.summary.best_intercept(self._round.coef)

    def _follow_summary(self) -> None:
        """Start over from the summary if rows were absorbed by somebody else."""
        if self._n_followed != self.n_seen:
            self._forget(summary_too=True)
            self._n_followed = self.n_seen
