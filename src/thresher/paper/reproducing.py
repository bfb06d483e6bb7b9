"""From nothing to the report: cells are run, results written, pictures drawn, claims judged."""

import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from thresher.paper.cells import Cell
from thresher.paper.drawing import save
from thresher.paper.item import Item, Results
from thresher.paper.items import ITEMS
from thresher.paper.profiles import Profile
from thresher.paper.report import Shown, report, show
from thresher.paper.runner import run_cells
from thresher.paper.running import Result


def cells_of(items: Iterable[Item], profile: Profile) -> list[Cell]:
    """Those of all items, each once: items share cells."""
    return list({cell.digest: cell for item in items for cell in item.cells(profile)}.values())


def reproduce(
    items: Sequence[Item], profile: Profile, output: Path, n_jobs: int | None = None, progress: bool | None = None
) -> tuple[Path, list[Shown]]:
    """Run what has not been run yet, and write everything that is shown of it.

    In `output` there will be ``cells/``, from which an interrupted run goes on; ``results.csv.gz`` with all errors;
    ``figures/`` with a PNG and an SVG for each item; and ``report.html``. If not all items are asked for, these are
    ``results-selected.csv.gz`` and ``report-selected.html``.
    """
    which = "" if len(items) == len(ITEMS) else "-selected"
    finished = {one.cell.digest: one for one in run_cells(cells_of(items, profile), output / "cells", n_jobs, progress)}
    every = [result for one in finished.values() for result in one.results]
    _write_results(every, output / f"results{which}.csv.gz")
    results = Results(every)
    shown = [show(item, results, profile, finished) for item in items]
    (output / "figures").mkdir(exist_ok=True)
    for one in shown:
        label = "" if profile.is_full else f" ({profile.name} profile)"
        save(one.panels, one.item.title + label, output / "figures" / one.item.name)
    page = output / f"report{which}.html"
    page.write_text(report(shown, profile), encoding="utf-8")
    return page, shown


def _write_results(results: Sequence[Result], path: Path) -> None:
    """A compressed CSV file that is the same, byte for byte, whenever the results are."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Result._fields)
    writer.writerows(sorted(results))
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
