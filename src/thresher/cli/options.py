"""Options that several subcommands have."""

from typing import Annotated, Any

import typer

from thresher.cli.errors import OptionsError
from thresher.io.sources.batches import POLICIES
from thresher.io.sources.source import FORMATS, Source, open_source

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


def checked_policy(missing: str) -> Any:
    """One of the policies."""
    if missing not in POLICIES:
        raise OptionsError(f"--missing {missing}: use one of {', '.join(POLICIES)}.")
    return missing


def opened(source: str, format: str | None, delimiter: str | None, no_header: bool, follow: bool = False) -> Source:
    """The source that options describe."""
    if format is not None and format not in FORMATS:
        raise OptionsError(f"--format {format}: use one of {', '.join(FORMATS)}.")
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
            raise OptionsError(f"--delimiter {delimiter!r}: one character is needed.")
    return open_source(source, format, delimiter, not no_header, follow)
