"""Show what it does, on rows whose truth is known."""

from pathlib import Path
from typing import Annotated

import typer

PANEL = "About thresher"
HELP = """Find 15 columns among 1000 while 10,000 rows stream by.

Draws the paper's weak-signal design (coefficients of standard deviation 0.2, noise 1), shows the error as
rows arrive, then the recovered columns beside the true ones, as a table and as a picture.

Example: [bold]thresher demo --plot demo.png[/bold]
"""


def command(
    plot: Annotated[Path, typer.Option(help="Where to draw; needs matplotlib.")] = Path("demo.png"),
) -> None:
    """Show."""
    from thresher.cli.demonstrating import demonstrate  # heavy, and not needed for help

    demonstrate(plot)
