"""From a source, or a summary, to a model."""

from pathlib import Path
from typing import Any

import numpy as np
import typer

from thresher.cli.begin import begin, explicit, is_checkpoint
from thresher.cli.errors import OptionsError
from thresher.cli.feeding import feed
from thresher.estimators._linear import SummaryLinear
from thresher.io.checkpoint import CheckpointError
from thresher.io.ingest import Ingest
from thresher.io.sources.batches import Place
from thresher.io.sources.columns import Columns
from thresher.io.sources.source import Source
from thresher.summaries.gram import Gram

# Options that make no difference any more once rows are summarised.
OF_ROWS = {"selection", "target", "features", "drop", "weight", "categories", "missing", "follow", "resume"}
OF_ROWS |= {"n_warmup", "round_size", "checkpoint_every", "keep", "format", "delimiter", "no_header"}

__all__ = ["fit_source", "fit_summary", "is_checkpoint"]


def fit_source(
    context: typer.Context,
    source: Source,
    settings: dict[str, Any],
    parameters: dict[str, Any],
    model: Path | None,
    resume: bool,
    overwrite: bool,
    every: int,
    keep: int,
    live: bool,
) -> Ingest:
    """A model from the rows of a source, from the first on or from where it was left."""

    def fresh(columns: Columns) -> Ingest:
        groups = columns.groups if settings["groups"] else None
        return Ingest(estimator(settings["method"])(**parameters, groups=groups), columns, settings)

    ingest = begin(context, source, settings, model, resume, overwrite, SummaryLinear, fresh)
    feed(ingest, source, ingest.settings["missing"], model, every, keep, live)
    return ingest


def estimator(method: str) -> type[SummaryLinear]:
    """The class behind --method; imported when it is needed, for one of them compiles."""
    if method == "oht":
        from thresher.estimators.online_hard_thresholding import OnlineHardThresholding

        return OnlineHardThresholding
    from thresher.estimators.sparse_regressor import SparseRegressor

    return SparseRegressor


def fit_summary(
    context: typer.Context,
    source: str,
    method: str,
    parameters: dict[str, Any],
    groups: bool,
    model: Path | None,
    overwrite: bool,
) -> Ingest:
    """A model from a summary alone, and kept if that is wanted."""
    if unfit := explicit(context) & OF_ROWS:
        option = f"--{sorted(unfit)[0].replace('_', '-')}"
        raise OptionsError(f"{source} is a summary, so the rows are gone: {option} cannot be given now.")
    if method == "oht" and parameters["sparsity"] == "auto":
        raise OptionsError(f"{source} is a summary, and choosing the size needs the rows: give --sparsity N.")
    if model is not None and model.exists() and not overwrite:
        raise OptionsError(f"{model} exists; --overwrite replaces it.")
    part = Ingest.load(source)
    if not isinstance(part.learner, Gram):
        raise CheckpointError(
            f"{source} holds a {type(part.learner).__name__}, not a summary; --model {source} --resume continues it."
        )
    if not part.finished:
        raise CheckpointError(f"{source} is not finished; run its accumulate again with --resume first.")
    learner: Any = estimator(method)(**parameters, groups=part.columns.groups if groups else None)
    learner.fit_summary(part.learner)
    learner.feature_names_in_ = np.array(part.columns.names, object)
    part.learner, part.place = learner, Place(part.place.n_rows, "")
    if model is not None:
        part.save(model)
    return part
