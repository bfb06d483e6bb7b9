"""Summarise the rows of a source."""

from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.cli import options

PANEL = "Shards"
HELP = """Summarise rows, to be merged with other summaries and fitted later.

A summary is as large as the square of the number of columns, however many rows there are. Shards may be
summarised separately, on any machines; merging their summaries and fitting gives what one pass over all rows
gives. Levels of categories must be the same in all shards: give them with [bold]--categories[/bold].

Example: [bold]thresher accumulate shard1.parquet --target y -o part1.summary[/bold]
"""


def command(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to keep the summary.", show_default=False)],
    source: options.SOURCE_OR_QUERY = None,
    target: options.TARGET = None,
    sql: options.SQL = None,
    database: options.DATABASE = None,
    features: options.FEATURES = None,
    drop: options.DROP = None,
    weight: options.WEIGHT = None,
    categories: options.CATEGORIES = None,
    missing: options.MISSING = "error",
    half_life: options.HALF_LIFE = None,
    time_column: options.TIME = None,
    late_rows: options.LATE_ROWS = "error",
    checkpoint_every: options.EVERY = 100_000,
    keep: options.KEEP = 1,
    resume: options.RESUME = False,
    overwrite: options.OVERWRITE = False,
    format: options.FORMAT = None,
    delimiter: options.DELIMITER = None,
    no_header: options.NO_HEADER = False,
    decimal: options.DECIMAL = ".",
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Accumulate."""
    from thresher.cli.begin import begin  # heavy, and not needed for help
    from thresher.cli.feeding import feed
    from thresher.cli.result import print_account
    from thresher.io.sources.columns import Columns
    from thresher.summaries.gram import Gram

    opened = options.opened_source(context)
    settings = options.settings(context)
    options.memory(settings)

    def fresh(settings: dict[str, Any], columns: Columns) -> Gram:
        return Gram(len(columns.names), **options.memory(settings))

    attempts = begin(context, opened, settings, output, Gram, fresh)
    ingest = feed(attempts, opened, output, checkpoint_every, keep, live=not quiet)
    print_account(ingest, output, json)
