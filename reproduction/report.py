"""One HTML file with all pictures, tables, verdicts and settings."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from reproduction.drawing import NAMES, as_svg
from reproduction.item import Claim, Item, Panel, Results, Source, Table, Verdict
from reproduction.profiles import Profile
from reproduction.store import Finished
from thresher._utils.page import definitions, page, picture
from thresher._utils.page import text as escaped

Floats = NDArray[np.float64]

QUICK_LABEL = (
    "This is the quick profile: smaller sizes, fewer rounds and fewer seeds than the paper's. It shows that everything "
    "works; its numbers are not comparable with the paper's."
)

SOURCES: dict[Source, str] = {"text": "the paper", "table": "the paper's table", "ours": "ours"}
CERTAIN = "; could hardly fail"
PLURALS: dict[Verdict, str] = {
    "holds": "hold",
    "holds with a change": "hold with a change",
    "does not hold": "do not hold",
}


@dataclass(frozen=True)
class Shown:
    """An item with everything that the report shows of it."""

    item: Item
    panels: list[Panel]
    tables: list[Table]
    claims: list[Claim]
    finished: list[Finished]


def show(item: Item, results: Results, profile: Profile, finished: list[Finished]) -> Shown:
    """Evaluate an item, given its cells."""
    return Shown(
        item,
        item.panels(results, profile),
        item.tables(results, profile),
        item.claims(results, profile),
        finished,
    )


def report(shown: Sequence[Shown], profile: Profile) -> str:
    """The page."""
    body = "\n".join(
        [_head(shown, profile), _overview(shown), *(_section(one, profile) for one in shown), _foot(profile)]
    )
    return page("Online generalized sparse regression, reproduced", body)


def _head(shown: Sequence[Shown], profile: Profile) -> str:
    every = {one.cell.digest: one for item in shown for one in item.finished}
    finished = list(every.values())
    seeds = {kind: len({one.cell.seed for one in some}) for kind, some in _kinds(finished).items()}
    facts = {
        "Profile": f"{profile.name}: T = {profile.n_rounds:,} rounds, d = {profile.n_features:,} features, "
        f"matrices of {profile.shape[0]} x {profile.shape[1]}",
        "Seeds": ", ".join(f"{n} for {kind}" for kind, n in seeds.items()),
        "Wall time": f"{_minutes(wall(finished))}; "
        + ", ".join(f"{kind} {_minutes(wall(some))}" for kind, some in _kinds(finished).items()),
        "Machine": "; ".join(sorted({one.machine for one in finished})),
        "Software": "; ".join(sorted({one.software for one in finished})),
        "Computed": f"{_day(min(one.began for one in finished))} to {_day(max(one.ended for one in finished))}",
    }
    label = "" if profile.is_full else f'<p class="label">{QUICK_LABEL}</p>'
    return (
        "<h1>Online generalized sparse regression, reproduced</h1>\n"
        "<p>The figures and tables of <em>Online Generalized Sparse Regression: How Does Overparametrization "
        "Help?</em> (Yang and Sun, 2026), reproduced. Lines are medians over seeds, bands run from the lower to the "
        "upper quartile, and errors are squared distances to the true coefficients. Claims are the paper's in our "
        "words, unless they are marked as ours. Each verdict is computed from the results by the rule that is given "
        "with it, and each claim is counted once, however many designs it is about. Every figure also shows the "
        "default of this package (<code>SparseRegressor()</code> or <code>LowRankRegressor()</code>) and an oracle "
        "that knows the true support, or the tangent space of the truth.</p>\n"
        f"{label}\n{definitions(facts)}"
    )


def _overview(shown: Sequence[Shown]) -> str:
    rows = []
    for one in shown:
        counts = Counter(claim.verdict for claim in one.claims)
        badges = " ".join(
            _badge(verdict, f"{counts[verdict]} {verdict if counts[verdict] == 1 else plural}")
            for verdict, plural in PLURALS.items()
            if counts[verdict]
        )
        rows.append(f'<tr><td><a href="#{one.item.name}">{escaped(one.item.title)}</a></td><td>{badges}</td></tr>')
    return (
        '<table class="overview">\n<thead><tr><th>Figure or table</th><th>Claims</th></tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody>\n</table>"
    )


def _section(one: Shown, profile: Profile) -> str:
    item = one.item
    pictures = "\n".join(_picture(item, panel) for panel in one.panels)
    claims = "\n".join(map(_claim, one.claims))
    choices = "".join(f"<li>{escaped(choice)}</li>" for choice in item.choices)
    return "\n".join(
        [
            f'<section id="{item.name}">',
            f"<h2><small>{item.name}</small>{escaped(item.title)}</h2>",
            f"<p>{escaped(item.about)}</p>",
            *(_table(table) for table in one.tables),
            f'<div class="panels">\n{pictures}\n</div>',
            f'<h3>What is claimed, and what we find</h3>\n<ul class="claims">\n{claims}\n</ul>',
            f"<h3>Our choices</h3>\n<ul>{choices}</ul>" if choices else "",
            f"<details><summary>Settings, seeds, time</summary>{definitions(_settings(one, profile))}</details>",
            "</section>",
        ]
    )


def _claim(claim: Claim) -> str:
    return (
        f"<li>{_badge(claim.verdict, claim.verdict)}{escaped(claim.text)} "
        f'<span class="source">{SOURCES[claim.source]}{CERTAIN if claim.certain else ""}</span>'
        f'<span class="evidence">{escaped(claim.evidence)} Rule: {escaped(claim.rule)}.</span></li>'
    )


def _picture(item: Item, panel: Panel) -> str:
    scale = "logarithmic axes" if panel.log_x else "errors on a logarithmic axis"
    names = ", ".join(NAMES.get(label, label) for label in panel.lines)
    alt = f"{item.title}: {panel.title}. Squared error against {panel.xlabel}, {scale}, for {names}."
    return picture(as_svg(panel), alt, 442, 374)


def _table(table: Table) -> str:
    head = "".join(f"<th>{escaped(column)}</th>" for column in table.columns)
    rows = []
    for label, columns in table.rows.items():
        printed = table.printed.get(label, [None] * len(columns))
        cells = "".join(_entry(errors, number) for errors, number in zip(columns, printed, strict=True))
        rows.append(f"<tr><th>{escaped(label.removeprefix('OHT '))}</th>{cells}</tr>")
    references = "; ".join(
        f"{NAMES.get(label, label)} {_median_and_range(errors)}" for label, errors in table.references.items()
    )
    note = ", in brown the paper's number" if table.printed else ""
    return (
        f'<div class="scroll"><table>\n<caption>{escaped(table.caption)}</caption>\n'
        f"<thead><tr><th></th>{head}</tr></thead>\n<tbody>\n{chr(10).join(rows)}\n</tbody>\n</table></div>\n"
        f'<p class="muted">Medians over seeds, below them quartiles{note}. With ranges: {escaped(references)}.</p>'
    )


def _entry(errors: Floats, printed: float | None) -> str:
    low, middle, high = np.quantile(errors, [0.25, 0.5, 0.75])
    below = f'<span class="printed">{printed:g}</span>' if printed is not None else ""
    return f"<td>{middle:.3g}<span>{low:.2g}&ndash;{high:.2g}</span>{below}</td>"


def _median_and_range(errors: Floats) -> str:
    return f"{np.median(errors):.3g} ({errors.min():.2g} to {errors.max():.2g})"


def _settings(one: Shown, profile: Profile) -> dict[str, str]:
    facts: dict[str, str] = {}
    for finished in one.finished:
        cell = finished.cell
        design = ", ".join(f"{name} = {value}" for name, value in cell.design.items() if name != "matrix")
        oht = [method for method in cell.methods if method.kind == "oht"]
        method = [
            f"{symbol} = {', '.join(f'{value:g}' for value in sorted({getattr(m, name) for m in oht}))}"
            for symbol, name in (("t0", "t0"), ("s", "size"), ("K", "n_steps"), ("eta", "step_size"))
            if oht
        ]
        if oht or cell.name not in facts:  # the default has cells of its own
            facts[cell.name] = "; ".join([design, *method, f"{cell.n_rows:,} rows"])
    facts["seeds"] = ", ".join(
        f"{kind}: 0 to {max(f.cell.seed for f in some)}" for kind, some in _kinds(one.finished).items()
    )
    facts["time"] = f"{_minutes(sum(f.ended - f.began for f in one.finished))} of computing, summed over processes"
    return facts


def _foot(profile: Profile) -> str:
    command = "make reproduce" if profile.is_full else "make reproduce-quick"
    rows = "The rows of every run depend on its settings and its seed alone."
    return f'<p class="muted">Made by <code>{command}</code>. {rows}</p>'


def _kinds(finished: Sequence[Finished]) -> dict[str, list[Finished]]:
    both = {
        "vectors": [one for one in finished if not one.cell.design["matrix"]],
        "matrices": [one for one in finished if one.cell.design["matrix"]],
    }
    return {kind: some for kind, some in both.items() if some}


def wall(finished: Sequence[Finished]) -> float:
    """Seconds during which at least one of these was computed."""
    total, until = 0.0, 0.0
    for one in sorted(finished, key=lambda one: one.began):
        total += max(0.0, one.ended - max(until, one.began))
        until = max(until, one.ended)
    return total


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90.0 else f"{seconds / 60.0:.0f} min"


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _badge(verdict: str, text: str) -> str:
    return f'<span class="verdict {verdict.replace(" ", "-")}">{escaped(text)}</span>'
