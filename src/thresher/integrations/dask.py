"""Summaries and models from Dask collections. Needs ``pip install 'thresher[dask]'``."""

from collections import Counter
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
from thresher._utils.feature_names import column_of, some_of, warn_of_unused
from thresher._utils.threads import one_blas_thread
from thresher._version import __version__
from thresher.estimators._linear import SummaryLinear
from thresher.estimators.reduced_rank_regressor import ReducedRankRegressor
from thresher.integrations._fitting import fitted, refuse_memory
from thresher.integrations._partials import (
    TO_USE,
    EntriesPlan,
    Plan,
    check_version,
    entries_plan_for,
    in_partition,
    merged,
    plan_for,
)
from thresher.io.encoding import decode, encode
from thresher.summaries._tables import are_names
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

    Every partition is summarised where it is, and the summaries are merged in a tree of tasks. A merging task needs
    memory for `fan_in` + 4 of them, and the client receives one. They travel as bytes. The order of merging is fixed,
    so the same partitions give the same bits, whatever is computed again after a worker was lost.

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
        Columns of a data frame, or levels of a column of texts or categories as ``"colour=red"``. By default all other
        columns of numbers; a warning names the columns that are left out.
    dtype : {"float64", "float32"}, default="float64"
        How co-moments are stored.
    n_folds : int, default=0
        Return this many summaries of disjoint parts of the rows of a data frame, for ``fit_summary(..., folds=...)``.
    fan_in : int, default=8
        Summaries that one task merges.

    Returns
    -------
    Gram, list of Gram, or MultiResponse

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from thresher.integrations.dask import summarize
    >>> frame = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 0.0, 1.0], "y": [0.0, 2.0, 4.0, 6.0]})
    >>> summarize(dd.from_pandas(frame, npartitions=2), "y")
    Gram(n_features=2, dtype=float64, n_samples=4)
    """
    if _is_frame(X):
        parts = _of_frame(X, y, sample_weight, features, dtype, n_folds)
    elif hasattr(X, "to_delayed") and hasattr(X, "chunks"):
        if features is not None or n_folds:
            raise ValueError("features, and folds for cross-validation, go with a data frame; X is an array.")
        parts = _of_array(X, y, sample_weight, dtype)
    else:
        raise TypeError(f"X is a {type(X).__name__}; pass a Dask data frame or array.")
    return _collected(parts, fan_in)


def summarize_entries(
    df: Any,
    row: str,
    col: str,
    value: str,
    weight: str | None = None,
    *,
    shape: tuple[int, int] | None = None,
    fan_in: int = FAN_IN,
) -> Any:
    """The summary of observed entries of a matrix, such as (user, item, rating), for ``MatrixCompleter.fit_summary``.

    Parameters
    ----------
    df : dask.dataframe.DataFrame
    row, col : str
        Columns of whole numbers from zero. ``df[name].cat.as_known().cat.codes`` makes them from names.
    value : str
    weight : str, optional
    shape : tuple of int, optional
        By default as large as the largest indices.
    fan_in : int, default=8
        Summaries that one task merges.

    Returns
    -------
    Entries

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from thresher.integrations.dask import summarize_entries
    >>> frame = pd.DataFrame({"user": [0, 0, 1, 2], "item": [0, 1, 1, 0], "stars": [1.0, 2.0, 4.0, 3.0]})
    >>> entries = summarize_entries(dd.from_pandas(frame, npartitions=2), "user", "item", "stars")
    >>> entries.shape, entries.n_samples
    ((3, 2), 4)
    """
    if not _is_frame(df):
        raise TypeError(f"df is a {type(df).__name__}; pass a Dask data frame.")
    plan = entries_plan_for(row, col, value, weight, shape)
    _features(df, plan.columns, ())
    return _collected(_summaries_of(plan, df[plan.columns]), fan_in)


def fit(estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, features: Sequence[str] | None = None) -> Any:
    """Fit a ``SparseRegressor``, ``OnlineHardThresholding`` or ``ReducedRankRegressor`` to all rows, in one pass.

    As ``estimator.fit`` on all rows, to rounding. Parameters are those of ``summarize``. Returns the estimator.

    Rows of a cluster have no order: an estimator with `half_life` or `window` is refused, and drift is not looked for.
    Weights that fall with age do what a half-life does. `OnlineHardThresholding` needs `sparsity` as a number, and
    ``ReducedRankRegressor(selection="cv")`` needs `rank` as a number.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import numpy as np
    >>> import pandas as pd
    >>> from thresher import SparseRegressor
    >>> from thresher.integrations.dask import fit
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.standard_normal((500, 4)), columns=list("abcd"))
    >>> frame["y"] = 2.0 * frame["b"] + rng.standard_normal(500)
    >>> fit(SparseRegressor(), dd.from_pandas(frame, npartitions=3), "y").get_feature_names_out()
    array(['b'], dtype=object)
    """
    if not isinstance(estimator, SummaryLinear | ReducedRankRegressor):
        raise TypeError(
            "estimator must be a SparseRegressor, OnlineHardThresholding or ReducedRankRegressor, got "
            f"{type(estimator).__name__}"
        )
    estimator._check_parameters()
    refuse_memory(estimator, "give sample_weight a column of 2^(-age / half_life), or keep only the rows of the window")
    several = are_names(y) and not isinstance(y, str) and len(y) > 1
    if several != isinstance(estimator, ReducedRankRegressor):
        wanted = "one response; use a ReducedRankRegressor for several" if several else "a list of at least two columns"
        raise ValueError(f"{type(estimator).__name__} takes {wanted}.")
    names = None
    if are_names(y):
        if not _is_frame(X):
            raise TypeError(f"X is a {type(X).__name__}, which has no columns to name; pass a Dask data frame.")
        others = [y] if isinstance(y, str) else [*y]
        names = _features(X, others if sample_weight is None else [*others, sample_weight], features)
    dtype = str(np.dtype(getattr(estimator, "dtype", "float64")))
    fitted(estimator, lambda n_folds: summarize(X, y, sample_weight, features=features, dtype=dtype, n_folds=n_folds))
    if names is not None:
        estimator.feature_names_in_ = np.array([str(name) for name in names], object)
        estimator._columns_by_name = True
    return estimator


# -- the tree ----------------------------------------------------------------------------------------------


def _collected(parts: list[Any], fan_in: int) -> Any:
    """The merged summary of some partitions."""
    if check_positive_integer(fan_in, "fan_in") < 2:
        raise ValueError(f"fan_in must be at least 2, got {fan_in}.")
    try:
        content = _tree(parts, fan_in).compute()
    except KeyError as error:  # of Dask, where it selects the columns of a partition
        raise ValueError(
            f"A partition lacks columns of the data frame: {error.args[0]}; give all partitions the same columns."
        ) from error
    if content is None:
        raise ValueError("The collection has no rows.")
    return decode(content)[0]


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
    if features is None:
        used = {*names, *others}
        warn_of_unused([name for name in X.columns if name not in used], TO_USE)
    plan = plan_for(names, y, weight, dtype, n_folds)
    columns = list(X.columns)
    known = set(columns)
    needed = {name if name in known else column_of(name, known) for name in plan.columns}
    return _summaries_of(plan, X[[name for name in columns if name in needed]])


def _summaries_of(plan: Plan | EntriesPlan, frame: Any) -> list[Any]:
    parts = frame.to_delayed()
    return [_task("thresher-summarize", _summary_of_frame, plan, part, number) for number, part in enumerate(parts)]


def _is_frame(X: Any) -> bool:
    return hasattr(X, "to_delayed") and hasattr(X, "dtypes") and hasattr(X, "columns")


def _features(X: Any, others: Sequence[str], features: Sequence[str] | None) -> list[str]:
    """Names of the features, all of which exist and have numbers."""
    types = dict(X.dtypes)
    twice = [name for name, count in Counter(X.columns).items() if count > 1]
    if twice:
        raise ValueError(f"The data frame has more than one column {twice[0]!r}; rename them.")
    if isinstance(features, str):
        raise TypeError(f"features must be a list of names, got the text {features!r}.")
    if features is None:
        names = [name for name, kind in types.items() if name not in others and _is_number(kind)]
    else:
        names = [str(name) for name in features]
    for name in (*others, *names):
        if name in types and not _is_number(types[name]):
            raise ValueError(f"Column {name!r} has values of type {types[name]}, and numbers are needed there.")
        if name not in types and column_of(name, types) is None:
            raise ValueError(f"The data frame has no column {name!r}; it has {some_of([*types])}.")
    return names


def _is_number(kind: Any) -> bool:
    return bool(getattr(kind, "_is_numeric", getattr(kind, "kind", "O") in "iufb"))


def _summary_of_frame(plan: Plan | EntriesPlan, frame: Any, number: int) -> bytes | None:
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
