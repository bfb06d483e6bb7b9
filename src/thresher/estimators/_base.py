"""What every estimator has in common: parameters and rows are checked before any state changes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from operator import attrgetter, is_
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from thresher._utils.arrays import NamedRows
from thresher._utils.checks import check_range, check_rows, check_weights
from thresher.estimators._validation import is_plain
from thresher.io.checkpoint import Saving
from thresher.online.samples import Rows

Floats = NDArray[np.float64]


@cache
def _reader(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """What reads all parameters of an estimator at once."""
    return attrgetter(*kind._parameter_constraints)


class Estimator(Saving, BaseEstimator):  # type: ignore[misc]
    """An estimator that is left exactly as it was by whatever it rejects."""

    @contextmanager
    def _unchanged_by_failure(self) -> Iterator[None]:
        """Leave the model exactly as it was if the block fails.

        Attributes are restored, not what they refer to: the block replaces what it changes or does not touch it.
        """
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _check_parameters(self) -> None:
        """Validate the parameters, unless they are the very objects that were validated before."""
        values = self._parameters()
        checked = getattr(self, "_checked_parameters", [])
        if len(checked) != len(values) or not all(map(is_, values, checked)):
            self._validate_params()
            self._checked_parameters = list(values)

    def _parameters(self) -> tuple[Any, ...]:
        """All parameters, in the order of their constraints."""
        return _reader(cast(Any, type(self)))(self)

    def _as_adopted(self) -> bool:
        """Whether the parameters are the very objects that took effect last."""
        return all(map(is_, self._parameters(), self.__dict__.get("_adopted", (None,))))

    def _forget_features(self, n_features: int) -> None:
        """Take columns by number, as scikit-learn does for arrays."""
        self.n_features_in_ = n_features
        self.__dict__.pop("feature_names_in_", None)

    def _check_rows(
        self, X: Any, y: Any, sample_weight: Any, reset: bool, dtype: np.dtype[Any], multi_output: bool = False
    ) -> Rows:
        """Checked rows, responses and weights. Sets or checks the features seen."""
        names = None
        if isinstance(X, NamedRows):
            names, X = X
            if not reset and not np.array_equal(names, getattr(self, "feature_names_in_", ())):
                raise ValueError("These rows have other columns than those before.")
        known = reset or names is not None or not hasattr(self, "feature_names_in_")
        plain = known and is_plain(X, y, None if reset else self.n_features_in_, dtype, multi_output)
        if plain:
            rows, responses = X, y
            if reset:
                self._forget_features(X.shape[1])
                if names is not None:
                    self.feature_names_in_ = names
        elif names is not None:
            rows, responses, _ = check_rows(X, y, None, len(names), dtype)
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
        return Rows(rows, responses, weights)
