"""Streaming sparse linear regression as a river regressor."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import base
from river.utils.dataframe import to_native_series

from thresher._checks import LARGEST, check_finite, check_range, check_rows, check_weights
from thresher.estimators.sparse_regressor import SparseRegressor as Model
from thresher.river._columns import Columns, Name, check_number
from thresher.river._frames import named_numbers
from thresher.rounds.step_size import StepSize
from thresher.selection.criteria import Method

Floats = NDArray[np.float64]


class SparseRegressor(base.MiniBatchRegressor):
    r"""Linear regression with few features for river: rows are dictionaries, and features may come and go.

    After every row, the coefficients are those of ``thresher.SparseRegressor`` on all rows so far: sparse, with an
    exact intercept, the number of features chosen from the data. No learning rate is needed and no ``StandardScaler``
    before it, since scales over *all* rows are known at every row, retroactively.

    A feature that a row does not have is zero in it. A feature that was never seen before gets a new column, in which
    all earlier rows are zero. The result is that of a model that knew all features from the first row on, with two
    exceptions: a feature cannot be chosen before it has appeared, and the criterion that chooses how many to keep
    counts those that have.

    A row costs what it costs there, O(d^2) in blocks of BLAS-3 and O(d + K s^2), plus O(d) for reading the dictionary;
    a prediction O(s). Memory is 8 d^2 bytes, a quarter more while features appear. A row with new
    features costs O(d) and a copy of up to 256 buffered rows; the d^2 numbers are copied when there are an eighth more.

    Parameters
    ----------
    sparsity : int or "auto", default="auto"
        How many features to keep; ``"auto"`` chooses it from the data.
    selection : {"ebic", "folds", "prequential"} or an instance of Ebic, Folds or Prequential, default="ebic"
        How ``"auto"`` chooses.
    rule : {"auto", "hard", "pursuit", "reciprocal"}, default="auto"
        How the estimate moves.
    n_steps : int or "auto", default=5
        Steps per round.
    step_size : float, callable or "auto", default="auto"
        Step size; ``"auto"`` is certified.
    n_warmup : int, default=0
        Rows before the first round.
    round_size : int, default=1
        Rows per round.
    fit_intercept, standardize : bool, default=True
        Whether there is an intercept, and whether features are compared in units of their standard deviations.
    follow_drift : bool, default=True
        Whether coefficients follow a stream that changes.
    prudent : bool or "auto", default="auto"
        Whether a coefficient is trusted only as far as there are rows to carry it.
    dtype : {"float64", "float32"}, default="float64"
        Storage of the co-moments.

    All mean what they mean in ``thresher.SparseRegressor``.

    Attributes
    ----------
    weights : dict
        The nonzero coefficients by feature.
    intercept : float
    features : list
        All features seen so far; the columns of `model`, in order.
    model : thresher.SparseRegressor
        The estimator within, for intervals, diagnoses, milestones and files.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from thresher.river import SparseRegressor
    >>> model = SparseRegressor()
    >>> score = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> round(score.get(), 2)
    0.52
    >>> model.learn_one({"gallup": 40.0, "a_new_poll": 41.0}, 40.5)
    >>> model.features[-1]
    'a_new_poll'
    >>> model.model.n_samples_seen_
    1002
    """

    # Pickles from before there were these parameters do not have them.
    follow_drift: bool = True
    prudent: bool | str = "auto"

    def __init__(
        self,
        sparsity: int | str = "auto",
        selection: str | Method = "ebic",
        rule: str = "auto",
        n_steps: int | str = 5,
        step_size: StepSize = "auto",
        n_warmup: int = 0,
        round_size: int = 1,
        fit_intercept: bool = True,
        standardize: bool = True,
        follow_drift: bool = True,
        prudent: bool | str = "auto",
        dtype: str = "float64",
    ) -> None:
        self.sparsity = sparsity
        self.selection = selection
        self.rule = rule
        self.n_steps = n_steps
        self.step_size = step_size
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.follow_drift = follow_drift
        self.prudent = prudent
        self.dtype = dtype
        self._model = Model(
            sparsity,
            selection=selection,
            rule=rule,
            n_steps=n_steps,
            step_size=step_size,
            n_warmup=n_warmup,
            round_size=round_size,
            fit_intercept=fit_intercept,
            standardize=standardize,
            follow_drift=follow_drift,
            prudent=prudent,
            dtype=dtype,
        )
        self._columns = Columns()
        self._y_name: str | None = None
        self._shown: Floats | None = None  # the coefficients of which _weights are the nonzero ones
        self._weights: dict[Name, float] = {}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"sparsity": 3, "rule": "hard", "round_size": 4}
        yield {"selection": "prequential", "fit_intercept": False}

    # -- what it has learned -----------------------------------------------------------------------------

    @property
    def model(self) -> Model:
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
        return float(getattr(self._model, "intercept_", 0.0))

    def _nonzero(self) -> dict[Name, float]:
        coef: Floats | None = getattr(self._model, "coef_", None)
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
        if hasattr(self._model, "summary_"):
            stored: np.dtype[Any] = self._model.summary_.dtype
            return stored
        self._model._validate_params()
        return np.dtype(self.dtype)

    def _extent(self) -> tuple[int, int]:
        """Columns and rows of the model."""
        return getattr(self._model, "n_features_in_", 0), getattr(self._model, "n_samples_seen_", 0)

    def _learn(self, rows: Floats, new: list[Name], responses: Floats, weights: Floats | None) -> None:
        """Learn from checked rows. New features get their names if and only if the model takes their columns."""
        if not new:
            self._model._learn(rows, responses, weights)
            return
        n_names, state = len(self._columns.names), self._extent()
        try:
            self._columns.add(new)
            self._model._learn(rows, responses, weights)
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
