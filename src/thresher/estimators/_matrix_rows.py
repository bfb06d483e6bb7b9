"""What models of one number from a matrix share: samples as rows, predictions, and the factors of the estimate."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher._utils.arrays import Floats
from thresher._utils.checks import refuse_masked
from thresher._utils.locks import lock_of
from thresher.estimators._validation import checked_shape
from thresher.sparsity.rank import Rank
from thresher.summaries.gram import Gram


class MatrixRows(RegressorMixin):  # type: ignore[misc]
    """A linear model of matrices X with coefficients `coef_` of shape (d1, d2) and an `intercept_`.

    Samples come as an array of shape (n, d1, d2), or as rows of d1 d2 numbers if the parameter `shape` says how to
    read them. Inside, they are rows.
    """

    shape: tuple[int, int] | None
    coef_: Floats
    intercept_: float
    _shape: Any

    def predict(self, X: Any) -> Floats:
        """Predicted responses.

        Parameters
        ----------
        X : array-like of shape (n, d1, d2), or (n, d1 * d2)

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "coef_")
        rows, _ = self._as_rows(X, self._shape)
        rows = validate_data(self, rows, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        with lock_of(self):
            coef, intercept = self.coef_, self.intercept_  # of the same moment
        result: Floats = safe_sparse_dot(rows, coef.reshape(-1)) + intercept
        return result

    def _as_rows(self, X: Any, known: tuple[int, int] | None) -> tuple[Any, tuple[int, int]]:
        """X as rows of d1 d2 numbers, and (d1, d2); an error if they contradict what is known."""
        refuse_masked(X=X)
        asked = checked_shape(self.shape)
        shape = known or asked
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        n_dimensions = len(X.shape)
        if n_dimensions == 3:
            given = X.shape[1], X.shape[2]
            if shape is not None and given != shape:
                raise ValueError(f"X holds matrices of shape {given}; expected {shape}.")
            if 0 in given:
                raise ValueError(f"X holds matrices of shape {given}; they must not be empty.")
            return np.asarray(X).reshape(len(X), given[0] * given[1]), given
        if shape is None:
            raise ValueError(
                f"X has {n_dimensions} dimension(s); expected an array of shape (n, d1, d2), or rows of d1 * d2 "
                "numbers and shape=(d1, d2)."
            )
        if n_dimensions == 2 and X.shape[1] != shape[0] * shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns; matrices of shape {shape} have {shape[0] * shape[1]}.")
        return X, shape

    def _take_matrices(self, X: Any, reset: bool) -> Any:
        """X as rows; their shape is kept."""
        rows, self._shape = self._as_rows(X, None if reset else self._shape)
        return rows

    def _take_shape_for(self, summary: Gram) -> None:
        """The shape of the matrices that a summary of rows has seen, which it does not know itself."""
        shape = checked_shape(self.shape)
        if shape is None or shape[0] * shape[1] != summary.n_features:
            raise ValueError(f"The summary has {summary.n_features} features; set shape=(d1, d2) with that product.")
        if summary.dtype != np.float64:
            raise ValueError("The summary must be in float64; Gram(n_features).merge(summary) makes it so.")
        self._shape = shape

    def _check_shape_asked(self) -> None:
        """Raise if `shape` was set to another one since the first sample."""
        asked = checked_shape(self.shape)
        if asked is not None and asked != self._shape:
            raise ValueError(f"shape={asked} contradicts the matrices seen so far, of shape {self._shape}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        return tags


class LowRankRows(MatrixRows):
    """The same with coefficients of rank `rank_`."""

    rank_: int

    @property
    def factors_(self) -> tuple[Floats, Floats, Floats]:
        """U, singular values and V' of the coefficients; the largest entry of each column of U is positive."""
        check_is_fitted(self, "coef_")
        u, s, vt = Rank(max(self.rank_, 1)).factors(self.coef_)
        return u[:, : self.rank_], s[: self.rank_], vt[: self.rank_]
