"""What a run came to, as tables or as JSON."""

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher._utils.printable import printable
from thresher.io.ingest import Ingest

if TYPE_CHECKING:
    from thresher.plotting.model_card import ModelCard


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
        "progressive": {
            "rows": ingest.validation.n_rows,
            "squared_error": ingest.validation.squared_error,
            "r2": ingest.validation.r2,
        },
    }


def told(ingest: Ingest, path: Path | None) -> list[str]:
    """The same in sentences; what is zero is not told."""
    lines = [f"{ingest.place.n_rows:,} rows read" + (f", {ingest.n_used:,} used" if ingest.n_skipped else "") + "."]
    if ingest.n_skipped:
        lines.append(f"{ingest.n_skipped:,} rows left out: a value was missing.")
    if ingest.n_filled:
        lines.append(f"{ingest.n_filled:,} missing values replaced by the mean of their column.")
    if ingest.n_unknown:
        lines.append(f"{ingest.n_unknown:,} texts were not among the known levels; they count as none of them.")
    if ingest.validation.r2 is not None:
        lines.append(
            f"R2 {ingest.validation.r2:.4f} on {ingest.validation.n_rows:,} rows, each predicted before it was seen."
        )
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
    from thresher.plotting.model_card import model_card  # needs scikit-learn, which summaries do not

    card = model_card(ingest.learner)
    if as_json:
        print(to_json({**account(ingest, path), "model": card.to_dict()}))
        return
    print_card(card, f"{ingest.columns.target}: ")
    print("\n".join(told(ingest, path)))


def print_card(card: "ModelCard", title: str = "") -> None:
    """A table of the features, and the rest in a line each."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from thresher.plotting.model_card import card_facts, interval, number

    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:  # lines as long as they need to be
        console.width = 200
    count = len(card.features)
    table = Table(
        title=Text(f"{printable(title)}{count} of {card.n_columns:,} columns selected"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("feature")
    for name in ("coefficient", "standardised", "95 % interval"):
        table.add_column(name, justify="right")
    for feature in card.features:
        table.add_row(
            Text(printable(feature.name)),
            f"{feature.coefficient:.5g}",
            number(feature.standardized, "+.3f"),
            interval(feature.lower, feature.upper),
        )
    console.print(table)
    for name, value in card_facts(card).items():
        if name not in ("Rows", "Features"):
            print(f"{name}: {value}")
