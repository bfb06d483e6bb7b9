"""Put summaries together."""

from pathlib import Path
from typing import Annotated

import typer

from thresher.cli import options

PANEL = "Shards"
HELP = """Merge summaries into one that has seen the rows of all.

Example: [bold]thresher merge part*.summary -o all.summary && thresher fit all.summary --model
m.thresher[/bold]
"""


def command(
    summaries: Annotated[list[Path], typer.Argument(help="Files that accumulate or merge wrote.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to keep the result.", show_default=False)],
    overwrite: options.OVERWRITE = False,
    json: options.JSON = False,
) -> None:
    """Merge."""
    from thresher.cli.merging import merge  # heavy, and not needed for help
    from thresher.cli.result import print_account

    print_account(merge(summaries, output, overwrite), output, json)
