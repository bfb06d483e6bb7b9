"""From cells to the report: run them, write the results, draw the pictures, judge the claims."""

import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from reproduction.cells import Cell, without_default
from reproduction.drawing import save
from reproduction.experiments import ITEMS
from reproduction.item import Item, Results
from reproduction.parallel import run_cells
from reproduction.profiles import Profile
from reproduction.report import Shown, report, show
from reproduction.run_cell import Result


def cells_of(items: Iterable[Item], profile: Profile) -> list[Cell]:
    """The cells of all items, each once: items share cells. The default has cells of its own."""
    cells = (part for item in items for cell in item.cells(profile) for part in without_default(cell))
    return list({cell.digest: cell for cell in cells}.values())


def reproduce(
    items: Sequence[Item], profile: Profile, output: Path, n_jobs: int | None = None, progress: bool | None = None
) -> tuple[Path, list[Shown]]:
    """Run the cells that have not been run yet, and write all results.

    It writes to `output`: ``cells/``, from which an interrupted run continues; ``results.csv.gz`` with all errors;
    ``figures/`` with a PNG and an SVG for each item; and ``report.html``. If `items` are not all items, the names are
    ``results-selected.csv.gz`` and ``report-selected.html``.
    """
    which = "" if len(items) == len(ITEMS) else "-selected"
    finished = {one.cell.digest: one for one in run_cells(cells_of(items, profile), output / "cells", n_jobs, progress)}
    every = [result for one in finished.values() for result in one.results]
    _write_results(every, output / f"results{which}.csv.gz")
    results = Results(every)
    shown = [
        show(item, results, profile, [finished[cell.digest] for cell in cells_of([item], profile)]) for item in items
    ]
    (output / "figures").mkdir(exist_ok=True)
    for one in shown:
        label = "" if profile.is_full else f" ({profile.name} profile)"
        save(one.panels, one.item.title + label, output / "figures" / one.item.name)
    page = output / f"report{which}.html"
    page.write_text(report(shown, profile), encoding="utf-8")
    return page, shown


def _write_results(results: Sequence[Result], path: Path) -> None:
    """Write a compressed CSV file; equal results give files that are identical, byte for byte."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Result._fields)
    writer.writerows(sorted(results))
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
