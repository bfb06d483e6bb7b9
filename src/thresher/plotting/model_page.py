"""A fitted sparse model as one HTML page: what it found, how sure it is, how it came about, what could be wrong."""

import io
from collections.abc import Callable
from typing import Any

from thresher._utils.page import definitions, page, picture, text
from thresher.estimators._linear import SummaryLinear
from thresher.plotting.displays import CoefficientsDisplay, CriterionDisplay, IntervalsDisplay, SupportDisplay
from thresher.plotting.model_card import ModelCard, card_facts, interval, model_card, number

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
    card = model_card(model)
    pictures = "\n".join(_pictures(model, card))
    findings = "\n".join(
        f'<li><span class="verdict {finding.severity}">{finding.severity}</span>{text(finding.sentence)}</li>'
        for finding in model.diagnose().findings
    )
    parameters = ", ".join(f"{name}={value!r}" for name, value in model.get_params().items() if name != "groups")
    return page(
        title,
        "\n".join(
            [
                f"<h1>{text(title)}</h1>",
                definitions({**card_facts(card), **(facts or {})}),
                _table(card),
                f'<div class="panels">\n{pictures}\n</div>',
                f'<h2>What could be wrong</h2>\n<ul class="claims">\n{findings}\n</ul>',
                f"<details><summary>Parameters</summary><p>{text(parameters)}</p></details>",
            ]
        ),
    )


def _table(card: ModelCard) -> str:
    rows = "\n".join(
        f"<tr><th>{text(feature.name)}</th><td>{feature.coefficient:.4g}</td>"
        f"<td>{number(feature.standardized, '.3f')}</td><td>{interval(feature.lower, feature.upper)}</td></tr>"
        for feature in card.features
    )
    return (
        '<div class="scroll"><table>\n<thead><tr><th>feature</th><th>coefficient</th><th>standardised</th>'
        f"<th>95 % interval</th></tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _pictures(model: SummaryLinear, card: ModelCard) -> list[str]:
    drawings: dict[str, tuple[bool, Callable[..., Any]]] = {
        "Coefficients with their confidence intervals": (
            any(feature.lower is not None for feature in card.features),
            IntervalsDisplay.from_estimator,
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
