"""One summary of all rows of a Spark data frame: partial summaries, merged in a tree of tasks."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from pyspark.sql import functions as sql

from thresher._utils.checks import check_positive_integer
from thresher.integrations._partials import EntriesPlan, Plan, entries_plan_for, plan_for
from thresher.integrations.spark import _chunks
from thresher.integrations.spark._tasks import merged_groups, summarized
from thresher.integrations.spark.columns import Columns, selected

# Summaries that one task merges, except the last.
FAN_IN = 32
TOO_LARGE = re.compile(r"maxResultSize|RESULT_SIZE|larger than max|RESOURCE_EXHAUSTED")


def summarize(
    df: Any,
    features: Sequence[str] | str | None,
    target: str | Sequence[str],
    weight: str | None = None,
    *,
    dtype: str = "float64",
    n_folds: int = 0,
    levels: int = 2,
) -> Any:
    """The summary of all rows of a Spark data frame.

    Every partition is summarised where it is (``mapInArrow``), and the summaries are merged in a tree of tasks. A
    merging task needs memory for about five of them, and the driver receives one. Works with Spark Connect. The order
    of merging is fixed by the numbers of the partitions: the same partitions give the same bits, whatever is retried.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
    features : list of str, str or None
        Columns of numbers, or levels of a column of texts as ``"colour=red"``; or one column of vectors or arrays; or
        None for all other columns of numbers; a warning names the columns that are left out.
    target : str or list of str
        The response. Several of them give a MultiResponse.
    weight : str, optional
        A column of weights.
    dtype : {"float64", "float32"}, default="float64"
        How co-moments are stored.
    n_folds : int, default=0
        Return this many summaries, of disjoint parts of the rows, for ``fit_summary(..., folds=...)``.
    levels : int, default=2
        Levels of the tree. Each merges 32 summaries per task, the last all that are left.

    Returns
    -------
    Gram, list of Gram, or MultiResponse
    """
    found = summary_or_none(df, features, target, weight, dtype=dtype, n_folds=n_folds, levels=levels)
    if found is None:
        raise ValueError("The data frame has no rows.")
    return found


def summary_or_none(
    df: Any, features: Any, target: Any, weight: str | None, *, dtype: str, n_folds: int = 0, levels: int
) -> Any:
    """The same; None if there are no rows."""
    others = [*([target] if isinstance(target, str) else target), *([] if weight is None else [weight])]
    columns = Columns(df)
    for name in others:
        columns.require_number(name)
    plan = plan_for(columns.features(features, others), target, weight, dtype, n_folds)
    return _collected(*selected(df, columns, plan), plan, levels)


def summarize_entries(
    df: Any,
    row: str,
    col: str,
    value: str,
    weight: str | None = None,
    *,
    shape: tuple[int, int] | None = None,
    levels: int = 2,
) -> Any:
    """The summary of observed entries of a matrix, such as (user, item, rating), for ``MatrixCompleter.fit_summary``.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
    row, col : str
        Columns of whole numbers from zero. ``pyspark.ml.feature.StringIndexer`` makes them from names.
    value : str
    weight : str, optional
    shape : tuple of int, optional
        By default as large as the largest indices.
    levels : int, default=2
        As in ``summarize``.

    Returns
    -------
    Entries
    """
    plan = entries_plan_for(row, col, value, weight, shape)
    columns = Columns(df)
    for name in (row, col):
        columns.require(name)
        if columns.is_text(name):
            raise ValueError(f"Column {name!r} has names; number them with a StringIndexer.")
    for name in plan.columns:
        columns.require_number(name)
    numbered = [columns.as_read(name).alias(f"c{number}") for number, name in enumerate(plan.columns)]
    found = _collected(df.select(*numbered), plan.columns, plan, levels)
    if found is None:
        raise ValueError("The data frame has no rows.")
    return found


def _collected(df: Any, names: list[str], plan: Plan | EntriesPlan, levels: int) -> Any:
    """The summary of a data frame whose columns have these names, if it has rows."""
    check_positive_integer(levels, "levels")
    chunks = df.mapInArrow(partial(summarized, names, plan), _chunks.SCHEMA)
    group = 1
    for level in range(levels):
        group = 0 if level == levels - 1 else group * FAN_IN
        chunks = chunks.repartition(sql.expr(f"partition div {group}")) if group else chunks.repartition(1)
        chunks = chunks.sortWithinPartitions("partition", "chunk")
        chunks = chunks.mapInArrow(partial(merged_groups, group), _chunks.SCHEMA)
    try:
        table = chunks.toArrow()
    except Exception as error:  # of pyspark, or of py4j where pyspark does not translate
        if (known := _explained(error, levels)) is None:
            raise
        raise known from error
    found = [summary for _, summary in _chunks.summaries(table.to_batches())]
    return found[0] if found else None


def _explained(error: Exception, levels: int) -> ValueError | None:
    """What a failed job means, if that is known, without the traces of two interpreters and a Java machine."""
    text = str(error)
    if found := re.search(r"ValueError: (Partition \d+.*)", text):
        return ValueError(found[1].strip())
    if TOO_LARGE.search(text):
        return ValueError(
            "The summary is larger than the driver accepts: raise spark.driver.maxResultSize (and, with Connect, "
            f"spark.connect.grpc.arrow.maxBatchSize), use dtype='float32', or fewer features. levels={levels} of the "
            "tree leave one summary, so more of them do not help."
        )
    return None
