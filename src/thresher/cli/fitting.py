"""Models from options and columns, and from a summary alone."""

from pathlib import Path
from typing import Any

import numpy as np
import typer

from thresher.cli.begin import check_free, explicit, finished_summary
from thresher.cli.errors import OptionsError
from thresher.estimators._linear import SummaryLinear
from thresher.io.ingest import Ingest
from thresher.io.sources.batches import Place
from thresher.io.sources.columns import Columns

# Options that make no difference any more once rows are summarised.
OF_ROWS = {"selection", "target", "features", "drop", "weight", "categories", "missing", "follow", "resume"}
OF_ROWS |= {"n_warmup", "round_size", "checkpoint_every", "keep", "format", "delimiter", "no_header", "decimal"}
OF_ROWS |= {"database", "half_life", "window", "exact_window", "time_column", "late_rows", "drift", "horizon"}


def new_model(settings: dict[str, Any], parameters: dict[str, Any], columns: Columns) -> SummaryLinear:
    """The estimator behind --method."""
    groups = columns.groups if settings["groups"] else None
    if settings["method"] == "oht":  # each is imported only where it is used
        from thresher.estimators.online_hard_thresholding import OnlineHardThresholding

        return OnlineHardThresholding(**parameters, groups=groups)
    from thresher.estimators.sparse_regressor import SparseRegressor

    return SparseRegressor(**parameters, groups=groups)


def fit_summary(
    context: typer.Context,
    source: str,
    settings: dict[str, Any],
    parameters: dict[str, Any],
    model: Path | None,
    overwrite: bool,
) -> Ingest:
    """A model from a summary alone, and kept if that is wanted."""
    if unfit := explicit(context) & OF_ROWS:
        option = f"--{sorted(unfit)[0].replace('_', '-')}"
        raise OptionsError(f"{source} is a summary, so the rows are gone: {option} cannot be given now.")
    if settings["method"] == "oht" and parameters["sparsity"] == "auto":
        raise OptionsError(f"{source} is a summary, and choosing the size needs the rows: give --sparsity N.")
    check_free(model, overwrite)
    part = finished_summary(source)
    if settings["method"] == "sparse":
        parameters = {**parameters, "half_life": part.learner.half_life}
    learner = new_model(settings, parameters, part.columns).fit_summary(part.learner)
    learner.feature_names_in_ = np.array(part.columns.names, object)
    part.learner, part.place = learner, Place(part.place.n_rows, "")
    if model is not None:
        part.save(model)
    return part
