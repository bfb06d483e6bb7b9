"""The result of a run, as tables or as JSON."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher._utils.printable import printable
from thresher.io.ingest import Ingest

if TYPE_CHECKING:
    from thresher.inference.model_summary import ModelSummary


def to_json(value: Any) -> str:
    """JSON, with null where a number is not finite: it has no other word for that."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def account(ingest: Ingest, path: Path | None) -> dict[str, Any]:
    """What became of the rows."""
    return {
        "file": None if path is None else str(path),
        "target": ingest.columns.target,
        "rows_read": ingest.place.n_rows,
        "rows_used": ingest.n_used,
        "rows_skipped": ingest.n_skipped,
        "values_filled": ingest.n_filled,
        "unknown_levels": ingest.n_unknown,
    }


def told(ingest: Ingest, path: Path | None) -> list[str]:
    """The same in sentences; what is zero is not told."""
    lines = [f"{ingest.place.n_rows:,} rows read" + (f", {ingest.n_used:,} used" if ingest.n_skipped else "") + "."]
    if ingest.n_skipped:
        late = ", or they came late" if ingest.columns.time is not None else ""
        lines.append(f"{ingest.n_skipped:,} rows left out: a value was missing{late}.")
    if ingest.n_filled:
        lines.append(f"{ingest.n_filled:,} missing values replaced by the mean of their column.")
    if ingest.n_unknown:
        lines.append(f"{ingest.n_unknown:,} texts were not among the known levels; they count as none of them.")
    if path is not None:
        lines.append(f"Kept in {printable(str(path))}.")
    return lines


def print_account(ingest: Ingest, path: Path | None, as_json: bool) -> None:
    """What became of the rows, on the standard output."""
    if as_json:
        print(to_json(account(ingest, path)))
    else:
        print("\n".join(told(ingest, path)))


def print_result(ingest: Ingest, path: Path | None, as_json: bool) -> None:
    """The model and what became of the rows, on the standard output."""
    summary = ingest.learner.summary()
    if as_json:
        print(to_json({**account(ingest, path), "model": summary.to_dict()}))
        return
    print_summary(summary, ingest)
    print("\n".join(told(ingest, path)))


def print_summary(summary: "ModelSummary", ingest: Ingest | None) -> None:
    """The table of a model, under the name of its response."""
    if ingest is not None:
        summary = replace(summary, title=f"{ingest.columns.target}: {summary.title}")
    print(summary)
