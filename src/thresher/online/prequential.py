"""How well a model predicted rows before it learned from them."""

from dataclasses import dataclass, field

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher.io.schema import Array, Count, Flag, Is, Number, Schema
from thresher.online.error_history import ErrorHistory
from thresher.online.residual_moments import ResidualMoments
from thresher.summaries.gram import Gram

SUM = Number(least=0.0, most=np.inf, nan=True)
# The model that predicts is replaced when there are 1 / RENEWED more rows, at the first block that ends then.
RENEWED = 20
# Parts of the stream whose errors are kept apart, an even number.
MOST_PARTS = 64


@dataclass
class Prequential:
    """The error on each block of rows, predicted just before it is folded into the summary.

    The model that predicts is that of the rows up to an earlier block; it is replaced when there are 5 % more rows. Its
    error is compared with that of the mean of the same rows, or of zero if there is no intercept. Nothing predicts the
    first block. Blocks end at fixed row counts, so the result does not depend on how rows are cut into calls.

    Attributes
    ----------
    n_samples : int
        Rows predicted.
    weight : float
        Their total weight.
    squared_error, squared_deviation : float
        Weighted sums of squares, about the predictions and about the mean.
    """

    _schema = Schema(
        n_samples=Count(),
        weight=SUM,
        squared_error=SUM,
        squared_deviation=SUM,
        support=Array("support", dtype="i8", least=0, ascending=True, shared=True),
        values=Array("support"),
        intercept=Number(),
        mean=Number(),
        due=Count(),
        ready=Flag(),
        residual_moments=Is(ResidualMoments),
        n_parts=Count(most=MOST_PARTS),
        parts=Array(MOST_PARTS, 5, least=0.0, most=np.inf, nan=True),
    )
    n_samples: int = 0
    weight: float = 0.0
    squared_error: float = 0.0
    squared_deviation: float = 0.0
    support: Integers = field(default_factory=lambda: np.zeros(0, np.intp))
    values: Floats = field(default_factory=lambda: np.zeros(0))
    intercept: float = 0.0
    mean: float = 0.0
    due: int = 0  # rows from which on the model is replaced
    ready: bool = False  # whether there is a model
    residual_moments: ResidualMoments = field(default_factory=ResidualMoments)
    # Rows seen, rows predicted and the sums, whenever the model was replaced; in a table that does not grow.
    n_parts: int = 0
    parts: Floats = field(default_factory=lambda: np.zeros((MOST_PARTS, 5)))

    @property
    def r2(self) -> float | None:
        """One minus the ratio of the sums; None before there is one."""
        if not 0.0 < self.squared_deviation < np.inf:
            return None
        return 1.0 - self.squared_error / self.squared_deviation

    def history(self, n_seen: int) -> ErrorHistory:
        """The errors by parts, each with one or more models that predicted; `n_seen` rows were seen so far."""
        parts = self.parts[: self.n_parts]
        if self.n_samples > (parts[-1, 1] if len(parts) else 0):
            parts = np.vstack([parts, self._sums(n_seen)])
        n_samples, n_predicted = parts[:, :2].T.astype(np.intp)
        return ErrorHistory.from_sums(n_samples, n_predicted, parts[:, 2:])

    def _sums(self, n_seen: int) -> tuple[int, int, float, float, float]:
        return n_seen, self.n_samples, self.weight, self.squared_error, self.squared_deviation

    def _end_part(self, n_seen: int) -> None:
        if self.n_parts == MOST_PARTS:  # two parts become one: sums are running
            self.n_parts //= 2
            self.parts[: self.n_parts] = self.parts[1::2].copy()
        self.parts[self.n_parts] = self._sums(n_seen)
        self.n_parts += 1

    def fits(self, summary: Gram) -> bool:
        """Whether it can go on with a summary."""
        last = max(self.support.max(initial=-1), self.residual_moments.support.max(initial=-1))
        return last < summary.n_features and self.n_samples <= summary.n_samples

    def score(self, summary: Gram, errors: Floats | None = None) -> None:
        """Predict the rows that wait to be folded; `errors` are those of another model, times sqrt(w), if that is used.

        Residual moments are about the model from all rows in any case.
        """
        if not self.ready:
            return
        state, waiting = summary.state, summary.waiting()
        # sqrt(w) (x - shift), sqrt(w) (y - shift_y) and sqrt(w)
        rows, responses, root = waiting
        with np.errstate(over="ignore", invalid="ignore"):  # values may be as large as summaries take them
            at_shift = self.intercept - state.shift_y + float(state.shift_x[self.support] @ self.values)
            error = responses - at_shift * root - rows[:, self.support] @ self.values
            deviation = responses - (self.mean - state.shift_y) * root
            used = error if errors is None else errors
            self.squared_error += float(used @ used)
            self.squared_deviation += float(deviation @ deviation)
            self.weight += float(root @ root)
            self.n_samples += len(root)
            if summary.forgets:  # about as fast as the summary does
                self.residual_moments.fade(max(1.0 - len(root) / summary.horizon, 0.0))
            self.residual_moments.add(waiting, state.shift_x, error)

    def follow(self, coef: Floats, intercept: float, summary: Gram, centred: bool) -> None:
        """Predict by this model from now on."""
        if self.n_samples:
            self._end_part(summary.n_samples)
        self.support = np.flatnonzero(coef)
        self.values, self.intercept = coef[self.support], float(intercept)
        self.mean = summary.mean_y if centred else 0.0
        self.residual_moments.follow(self.support, summary.state.shift_x[self.support])
        self.ready, self.due = True, summary.n_samples + -(-summary.horizon // RENEWED)
