"""What all baselines have in common: taking rows, one pass over them, and stopping when they diverge."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from thresher._utils.arrays import Floats, read_only
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.locks import locked
from thresher._utils.warnings import warn_caller
from thresher.estimators._base import Estimator
from thresher.estimators._sparse_linear import SparseLinear
from thresher.io.schema import Array, Count, Labels, Maybe, Number, part

# Rows that are handed on at once: enough to make calls cheap, few enough for Ctrl-C to be heard ...
BLOCK = 256
# ... and for dense copies of sparse rows to be small.
MOST_ENTRIES = 1 << 22


def working(*shape: str, least: float = -np.inf) -> Array:
    """The field of an array that may have overflowed, in an estimate that has diverged."""
    return Array(*shape, least=least, most=np.inf, nan=True)


class StreamingBaseline(Estimator, ABC):
    """A streaming method that is a few arrays and a way to learn from the next rows.

    A subclass sets up its state (`_start`), learns from rows (`_learn`), and shows its estimate (`_estimate`). If
    something happens at certain row counts, `_rows_until_event` tells how many rows are left until then, and no block
    of rows goes beyond.
    """

    _schema = part(
        lambda model: model.diverged_at_ is None or model.diverged_at_ <= model.n_samples_seen_,
        lambda model: model.diverged_at_ is not None or np.array_equal(model.coef_, model._estimate()),
        lambda model: not hasattr(model, "_totals") or model._totals.n_rows <= model._n_learned,
        n_features_in_=Count(1),
        feature_names_in_=Maybe(Labels("n_features_in_")),
        n_samples_seen_=Count(),
        diverged_at_=Count() | None,
        intercept_=Number(),
    )
    # What to do about divergence.
    _remedy: ClassVar[str] = "Use a smaller step_size."
    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    coef_: Floats
    intercept_: float
    diverged_at_: int | None

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from rows, one after another; coefficients do not depend on how rows are cut into calls.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)

        Returns
        -------
        self
        """
        return self._take(X, y, reset=not hasattr(self, "n_samples_seen_"))

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn from these rows in one pass.

        Parameters and return value are those of ``partial_fit``.
        """
        return self._take(X, y, reset=True)

    # -- what a subclass provides ------------------------------------------------------------------------

    @abstractmethod
    def _check(self, X: Any, y: Any, reset: bool) -> tuple[Any, Floats]:
        """Checked rows and responses. Sets or checks what is known of the columns."""

    @abstractmethod
    def _start(self, n_features: int) -> None:
        """Begin: set up the state, with parameters that are checked. May raise; nothing has changed yet."""

    @abstractmethod
    def _learn(self, X: Floats, y: Floats) -> int:
        """Learn from dense rows and return their number, or how many came before the one that made it diverge."""

    @abstractmethod
    def _estimate(self) -> Floats:
        """The coefficients as they stand, in the shape of `coef_`; they are copied."""

    def _zeros(self, n_features: int) -> Floats:
        """Coefficients that say nothing yet, in the shape of `coef_`."""
        return np.zeros(n_features)

    def _check_against_features(self, n_features: int) -> None:
        """Raise if the parameters do not go with so many columns. They may have changed since `_start`."""

    def _rows_until_event(self) -> int:
        """Rows that may be learned from at once."""
        return BLOCK

    def _publish(self) -> None:
        """Show the state in fitted attributes."""
        coef = self._estimate()
        if np.isfinite(coef).all():
            self.coef_ = coef.copy()
        else:  # an overflow, of which the next row would tell
            self.coef_ = self._zeros(self.n_features_in_)
            self.diverged_at_ = self.n_samples_seen_ if self.diverged_at_ is None else self.diverged_at_

    # -- shared ------------------------------------------------------------------------------------------

    @locked
    def _take(self, X: Any, y: Any, reset: bool) -> Self:
        with self._unchanged_by_failure():
            self._check_parameters()
            rows, responses = self._check(X, y, reset)
            if reset:
                self._begin(rows.shape[1])
            self._check_against_features(rows.shape[1])
            if reset:
                self._start(rows.shape[1])
        was_well = self.diverged_at_ is None
        try:
            for X_block, y_block in self._blocks(rows, responses):
                with InterruptsDeferred(whole=True):
                    if self.diverged_at_ is None:
                        n_learned = self._learn(X_block, y_block)
                        if n_learned < len(y_block):
                            self.diverged_at_ = self.n_samples_seen_ + n_learned
                    self.n_samples_seen_ += len(y_block)
        finally:  # an interrupt falls between blocks, and finished blocks count
            self._publish()
        if was_well and self.diverged_at_ is not None:
            self._warn_of_divergence()
        return self

    @property
    def _n_learned(self) -> int:
        """Rows learned from."""
        return self.n_samples_seen_ if self.diverged_at_ is None else self.diverged_at_

    def _warn_of_divergence(self) -> None:
        warn_caller(
            f"{type(self).__name__} diverged at row {self.diverged_at_} (counted from zero). coef_ holds what it "
            f"was before, and later rows are not learned from. {self._remedy} Then start over with fit.",
            ConvergenceWarning,
        )

    def _begin(self, n_features: int) -> None:
        """Forget everything."""
        self.n_samples_seen_ = 0
        self.diverged_at_ = None
        self.coef_ = self._zeros(n_features)
        self.intercept_ = 0.0

    def _blocks(self, rows: Any, responses: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Pieces that end at events, each dense and in float64."""
        start, sparse = 0, issparse(rows)
        most = min(BLOCK, max(MOST_ENTRIES // rows.shape[1], 1))
        while start < rows.shape[0]:
            stop = min(start + min(most, self._rows_until_event()), rows.shape[0])
            block = rows[start:stop].toarray() if sparse else rows[start:stop]
            yield read_only(np.ascontiguousarray(block, np.float64)), read_only(responses[start:stop])
            start = stop


class Baseline(SparseLinear, StreamingBaseline):
    """A streaming method for rows of numbers, with one coefficient for each column."""

    _schema = part(coef_=Array("n_features_in_"))

    def _check(self, X: Any, y: Any, reset: bool) -> tuple[Any, Floats]:
        rows = self._check_rows(X, y, None, reset, np.dtype(np.float64))
        return rows.X, rows.y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # one pass over few rows, with a penalty
        return tags
