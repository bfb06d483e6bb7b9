"""The ``thresher`` command."""

import argparse
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; the result is the exit status."""
    parser = argparse.ArgumentParser(prog="thresher", description="Sparse and low-rank models on streams.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("reproduce", help="compute the paper's figures and tables anew", add_help=False)
    options, rest = parser.parse_known_args(arguments)
    from thresher.paper.command import main as reproduce  # heavy, and not needed for help

    return reproduce(rest, prog=f"thresher {options.command}")
