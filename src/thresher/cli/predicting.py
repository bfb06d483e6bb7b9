"""What ``thresher predict`` does."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from thresher._utils.arrays import Floats
from thresher._utils.feature_names import column_of
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
    columns = _columns(ingest, learner, model, source)
    columns.check(source)
    if output is not None and source.reads(output):
        raise OptionsError(f"{output} is one of the files with the rows; write the predictions somewhere else.")
    batches = Batches(source, columns, missing, digest=False)  # type: ignore[arg-type]
    with Live(source, 0, wanted=not quiet) as line, Prefetcher(batches) as ahead:
        predictions = _predicted(_Linear(learner, columns), ahead, line)
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


def _columns(ingest: Ingest | None, learner: Any, path: Path, source: Source) -> Columns:
    """How rows become what the model was fitted to, as far as the model uses them."""
    names = getattr(learner, "feature_names_in_", None)
    if names is None:
        raise CheckpointError(f"{path} lacks the names of its columns; fit it to a data frame, or by thresher fit.")
    if ingest is None:
        columns = _columns_by_name([str(name) for name in names], learner.summary_.mean_x, source)
    else:
        columns = ingest.columns.without_target()
    return columns.using(str(name) for name in names[np.flatnonzero(learner.coef_)])


def _columns_by_name(names: list[str], means: Any, source: Source) -> Columns:
    """Columns of a source for features that only have names; "colour=red" is a level if there is a column "colour"."""
    there, levels = {*source.columns}, dict[str, list[str]]()
    features: dict[str, None] = {}
    for name in names:
        column = None if name in there else column_of(name, there)
        features[name if column is None else column] = None
        if column is not None:
            levels.setdefault(column, []).append(name[len(column) + 1 :])
    columns = Columns(None, None, tuple(features), {name: tuple(found) for name, found in levels.items()}, ())
    mean_of = dict(zip(names, means, strict=True))
    return replace(columns, means=tuple(float(mean_of[name]) for name in columns.names))


class _Linear:
    """A model as a function of the columns that are read."""

    def __init__(self, learner: Any, columns: Columns) -> None:
        places = {str(name): place for place, name in enumerate(learner.feature_names_in_)}
        coef = learner.coef_[[places[name] for name in columns.names]]
        self._support = np.flatnonzero(coef)
        self._coef, self._intercept = coef[self._support], learner.intercept_

    def __call__(self, X: Floats) -> Floats:
        predicted: Floats = X[:, self._support] @ self._coef + self._intercept
        return predicted


def _predicted(model: _Linear, batches: Prefetcher[Batch], line: Live) -> Iterator[Any]:
    """Tables of predictions."""
    counts = dict.fromkeys(TOLD, 0)
    for batch in batches:
        yield _predictions(model, batch)
        line.show(batch.place.n_rows)
        for name in counts:
            counts[name] += getattr(batch, name)
    for name, count in counts.items():
        if count:
            print(f"thresher: note: {count:,} {TOLD[name]}", file=sys.stderr)


def _predictions(model: _Linear, batch: Batch) -> Any:
    values = model(batch.X)
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
