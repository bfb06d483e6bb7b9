"""What the estimators that move by online rounds have in common: partial_fit, fit, finish and fit_summary."""

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from thresher._utils.checks import check_summary
from thresher._utils.warnings import warn_caller
from thresher.estimators._base import Estimator
from thresher.online.samples import Rows, Samples
from thresher.online.step_size import StepSize, step_table
from thresher.selection.history import Record
from thresher.selection.selecting import SelectingRounds

Floats = NDArray[np.float64]


class OnlineEstimator(Estimator, ABC):
    """A shell around a summary and its rounds.

    A subclass says which rounds it uses (`_new_rounds`), what makes other rounds necessary (`_problem`) and how to
    show the estimate (`_publish_estimate`).
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "step_size": [Interval(Real, 0, None, closed="neither"), callable, StrOptions({"auto"})],
        "n_warmup": [Interval(Integral, 0, None, closed="left")],
        "round_size": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _summary_type: ClassVar[Any]
    n_steps: int
    step_size: StepSize
    n_warmup: int
    round_size: int | None
    tol: float
    max_iter: int
    _rounds: SelectingRounds

    def fit_summary(self, summary: Any) -> Self:
        """Fit from cross-products alone: as ``fit`` on the rows that the summary has seen.

        The summary is copied; ``partial_fit`` may go on from it.
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            check_summary(summary, self._summary_type)
            self._take_summary(summary)
            self._start(summary.copy())
            return self._settle()

    def finish(self) -> Self:
        """Close the current round: run one now if anything was absorbed since the last."""
        check_is_fitted(self, "summary_")
        with self._unchanged_by_failure():
            self._check_parameters()
            self._adopt_parameters()
            step_table(self.step_size, self._rounds.inner.n_rounds + 1, 1, self.n_steps)  # checks a callable
        try:
            if not self._rounds.inner.up_to_date:
                self._rounds.run_round(self.step_size, self.n_steps)
        finally:  # an interrupt falls after the round
            self._publish()
        self._warn_of_rises()
        return self

    @property
    def selection_history_(self) -> list[Record]:
        """What was chosen when, while rows came in."""
        check_is_fitted(self, "summary_")
        return list(self._rounds.history)

    # -- what a subclass provides ------------------------------------------------------------------------

    @abstractmethod
    def _new_rounds(self) -> SelectingRounds:
        """Rounds for `summary_`, with the parameters as they are."""

    @abstractmethod
    def _problem(self) -> Any:
        """Whatever, if it changes, makes new rounds necessary; checked against the data."""

    @abstractmethod
    def _publish_estimate(self) -> None:
        """Copy the estimate of the rounds into the fitted attributes."""

    @abstractmethod
    def _take_summary(self, summary: Any) -> None:
        """Learn from a summary what else the data would have told."""

    def _safe_step(self) -> float | None:
        """A step that never raises the loss, or None if it is not known."""
        return None

    # -- shared ------------------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Copy the state of the rounds into the fitted attributes."""
        self._publish_estimate()
        rounds = self._rounds.inner
        self.step_size_ = rounds.last_step
        self.n_rounds_ = rounds.n_rounds
        self.__dict__.pop("selection_", None)
        if self._rounds.selection is not None:
            self.selection_ = self._rounds.selection

    def _start(self, summary: Any) -> None:
        """Begin with a summary and no estimate."""
        self.summary_ = summary
        self.n_iter_ = 0
        self._warned = False
        self.__dict__.pop("_warned_of", None)
        self._solved = self._problem()
        self._rounds = self._new_rounds()

    def _settle(self, samples: Samples | None = None) -> Self:
        """Rounds on the summary until it settles; cross-validation needs its samples, too."""
        rounds, settled = self._rounds, True
        before = rounds.inner.n_rounds
        if samples is not None and rounds.chooser is not None:
            rounds.chooser.absorb(self.summary_, samples)
        try:
            settled = rounds.settle(self.step_size, self.n_steps, self.tol, self.max_iter)
        finally:  # an interrupt falls between rounds
            self.n_iter_ = rounds.inner.n_rounds - before
            self._publish()
        self._warn_of_rises()
        if not settled and not self._warned:
            warn_caller(
                f"fit did not settle within max_iter={self.max_iter} rounds; the last one moved the coefficients "
                f"by more than tol={self.tol:g}. Increase max_iter or tol.",
                ConvergenceWarning,
            )
        return self

    def _run(self, samples: Samples, steps: Floats) -> None:
        """Absorb checked samples, with rounds of these steps."""
        try:
            self._rounds.absorb(samples, steps, self.n_warmup, self.round_size)
        finally:  # an interrupt falls between blocks, and finished blocks count
            self._publish()
        self._warn_of_rises()

    def _adopt_parameters(self) -> None:
        """Let parameters that were set since the last call take effect, on the same summary and estimate."""
        if self._as_adopted():
            return
        problem = self._problem()
        self._adopted = self._parameters()
        if problem != self._solved:
            self._solved = problem
            self._rounds = self._new_rounds().adopt(self._rounds)

    def _warn_of_rises(self) -> None:
        """Tell once that a step size of the user's choice raises the loss, and which would not."""
        tallies = self._rounds.inner.tallies
        if self._warned or not (tallies["rises"] or tallies["overflows"]):
            return
        self._warned = True
        overflow = "; steps that overflow were not taken" if tallies["overflows"] else ""
        safe = self._safe_step()
        known = "" if safe is None else f"On the rows so far, a step of {safe:.3g} is safe; "
        warn_caller(
            f"step_size={self.step_size!r} raised the loss in {tallies['rises']} of {tallies['steps']} steps"
            f"{overflow}. {known}step_size='auto' finds safe steps by itself.",
            ConvergenceWarning,
        )


