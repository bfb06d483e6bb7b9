"""What the estimators of this package do alike: settling on a summary, finishing a round, following parameters."""

from abc import ABC, abstractmethod
from numbers import Integral, Real
from operator import is_
from typing import Any, ClassVar, Self

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from thresher._checks import check_summary
from thresher._warnings import warn_caller
from thresher.checkpoint import Saving
from thresher.estimators._checked import Checked
from thresher.rounds.step_size import step_table


class Streaming(Saving, Checked, ABC):
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
    _rounds: Any

    def fit_summary(self, summary: Any) -> Self:
        """Fit from cross-products alone: as ``fit`` on the rows that the summary has seen.

        The summary is copied; ``partial_fit`` may go on from it.
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            check_summary(summary, self._summary_type)
            self._take_summary(summary)
            return self._settle(summary.copy())

    def finish(self) -> Self:
        """Close the current round: run one now if anything was absorbed since the last."""
        check_is_fitted(self, "summary_")
        with self._unchanged_by_failure():
            self._check_parameters()
            self._adopt_parameters()
            step_table(self.step_size, self._rounds.n_rounds + 1, 1, self.n_steps)  # checks a callable
        try:
            if not self._rounds.up_to_date:
                self._rounds.run_round(self.step_size, self.n_steps)
        finally:  # an interrupt falls after the round
            self._publish()
        self._warn_of_rises()
        return self

    def settle(self) -> Self:
        """Choose anew and run rounds on the rows so far until nothing moves: the place where a stream ends.

        As ``fit_summary(self.summary_)``, but from the current estimate on, and with the history kept.
        """
        check_is_fitted(self, "summary_")
        with self._unchanged_by_failure():
            self._check_parameters()
            check_summary(self.summary_, self._summary_type)
            self._adopt_parameters()
        return self._come_to_rest()

    # -- what a subclass provides ------------------------------------------------------------------------

    @abstractmethod
    def _new_rounds(self) -> Any:
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
        self.n_samples_seen_ = rounds.n_seen

    def _start(self, summary: Any) -> None:
        """Begin with a summary and no estimate."""
        self.summary_ = summary
        self.n_iter_ = 0
        self._warned = False
        self.__dict__.pop("_warned_of", None)
        self._solved = self._problem()
        self._rounds = self._new_rounds()

    def _settle(self, summary: Any) -> Self:
        self._start(summary)
        return self._come_to_rest()

    def _come_to_rest(self) -> Self:
        before, settled = self._rounds.n_rounds, True
        try:
            settled = self._rounds.settle(self.step_size, self.n_steps, self.tol, self.max_iter)
        finally:  # an interrupt falls between rounds
            self.n_iter_ = self._rounds.n_rounds - before
            self._publish()
        self._warn_of_rises()
        if not settled and not self._warned:
            warn_caller(
                f"fit did not settle within max_iter={self.max_iter} rounds; the last one moved the coefficients "
                f"by more than tol={self.tol:g}. Increase max_iter or tol.",
                ConvergenceWarning,
            )
        return self

    def _adopt_parameters(self) -> None:
        """Let parameters that were set since the last call take effect, on the same summary and estimate."""
        if self._as_adopted():
            return
        problem = self._problem()
        self._adopted = self._parameters()
        if problem != self._solved:
            self._solved = problem
            self._rounds = self._new_rounds().adopt(self._rounds)

    def _as_adopted(self) -> bool:
        """Whether the parameters are the very objects that took effect last."""
        return all(map(is_, self._parameters(), self.__dict__.get("_adopted", (None,))))

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
