"""Fit a sparse model to the rows of a source, or to a summary of them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from thresher.cli import options
from thresher.cli.errors import OptionsError

PANEL = "Models"
# The estimators, and what each takes for its parameter `selection`.
SELECTIONS = {"sparse": ("posterior", "ebic", "cv"), "oht": ("path", "algorithm")}
METHODS, EVERY_SELECTION = tuple(SELECTIONS), tuple(name for names in SELECTIONS.values() for name in names)
RULES = ("hard", "pursuit", "reciprocal")
# Options that are parameters as they are given.
AS_GIVEN = ("selection", "fit_intercept", "drift", "horizon", "n_steps", "n_warmup", "round_size", "rule")
# Options that only --method oht has.
OF_OHT = ("n_steps", "step_size", "n_warmup", "round_size", "rule", "standardize")
# Options that only --method sparse has.
OF_SPARSE = ("half_life", "window", "exact_window", "drift", "horizon")
HELP = """Fit a sparse linear model to rows, in one pass and in memory that does not grow.

At the end the selected columns are shown with their coefficients, their sizes in standard deviations and 95 %
confidence intervals. With [bold]--model[/bold], the model and the exact place in the source are kept in one
file, so that the run may be killed at any moment.

Example: [bold]thresher fit 'data/*.parquet' --target price --drop id --model price.thresher --resume[/bold]

Example: [bold]thresher fit data.csv -t y --method oht --sparsity 50 --n-steps 5 --step-size 0.001 --n-warmup 100[/bold]

Example: [bold]thresher fit --sql "SELECT * FROM 'data/*.parquet' WHERE price > 0 ORDER BY id" --target price[/bold]

Example: [bold]thresher fit log.csv -t latency --half-life 12h --time-column at --model latency.thresher[/bold]

Example: [bold]zcat log.csv.gz | thresher fit - --target latency --missing skip[/bold]
"""


def command(
    context: typer.Context,
    source: options.SOURCE_OR_QUERY = None,
    target: options.TARGET = None,
    sql: options.SQL = None,
    database: options.DATABASE = None,
    model: Annotated[Path | None, typer.Option("--model", "-m", help="Where to keep the model.")] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="|".join(METHODS),
            help="sparse: SparseRegressor. oht: OnlineHardThresholding, the paper's.",
            autocompletion=options.completing(METHODS),
        ),
    ] = "sparse",
    sparsity: Annotated[
        str, typer.Option(metavar="auto|N", help="How many columns to select at most; auto chooses.")
    ] = "auto",
    selection: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(EVERY_SELECTION),
            help="How auto chooses. sparse: a posterior (the default), an information criterion, cross-validation. "
            "oht: cross-validation of best subsets (the default), or of the algorithm itself.",
            autocompletion=options.completing(EVERY_SELECTION),
        ),
    ] = None,
    features: options.FEATURES = None,
    drop: options.DROP = None,
    weight: options.WEIGHT = None,
    categories: options.CATEGORIES = None,
    groups: Annotated[bool, typer.Option("--groups", help="Select the levels of a category together.")] = False,
    missing: options.MISSING = "error",
    half_life: options.HALF_LIFE = None,
    window: options.WINDOW = None,
    exact_window: options.EXACT_WINDOW = False,
    time_column: options.TIME = None,
    late_rows: options.LATE_ROWS = "error",
    drift: options.DRIFT = None,
    horizon: options.HORIZON = None,
    fit_intercept: Annotated[
        bool | None,
        typer.Option(
            "--fit-intercept/--no-fit-intercept", help="Whether the model has an intercept; sparse does, oht does not."
        ),
    ] = None,
    n_steps: Annotated[int | None, typer.Option(min=1, metavar="K", help="oht: steps per round.")] = None,
    step_size: Annotated[
        str | None, typer.Option(metavar="auto|ETA", help="oht: length of a step; auto certifies each.")
    ] = None,
    n_warmup: Annotated[
        int | None, typer.Option(min=0, metavar="ROWS", help="oht: rows before the first round.")
    ] = None,
    round_size: Annotated[int | None, typer.Option(min=1, metavar="ROWS", help="oht: rows per round.")] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(RULES), help="oht: how the estimate moves.", autocompletion=options.completing(RULES)
        ),
    ] = None,
    standardize: Annotated[bool, typer.Option("--standardize", help="oht: steps in units of column scales.")] = False,
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
    decimal: options.DECIMAL = ".",
    json: options.JSON = False,
    quiet: options.QUIET = False,
) -> None:
    """Fit."""
    settings = options.settings(context)
    parameters = _parameters(settings)
    from thresher.cli.begin import begin, is_checkpoint  # heavy, and not needed for help
    from thresher.cli.feeding import feed
    from thresher.cli.fitting import fit_summary, new_model
    from thresher.cli.result import print_result
    from thresher.estimators._linear import SummaryLinear
    from thresher.io.sources.columns import Columns

    if source is not None and sql is None and is_checkpoint(source):
        ingest = fit_summary(context, source, settings, parameters, model, overwrite)
    else:
        opened = options.opened_source(context)

        def fresh(settings: dict[str, Any], columns: Columns) -> SummaryLinear:
            return new_model(settings, _parameters(settings), columns)

        attempts = begin(context, opened, settings, model, SummaryLinear, fresh)
        ingest = feed(attempts, opened, model, checkpoint_every, keep, live=not quiet)
    print_result(ingest, model, json)


def _parameters(settings: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the estimator that options set; its own defaults hold for the others."""
    method = settings["method"]
    options.check_choice("--method", method, METHODS)
    for option, choices in (("selection", SELECTIONS[method]), ("rule", RULES), ("drift", options.DRIFTS)):
        options.check_choice(f"--{option}", settings[option], choices)
    for name in OF_OHT if method == "sparse" else OF_SPARSE:
        if settings[name] is not None and settings[name] is not False:
            raise OptionsError(f"--{name.replace('_', '-')} does not go with --method {method}; leave it out.")
    parameters = {
        **{name: settings[name] for name in AS_GIVEN},
        "sparsity": _sparsity(settings["sparsity"]),
        "step_size": _step_size(settings["step_size"]),
        "standardize": settings["standardize"] or None,
        **options.memory(settings),
    }
    if settings["drift"] == "full" and ("half_life" in parameters or "window" in parameters):
        raise OptionsError("--drift full finds by itself which rows still count; leave out --half-life and --window.")
    found = {name: value for name, value in parameters.items() if value is not None}
    return found | {"drift": None} if settings["drift"] == "none" else found


def _step_size(text: str | None) -> float | str | None:
    if text is None or text == "auto":
        return text
    try:
        step = float(text)
    except ValueError:
        step = 0.0
    if not 0.0 < step < float("inf"):
        raise OptionsError(f"--step-size {text}: use auto or a positive number.")
    return step


def _sparsity(text: str) -> int | str:
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        raise OptionsError(f"--sparsity {text}: use auto or a positive number.")
    return int(text)
