"""Predict the rows of a source."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer

from thresher.cli import options
from thresher.cli.errors import OptionsError
from thresher.cli.live import Live
from thresher.io.checkpoint import CheckpointError, load_with_note
from thresher.io.sources.batches import Batch, Batches
from thresher.io.sources.columns import Columns
from thresher.io.sources.prefetcher import Prefetcher

PANEL = "Models"
HELP = """Predict the response for rows, in the order in which they come.

Writes one column, named prediction, as Parquet or CSV by the suffix of the output, or as CSV to the standard
output. With [bold]--missing skip[/bold], rows with missing values get an empty prediction.

Example: [bold]thresher predict price.thresher new.csv -o predicted.parquet[/bold]
"""
# What may become of rows, and what to say about it.
TOLD = {
    "n_skipped": "rows with missing values have no prediction.",
    "n_filled": "missing values were replaced by the mean of their column.",
    "n_unknown": "texts were not among the known levels; they count as none of them.",
}
SCHEMA = pa.schema([("prediction", pa.float64())])


def command(
    model: Annotated[Path, typer.Argument(help="A file that fit wrote, or model.save.", show_default=False)],
    source: options.SOURCE,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .parquet or .csv file.", show_default=False)
    ] = None,
    missing: options.MISSING = "error",
    format: options.FORMAT = None,
    delimiter: options.DELIMITER = None,
    no_header: options.NO_HEADER = False,
    quiet: options.QUIET = False,
) -> None:
    """Predict."""
    from thresher.estimators._linear import SparseLinear  # heavy, and not needed for help

    if output is not None and output.suffix not in (".parquet", ".csv"):
        raise OptionsError(f"--output {output}: use a name that ends in .parquet or .csv.")
    learner, note = load_with_note(model)
    if not isinstance(learner, SparseLinear) or not hasattr(learner, "summary_"):
        raise CheckpointError(f"{model} holds a {type(learner).__name__} that cannot predict rows.")
    columns = _columns(learner, note, model)
    opened = options.opened(source, format, delimiter, no_header)
    columns.check(opened)
    if output is not None and opened.reads(output):
        raise OptionsError(f"{output} is one of the files with the rows; write the predictions somewhere else.")
    batches = Batches(opened, columns, options.checked_policy(missing), digest=False)
    with Live(opened, 0, wanted=not quiet) as line, Prefetcher(batches) as ahead:
        predictions = _predicted(learner, ahead, line)
        if output is None:
            _write_csv(predictions, sys.stdout.buffer)
            return
        beside = output.with_name(f".{output.name}.part")
        try:
            if output.suffix == ".parquet":
                import pyarrow.parquet as pq

                with pq.ParquetWriter(beside, SCHEMA) as writer:
                    for table in predictions:
                        writer.write_table(table)
            else:
                with beside.open("wb") as file:
                    _write_csv(predictions, file)
            beside.replace(output)
        finally:
            beside.unlink(missing_ok=True)


def _columns(learner: Any, note: Any, path: Path) -> Columns:
    """How rows become what the model was fitted to."""
    if isinstance(note, dict) and isinstance(note.get("columns"), Columns):
        columns: Columns = note["columns"]
        return columns.without_target()
    names = getattr(learner, "feature_names_in_", None)
    if names is None:
        raise CheckpointError(f"{path} lacks the names of its columns; fit it to a data frame, or by thresher fit.")
    means = tuple(learner.summary_.mean_x) if hasattr(learner, "summary_") else ()
    return Columns(None, None, tuple(map(str, names)), {}, (), means)


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
