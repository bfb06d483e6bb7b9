"""How well a model predicted rows before it learned from them."""

from dataclasses import dataclass, field

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher.io.schema import Array, Count, Flag, Is, Number, Schema
from thresher.online.residual_moments import ResidualMoments
from thresher.summaries.gram import Gram

# The model that predicts is replaced when there are 1 / RENEWED more rows, at the first block that ends then.
RENEWED = 20


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
    squared_error, squared_deviation : float
        Weighted sums of squares, about the predictions and about the mean.
    """

    _schema = Schema(
        n_samples=Count(),
        squared_error=Number(least=0.0, most=np.inf, nan=True),
        squared_deviation=Number(least=0.0, most=np.inf, nan=True),
        support=Array("support", dtype="i8", least=0, ascending=True, shared=True),
        values=Array("support"),
        intercept=Number(),
        mean=Number(),
        due=Count(),
        ready=Flag(),
        residual_moments=Is(ResidualMoments),
    )
    n_samples: int = 0
    squared_error: float = 0.0
    squared_deviation: float = 0.0
    support: Integers = field(default_factory=lambda: np.zeros(0, np.intp))
    values: Floats = field(default_factory=lambda: np.zeros(0))
    intercept: float = 0.0
    mean: float = 0.0
    due: int = 0  # rows from which on the model is replaced
    ready: bool = False  # whether there is a model
    residual_moments: ResidualMoments = field(default_factory=ResidualMoments)

    @property
    def r2(self) -> float | None:
        """One minus the ratio of the sums; None before there is one."""
        if not 0.0 < self.squared_deviation < np.inf:
            return None
        return 1.0 - self.squared_error / self.squared_deviation

    def fits(self, summary: Gram) -> bool:
        """Whether it can go on with a summary."""
        last = max(self.support.max(initial=-1), self.residual_moments.support.max(initial=-1))
        return last < summary.n_features and self.n_samples <= summary.n_samples

    def score(self, summary: Gram) -> None:
        """Predict the rows that wait to be folded."""
        if not self.ready:
            return
        state = summary.state
        n = state.n_buffered
        # The buffer holds sqrt(w) (x - shift), sqrt(w) (y - shift_y) and sqrt(w).
        root, responses = state.buffer_root[:n], state.buffer_y[:n]
        with np.errstate(over="ignore", invalid="ignore"):  # values may be as large as summaries take them
            at_shift = self.intercept - state.shift_y + float(state.shift_x[self.support] @ self.values)
            error = responses - at_shift * root - state.buffer[:n, self.support] @ self.values
            deviation = responses - (self.mean - state.shift_y) * root
            self.squared_error += float(error @ error)
            self.squared_deviation += float(deviation @ deviation)
            self.n_samples += n
            self.residual_moments.add(state, error)

    def follow(self, coef: Floats, intercept: float, summary: Gram, centred: bool) -> None:
        """Predict by this model from now on."""
        self.support = np.flatnonzero(coef)
        self.values, self.intercept = coef[self.support], float(intercept)
        self.mean = summary.mean_y if centred else 0.0
        self.residual_moments.follow(self.support, summary.state.shift_x[self.support])
        self.ready, self.due = True, summary.n_samples + -(-summary.n_samples // RENEWED)
