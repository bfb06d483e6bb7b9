"""Coefficients that follow recent rows, once a stream has been seen to change."""

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import Floats, Integers
from thresher._utils.locks import locked
from thresher._utils.warnings import warn_caller
from thresher.drift.follower import DriftHistory, Follower
from thresher.drift.settings import FEWEST_ROWS
from thresher.estimators._linear import SummaryLinear
from thresher.io.schema import Is, part
from thresher.summaries.gram import Gram

if TYPE_CHECKING:
    from thresher.inference.diagnostics import Diagnosis

# Rows ahead at the most: coefficients are kept for so long.
FARTHEST = 100_000


class Drifting(SummaryLinear):
    """A sparse model of all rows, which follows recent rows instead where these predict better."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "drift": [StrOptions({"auto", "full"}), None],
        "horizon": [Interval(Integral, 1, FARTHEST, closed="both")],
    }
    _schema = part(
        lambda model: model._follower is None or model._follower.fits(model.summary_),
        _follower=Is(Follower) | None,
    )
    drift: str | None
    horizon: int
    _follower: Follower | None
    _mixed: tuple[int, Follower, Floats, float] | None
    _transient: ClassVar[tuple[str, ...]] = (*SummaryLinear._transient, "_mixed")
    _support: Integers
    _ridge: Floats | None
    _solved: Any

    @property
    @locked
    def drift_detected_(self) -> bool:
        """Whether recent rows predict better than all rows, so that `coef_` follows them."""
        check_is_fitted(self, "summary_")
        return self._follower is not None and self._follower.detected

    @property
    @locked
    def effective_rows_(self) -> float:
        """How many rows `coef_` effectively rests on: all of them, unless drift was detected.

        Once it was, this is about 2.9 times the half-life in use. The mixture may change from one half-life to another
        within some tens of rows, so this number may jump, from 175 to 725 for example.
        """
        check_is_fitted(self, "summary_")
        if self._follower is None:
            return self.summary_.weight
        return self._follower.rows_in_use(self.summary_)

    @property
    @locked
    def drift_history_(self) -> DriftHistory:
        """How things stood at up to 256 moments: rows, whether drift was detected, effective rows, coefficients."""
        check_is_fitted(self, "summary_")
        records = () if self._follower is None else self._follower.records
        return DriftHistory(records, getattr(self, "feature_names_in_", None))

    @locked
    def diagnose(self) -> "Diagnosis":
        """What could be wrong: too few rows, conditioning, near-twins, constant columns, noise, an unstable support.

        Once drift was detected, the first finding says so.

        Returns
        -------
        Diagnosis
            Prints as text, shows as a table in notebooks; ``to_dict()`` for machines.
        """
        from thresher.inference.diagnostics import Diagnosis, Finding

        found = super().diagnose()
        if not self.drift_detected_:
            return found
        n = round(self.effective_rows_)
        sentence = (
            f"The stream has changed. The coefficients and predictions follow recent rows, worth about {n:,} rows. "
            "Intervals and the other findings are about all rows, counted equally; set half_life or window to have "
            "them of recent rows."
        )
        return Diagnosis((Finding("drift", "warning", sentence, {"effective_rows": n}), *found.findings))

    def _warn_of_drift(self) -> None:
        if self.drift_detected_:
            warn_caller(
                "The stream has changed. These intervals are about all rows, counted equally, while coef_ follows "
                "recent rows. Set half_life or window for intervals from recent rows.",
                UserWarning,
            )

    def _explained(self, level: float) -> dict[str, Any]:
        from thresher.inference.model_summary import terms_in_use

        if not self.drift_detected_:
            return super()._explained(level)
        coef, centred = self.coef_, self._family.centred
        return {
            "selection": None,
            "criterion": None,
            "r2": None,
            "n_kept": int((coef != 0.0).sum()),
            "noise": None,
            "intervals": "none",
            "terms": terms_in_use(self.summary_, coef, float(self.intercept_), centred, self._all_names()),
            "n_effective": self.effective_rows_,
            "follows_recent": True,
        }

    @locked
    def _followed(self) -> tuple[Floats, float]:
        """Coefficients and intercept that follow recent rows, computed once for all rows so far."""
        follower, n = self._follower, self.summary_.n_samples
        assert follower is not None
        now = self.__dict__.get("_mixed")
        if now is None or now[0] != n or now[1] is not follower:
            coef, intercept = follower.coefficients(self.summary_)
            coef.setflags(write=False)
            now = self._mixed = (n, follower, coef, intercept)
        return now[2], now[3]

    def _followed_errors(self) -> Floats | None:
        """Errors of the rows in a full buffer, if predictions follow recent rows; called before it is folded."""
        if self._follower is None or not self._follower.detected:
            return None
        return self._follower.errors * self._follower.levels.scale_y

    def _follow_fold(self) -> None:
        """Go on after the buffer was folded."""
        if self._follower is not None and not self._follower.after_fold(self.summary_):
            self._follower = None

    def _follow_support(self) -> None:
        """Go on after the support was chosen, or begin when there are enough rows."""
        summary = self.summary_
        if self._follower is not None:
            if not self._follower.choose(summary, self._support, self._ridge):
                self._follower = None
        elif self.drift is not None and summary.n_samples >= FEWEST_ROWS and self._can_be_followed(summary):
            may_add = self._solved.size is None and self._solved.groups is None
            follower = Follower.start(
                summary, self._support, self._ridge, self._solved.centred, int(self.horizon), may_add, self._full
            )
            self._follower = follower if follower.is_finite() else None

    def _adopt_drift(self, same_problem: bool) -> None:
        """Let other parameters take effect."""
        if self.drift is None or not same_problem:  # it begins again with the next choice
            self._follower = None
        elif self._follower is not None:
            self._follower = self._follower.with_full(self.summary_, self._full).with_horizon(int(self.horizon))

    @property
    def _full(self) -> bool:
        return self.drift == "full" and self._solved.size is None and self._solved.groups is None

    def _check_drift(self, summary: Gram) -> None:
        """Refuse drift="full" where rows are forgotten anyway."""
        if self.drift == "full" and summary.forgets:
            raise ValueError(
                "drift='full' finds by itself which rows still count, but half_life or window say it; leave out one of "
                "them, or use drift='auto', which has no effect then."
            )

    @staticmethod
    def _can_be_followed(summary: Gram) -> bool:
        return summary.weight > 0.0 and not summary.forgets
