"""A model kept current by Structured Streaming, every micro-batch exactly once."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from thresher.estimators._linear import SummaryLinear
from thresher.estimators.sparse_regressor import SparseRegressor
from thresher.integrations._fitting import refuse_folds, refuse_memory
from thresher.integrations.spark.columns import Columns
from thresher.integrations.spark.summarizing import summary_or_none
from thresher.io.checkpoint import CheckpointError, load_with_note, save


def foreach_batch(
    model_path: str | os.PathLike[str],
    features: Sequence[str] | str | None,
    target: str,
    weight: str | None = None,
    *,
    estimator: SummaryLinear | None = None,
    levels: int = 2,
) -> Callable[[Any, int], None]:
    """A function for ``DataStreamWriter.foreachBatch`` that keeps a model in a file current.

    Each micro-batch is summarised by Spark, merged with the summary in the file, and the model fitted again. The number
    of the micro-batch is in the same file, which is replaced as a whole: whatever is killed and restarted, each
    micro-batch is learned exactly once. With Spark Connect the function runs on the server, and so the file is there.

    Parameters
    ----------
    model_path : path-like
        A file of the driver; ``thresher.load`` reads it.
    features, target, weight
        As in ``summarize``. None takes all other columns of numbers of the first micro-batch.
    estimator : SparseRegressor or OnlineHardThresholding, optional
        What is fitted, from a summary alone: not with ``selection="cv"``, `half_life` or `window`, and drift is not
        looked for. By default ``SparseRegressor()``.
    levels : int, default=2
        As in ``summarize``.

    Examples
    --------
    ``stream.writeStream.foreachBatch(foreach_batch("m.thresher", None, "y"))`` with a ``checkpointLocation``.
    """
    path = Path(model_path)
    fresh = SparseRegressor() if estimator is None else estimator
    if not isinstance(fresh, SummaryLinear):
        raise TypeError(f"estimator must be a SparseRegressor or OnlineHardThresholding, got {type(fresh).__name__}")
    fresh._check_parameters()
    refuse_memory(fresh, "use a file for each period, and merge the summaries of those that count")
    refuse_folds(fresh)

    def learn(df: Any, batch_id: int) -> None:
        query = _query_of(df)
        model, note = _kept(path)
        if model is not None:
            if note["query"] != query:
                raise CheckpointError(
                    f"{path} was made by another query, or by this one with another checkpointLocation. Its numbers of "
                    "micro-batches do not go on here; use another file."
                )
            if batch_id == note["batch"]:  # Spark was stopped before it took note, and repeats it
                return
            if batch_id != note["batch"] + 1:
                raise CheckpointError(
                    f"{path} has learned micro-batches up to {note['batch']} and the stream is at {batch_id}: it was "
                    "made with another checkpointLocation, or is an old copy. Use another file, or the latest one."
                )
        names = features if model is None else note["features"]
        names = Columns(df).features(names, (target, *([] if weight is None else [weight])))
        summary = summary_or_none(df, names, target, weight, dtype=str(np.dtype(fresh.dtype)), levels=levels)
        if summary is None or summary.weight == 0.0:
            if model is None:
                return
        else:
            total = summary if model is None else model.summary_.merge(summary)
            model = clone(fresh).fit_summary(total)
            if not isinstance(names, str):
                model.feature_names_in_ = np.array(names, object)
        save(model, path, {"batch": int(batch_id), "query": query, "features": names}, generations=1)

    return learn


def _kept(path: Path) -> tuple[Any, dict[str, Any]]:
    """The model in the file and what is known of its stream; None if there is no file yet."""
    try:
        model, note = load_with_note(path)
    except FileNotFoundError:
        return None, {}
    if not isinstance(note, dict) or "batch" not in note:
        raise CheckpointError(f"{path} was not made by foreach_batch; use another file.")
    return model, note


def _query_of(df: Any) -> str:
    """The id of the query, which its checkpoint location keeps; empty where Spark does not tell it."""
    try:
        return df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
    except Exception:  # Connect has no context
        return ""
