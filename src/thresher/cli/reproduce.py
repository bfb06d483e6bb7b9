"""Reproduce the paper."""

import typer

PANEL = "About thresher"
HELP = "Compute the paper's figures and tables anew, with a verdict on each of its claims."


def command(context: typer.Context) -> int:
    """Reproduce; options are those of the paper's own command."""
    from thresher.paper.command import main  # heavy, and not needed for help

    return main(context.args, prog="thresher reproduce")
