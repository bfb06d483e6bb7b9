"""Options that several subcommands have."""

import re
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thresher.cli.errors import OptionsError
from thresher.io.sources.choices import FORMATS, LATE_POLICIES, POLICIES

if TYPE_CHECKING:
    from thresher.io.sources.source import Source


def completing(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """What a shell offers for an option with these choices."""
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


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
FORMAT = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="|".join(FORMATS),
        help="If the suffix does not tell.",
        autocompletion=completing(FORMATS),
    ),
]
DELIMITER = Annotated[str | None, typer.Option(help="Between fields of CSV; a comma if not given.")]
DECIMAL = Annotated[str, typer.Option(metavar=".|,", help="The decimal point of numbers in CSV.")]
NO_HEADER = Annotated[bool, typer.Option("--no-header", help="CSV without names: columns are 0, 1, ...")]
MISSING = Annotated[
    str,
    typer.Option(
        metavar="|".join(POLICIES),
        help="Missing values: stop there, leave the row out, or fill in the mean of the first rows.",
        autocompletion=completing(POLICIES),
    ),
]
TIME = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="When each row was: seconds, or dates and times. --half-life and --window are durations then.",
    ),
]
HALF_LIFE = Annotated[
    str | None,
    typer.Option(
        metavar="ROWS|DURATION",
        help="Rows count half as much at this age: a number of rows, or 30m, 12h, 7d with --time-column.",
    ),
]
WINDOW = Annotated[
    str | None,
    typer.Option(
        metavar="ROWS|DURATION",
        help="Only the last rows count, and up to a tenth more: a number of rows, or 30m, 12h, 7d with --time-column.",
    ),
]
EXACT_WINDOW = Annotated[bool, typer.Option("--exact-window", help="Keep the rows of the window, and no others.")]
LATE_ROWS = Annotated[
    str,
    typer.Option(
        metavar="|".join(LATE_POLICIES), help="A time before that of an earlier row: stop there, or leave the row out."
    ),
]
DRIFTS = ("auto", "full", "none")
DRIFT = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(DRIFTS),
        help="auto, the default: follow recent rows once they predict better. full: choose columns from recent rows as "
        "well. none: all rows count equally.",
        autocompletion=completing(DRIFTS),
    ),
]
HORIZON = Annotated[
    int | None, typer.Option(min=1, metavar="ROWS", help="How far ahead predictions matter to --drift.")
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


# Seconds in a unit of a duration.
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
# Options that may be others when a run is resumed: they change how it goes, not what comes out.
OF_THE_RUN = {"source", "model", "output", "checkpoint_every", "keep", "resume", "overwrite", "json", "quiet"}
OF_THE_RUN |= {"format", "delimiter", "no_header", "decimal", "follow", "database"}


def settings(context: typer.Context) -> dict[str, Any]:
    """The options that a run must keep to; several values as a list."""
    check_choice("--missing", context.params["missing"], POLICIES)
    check_choice("--late-rows", context.params["late_rows"], LATE_POLICIES)
    kept = {name: value for name, value in context.params.items() if name not in OF_THE_RUN}
    several = {name: list(kept[name] or ()) for name in ("features", "drop", "categories")}
    return kept | several | {"weight": kept["weight"] or None}


def memory(settings: dict[str, Any]) -> dict[str, Any]:
    """How rows are to be forgotten, as parameters of an estimator or a summary; empty if they are not."""
    timed = settings["time_column"] is not None
    found = {
        name: duration(f"--{name.replace('_', '-')}", settings[name], timed)
        for name in ("half_life", "window")
        if settings.get(name) is not None
    }
    if len(found) > 1:
        raise OptionsError("--half-life lets rows fade and --window lets them leave; give one of them.")
    if timed and not found:
        raise OptionsError(
            "--time-column goes with --half-life or --window; leave the column out with --drop otherwise."
        )
    if settings.get("exact_window"):
        if "window" not in found:
            raise OptionsError("--exact-window goes with --window.")
        found["exact_window"] = True
    return found


def duration(option: str, text: str, timed: bool) -> float | timedelta:
    """A number of rows, or of seconds if there are times, or a duration such as 12h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", text)
    number = float(found[1]) if found else 0.0
    if found is None or not 0.0 < number <= 1e15:
        raise OptionsError(
            f"{option} {text}: use a positive number of rows, or a duration such as 90s, 30m, 12h or 7d."
        )
    if found[2] and not timed:
        raise OptionsError(f"{option} {text} is a duration; say which column has the times with --time-column.")
    if not found[2]:
        return number
    try:
        return timedelta(seconds=number * UNITS[found[2]])
    except OverflowError:
        raise OptionsError(f"{option} {text} is too long; use a shorter duration.") from None


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
