"""What every estimator that learns from rows does alike: checking them, partial_fit and fit."""

from abc import abstractmethod
from typing import Any, Self

from thresher.estimators._streaming import Streaming


class RowStreaming(Streaming):
    """An estimator that learns from rows X with responses y.

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
            rows, responses, weights = self._check(X, y, sample_weight, reset=first)
            if first:
                self._start(self._new_summary(rows, responses))
            steps = self._prepare(rows.shape[0])
        return self._take(rows, responses, weights, steps)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, absorb all rows, then run rounds on their summary until it settles.

        Parameters and return value are those of ``partial_fit``.
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            rows, responses, weights = self._check(X, y, sample_weight, reset=True)
            if weights is not None and not weights.any():
                raise ValueError("All sample weights are zero; at least one row must count.")
            return self._settle(self._summarise(rows, responses, weights))

    # -- what a subclass provides ------------------------------------------------------------------------

    @abstractmethod
    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, Any, Any]:
        """Checked rows, responses and weights. Sets or checks what is known of the columns."""

    @abstractmethod
    def _new_summary(self, rows: Any, responses: Any) -> Any:
        """An empty summary for such rows."""

    # -- shared ------------------------------------------------------------------------------------------

    def _prepare(self, n_rows: int) -> Any:
        """The steps for the next rows; raises what can be raised before any state changes."""
        self._adopt_parameters()
        return self._steps(n_rows)

    def _steps(self, n_rows: int) -> Any:
        return self._rounds.inner.steps_for(n_rows, self.step_size, self.n_steps, self.n_warmup, self.round_size)

    def _take(self, rows: Any, responses: Any, weights: Any, steps: Any, one: bool = False) -> Self:
        """Absorb checked rows, with rounds of these steps; `one` if it is a single row of a Gram, dense, in float64."""
        rounds = self._rounds
        absorb = rounds.absorb_row if one else rounds.absorb
        try:
            absorb(rows, responses, weights, steps, self.n_warmup, self.round_size)
        finally:  # an interrupt falls between blocks, and finished blocks count
            self._publish()
        self._warn_of_rises()
        return self

    def _summarise(self, rows: Any, responses: Any, weights: Any) -> Any:
        """The summary of these rows."""
        return self._new_summary(rows, responses).absorb(rows, responses, weights)

    def _take_summary(self, summary: Any) -> None:
        self._forget_features(summary.n_features)
