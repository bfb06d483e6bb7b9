"""A fitted sparse model as one HTML page: what it found, how sure it is, how it came about, what could be wrong."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

from thresher._utils.page import definitions, page, picture, text
from thresher.estimators._linear import SummaryLinear
from thresher.inference.model_summary import INTERCEPT, ModelSummary
from thresher.plotting.displays import CoefficientsDisplay, CriterionDisplay, IntervalsDisplay, SupportDisplay

SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "thresher", "font.family": "sans-serif", "font.size": 9}


def model_page(model: SummaryLinear, title: str, facts: dict[str, str] | None = None) -> str:
    """The page. Needs matplotlib.

    Parameters
    ----------
    model : SummaryLinear
    title : str
    facts : dict of str to str, optional
        Shown at the top, beside what the model tells itself.
    """
    table = model.summary()
    pictures = "\n".join(_pictures(model, table))
    findings = "\n".join(
        f'<li><span class="verdict {finding.severity}">{finding.severity}</span>{text(finding.sentence)}</li>'
        for finding in table.findings
    )
    parameters = ", ".join(f"{name}={value!r}" for name, value in model.get_params().items() if name != "groups")
    return page(
        title,
        "\n".join(
            [
                f"<h1>{text(title)}</h1>",
                definitions({**table.facts(), **(facts or {})}),
                f'<div class="scroll">{table.html_table()}</div>',
                *(f"<p>{text(note)}</p>" for note in table.notes()),
                f'<div class="panels">\n{pictures}\n</div>',
                f'<h2>What could be wrong</h2>\n<ul class="claims">\n{findings}\n</ul>',
                f"<details><summary>Parameters</summary><p>{text(parameters)}</p></details>",
            ]
        ),
    )


def _pictures(model: SummaryLinear, table: ModelSummary) -> list[str]:
    drawings: dict[str, tuple[bool, Callable[..., Any]]] = {
        "Coefficients with their confidence intervals": (
            any(term.standard_error is not None for term in table.terms if term.name != INTERCEPT),
            partial(IntervalsDisplay.from_estimator, method=table.intervals),
        ),
        "Coefficients as rows came in": (len(model.selection_history_) > 1, CoefficientsDisplay.from_estimator),
        "Which features were kept when": (len(model.selection_history_) > 1, SupportDisplay.from_estimator),
        "The criterion for every size, and the size chosen": (
            hasattr(model, "selection_"),
            CriterionDisplay.from_estimator,
        ),
    }
    return [_drawn(model, alt, draw) for alt, (there, draw) in drawings.items() if there]


def _drawn(model: SummaryLinear, alt: str, draw: Callable[..., Any]) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure = Figure((6.4, 4.2), layout="constrained")
        draw(model, ax=figure.subplots())
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return picture(file.getvalue(), alt, 614, 403)
