"""Options that several subcommands have."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.errors import OptionsError
from thresher.io.sources.choices import FORMATS, POLICIES

if TYPE_CHECKING:
    from thresher.io.sources.source import Source

SOURCE = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A file, a directory, a pattern in quotes such as 'data/*.parquet', or - for the standard input. CSV and "
        "JSON lines (also .gz), Parquet, Arrow, NumPy.",
        show_default=False,
    ),
]
FORMAT = Annotated[str | None, typer.Option("--format", metavar="|".join(FORMATS), help="If the suffix does not tell.")]
DELIMITER = Annotated[str | None, typer.Option(help="Between fields of CSV; a comma if not given.")]
DECIMAL = Annotated[str, typer.Option(metavar=".|,", help="The decimal point of numbers in CSV.")]
NO_HEADER = Annotated[bool, typer.Option("--no-header", help="CSV without names: columns are 0, 1, ...")]
MISSING = Annotated[
    str,
    typer.Option(
        metavar="|".join(POLICIES),
        help="Missing values: stop there, leave the row out, or fill in the mean of the first rows.",
    ),
]
JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
TARGET = Annotated[str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The response.")]
WEIGHT = Annotated[str | None, typer.Option(metavar="COLUMN", help="Weights of rows: two counts a row twice.")]
FEATURES = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN,...", help="The columns to choose from; all others if not given. May be repeated."),
]
DROP = Annotated[list[str] | None, typer.Option(metavar="COLUMN,...", help="Columns to leave out. May be repeated.")]
CATEGORIES = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN[=LEVEL,...]",
        help="A column of categories and its levels; those in the first rows if not given. Columns of texts are "
        "categories anyway. May be repeated.",
    ),
]
EVERY = Annotated[int, typer.Option("--checkpoint-every", min=1, metavar="ROWS", help="How often the file is written.")]
KEEP = Annotated[int, typer.Option(min=1, metavar="N", help="How many generations of the file to keep.")]
RESUME = Annotated[bool, typer.Option("--resume", help="Continue where the file was left; begin if there is none yet.")]
OVERWRITE = Annotated[bool, typer.Option("--overwrite", help="Start over even if the file exists.")]


# Options that may be others when a run is resumed: they change how it goes, not what comes out.
OF_THE_RUN = {"source", "model", "output", "checkpoint_every", "keep", "resume", "overwrite", "json", "quiet"}
OF_THE_RUN |= {"format", "delimiter", "no_header", "decimal", "follow"}


def settings(context: typer.Context) -> dict[str, Any]:
    """The options that a run must keep to; several values as a list."""
    check_choice("--missing", context.params["missing"], POLICIES)
    kept = {name: value for name, value in context.params.items() if name not in OF_THE_RUN}
    several = {name: list(kept[name] or ()) for name in ("features", "drop", "categories")}
    return kept | several | {"weight": kept["weight"] or None}


def check_choice(option: str, value: str | None, choices: Sequence[str]) -> None:
    """Raise if a value was given that is not one of the choices."""
    if value is not None and value not in choices:
        raise OptionsError(f"{option} {value}: use {', '.join(choices[:-1])} or {choices[-1]}.")


def opened(
    source: str, format: str | None, delimiter: str | None, no_header: bool, decimal: str, follow: bool = False
) -> "Source":
    """The source that options describe."""
    from thresher.io.sources.source import open_source  # heavy, and not needed for help

    check_choice("--format", format, FORMATS)
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
            raise OptionsError(f"--delimiter {delimiter!r}: one character is needed.")
    if decimal not in (".", ","):
        raise OptionsError(f"--decimal {decimal}: use . or ,")
    if decimal == (delimiter or ",") and decimal == ",":
        raise OptionsError("--decimal , needs another --delimiter, such as ';'.")
    return open_source(source, format, delimiter, not no_header, decimal, follow)
