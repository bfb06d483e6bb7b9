"""A fitted sparse model as one HTML page: what drives the response, how sure, how it changed, what could be wrong.

The page needs nothing but itself: no scripts, no files, no addresses. Names of columns are text, whatever is in them.
"""

from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise
from typing import Any

from thresher._utils.page import definitions, page, text
from thresher._utils.printable import counted
from thresher.estimators._linear import SummaryLinear
from thresher.inference.categories import find_categories
from thresher.inference.diagnostics import Finding
from thresher.inference.model_summary import INTERCEPT, ModelSummary, Term
from thresher.plotting._page_pictures import bar, figure
from thresher.plotting.displays import CriterionDisplay, InclusionDisplay, PathDisplay
from thresher.plotting.drift_display import DriftDisplay
from thresher.plotting.history_displays import CoefficientsDisplay, PrequentialDisplay, SupportDisplay

# Features that are shown with a bar; the table at the end has all.
MOST = 20
# Words for the probability that a feature matters, from these values on.
SURE = ((0.99, "practically certain"), (0.9, "very likely"), (0.5, "likely"), (0.0, "uncertain"))
# What the diagnosis looks at, in words, and how bad it is.
ASKED = {
    "rows": "Enough rows",
    "condition": "Columns that can be told apart",
    "twins": "Look-alikes",
    "constant": "Constant columns",
    "noise": "Noise",
    "support": "A stable choice",
    "drift": "A stream that changes",
    "diverged": "A fit that diverged",
}
SEVERITY = {"error": -1, "warning": 0, "note": 1, "ok": 2}
# What pictures are called that are drawn in two places.
ERRORS = "Error on rows before the model learned from them"
DRIFT = "Coefficients in a stream that changes, and the recent rows that they rest on"


def model_page(model: SummaryLinear, title: str, target: str = "y", facts: dict[str, str] | None = None) -> str:
    """The page. Needs matplotlib.

    Parameters
    ----------
    model : SummaryLinear
    title : str
        For the window.
    target : str, default="y"
        What the response is called.
    facts : dict of str to str, optional
        Shown with the details, beside what the model tells itself.
    """
    table = model.summary()
    style = files("thresher.plotting").joinpath("_model_page.css").read_text()
    parts = [
        f"<h1>What drives {text(target)}</h1>",
        f'<p class="lede">{text(_in_short(model, table, target))}</p>',
        *_drivers(model, table, target),
        "<h2>How sure is this?</h2>",
        *_sureness(model, table, target),
        "<h2>How did it change?</h2>",
        *(_drift(model, table, target) if table.follows_recent else _changes(model, target)),
        "<h2>What could be wrong?</h2>",
        *_findings(table.findings),
        "<h2>Details</h2>",
        *_details(model, table, facts or {}),
    ]
    return page(title, "\n".join(parts), style)


def _in_short(model: SummaryLinear, table: ModelSummary, target: str) -> str:
    rows = counted(table.n_samples, "row", ",")
    columns = counted(table.n_features, "column", ",")
    if not table.n_kept:
        return f"None of the {columns} helps to predict {target}, as far as {rows} can tell."
    were, explain = ("was", "explains") if table.n_kept == 1 else ("were", "explain")
    explained = ""
    if table.r2 is not None:
        explained = (
            f" and {explain} {100 * table.r2:.0f} % of the variation of {target}"
            if table.r2 >= 0.0
            else f", but the model predicts {target} worse than no column would"
        )
    sentence = f"From {rows}, {table.n_kept} of {columns} {were} kept{explained}."
    if table.prequential_r2 is not None:
        share = f"{100 * max(table.prequential_r2, 0.0):.0f} %"
        sentence += f" On rows that the model had not seen, it explained {share}."
    if table.follows_recent:
        sentence += f" The data have changed, so this is what recent rows say, worth about {table.n_effective:,.0f}."
    return sentence


def _drivers(model: SummaryLinear, table: ModelSummary, target: str) -> Iterator[str]:
    terms = [term for term in table.terms if term.name != INTERCEPT]
    shown = [term for term in terms if term.standardized is not None][:MOST]
    if not shown:
        return
    largest = max(abs(end) for term in shown for end in _standardized(term))
    filled = True if table.follows_recent else None  # without intervals, nothing says that a bar may be zero
    names = model._all_names()
    levels = {names[j] for category in find_categories(model.summary_) for j in category}
    yield '<ol class="drivers">'
    for term in shown:
        low, value, high = _standardized(term)
        note = f"<small>{text(term.note)}</small>" if term.note else ""
        remarks = f"<small>{text(_remarks(term, term.name in levels))}</small>"
        yield (
            f'<li><span class="name">{text(term.name)}{note}</span>'
            f"{bar(value / largest, low / largest, high / largest, term.lower is not None, filled)}"
            f'<span class="size">{text(_size(term))}{remarks}</span></li>'
        )
    yield "</ol>"
    more = f" The other {len(terms) - len(shown)} columns are in the table below." if len(terms) > len(shown) else ""
    lines = "" if table.follows_recent else f" Lines are {100 * table.level:g} % intervals. Hollow bars may be zero."
    lines += f" {table.centre()}" if table.centre() else ""
    yield (
        f'<p class="muted">Bars to the right raise {text(target)}, bars to the left lower it. Their lengths can be '
        f"compared: they are the change of {text(target)}, in standard deviations, when a column rises by one of its "
        f"own.{lines}{text(more)}</p>"
    )


def _standardized(term: Term) -> tuple[float, float, float]:
    """The lower end, the estimate and the upper end, in standard deviations."""
    value = term.standardized or 0.0
    if term.lower is None or term.upper is None or term.coef == 0.0:
        return value, value, value
    unit = value / term.coef
    return unit * term.lower, value, unit * term.upper


