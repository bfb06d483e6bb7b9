"""Predict the rows of a source."""

from pathlib import Path
from typing import Annotated

import typer

from thresher.cli import options
from thresher.cli.errors import OptionsError
from thresher.io.sources.choices import POLICIES

PANEL = "Models"
HELP = """Predict the response for rows, in the order in which they come.

Only the columns that the model uses are needed. Features such as area=north, of a model that was fitted in
Python, are found in the column area.

Writes one column, named prediction, as Parquet or CSV by the suffix of the output, or as CSV to the standard
output. With [bold]--missing skip[/bold], rows with missing values in these columns get an empty prediction.

Example: [bold]thresher predict price.thresher new.csv -o predicted.parquet[/bold]
"""


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
    decimal: options.DECIMAL = ".",
    quiet: options.QUIET = False,
) -> None:
    """Predict."""
    from thresher.cli.predicting import predict  # heavy, and not needed for help

    options.check_choice("--missing", missing, POLICIES)
    if output is not None and output.suffix not in (".parquet", ".csv"):
        raise OptionsError(f"--output {output}: use a name that ends in .parquet or .csv.")
    predict(model, options.opened(source, format, delimiter, no_header, decimal), output, missing, quiet)
