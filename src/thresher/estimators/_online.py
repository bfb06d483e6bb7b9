"""What the estimators that move by online rounds have in common: rounds, and finish."""

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import ArrayLike, Floats
from thresher._utils.locks import locked
from thresher._utils.warnings import warn_caller
from thresher.estimators._base import Streaming, StreamingRows
from thresher.io.schema import Count, Flag, Is, Maybe, Number, part
from thresher.online.samples import Samples
from thresher.online.step_size import StepCount, StepSize, step_table
from thresher.selection.criteria import Selection
from thresher.selection.history import History
from thresher.selection.selecting import SelectingRounds


class OnlineEstimator(Streaming):
    """A shell around a summary and its rounds.

    A subclass says which rounds it uses (`_new_rounds`), what makes other rounds necessary (`_problem`) and how to
    show the estimate (`_publish_estimate`).
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_steps": [Interval(Integral, 1, None, closed="left"), callable],
        "step_size": [Interval(Real, 0, None, closed="neither"), callable, StrOptions({"auto"})],
        "n_warmup": [Interval(Integral, 0, None, closed="left")],
        "round_size": [Interval(Integral, 1, None, closed="left")],
        "start": ["array-like", HasMethods("fit"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _schema = part(
        lambda model: model._rounds.summary is model.summary_,
        lambda model: not model.summary_.forgets,  # compiled rounds count all rows equally
        lambda model: model.n_rounds_ == model._rounds.inner.n_rounds and model.n_iter_ <= model.n_rounds_,
        lambda model: getattr(model, "selection_", None) is model._rounds.selection,
        _rounds=Is(SelectingRounds),
        n_iter_=Count(),
        n_rounds_=Count(),
        step_size_=Number(least=0.0),
        selection_=Maybe(Is(Selection, shared=True)),
        _warned=Flag(),
    )
    n_steps: StepCount
    step_size: StepSize
    n_warmup: int
    round_size: int | None
    start: ArrayLike | BaseEstimator | None
    tol: float
    max_iter: int
    _rounds: SelectingRounds

    @locked
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
    def selection_history_(self) -> History:
        """What was chosen when, while rows came in."""
        check_is_fitted(self, "summary_")
        return History(self._rounds.history, getattr(self, "feature_names_in_", None))

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
    def _coef_shape(self) -> tuple[int, ...]:
        """The shape of the coefficients, known once there is a summary."""

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
        self.summary_ = summary
        self.n_iter_ = 0
        self._warned = False
        self.__dict__.pop("_warned_of", None)
        self._solved = self._problem()
        start = self._checked_start()
        self._rounds = self._new_rounds()
        if start is not None:
            self._rounds.start_near(start)

    def _checked_start(self) -> Floats | None:
        """Theta_0, or None for zero."""
        if self.start is None:
            return None
        given: Any = self.start
        if hasattr(given, "fit"):
            if not hasattr(given, "coef_"):
                raise ValueError(
                    f"start is a {type(given).__name__} without coef_. Fit it first, or pass its coefficients as an "
                    "array: scikit-learn's clone gives a model that is not fitted."
                )
            given = given.coef_
        start, shape = np.array(given, np.float64), self._coef_shape()
        if start.shape != shape:
            raise ValueError(f"start has shape {start.shape}; the coefficients have shape {shape}.")
        if not np.isfinite(start).all():
            raise ValueError("start has entries that are not finite; give numbers.")
        return start

    def _settle(self, samples: Samples | None = None) -> Self:
        """Rounds on the summary until it settles."""
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

    def _plan(self, n_samples: int) -> Floats:
        """The step sizes for the next samples."""
        inner = self._rounds.inner
        length = self.round_size or inner.round_length(None)  # it can only grow, so there are enough steps
        steps: Floats = inner.steps_for(n_samples, self.step_size, self.n_steps, self.n_warmup, length)
        return steps

    def _absorb(self, samples: Samples, plan: Floats) -> None:
        try:
            self._rounds.absorb(samples, plan, self.n_warmup, self.round_size)
        finally:  # an interrupt falls between blocks, and finished blocks count
            self._publish()
        self._warn_of_rises()

    def _adopt_parameters(self) -> None:
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


class OnlineRows(OnlineEstimator, StreamingRows):
    """An online estimator that learns from rows, with a round after every `round_size` of them."""
