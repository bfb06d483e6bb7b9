"""Options that several subcommands have."""

import warnings
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
SOURCE_OR_QUERY = Annotated[
    str | None,
    typer.Argument(
        metavar="SOURCE",
        help="A file, a directory, a pattern in quotes such as 'data/*.parquet', or - for the standard input. CSV and "
        "JSON lines (also .gz), Parquet, Arrow, NumPy. None if there is a query (--sql).",
        show_default=False,
    ),
]
SQL = Annotated[
    str | None,
    typer.Option(
        "--sql",
        metavar="QUERY",
        help="Rows of a SELECT that DuckDB runs, in place of SOURCE; files are tables. --resume needs an ORDER BY.",
    ),
]
DATABASE = Annotated[str | None, typer.Option(metavar="FILE", help="A DuckDB database for --sql.")]
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
OF_THE_RUN |= {"format", "delimiter", "no_header", "decimal", "follow", "database"}


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


def opened_sql(context: typer.Context) -> "Source":
    """The rows of the query that options give."""
    from thresher.io.sources.sql import open_sql  # heavy, and not needed for help

    given = context.params
    for name in ("source", "format", "delimiter", "no_header", "follow"):
        if given.get(name):
            what = "SOURCE" if name == "source" else f"--{name.replace('_', '-')}"
            raise OptionsError(f"{what} does not go with --sql; leave one of them out.")
    source = open_sql(given["sql"], given["database"])
    if not source.ordered and given["resume"]:
        raise OptionsError("--resume needs rows that come in the same order every time: end the query with ORDER BY.")
    if not source.ordered and (given.get("model") or given.get("output")):
        warnings.warn("The query has no ORDER BY; this run cannot be resumed if it is interrupted.", stacklevel=2)
    return source


def opened_source(context: typer.Context) -> "Source":
    """The source or the query that options describe."""
    given = context.params
    if given["sql"] is not None:
        return opened_sql(context)
    if given["database"] is not None:
        raise OptionsError("--database goes with --sql.")
    if given["source"] is None:
        raise OptionsError("SOURCE is missing: give a file, a directory, a pattern, or a query with --sql.")
    how = {name: given[name] for name in ("format", "delimiter", "no_header", "decimal")}
    return opened(given["source"], **how, follow=given.get("follow", False))
