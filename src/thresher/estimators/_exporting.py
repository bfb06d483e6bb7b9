"""Linear models as pipelines of scikit-learn, which anything that knows scikit-learn can serve."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import Floats, Integers
from thresher._utils.feature_names import column_of
from thresher._utils.locks import locked

if TYPE_CHECKING:  # slow to import, and few models are exported
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import Pipeline


class LinearExport:
    """A fitted linear model with `coef_`, `intercept_` and `n_features_in_`."""

    @locked
    def to_sklearn(self, categories: Sequence[str] = ()) -> "Pipeline":
        """The fitted model as a scikit-learn pipeline: a choice of columns, then ``LinearRegression``.

        The pipeline predicts what ``predict`` does now, to rounding, and does not change when the model learns more.
        It needs scikit-learn only, not this library, so it can be pickled for a server, or converted to ONNX with
        ``skl2onnx.to_onnx``. If the model was fitted with column names, columns of a data frame are found by name, and
        those that the model does not use may be missing. O(d) in time and memory.

        Parameters
        ----------
        categories : sequence of str, optional
            Columns of categories, as texts. Features named ``column=level``, which ``thresher fit`` and Arrow tables
            make, are then computed from them. A level that the model does not know counts as none. Needs pandas.

        Returns
        -------
        Pipeline
            With the steps ``"columns"``, a ``ColumnTransformer``, and ``"regression"``. A model that kept nothing
            passes on its first column, with the coefficient zero.

        Examples
        --------
        >>> from thresher import SparseRegressor
        >>> from thresher.io.sources.synthetic import SparseLinearStream
        >>> X, y = SparseLinearStream(30, 3, signal=1.0, seed=4).draw(500)
        >>> model = SparseRegressor().fit(X, y)
        >>> pipeline = model.to_sklearn()
        >>> pipeline["regression"].coef_.shape
        (3,)
        >>> bool(abs(pipeline.predict(X) - model.predict(X)).max() < 1e-14)
        True
        """
        from sklearn.pipeline import Pipeline

        check_is_fitted(self, "n_features_in_")
        coef, intercept = np.asarray(self.coef_), self.intercept_  # type: ignore[attr-defined]
        kept = np.flatnonzero(np.atleast_2d(coef).any(axis=0))
        kept = kept if len(kept) else np.zeros(1, np.intp)
        names: Any = getattr(self, "feature_names_in_", None)
        texts = [categories] if isinstance(categories, str) else list(categories)
        if texts and names is None:
            raise ValueError("categories need a model that knows the names of its columns; fit it to a data frame.")
        n_features = self.n_features_in_  # type: ignore[attr-defined]
        if texts:
            columns, order = _columns_with_levels([str(name) for name in names], kept, texts)
        else:
            columns, order = _columns(n_features, names, kept), kept
        return Pipeline([("columns", columns), ("regression", _regression(coef[..., order], intercept))])


def _columns(n_features: int, names: Any, kept: Integers) -> "ColumnTransformer":
    """Keeps some columns: by name in frames if the model has names, else by place."""
    from sklearn.compose import ColumnTransformer

    columns = ColumnTransformer([("numbers", "passthrough", kept.tolist())], verbose_feature_names_out=False)
    columns.fit(np.zeros((1, n_features)))
    if names is not None:
        columns.feature_names_in_ = np.array(names, object)
    return columns


def _columns_with_levels(
    names: list[str], kept: Integers, categories: Sequence[str]
) -> "tuple[ColumnTransformer, Integers]":
    """Keeps columns of numbers and encodes levels, and tells which feature each column of the result is."""
    try:
        import pandas as pd  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError("to_sklearn with categories needs pandas: pip install pandas") from error
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    columns = [column_of(name, categories) for name in names]
    plain = [j for j in kept.tolist() if columns[j] is None]
    levels: dict[str, list[int]] = {column: [] for column in categories}
    for j in kept.tolist():
        if (column := columns[j]) is not None:
            levels[column].append(j)
    for column in categories:
        if column not in columns:
            raise ValueError(f"No feature is named {column}=level, so {column!r} is no category of this model.")
    steps: list[tuple[str, Any, list[str]]] = [("numbers", "passthrough", [names[j] for j in plain])] if plain else []
    order = list(plain)
    example: dict[str, list[Any]] = {names[j]: [0.0] for j in plain}
    for column, own in levels.items():
        if own:
            texts = [names[j][len(column) + 1 :] for j in own]
            encoder = OneHotEncoder(categories=[texts], handle_unknown="ignore", sparse_output=False)
            steps.append((f"category{len(steps)}", encoder, [column]))
            order += own
            example[column] = [texts[0]]
    # Text as NumPy objects, whatever pandas would store it as, so that other tools know the type.
    types = {name: object if name in levels else float for name in example}
    frame = pd.DataFrame({name: pd.Series(value, dtype=types[name]) for name, value in example.items()})
    return ColumnTransformer(steps, verbose_feature_names_out=False).fit(frame), np.array(order, np.intp)


def _regression(coef: Floats, intercept: Any) -> "LinearRegression":
    """A fitted ``LinearRegression`` with these coefficients."""
    from sklearn.linear_model import LinearRegression

    regression = LinearRegression()
    regression.coef_ = np.array(coef, np.float64)
    regression.intercept_ = np.array(intercept, np.float64)[()]  # a scalar of NumPy, as converters expect
    regression.n_features_in_ = coef.shape[-1]
    return regression
