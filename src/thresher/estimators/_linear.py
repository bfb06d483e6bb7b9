"""What sparse linear models offer once they are fitted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

Floats = NDArray[np.float64]


class SparseLinear(SelectorMixin, RegressorMixin):  # type: ignore[misc]
    """A linear model with coefficients `coef_`, many of them zero, and an `intercept_`."""

    coef_: Floats
    intercept_: float

    @property
    def support_(self) -> NDArray[np.intp]:
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
        rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        if issparse(rows):
            result: Floats = rows @ self.coef_ + self.intercept_
            return result
        support = np.flatnonzero(self.coef_)
        # Few columns, laid out the same way however the rows are, so that sums are taken in the same order.
        result = np.take(rows, support, axis=1) @ self.coef_[support] + self.intercept_
        return result

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "coef_")
        mask: NDArray[np.bool_] = self.coef_ != 0.0
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
