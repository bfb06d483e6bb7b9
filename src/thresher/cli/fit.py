"""Fit a sparse model to the rows of a source, or to a summary of them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.cli import options
from thresher.cli.errors import OptionsError

PANEL = "Models"
HELP = """Fit a sparse linear model to rows, in one pass and in memory that does not grow.

At the end the selected columns are shown with their coefficients, their sizes in standard deviations and 95 %
confidence intervals. With [bold]--model[/bold], the model and the exact place in the source are kept in one
file, so that the run may be killed at any moment.

Example: [bold]thresher fit 'data/*.parquet' --target price --drop id --model price.thresher --resume[/bold]

Example: [bold]zcat log.csv.gz | thresher fit - --target latency --missing skip[/bold]
"""


def command(
    context: typer.Context,
    source: options.SOURCE,
    target: options.TARGET = None,
    model: Annotated[Path | None, typer.Option("--model", "-m", help="Where to keep the model.")] = None,
    sparsity: Annotated[
        str, typer.Option(metavar="auto|N", help="How many columns to select at most; auto chooses.")
    ] = "auto",
    selection: Annotated[
        str,
        typer.Option(
            metavar="auto|ebic|folds|prequential",
            help="How auto chooses. By itself: cross-validation up to 2000 rows (and 1000 columns), an information "
            "criterion beyond.",
        ),
    ] = "auto",
    features: options.FEATURES = None,
    drop: options.DROP = None,
    weight: options.WEIGHT = None,
    categories: options.CATEGORIES = None,
    groups: Annotated[bool, typer.Option("--groups", help="Select the levels of a category together.")] = False,
    missing: options.MISSING = "error",
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="The model goes through the origin.")] = False,
    no_standardize: Annotated[
        bool, typer.Option("--no-standardize", help="Compare columns in their own units.")
    ] = False,
    round_size: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="ROWS", help="Rows per round; otherwise 100, from row 1000 on 1000, and one with --follow."
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            "-f",
            help="Wait for more at the end of the file, until interrupted. Types and levels are those at the start.",
        ),
    ] = False,
    checkpoint_every: options.EVERY = 10_000,
    keep: options.KEEP = 2,
    resume: options.RESUME = False,
    overwrite: options.OVERWRITE = False,
    format: options.FORMAT = None,
    delimiter: options.DELIMITER = None,
    no_header: options.NO_HEADER = False,
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Fit."""
    settings: dict[str, Any] = {
        "target": target,
        "sparsity": sparsity,
        "selection": _selection(selection),
        "features": features or [],
        "drop": drop or [],
        "weight": weight or None,
        "categories": categories or [],
        "groups": groups,
        "missing": options.checked_policy(missing),
        "no_intercept": no_intercept,
        "no_standardize": no_standardize,
        "round_size": round_size,
        "follow": follow,
    }
    parameters: dict[str, Any] = {
        "sparsity": _sparsity(sparsity),
        "fit_intercept": not no_intercept,
        "standardize": not no_standardize,
    }
    from thresher.cli.fitting import fit_source, fit_summary, is_checkpoint  # heavy, and not needed for help
    from thresher.cli.result import print_result

    if is_checkpoint(source):
        ingest = fit_summary(context, source, parameters, groups, model, overwrite)
    else:
        opened = options.opened(source, format, delimiter, no_header, follow)
        ingest = fit_source(
            context, opened, settings, parameters, model, resume, overwrite, checkpoint_every, keep, live=not quiet
        )
    print_result(ingest, model, json)


def _selection(text: str) -> str:
    if text not in ("auto", "ebic", "folds", "prequential"):
        raise OptionsError(f"--selection {text}: use auto, ebic, folds or prequential.")
    return text


def _sparsity(text: str) -> int | str:
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise OptionsError(f"--sparsity {text}: use auto or a positive number.")
    return int(text)
