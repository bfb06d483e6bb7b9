"""Show what is in a model or a summary."""

from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.cli import options
from thresher.cli.errors import OptionsError

PANEL = "Models"
PICTURES = (".png", ".svg", ".pdf")
HELP = """Show a model: the columns it selected, and how sure that is.

Example: [bold]thresher show price.thresher --html price.html --plot price.png[/bold]
"""


def command(
    model: Annotated[Path, typer.Argument(help="A file that fit wrote, or model.save.", show_default=False)],
    html: Annotated[Path | None, typer.Option(help="Write a page with everything in it.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the coefficients as rows came in (.png, .svg, .pdf).")] = None,
    json: options.JSON = False,
) -> None:
    """Show."""
    from thresher._utils.printable import printable
    from thresher.cli.result import account, print_card, to_json, told
    from thresher.estimators._linear import SummaryLinear
    from thresher.io.checkpoint import load_with_note  # heavy, and not needed for help
    from thresher.io.ingest import Ingest
    from thresher.plotting.model_card import model_card

    if plot is not None and plot.suffix not in PICTURES:
        raise OptionsError(f"--plot {plot}: use a name that ends in {' or '.join(PICTURES)}.")
    learner, note = load_with_note(model)
    ingest = Ingest.from_note(learner, note)
    if not isinstance(learner, SummaryLinear) or not hasattr(learner, "summary_"):
        if html is not None or plot is not None:
            raise OptionsError(
                f"{model} holds a {type(learner).__name__}; pages and pictures are for fitted sparse models."
            )
        print(to_json({"class": type(learner).__name__}) if json else repr(learner))
        if ingest is not None and not json:
            print("\n".join(told(ingest, None)))
        return
    if html is not None:
        from thresher.plotting.model_page import model_page

        facts = {"Target": str(ingest.columns.target)} if ingest else {}
        if ingest is not None and ingest.validation.r2 is not None:
            facts["R2 on new rows"] = (
                f"{ingest.validation.r2:.4f} ({ingest.validation.n_rows:,} rows, each predicted before it was seen)"
            )
        html.write_text(model_page(learner, model.name, facts))
    if plot is not None:
        _draw(learner, plot)
    card = model_card(learner)
    if json:
        print(to_json({**(account(ingest, model) if ingest else {}), "model": card.to_dict()}))
        return
    print_card(card, f"{ingest.columns.target}: " if ingest else "")
    print("\n".join(told(ingest, None) if ingest else [f"{card.n_rows:,} rows."]))
    for path in filter(None, (html, plot)):
        print(f"Written: {printable(str(path))}.")


def _draw(learner: Any, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from thresher.plotting.displays import CoefficientsDisplay

    CoefficientsDisplay.from_estimator(learner).figure_.savefig(path, dpi=150)
