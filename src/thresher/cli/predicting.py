"""What ``thresher predict`` does."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from thresher._utils.new_file import new_file_beside, real_path
from thresher.cli.errors import OptionsError
from thresher.cli.live import Live
from thresher.estimators._sparse_linear import SparseLinear
from thresher.io.checkpoint import CheckpointError
from thresher.io.ingest import Ingest
from thresher.io.sources.batches import Batch, Batches
from thresher.io.sources.columns import Columns
from thresher.io.sources.prefetcher import Prefetcher
from thresher.io.sources.source import Source

# What may become of rows, and what to say about it.
TOLD = {
    "n_skipped": "rows with missing values have no prediction.",
    "n_filled": "missing values were replaced by the mean of their column.",
    "n_unknown": "texts were not among the known levels; they count as none of them.",
}
SCHEMA = pa.schema([("prediction", pa.float64())])


def predict(model: Path, source: Source, output: Path | None, missing: str, quiet: bool) -> None:
    """Write the predictions for the rows of a source; a file appears complete or not at all."""
    learner, ingest = Ingest.read(model)
    if not isinstance(learner, SparseLinear) or not hasattr(learner, "summary_"):
        raise CheckpointError(f"{model} holds a {type(learner).__name__} that cannot predict rows.")
    columns = _columns(ingest, learner, model)
    columns.check(source)
    if output is not None and source.reads(output):
        raise OptionsError(f"{output} is one of the files with the rows; write the predictions somewhere else.")
    batches = Batches(source, columns, missing, digest=False)  # type: ignore[arg-type]
    with Live(source, 0, wanted=not quiet) as line, Prefetcher(batches) as ahead:
        predictions = _predicted(learner, ahead, line)
        if output is None:
            _write_csv(predictions, sys.stdout.buffer)
            return
        target = real_path(output)
        with new_file_beside(target) as (file, beside):
            if output.suffix == ".parquet":
                import pyarrow.parquet as pq

                with pq.ParquetWriter(file, SCHEMA) as writer:
                    for table in predictions:
                        writer.write_table(table)
            else:
                _write_csv(predictions, file)
            file.flush()
            beside.replace(target)


def _columns(ingest: Ingest | None, learner: Any, path: Path) -> Columns:
    """How rows become what the model was fitted to."""
    if ingest is not None:
        return ingest.columns.without_target()
    names = getattr(learner, "feature_names_in_", None)
    if names is None:
        raise CheckpointError(f"{path} lacks the names of its columns; fit it to a data frame, or by thresher fit.")
    return Columns(None, None, tuple(map(str, names)), {}, (), tuple(learner.summary_.mean_x))


def _predicted(learner: Any, batches: Prefetcher[Batch], line: Live) -> Iterator[Any]:
    """Tables of predictions."""
    counts = dict.fromkeys(TOLD, 0)
    for batch in batches:
        yield _predictions(learner, batch)
        line.show(batch.place.n_rows)
        for name in counts:
            counts[name] += getattr(batch, name)
    for name, count in counts.items():
        if count:
            print(f"thresher: note: {count:,} {TOLD[name]}", file=sys.stderr)


def _predictions(learner: Any, batch: Batch) -> Any:
    coef = learner.coef_
    support = np.flatnonzero(coef)
    values = batch.X[:, support] @ coef[support] + learner.intercept_
    if batch.kept is not None:
        every = np.full(len(batch.kept), np.nan)
        every[batch.kept] = values
        return pa.table([pa.array(every, mask=~batch.kept)], SCHEMA)
    return pa.table([pa.array(values)], SCHEMA)


def _write_csv(tables: Iterator[Any], file: Any) -> None:
    with pa.csv.CSVWriter(pa.PythonFile(file, "w"), SCHEMA) as writer:
        for table in tables:
            writer.write(table)
    file.flush()
