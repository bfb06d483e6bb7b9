"""Put summaries together."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from thresher.cli import options
from thresher.cli.errors import OptionsError

PANEL = "Shards"
HELP = """Merge summaries into one that has seen the rows of all.

Example: [bold]thresher merge part*.summary -o all.summary && thresher fit all.summary --model
m.thresher[/bold]
"""


def command(
    summaries: Annotated[list[Path], typer.Argument(help="Files that accumulate or merge wrote.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to keep the result.", show_default=False)],
    overwrite: options.OVERWRITE = False,
    allow_duplicates: Annotated[
        bool, typer.Option("--allow-duplicates", help="Count rows twice that are in two of the summaries.")
    ] = False,
    json: options.JSON = False,
) -> None:
    """Merge."""
    from thresher.cli.begin import check_free, finished_summary  # heavy, and not needed for help
    from thresher.cli.result import print_account
    from thresher.io.checkpoint import CheckpointError
    from thresher.io.ingest import Ingest
    from thresher.io.sources.batches import Place

    check_free(output, overwrite)
    seen: dict[str, Path] = {}
    merged: Ingest | None = None
    for path in summaries:
        part = finished_summary(path)
        if not allow_duplicates:
            _check_new(path, part.parts, seen)
        if merged is None:
            merged = part
            continue
        ours, theirs = (replace(one.columns, means=()) for one in (merged, part))
        if ours != theirs:
            raise CheckpointError(
                f"{path} has other columns or categories than {summaries[0]}; accumulate all with the same options."
            )
        merged.learner = merged.learner.merge(part.learner)
        merged.n_skipped += part.n_skipped
        merged.n_filled += part.n_filled
        merged.n_unknown += part.n_unknown
        # Rows of several sources: there is no place to go on from.
        merged.merged = merged.parts + part.parts
        merged.place = Place(merged.place.n_rows + part.place.n_rows, "")
    assert merged is not None
    merged.save(output, 1)
    print_account(merged, output, json)


def _check_new(path: Path, parts: list[str], seen: dict[str, Path]) -> None:
    """Raise if a summary has rows that were seen, whatever their files are called; take note of them."""
    for digest in parts:
        if digest in seen:
            raise OptionsError(
                f"{path} has the same rows as {seen[digest]}, so they would count twice; leave one of them out, or use "
                "--allow-duplicates."
            )
    seen.update(dict.fromkeys(parts, path))
