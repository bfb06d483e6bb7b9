"""Summaries and models from Dask collections. Needs ``pip install 'thresher[dask]'``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    from dask.base import tokenize
    from dask.delayed import Delayed, delayed
except ImportError as error:
    raise ImportError("thresher.integrations.dask needs dask; install it with: pip install 'thresher[dask]'") from error

from thresher._utils.arrow import import_pyarrow
from thresher._utils.checks import check_positive_integer, check_rows
from thresher._utils.threads import one_blas_thread
from thresher._version import __version__
from thresher.estimators._linear import SummaryLinear
from thresher.integrations._partials import Plan, check_version, in_partition, merged, plan_for
from thresher.io.encoding import decode, encode
from thresher.summaries.gram import Gram

# Summaries that one task merges.
FAN_IN = 8


def summarize(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    features: Sequence[str] | None = None,
    dtype: str = "float64",
    n_folds: int = 0,
    fan_in: int = FAN_IN,
) -> Any:
    """The summary of all rows of a Dask data frame or array.

    Every partition is summarised where it is, and the summaries are merged in a tree of tasks: a worker holds at most
    `fan_in` of them at a time, the client one. They travel as bytes. The order of merging is fixed, so the same
    partitions give the same bits, whatever is computed again after a worker was lost.

    Parameters
    ----------
    X : dask.dataframe.DataFrame, or dask.array.Array of shape (n, d)
        An array may be in blocks of rows and of columns; blocks of one row range are joined.
    y : str, list of str, or dask.array.Array of shape (n,)
        The response: the name of a column of a data frame (several give a MultiResponse), or an array in the same
        blocks of rows.
    sample_weight : str or dask.array.Array, optional
        Weights, given as `y` is.
    features : list of str, optional
        Columns of a data frame; by default all other columns of numbers.
    dtype : {"float64", "float32"}, default="float64"
        How co-moments are stored.
    n_folds : int, default=0
        Return this many summaries of disjoint parts of the rows of a data frame, for ``fit_summary(..., folds=...)``.
    fan_in : int, default=8
        Summaries that one task merges.

    Returns
    -------
    Gram, list of Gram, or MultiResponse
    """
    if check_positive_integer(fan_in, "fan_in") < 2:
        raise ValueError(f"fan_in must be at least 2, got {fan_in}.")
    if hasattr(X, "to_delayed") and hasattr(X, "dtypes") and hasattr(X, "columns"):
        parts = _of_frame(X, y, sample_weight, features, dtype, n_folds)
    elif hasattr(X, "to_delayed") and hasattr(X, "chunks"):
        if features is not None or n_folds:
            raise ValueError("features and n_folds go with a data frame.")
        parts = _of_array(X, y, sample_weight, dtype)
    else:
        raise TypeError(f"X is a {type(X).__name__}; pass a Dask data frame or array.")
    content = _tree(parts, fan_in).compute()
    if content is None:
        raise ValueError("The collection has no rows.")
    return decode(content)[0]


def fit(
    estimator: SummaryLinear, X: Any, y: Any, sample_weight: Any = None, *, features: Sequence[str] | None = None
) -> SummaryLinear:
    """Fit a ``SparseRegressor`` or ``OnlineHardThresholding`` to all rows of a Dask collection, in one pass.

    As ``estimator.fit`` on all rows, to rounding. Parameters are those of ``summarize``. Returns the estimator.
    """
    if not isinstance(estimator, SummaryLinear):
        raise TypeError(
            f"estimator must be a SparseRegressor or OnlineHardThresholding, got {type(estimator).__name__}"
        )
    estimator._check_parameters()
    named = isinstance(y, str)
    names = _features(X, [y, *([] if sample_weight is None else [sample_weight])], features) if named else None
    summary = summarize(X, y, sample_weight, features=names, dtype=str(np.dtype(estimator.dtype)))
    estimator.fit_summary(summary)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, object)
        estimator._columns_by_name = True
    return estimator


# -- the tree ----------------------------------------------------------------------------------------------


def _tree(parts: list[Any], fan_in: int) -> Delayed:
    """Merge neighbours, level by level; names of tasks show in the dashboard."""
    level = 0
    while len(parts) > 1 or level == 0:
        level += 1
        groups = [parts[start : start + fan_in] for start in range(0, len(parts), fan_in)]
        parts = [
            delayed(_merged, pure=True)(group, dask_key_name=f"thresher-merge-{level}-{tokenize(group)}")
            for group in groups
        ]
    return parts[0]


def _task(name: str, function: Any, *arguments: Any) -> Delayed:
    """A call for a worker, under a name that the dashboard shows; the same arguments give the same task."""
    return delayed(function)(*arguments, dask_key_name=f"{name}-{tokenize(*arguments)}")


def _merged(parts: Sequence[bytes | None]) -> bytes | None:
    total: Any = None
    for content in parts:
        if content is not None:
            summary = decode(content)[0]
            total = summary if total is None else merged(total, summary)
    return None if total is None else encode(total)


# -- data frames -------------------------------------------------------------------------------------------


def _of_frame(X: Any, y: Any, weight: Any, features: Sequence[str] | None, dtype: str, n_folds: int) -> list[Any]:
    targets = [y] if isinstance(y, str) else y
    if not isinstance(targets, list | tuple) or not all(isinstance(name, str) for name in targets):
        raise TypeError("With a data frame X, y must be the name of a column, or a list of names.")
    if weight is not None and not isinstance(weight, str):
        raise TypeError("With a data frame X, sample_weight must be the name of a column.")
    others = [*targets, *([] if weight is None else [weight])]
    names = _features(X, others, features)
    plan = plan_for(names, y, weight, dtype, n_folds)
    needed = [name for name in X.columns if name in plan.columns or any(f.startswith(f"{name}=") for f in names)]
    parts = X[needed].to_delayed()
    return [_task("thresher-summarize", _summary_of_frame, plan, part, number) for number, part in enumerate(parts)]


def _features(X: Any, others: Sequence[str], features: Sequence[str] | None) -> list[str]:
    """Names of the features, all of which exist and have numbers."""
    columns = list(X.columns)
    if features is None:
        names = [name for name in columns if name not in others and _is_number(X.dtypes[name])]
    else:
        names = [str(name) for name in features]
    for name in (*others, *names):
        if name not in columns and not any(name.startswith(f"{column}=") for column in columns):
            raise ValueError(f"The data frame has no column {name!r}; it has {', '.join(map(repr, columns[:8]))}.")
        if name in columns and not _is_number(X.dtypes[name]):
            raise ValueError(f"Column {name!r} has values of type {X.dtypes[name]}, and numbers are needed there.")
    return names


def _is_number(kind: Any) -> bool:
    return bool(getattr(kind, "_is_numeric", getattr(kind, "kind", "O") in "iufb"))


def _summary_of_frame(plan: Plan, frame: Any, number: int) -> bytes | None:
    table = import_pyarrow().Table.from_pandas(frame, preserve_index=False)
    try:
        summary = plan.summary(table.to_batches())
    except ValueError as error:
        raise in_partition(error, number) from error
    return None if summary is None else encode(summary)


# -- arrays ------------------------------------------------------------------------------------------------


def _of_array(X: Any, y: Any, weight: Any, dtype: str) -> list[Any]:
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s); expected rows by columns.")
    for name, other in (("y", y), ("sample_weight", weight)):
        if other is not None and (getattr(other, "chunks", None) is None or other.ndim != 1):
            raise TypeError(f"With a Dask array X, {name} must be a Dask array of one dimension.")
        if other is not None and other.chunks[0] != X.chunks[0] and not _unknown(X):
            raise ValueError(f"{name} is in other blocks of rows than X; use {name}.rechunk(({X.chunks[0]},)).")
        if other is not None and other.numblocks[0] != X.numblocks[0]:
            raise ValueError(f"{name} has {other.numblocks[0]} blocks and X has {X.numblocks[0]} blocks of rows.")
    rows = X.to_delayed()
    responses = y.to_delayed().ravel()
    weights = [None] * len(rows) if weight is None else list(weight.to_delayed().ravel())
    return [
        _task("thresher-summarize", _summary_of_blocks, list(row), responses[k], weights[k], dtype, k, __version__)
        for k, row in enumerate(rows)
    ]


def _unknown(X: Any) -> bool:
    return bool(np.isnan(X.chunks[0]).any())


def _summary_of_blocks(blocks: list[Any], y: Any, weights: Any, dtype: str, number: int, version: str) -> bytes | None:
    check_version(version)
    X = blocks[0] if len(blocks) == 1 else np.hstack(blocks)
    if not len(X):
        return None
    gram = Gram(X.shape[1], dtype)
    try:
        checked = check_rows(X, y, weights, X.shape[1], gram.dtype)
    except ValueError as error:
        raise in_partition(error, number) from error
    with one_blas_thread():
        return encode(gram.absorb_checked(*checked))