class OnlineRows(OnlineEstimator):
    """An online estimator that learns from rows X with responses y.

    A subclass says how to check them (`_check`) and which summary it uses (`_new_summary`).
    """

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Absorb rows, with a round after every `round_size` of them.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix
            One row per sample, shaped as in the description of the class.
        y : array-like
            Responses.
        sample_weight : array-like of shape (n,), optional
            Non-negative; a weight of two counts a row twice.

        Returns
        -------
        self
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            first = not hasattr(self, "summary_")
            rows = self._check(X, y, sample_weight, reset=first)
            if first:
                self._start(self._new_summary(rows))
            self._adopt_parameters()
            steps = self._steps(len(rows))
        self._run(rows, steps)
        return self

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, absorb all rows, then run rounds on their summary until it settles.

        Parameters and return value are those of ``partial_fit``.
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            rows = self._check(X, y, sample_weight, reset=True)
            if rows.weights is not None and not rows.weights.any():
                raise ValueError("All sample weights are zero; at least one row must count.")
            self._start(self._new_summary(rows).absorb_checked(rows.X, rows.y, rows.weights))
            return self._settle(rows)

    # -- what a subclass provides ------------------------------------------------------------------------

    @abstractmethod
    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Rows:
        """Checked rows, responses and weights. Sets or checks what is known of the columns."""

    @abstractmethod
    def _new_summary(self, rows: Rows) -> Any:
        """An empty summary for such rows."""

    # -- shared ------------------------------------------------------------------------------------------

    def _steps(self, n_rows: int) -> Floats:
        """The step sizes for the next rows; raises what a callable may raise before any state changes."""
        inner = self._rounds.inner
        steps: Floats = inner.steps_for(n_rows, self.step_size, self.n_steps, self.n_warmup, self.round_size or 1)
        return steps

    def _check_steps(self, n_rows: int) -> None:
        self._steps(n_rows)

    def _absorb(self, rows: Rows) -> None:
        """Absorb checked rows, with their rounds."""
        self._run(rows, self._steps(len(rows)))

    def _take_summary(self, summary: Any) -> None:
        self._forget_features(summary.n_features)

    @property
    def n_samples_seen_(self) -> int:
        """Rows absorbed."""
        check_is_fitted(self, "summary_")
        return int(self.summary_.n_samples)
