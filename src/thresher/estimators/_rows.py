"""What every estimator that learns from rows does alike: checking them, partial_fit and fit."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from thresher._checks import check_range, check_weights
from thresher.estimators._plain import is_plain
from thresher.estimators._streaming import Streaming

Floats = NDArray[np.float64]


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
            self._adopt_parameters()
            steps = self._rounds.steps_for(rows.shape[0], self.step_size, self.n_steps, self.n_warmup, self.round_size)
        try:
            self._rounds.absorb(rows, responses, weights, steps, self.n_warmup, self.round_size)
        finally:  # an interrupt falls between blocks, and finished blocks count
            self._publish()
        self._warn_of_rises()
        return self

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

    def _summarise(self, rows: Any, responses: Any, weights: Any) -> Any:
        """The summary of these rows."""
        return self._new_summary(rows, responses).absorb(rows, responses, weights)

    def _take_summary(self, summary: Any) -> None:
        self._forget_features(summary.n_features)

    def _forget_features(self, n_features: int) -> None:
        """Take columns by number, as scikit-learn does for arrays."""
        self.n_features_in_ = n_features
        self.__dict__.pop("feature_names_in_", None)

    def _check_rows(
        self, X: Any, y: Any, sample_weight: Any, reset: bool, dtype: np.dtype[Any], multi_output: bool = False
    ) -> tuple[Any, Floats, Floats | None]:
        """Checked rows by columns, responses and weights. Sets or checks the features seen."""
        known = reset or not hasattr(self, "feature_names_in_")
        plain = known and is_plain(X, y, None if reset else self.n_features_in_, dtype, multi_output)
        if plain:
            rows, responses = X, y
            if reset:
                self._forget_features(X.shape[1])
        else:
            if isinstance(X, list | tuple | np.ndarray) and np.asarray(X).dtype.kind in "US":
                raise ValueError("X holds strings; pass numbers.")
            rows, responses = validate_data(
                self,
                X,
                y,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                y_numeric=True,
                multi_output=multi_output,
            )
        responses = np.ascontiguousarray(responses, np.float64)
        weights = check_weights(sample_weight, rows.shape[0])
        if not plain or weights is not None:
            check_range(rows.data if issparse(rows) else rows, responses, weights, dtype)
        return rows, responses, weights
