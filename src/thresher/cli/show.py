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
    html: Annotated[Path | None, typer.Option(help="Write a page that explains the model.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the effects with their intervals (.png, .svg, .pdf).")] = None,
    json: options.JSON = False,
) -> None:
    """Show."""
    from thresher._utils.printable import printable
    from thresher.cli.result import account, print_summary, to_json, told
    from thresher.estimators._linear import SummaryLinear
    from thresher.io.ingest import Ingest  # heavy, and not needed for help

    if plot is not None and plot.suffix not in PICTURES:
        raise OptionsError(f"--plot {plot}: use a name that ends in {' or '.join(PICTURES)}.")
    learner, ingest = Ingest.read(model)
    if not isinstance(learner, SummaryLinear) or not hasattr(learner, "summary_"):
        if html is not None or plot is not None:
            raise OptionsError(
                f"{model} holds a {type(learner).__name__}; pages and pictures are for fitted sparse models."
            )
        print(to_json({"class": type(learner).__name__}) if json else repr(learner))
        if ingest is not None and not json:
            print("\n".join(told(ingest, None)))
        return
    target = str(ingest.columns.target) if ingest else "y"
    if html is not None:
        from thresher.plotting.model_page import model_page

        html.write_text(model_page(learner, model.name, target, {"File": model.name}), encoding="utf-8")
    if plot is not None:
        _draw(learner, plot, target)
    summary = learner.summary()
    if json:
        print(to_json({**(account(ingest, model) if ingest else {}), "model": summary.to_dict()}))
        return
    print_summary(summary, ingest)
    if ingest is not None:
        print("\n".join(told(ingest, None)))
    for path in filter(None, (html, plot)):
        print(f"Written: {printable(str(path))}.")


def _draw(learner: Any, path: Path, target: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from thresher.plotting import IntervalsDisplay

    IntervalsDisplay.from_estimator(learner, target=target).figure_.savefig(path, dpi=150)
