"""What thresher's regressors for river have in common: rows are dictionaries, and features may come and go."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from river import base
from river.utils.dataframe import to_native_series

from thresher._utils.arrays import Floats
from thresher._utils.checks import LARGEST, check_finite, check_range, check_rows, check_weights
from thresher.integrations.river._features import Columns, Name, check_number
from thresher.integrations.river._frames import named_numbers
from thresher.online.samples import Rows


class RiverRegressor(base.MiniBatchRegressor):
    """A sparse linear model of thresher's behind river's interface.

    A subclass stores its parameters and says whose they are (``_wrap``).
    """

    dtype: str

    def _wrap(self, kind: type) -> None:
        self._model = kind(**{name: getattr(self, name) for name in self._get_params()})
        self._columns = Columns()
        self._y_name: str | None = None
        self._shown: Floats | None = None  # the coefficients of which _weights are the nonzero ones
        self._weights: dict[Name, float] = {}

    # -- what it has learned -----------------------------------------------------------------------------

    @property
    def model(self) -> Any:
        """The estimator within; its columns are `features`."""
        return self._model

    @property
    def features(self) -> list[Name]:
        """All features seen so far, in the order of the columns of `model`."""
        return list(self._columns.names)

    @property
    def weights(self) -> dict[Name, float]:
        """The nonzero coefficients by feature, in the units of the data."""
        return dict(self._nonzero())

    @property
    def intercept(self) -> float:
        """The intercept; zero before the first row."""
        return float(self._model.intercept_) if self._known else 0.0

    @property
    def _known(self) -> bool:
        return hasattr(self._model, "summary_")

    def _nonzero(self) -> dict[Name, float]:
        coef: Floats | None = self._model.coef_ if self._known else None
        if coef is not None and coef is not self._shown:  # every row makes new ones
            names, kept = self._columns.names, coef.nonzero()[0]
            self._weights = {names[j]: value for j, value in zip(kept.tolist(), coef[kept].tolist(), strict=True)}
            self._shown = coef
        return self._weights

    # -- one row -----------------------------------------------------------------------------------------

    def learn_one(self, x: Mapping[Name, Any], y: float, w: float = 1.0) -> None:
        """Learn from one row.

        Whatever is rejected leaves the model as it was.

        Parameters
        ----------
        x : dict
            Numbers by feature. Names may be anything that a dictionary takes.
        y : float
            The response.
        w : float, default=1.0
            Non-negative; a weight of two counts the row twice.
        """
        dtype = self._storage()
        row, new = self._columns.row(x, dtype)
        if not (type(y) is float and abs(y) <= LARGEST[np.dtype(np.float64)]):
            y = _response(y)
        response, weights = np.array([y]), None
        if w != 1.0:
            weights = check_weights([w], 1)
            check_range(row, response, weights, dtype)
        self._learn(row, new, response, weights)

    def predict_one(self, x: Mapping[Name, Any]) -> float:
        """The predicted response; 0.0 before the first row. Features that are not known, or not kept, do not matter."""
        total, value = self.intercept, x.get
        try:
            for name, weight in self._nonzero().items():
                total += weight * value(name, 0.0)
            finite = math.isfinite(total)
        except (TypeError, OverflowError):
            finite = False
        if not finite:
            for name in self._nonzero():
                check_number(name, value(name, 0.0))
        return float(total)

    # -- many rows ---------------------------------------------------------------------------------------

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn from the rows of a data frame: the same as one by one, bit for bit, and much faster.

        Parameters
        ----------
        X : data frame of pandas, polars or whatever else river takes
        y : series or array-like
            Responses.
        w : float, series or array-like, default=1.0
            Weights, one for each row or one for all.
        """
        dtype = self._storage()
        _, names, matrix = named_numbers(X)
        rows, new = self._columns.rows(names, matrix, dtype)
        if not len(rows) and not len(y):
            return
        unweighted = isinstance(w, int | float) and w == 1.0
        rows, responses, weights = check_rows(
            rows, np.asarray(y), None if unweighted else np.asarray(w), rows.shape[1], dtype
        )
        self._y_name = getattr(y, "name", None)
        self._learn(rows, new, responses, weights)

    def predict_many(self, X: Any) -> Any:
        """The predicted responses of the rows of a data frame, as a series of the same kind; see ``predict_one``."""
        weights = self._nonzero()
        frame, names, matrix = named_numbers(X, weights)
        columns = dict(zip(names, matrix.T, strict=True))
        total = np.full(len(matrix), self.intercept)
        for name, weight in weights.items():  # in the order of predict_one, so to the same bits
            if name in columns:
                check_finite(columns[name], f"Feature {name!r}")
                total += weight * columns[name]
        return to_native_series(total, name=self._y_name, like=frame)

    # -- shared ------------------------------------------------------------------------------------------

    def _storage(self) -> np.dtype[Any]:
        if self._known:
            stored: np.dtype[Any] = self._model.summary_.dtype
            return stored
        self._model._validate_params()
        return np.dtype(self.dtype)

    def _extent(self) -> tuple[int, int]:
        """Columns and rows of the model."""
        return (self._model.n_features_in_, self._model.n_samples_seen_) if self._known else (0, 0)

    def _learn(self, rows: Floats, new: list[Name], responses: Floats, weights: Floats | None) -> None:
        """Learn from checked rows. New features get their names if and only if the model takes their columns."""
        if not new:
            self._model._learn(Rows(rows, responses, weights))
            return
        n_names, state = len(self._columns.names), self._extent()
        try:
            self._columns.add(new)
            self._model._learn(Rows(rows, responses, weights))
        finally:  # an interrupt may come when the columns, or the rows too, are taken
            if self._extent() == state:
                self._columns.cut(n_names)
            if self._columns.texts and self._columns.names:
                self._model.feature_names_in_ = np.array(self._columns.names, object)


def _response(y: Any) -> float:
    """The response as a number, or an error that says what it is instead."""
    try:
        number = math.nan if isinstance(y, str | bytes) else float(y)
    except (TypeError, OverflowError):
        number = math.nan
    if not abs(number) <= LARGEST[np.dtype(np.float64)]:
        raise ValueError(f"y is {y!r:.40}; pass a finite number whose square does not overflow.")
    return number
