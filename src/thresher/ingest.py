"""A model fed from a source, each row exactly once, whatever happens in between."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher._arrays import NamedRows
from thresher._checks import check_rows
from thresher._interrupts import InterruptsDeferred
from thresher._threads import one_blas_thread
from thresher.checkpoint import CheckpointError, load_with_note, save
from thresher.estimators._plain import is_plain
from thresher.estimators.sparse_regressor import SparseRegressor
from thresher.streams.batches import START, Batch, Place
from thresher.streams.columns import Columns
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]

# The model looks at its rows after every hundred of the first thousand, then after every thousand.
EARLY, LATE = 100, 1000
FLOAT64 = np.dtype(np.float64)


def next_look(n_seen: int) -> int:
    """The row count at which to look next. Counts alone decide, so it does not matter how rows come in."""
    every = EARLY if n_seen < LATE else LATE
    return (n_seen // every + 1) * every


@dataclass
class Foresight:
    """How well a model predicted rows before it saw them, compared with the mean of the rows before.

    A row is predicted by the model as it stood at the last look.

    Attributes
    ----------
    n_rows : int
        Rows predicted.
    squared_error, squared_deviation : float
        Weighted sums of squares, of the predictions and of the mean.
    """

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

    def look(self, model: SparseRegressor) -> None:
        """Predict by this model from now on."""
        self._support = model.support_
        self._values = model.coef_[self._support]
        self._intercept = model.intercept_
        self._mean = model.summary_.mean_y

    def judge(self, X: Floats, y: Floats, weights: Floats | None) -> None:
        """Predict rows that are about to be absorbed."""
        predicted = np.full(len(y), self._intercept)
        for j, value in zip(self._support, self._values, strict=True):
            predicted += value * X[:, j]
        weight = 1.0 if weights is None else weights
        # One after another, not pairwise as sum does: the result does not depend on how rows come in.
        self.squared_error = _total(self.squared_error, weight * (y - predicted) ** 2)
        self.squared_deviation = _total(self.squared_deviation, weight * (y - self._mean) ** 2)
        self.n_rows += len(y)


def _total(start: float, terms: Floats) -> float:
    return float(np.cumsum(np.concatenate([[start], terms]))[-1])


class Ingest:
    """A learner, what was read so far, and how it went: all that has to be kept to go on exactly there.

    Parameters
    ----------
    learner : SparseRegressor or Gram
    columns : Columns
        How rows become numbers.
    settings : dict, optional
        Plain values to be kept along, such as the options of a command.
    looks : bool, default=True
        Whether the model runs a round at every look. Otherwise rounds fall as its `round_size` says.

    Attributes
    ----------
    place : Place
        Where the next batch begins.
    n_skipped, n_filled, n_unknown : int
        Rows left out, values filled in, and texts that were not known.
    foresight : Foresight
    finished : bool
        Whether the source was at its end, and nothing came since.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.ingest import Ingest
    >>> from thresher.streams.batches import Batches
    >>> from thresher.streams.columns import Columns
    >>> from thresher.streams.source import open_source
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

    def __init__(
        self, learner: Any, columns: Columns, settings: dict[str, Any] | None = None, looks: bool = True
    ) -> None:
        self.learner, self.columns, self.settings, self.looks = learner, columns, settings or {}, looks
        self.place: Place = START
        self.n_skipped = self.n_filled = self.n_unknown = 0
        self.foresight = Foresight()
        self.finished = False
        self._names = np.array(columns.names, object)
        if hasattr(learner, "coef_"):
            self.foresight.look(learner)

    @property
    def n_used(self) -> int:
        """Rows absorbed."""
        return self.place.n_rows - self.n_skipped

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
        plain = batch.weights is None and is_plain(batch.X, batch.y, len(self._names), FLOAT64)
        if len(batch.X) and not plain:
            check_rows(batch.X, batch.y, batch.weights, len(self._names), FLOAT64)

    def _pieces(self, n_rows: int) -> Iterator[slice]:
        """Cut rows at the counts at which to look."""
        start = 0
        while start < n_rows:
            n_seen = getattr(self.learner, "n_samples_seen_", 0)
            stop = min(n_rows, start + next_look(n_seen) - n_seen)
            yield slice(start, stop)
            start = stop

    def _learn(self, X: Floats, y: Floats, weights: Floats | None) -> None:
        model: SparseRegressor = self.learner
        n_seen = getattr(model, "n_samples_seen_", 0)
        if n_seen >= EARLY:
            self.foresight.judge(X, y, weights)
        model.partial_fit(NamedRows(self._names, X), y, weights)
        if model.n_samples_seen_ == next_look(n_seen):
            if self.looks:
                model.finish()
            self.foresight.look(model)

    def finish(self) -> None:
        """The source is at its end: let the model settle on all rows."""
        if not self.finished:
            model = self.learner
            with InterruptsDeferred(whole=True):
                if isinstance(model, SparseRegressor) and getattr(model, "summary_", None) is not None:
                    model.settle()
                self.finished = True

    def save(self, path: str | os.PathLike[str], generations: int = 2) -> None:
        """Keep all of it in one file, whole or not at all."""
        state = {name: value for name, value in vars(self).items() if name not in ("learner", "_names")}
        save(self.learner, path, state, generations)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Ingest":
        """Go on from a file."""
        made = cls.from_note(*load_with_note(path))
        if made is None:
            raise CheckpointError(f"{Path(path)} was not made from a source of rows; there is no place to go on from.")
        return made

    @classmethod
    def from_note(cls, learner: Any, note: Any) -> "Ingest | None":
        """What a file holds, from the two parts of it; None if the learner was not fed from a source."""
        if not isinstance(note, dict) or not isinstance(note.get("columns"), Columns):
            return None
        made = cls.__new__(cls)
        made.__dict__.update(note, learner=learner, _names=np.array(note["columns"].names, object))
        return made
