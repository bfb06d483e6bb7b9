"""Say what could be wrong with a model."""

from pathlib import Path
from typing import Annotated

import typer

from thresher.cli import options

PANEL = "Models"
HELP = """Say what could be wrong with a model: too few rows, near-twins, constant columns, a support that moves.

Example: [bold]thresher diagnose price.thresher[/bold]
"""


def command(
    model: Annotated[Path, typer.Argument(help="A file that fit wrote, or model.save.", show_default=False)],
    json: options.JSON = False,
) -> None:
    """Diagnose."""
    from thresher._utils.printable import printable
    from thresher.cli.result import to_json
    from thresher.estimators._linear import SummaryLinear
    from thresher.io.checkpoint import CheckpointError, load  # heavy, and not needed for help

    learner = load(model)
    if not isinstance(learner, SummaryLinear) or not hasattr(learner, "summary_"):
        raise CheckpointError(f"{model} holds a {type(learner).__name__}, and a fitted sparse model is needed.")
    diagnosis = learner.diagnose()
    print(to_json(diagnosis.to_dict()) if json else "\n".join(map(printable, str(diagnosis).split("\n"))))
