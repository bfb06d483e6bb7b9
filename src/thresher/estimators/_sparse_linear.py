"""A linear model with coefficients, many of them zero, and an intercept: support and predictions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher._utils.arrays import Floats, Integers
from thresher._utils.checks import refuse_masked
from thresher._utils.locks import locked
from thresher.estimators._exporting import LinearExport


class SparseLinear(LinearExport, SelectorMixin, RegressorMixin):  # type: ignore[misc]
    """A linear model with coefficients `coef_`, many of them zero, and an `intercept_`."""

    # Instances set these, or compute them when they are read.
    coef_: Floats
    intercept_: float

    @property
    def support_(self) -> Integers:
        """Sorted indices of the nonzero coefficients."""
        check_is_fitted(self, "coef_")
        return np.flatnonzero(self.coef_)

    def predict(self, X: Any) -> Floats:
        """Predicted responses.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "coef_")
        refuse_masked(X=X)
        rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        return self._predict(rows, *self._coefficients())

    @locked
    def _coefficients(self) -> tuple[Floats, float]:
        """Coefficients and intercept, of the same moment."""
        return self.coef_, self.intercept_

    @staticmethod
    def _predict(rows: Any, coef: Floats, intercept: float) -> Floats:
        """Predicted responses of rows that were checked."""
        if issparse(rows):
            result: Floats = rows @ coef + intercept
            return result
        support = np.flatnonzero(coef)
        # Few columns, laid out the same way however the rows are, so that sums are taken in the same order.
        result = np.take(rows, support, axis=1) @ coef[support] + intercept
        return result

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "coef_")
        mask = np.zeros(len(self.coef_), np.bool_)
        mask[self.support_] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
