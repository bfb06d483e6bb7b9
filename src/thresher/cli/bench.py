"""Measure this machine."""

import json as encoder
from dataclasses import asdict
from typing import Annotated

import typer

from thresher._utils.run_progress import Progress
from thresher.cli import options
from thresher.cli.options import QUIET

PANEL = "About thresher"
HELP = """Measure how many rows a second this machine learns from.

Times are compared with that of folding the same rows into a Gram matrix by BLAS, which no exact method can do
without.

Example: [bold]thresher bench --features 500[/bold]
"""


def command(
    features: Annotated[list[int], typer.Option(min=1, help="Numbers of columns. May be repeated.")] = [200, 1000],  # noqa: B006
    rows: Annotated[int, typer.Option(min=100, help="Rows per repeat.")] = 10_000,
    repeats: Annotated[int, typer.Option(min=1)] = 5,
    json: options.JSON = False,
    quiet: QUIET = False,
) -> None:
    """Measure."""
    from thresher.cli.speed import measure

    found = []
    with Progress(0, len(features), wanted=None if not quiet else False) as progress:
        for d in features:
            found += list(measure(d, rows, repeats))
            progress.advance(f"{d} columns")
    if json:
        print(encoder.dumps([asdict(one) for one in found]))
        return
    print(f"{'columns':>8}  {'rows/s':>10}  {'times BLAS':>10}")
    for one in found:
        print(f"{one.n_features:8,}  {one.rows_per_second:10,.0f}  {one.ratio:10.2f}  {one.use}")