def _size(term: Term) -> str:
    if term.lower is None:
        return f"{term.standardized:+.2f}"
    low, value, high = _standardized(term)
    return f"{value:+.2f} ({low:+.2f} to {high:+.2f})"


def _remarks(term: Term, is_level: bool) -> str:
    others = "the reference level" if term.note.startswith("compared with") else "the others"
    per_unit = f"{term.coef:+.3g} for {f'this level, against {others}' if is_level else 'each unit'}"
    return per_unit if term.inclusion is None else f"{_sure(term.inclusion)}; {per_unit}"


def _sure(probability: float) -> str:
    return next(word for least, word in SURE if probability >= least)


def _sureness(model: SummaryLinear, table: ModelSummary, target: str) -> Iterator[str]:
    terms = [term for term in table.terms if term.name != INTERCEPT]
    sure = [term for term in terms if (term.inclusion or 0.0) >= SURE[0][0]]
    if table.follows_recent:
        yield (
            "<p>Recent rows are followed since they predict better than all rows. Such coefficients have no intervals "
            "and no probabilities. A model with a half-life or a window has them.</p>"
        )
    elif any(term.inclusion is not None for term in terms):
        yield (
            f"<p>Columns that are practically certain to matter: {len(sure)} of {len(terms)}. Their probability is "
            "99 % or more, if the response is a sum of effects of some of the columns.</p>"
        )
    elif terms:
        yield "<p>Columns are kept in groups, so there are no probabilities for single columns.</p>"
    if table.noise is not None:
        yield f"<p>What the model does not explain has a standard deviation of {table.noise:.3g}.</p>"
    elif not table.follows_recent:
        yield "<p>There are too few rows to say how far off predictions are.</p>"
    if table.follows_recent:  # the errors are shown beside the change
        return
    yield '<div class="panels">'
    if model._family.groups is None and table.noise is not None:
        yield figure(model, InclusionDisplay, "Probability that each column matters", n_features=15)
    yield figure(model, PrequentialDisplay, ERRORS, target=target)
    yield "</div>"


def _drift(model: SummaryLinear, table: ModelSummary, target: str) -> Iterator[str]:
    history: Any = getattr(model, "drift_history_", ())
    if history and history[-1].detected:
        since = history.changes[-1]
        yield f"<p>The data changed: recent rows are followed since about row {since:,} of {table.n_samples:,}.</p>"
    else:
        yield f"<p>The data changed just now: recent rows are followed after {table.n_samples:,} rows.</p>"
    yield '<div class="panels">'
    if history:
        yield figure(model, DriftDisplay, DRIFT, target=target)
    yield figure(model, PrequentialDisplay, ERRORS, target=target)
    yield "</div>"


def _changes(model: SummaryLinear, target: str) -> Iterator[str]:
    history = model.selection_history_
    if len(history) < 2:
        yield "<p>The model learned all rows at once, so there is no history. Learn rows as they arrive to see one.</p>"
        return
    changes = [after.n_samples for before, after in pairwise(history) if set(before.support) ^ set(after.support)]
    last = changes[-1] if changes else None
    yield (
        "<p>The columns in the model never changed.</p>"
        if last is None
        else f"<p>The columns in the model last changed after {last:,} of {model.n_samples_seen_:,} rows.</p>"
    )
    yield '<div class="panels">'
    if any(record.detected for record in getattr(model, "drift_history_", ())):
        yield figure(model, DriftDisplay, DRIFT, target=target)
    else:
        yield figure(model, CoefficientsDisplay, "Coefficients as rows came in", target=target)
    yield figure(model, SupportDisplay, "Columns in the model over time", n_features=18)
    yield "</div>"


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    ordered = sorted(findings, key=lambda finding: SEVERITY[finding.severity])
    open_ones = [finding for finding in ordered if finding.severity != "ok"]
    if not open_ones:
        yield "<p>Nothing that the checks below look for.</p>"
    yield _listed(open_ones)
    fine = [finding for finding in ordered if finding.severity == "ok"]
    if fine:
        yield f"<details><summary>Checked and found in order: {len(fine)}</summary>{_listed(fine)}</details>"
    yield (
        '<p class="muted">A model of past rows says what goes together, not what causes what. Changing a column on '
        "purpose may have another effect than the one shown here.</p>"
    )


def _listed(findings: list[Finding]) -> str:
    items = "\n".join(
        f'<li><span class="verdict {finding.severity}">{finding.severity}</span>'
        f"<b>{text(ASKED.get(finding.key, finding.key))}</b>{text(finding.sentence)}</li>"
        for finding in findings
    )
    return f'<ul class="findings">\n{items}\n</ul>'


def _details(model: SummaryLinear, table: ModelSummary, facts: dict[str, str]) -> Iterator[str]:
    parameters = ", ".join(f"{name}={value!r}" for name, value in model.get_params().items() if name != "groups")
    yield definitions({**table.facts(), **facts, "Model": f"{table.title}({parameters})"})
    yield f'<div class="scroll">{table.html_table()}</div>'
    yield from (f'<p class="muted">{text(note)}</p>' for note in table.notes())
    yield (
        '<p class="muted">coef: change of the response when the column rises by one unit, or of a level against the '
        "reference level. std. coef: the same in standard deviations of both. P(in model): probability that the "
        "column matters.</p>"
    )
    yield '<div class="panels">'
    if table.n_kept and not table.follows_recent:  # paths and criteria are about all rows
        yield figure(model, PathDisplay, "Models of every size, and the size chosen")
    if hasattr(model, "selection_") and not table.follows_recent:
        yield figure(model, CriterionDisplay, "The criterion for every size")
    yield "</div>"
