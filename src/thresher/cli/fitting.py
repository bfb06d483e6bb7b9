"""From a source, or a summary, to a model."""

from pathlib import Path
from typing import Any

import numpy as np
import typer

from thresher.checkpoint import CheckpointError
from thresher.cli.begin import begin, explicit, is_checkpoint
from thresher.cli.errors import OptionsError
from thresher.cli.feeding import feed
from thresher.estimators.sparse_regressor import SparseRegressor
from thresher.ingest import LATE, Ingest
from thresher.selection.ebic import Ebic
from thresher.selection.folds import Folds
from thresher.streams.batches import Place
from thresher.streams.columns import Columns
from thresher.streams.source import Source
from thresher.summaries.gram import Gram

# Options that make no difference any more once rows are summarised.
OF_ROWS = {"selection", "target", "features", "drop", "weight", "categories", "missing", "follow", "resume"}
OF_ROWS |= {"round_size", "checkpoint_every", "keep", "format", "delimiter", "no_header"}
# Folds are let go after 2000 rows; until then they take as much memory as five models.
MOST_COLUMNS = 1000

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
        rounds, follow = settings["round_size"], settings["follow"]
        learner = SparseRegressor(
            **parameters,
            round_size=rounds or (1 if follow else LATE),
            groups=columns.groups if settings["groups"] else None,
            selection=_selection(settings["selection"], len(columns.names)),
        )
        return Ingest(learner, columns, settings, looks=rounds is None and not follow)

    ingest = begin(context, source, settings, model, resume, overwrite, SparseRegressor, fresh)
    feed(ingest, source, ingest.settings["missing"], model, every, keep, live)
    return ingest


def _selection(name: str, n_columns: int) -> Any:
    """While rows are few, cross-validation predicts better than a criterion; folds cost some Grams more."""
    if name != "auto":
        return name
    return Folds(afterwards=Ebic()) if n_columns <= MOST_COLUMNS else Ebic()


def fit_summary(
    context: typer.Context,
    source: str,
    parameters: dict[str, Any],
    groups: bool,
    model: Path | None,
    overwrite: bool,
) -> Ingest:
    """A model from a summary alone, and kept if that is wanted."""
    if unfit := explicit(context) & OF_ROWS:
        option = f"--{sorted(unfit)[0].replace('_', '-')}"
        raise OptionsError(f"{source} is a summary, so the rows are gone: {option} cannot be given now.")
    if model is not None and model.exists() and not overwrite:
        raise OptionsError(f"{model} exists; --overwrite replaces it.")
    part = Ingest.load(source)
    if not isinstance(part.learner, Gram):
        raise CheckpointError(
            f"{source} holds a {type(part.learner).__name__}, not a summary; to go on with it, use --model {source}."
        )
    if not part.finished:
        raise CheckpointError(f"{source} is not finished; run its accumulate again with --resume first.")
    learner = SparseRegressor(**parameters, round_size=LATE, groups=part.columns.groups if groups else None)
    learner.fit_summary(part.learner)
    learner.feature_names_in_ = np.array(part.columns.names, object)
    part.learner, part.place = learner, Place(part.place.n_rows, "")
    if model is not None:
        part.save(model)
    return part
