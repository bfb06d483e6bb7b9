"""Predictions as a column of a Spark data frame, computed from Arrow arrays of the features that are kept."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pyspark.sql import functions as sql

from thresher._utils.arrays import Floats
from thresher._utils.arrow import check_no_nulls, import_pyarrow
from thresher.integrations.spark.columns import Columns, quoted


def predicted(df: Any, features: Sequence[str] | str, coef: Floats, intercept: float) -> Any:
    """The column of predictions. Only columns with nonzero coefficients leave Spark."""
    support = np.flatnonzero(coef)
    known = Columns(df)
    features = known.features(features)
    if isinstance(features, str):
        return sql.arrow_udf(_of_vectors(features, coef, intercept), "double")(known.as_array(features))
    if len(features) != len(coef):
        raise ValueError(f"There are {len(features)} input columns and the model has {len(coef)} features.")
    if not len(support):
        return sql.lit(float(intercept))
    kept = [features[int(j)] for j in support]
    columns = []
    for name in kept:
        column, level = known.level_of(name)
        number = sql.col(quoted(column)) if level is None else sql.col(quoted(column)) == level
        columns.append(number.cast("double"))
    return sql.arrow_udf(_of_columns(kept, coef[support], intercept), "double")(*columns)


def _of_columns(names: list[str], values: Floats, intercept: float) -> Callable[..., Any]:
    pa = import_pyarrow()

    def predict(*columns: pa.Array) -> pa.Array:  # type: ignore[name-defined]
        for name, column in zip(names, columns, strict=True):
            check_no_nulls(column, name, 1)
        X = np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
        return pa.array(X @ values + intercept)

    return predict


def _of_vectors(name: str, coef: Floats, intercept: float) -> Callable[..., Any]:
    pa = import_pyarrow()
    support = np.flatnonzero(coef)

    def predict(vectors: pa.Array) -> pa.Array:  # type: ignore[name-defined]
        check_no_nulls(vectors, name, 1)
        lengths = np.diff(vectors.offsets.to_numpy())
        if (lengths != len(coef)).any():
            wrong = int(lengths[np.argmax(lengths != len(coef))])
            raise ValueError(f"Column {name!r} has a vector of length {wrong}; the model has {len(coef)} features.")
        X = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, len(coef))
        return pa.array(np.take(X, support, axis=1) @ coef[support] + intercept)

    return predict
