"""A model fed from a source, each row exactly once, whatever happens in between."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats, running_sum
from thresher._utils.checks import check_rows
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.threads import one_blas_thread
from thresher.estimators._validation import is_plain
from thresher.io.checkpoint import CheckpointError, load_with_note, save
from thresher.io.schema import Anything, Array, Count, Dict, Flag, Is, Number, Schema, Text, check
from thresher.io.sources.batches import START, Batch, Place
from thresher.io.sources.columns import Columns
from thresher.online.samples import Rows
from thresher.summaries.gram import Gram

if TYPE_CHECKING:  # summaries are fed without scikit-learn
    from thresher.estimators._linear import SummaryLinear

# Rows are predicted by the model as it was after every hundred of the first thousand rows, then every thousand.
EARLY, LATE = 100, 1000


def next_snapshot(n_seen: int) -> int:
    """The row count at which to take the model next. Counts alone decide, so it does not matter how rows come in."""
    every = EARLY if n_seen < LATE else LATE
    return (n_seen // every + 1) * every


@dataclass
class ProgressiveValidation:
    """How well a model predicted rows before it saw them, compared with the mean of the rows before.

    A row is predicted by the model as it was after every hundred of the first thousand rows, then every thousand.

    Attributes
    ----------
    n_rows : int
        Rows predicted.
    squared_error, squared_deviation : float
        Weighted sums of squares, of the predictions and of the mean.
    """

    _schema = Schema(
        n_rows=Count(),
        squared_error=Number(least=0.0),
        squared_deviation=Number(least=0.0),
        _support=Array("support", dtype="i8", least=0, ascending=True),
        _values=Array("support"),
        _intercept=Number(),
        _mean=Number(),
    )
    n_rows: int = 0
    squared_error: float = 0.0
    squared_deviation: float = 0.0
    _support: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, np.intp))
    _values: Floats = field(default_factory=lambda: np.zeros(0))
    _intercept: float = 0.0
    _mean: float = 0.0

    @property
    def r2(self) -> float | None:
        """One minus the ratio of the sums, None before there is one."""
        return 1.0 - self.squared_error / self.squared_deviation if self.squared_deviation > 0.0 else None

    def take(self, model: "SummaryLinear") -> None:
        """Predict by this model from now on."""
        coef = model.coef_
        self._support = np.flatnonzero(coef)
        self._values = coef[self._support]
        self._intercept = model.intercept_
        self._mean = model.summary_.mean_y

    def score(self, X: Floats, y: Floats, weights: Floats | None) -> None:
        """Predict rows that are about to be absorbed."""
        predicted = np.full(len(y), self._intercept)
        for j, value in zip(self._support, self._values, strict=True):
            predicted += value * X[:, j]
        weight = 1.0 if weights is None else weights
        self.squared_error = running_sum(self.squared_error, weight * (y - predicted) ** 2)
        self.squared_deviation = running_sum(self.squared_deviation, weight * (y - self._mean) ** 2)
        self.n_rows += len(y)


class Ingest:
    """A learner, what was read so far, and how it went: all that is needed to continue exactly there.

    Parameters
    ----------
    learner : SparseRegressor, OnlineHardThresholding or Gram
    columns : Columns
        How rows become numbers.
    settings : dict, optional
        Plain values to be kept along, such as the options of a command.

    Attributes
    ----------
    place : Place
        Where the next batch begins.
    n_skipped, n_filled, n_unknown : int
        Rows left out, values filled in, and texts that were not known.
    validation : ProgressiveValidation
    finished : bool
        Whether the source was at its end, and nothing came since.
    merged : list of str
        What was in the rows of each source, if the learner is a merger of several.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.io.ingest import Ingest
    >>> from thresher.io.sources.batches import Batches
    >>> from thresher.io.sources.columns import Columns
    >>> from thresher.io.sources.source import open_source
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = f"{directory}/a.csv"
    ...     X = np.random.default_rng(0).standard_normal((300, 5))
    ...     np.savetxt(path, np.c_[X, 2.0 * X[:, 3]], delimiter=",", header="a,b,c,d,e,y", comments="")
    ...     source = open_source(path)
    ...     ingest = Ingest(SparseRegressor(), Columns.choose(source, "y"))
    ...     for batch in Batches(source, ingest.columns, start=ingest.place):
    ...         ingest.absorb(batch)
    ...         ingest.save(f"{directory}/m")
    ...     ingest.finish()
    >>> ingest.learner.get_feature_names_out().tolist(), ingest.place.n_rows
    (['d'], 300)
    """

    _schema = Schema(
        lambda ingest: ingest._fits_learner(),
        columns=Is(Columns),
        settings=Dict(Anything(), keys=Text()),
        place=Is(Place),
        n_skipped=Count(),
        n_filled=Count(),
        n_unknown=Count(),
        validation=Is(ProgressiveValidation),
        finished=Flag(),
    )

    def __init__(self, learner: Any, columns: Columns, settings: dict[str, Any] | None = None) -> None:
        self.learner, self.columns, self.settings = learner, columns, settings or {}
        self.place: Place = START
        self.n_skipped = self.n_filled = self.n_unknown = 0
        self.validation = ProgressiveValidation()
        self.finished = False
        self.merged: list[str] = []
        self._names = np.array(columns.names, object)
        if hasattr(learner, "summary_"):
            if not np.array_equal(self._names, getattr(learner, "feature_names_in_", ())):
                raise ValueError("The model was fitted to other columns than these.")
            self.validation.take(learner)

    @property
    def n_used(self) -> int:
        """Rows absorbed."""
        return self.place.n_rows - self.n_skipped

    @property
    def parts(self) -> list[str]:
        """What was in the rows of each source."""
        return self.merged or [self.place.digest]

    def absorb(self, batch: Batch) -> None:
        """Take in a batch, all of it or, if it is rejected, nothing."""
        if batch.y is None:
            raise ValueError("These rows have no responses; they are for prediction.")
        self._check(batch)
        with InterruptsDeferred(whole=True), one_blas_thread():
            if len(batch.y):
                if isinstance(self.learner, Gram):
                    self.learner.absorb(batch.X, batch.y, batch.weights)
                else:
                    for piece in self._pieces(len(batch.y)):
                        weights = None if batch.weights is None else batch.weights[piece]
                        self._learn(batch.X[piece], batch.y[piece], weights)
            self.place = batch.place
            self.n_skipped += batch.n_skipped
            self.n_filled += batch.n_filled
            self.n_unknown += batch.n_unknown
            self.finished = False

    def _check(self, batch: Batch) -> None:
        """Raise if any row would be rejected: the first pieces must not be taken then."""
        storage = np.dtype(self.learner.dtype)
        plain = batch.weights is None and is_plain(batch.X, batch.y, len(self._names), storage)
        if len(batch.X) and not plain:
            check_rows(batch.X, batch.y, batch.weights, len(self._names), storage)

    def _pieces(self, n_rows: int) -> Iterator[slice]:
        """Cut rows at the counts at which the model is taken."""
        start = 0
        while start < n_rows:
            n_seen = getattr(self.learner, "n_samples_seen_", 0)
            stop = min(n_rows, start + next_snapshot(n_seen) - n_seen)
            yield slice(start, stop)
            start = stop

    def _learn(self, X: Floats, y: Floats, weights: Floats | None) -> None:
        model: SummaryLinear = self.learner
        n_seen = getattr(model, "n_samples_seen_", 0)
        if n_seen >= EARLY:
            self.validation.score(X, y, weights)
        model._learn(Rows(X, y, weights), self._names)
        if model.n_samples_seen_ == next_snapshot(n_seen):
            self.validation.take(model)

    def finish(self) -> None:
        """The source is at its end: let the model finish."""
        if not self.finished:
            with InterruptsDeferred(whole=True):
                if hasattr(self.learner, "summary_"):
                    self.learner.finish()
                self.finished = True

    def save(self, path: str | os.PathLike[str], generations: int = 2) -> None:
        """Keep all of it in one file, whole or not at all."""
        state = {name: value for name, value in vars(self).items() if name not in ("learner", "_names")}
        save(self.learner, path, state, generations)

    @classmethod
    def load(cls, path: str | os.PathLike[str], fall_back: bool = True) -> "Ingest":
        """Go on from a file; if it is damaged, from an earlier generation of it, if `fall_back`."""
        made = cls.from_note(*load_with_note(path, fall_back))
        if made is None:
            raise CheckpointError(f"{Path(path)} was not made from a source of rows; there is no row to continue from.")
        return made

    @classmethod
    def from_note(cls, learner: Any, note: Any) -> "Ingest | None":
        """What a file holds, from the two parts of it; None if the learner was not fed from a source."""
        if not isinstance(note, dict) or not isinstance(note.get("columns"), Columns):
            return None
        made = cls.__new__(cls)
        made.__dict__.update(note, learner=learner, _names=np.array(note["columns"].names, object))
        check(cls, note, made, lambda value: True)
        return made

    def _fits_learner(self) -> bool:
        """Whether the learner has these columns."""
        d = len(self._names)
        if not self.n_skipped <= self.place.n_rows or self.validation._support.max(initial=-1) >= d:
            return False
        if isinstance(self.learner, Gram):
            return self.learner.n_features == d
        return not hasattr(self.learner, "summary_") or np.array_equal(
            self._names, getattr(self.learner, "feature_names_in_", ())
        )
