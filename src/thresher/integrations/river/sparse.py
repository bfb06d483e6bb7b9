"""Sparse linear regression as a river regressor."""

from collections.abc import Iterator
from typing import Any

from thresher._utils.times import is_timedelta
from thresher.estimators import sparse_regressor
from thresher.integrations.river.regressor import RiverRegressor
from thresher.selection.criteria import Method


class SparseRegressor(RiverRegressor):
    r"""Linear regression with few features for river: rows are dictionaries, and features may come and go.

    After every row, the coefficients are those of ``thresher.SparseRegressor`` on all rows so far: sparse, with an
    exact intercept, the number of features chosen from the data. No learning rate is needed and no ``StandardScaler``
    before it, since the result does not depend on scales.

    A feature that a row does not have is zero in it. A feature that was never seen before gets a new column, in which
    all earlier rows are zero. The result is that of a model that knew all features from the first row on, with two
    exceptions: a feature cannot be chosen before it has appeared, and the criterion and the posterior that choose what
    to keep count those that have.

    A row costs what it costs there, O(d^2) in blocks of BLAS-3, plus O(d) for reading the dictionary. The first
    prediction after a row solves least squares on the s features of the support; further ones cost O(s). Memory is
    8 d^2 bytes, a quarter more while features appear. A row with new features costs O(d) and a copy of up to 256
    buffered rows; the d^2 numbers are copied when there are an eighth more.

    Parameters
    ----------
    sparsity : int or "auto", default="auto"
        How many features to keep; ``"auto"`` chooses it from the data.
    selection : {"posterior", "ebic", "cv"} or an instance of Ebic or CrossValidation, default="posterior"
        How ``"auto"`` chooses.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    dtype : {"float64", "float32"}, default="float64"
        Storage of the co-moments.
    half_life : float, optional
        Rows count half as much when so many others have come in. By default all rows count equally.
    window : int, optional
        Only the last so many rows count, and up to a tenth more; `half_life` is cheaper.
    exact_window : bool, default=False
        Let each row leave on its own.
    drift : {"auto", "full", None}, default="auto"
        Whether coefficients follow recent rows once these predict better than all rows; ``"full"`` also chooses
        features from recent rows.
    horizon : int, default=32
        How many rows ahead predictions are for.

    All mean what they mean in ``thresher.SparseRegressor``.

    Attributes
    ----------
    weights : dict
        The nonzero coefficients by feature.
    intercept : float
    features : list
        All features seen so far; the columns of `model`, in order.
    model : thresher.SparseRegressor
        The estimator within, for intervals, diagnoses, history and files.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from thresher.integrations.river import SparseRegressor
    >>> model = SparseRegressor()
    >>> score = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> score.get() < 0.6
    True
    >>> model.learn_one({"gallup": 40.0, "a_new_poll": 41.0}, 40.5)
    >>> model.features[-1]
    'a_new_poll'
    >>> model.model.n_samples_seen_
    1002
    """

    def __init__(
        self,
        sparsity: int | str = "auto",
        selection: str | Method = "posterior",
        fit_intercept: bool = True,
        dtype: str = "float64",
        half_life: float | None = None,
        window: int | None = None,
        exact_window: bool = False,
        drift: str | None = "auto",
        horizon: int = 32,
    ) -> None:
        self.sparsity = sparsity
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.dtype = dtype
        self.half_life = half_life
        self.window = window
        self.exact_window = exact_window
        self.drift = drift
        self.horizon = horizon
        if is_timedelta(half_life) or is_timedelta(window):
            raise ValueError("Rows of river have no times; give half_life and window as numbers of rows.")
        self._wrap(sparse_regressor.SparseRegressor)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"sparsity": 3}
        yield {"selection": "cv", "fit_intercept": False}
        yield {"half_life": 30.0}
        yield {"window": 50}
        yield {"window": 50, "exact_window": True}
        yield {"drift": None}
        yield {"drift": "full"}
        yield {"horizon": 1}
