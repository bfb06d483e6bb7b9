"""A model fed from a source, each row exactly once, whatever happens in between."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from thresher._utils.checks import check_rows
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.threads import one_blas_thread
from thresher.estimators._validation import is_plain
from thresher.io.checkpoint import CheckpointError, load_with_note, save
from thresher.io.schema import Anything, Count, Dict, Flag, Is, List, Text, check, part
from thresher.io.sources.batches import START, Batch, Place
from thresher.io.sources.columns import Columns
from thresher.online.samples import Rows
from thresher.summaries.gram import Gram


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

    # It is a note beside its learner, never an object in a file.
    _schema = part(
        lambda ingest: ingest._fits_learner(),
        columns=Is(Columns),
        settings=Dict(Anything(), keys=Text()),
        place=Is(Place),
        n_skipped=Count(),
        n_filled=Count(),
        n_unknown=Count(),
        finished=Flag(),
        merged=List(Text()),
    )

    def __init__(self, learner: Any, columns: Columns, settings: dict[str, Any] | None = None) -> None:
        self.learner, self.columns, self.settings = learner, columns, settings or {}
        self.place: Place = START
        self.n_skipped = self.n_filled = self.n_unknown = 0
        self.finished = False
        self.merged: list[str] = []
        self._names = np.array(columns.names, object)
        known = getattr(learner, "feature_names_in_", ())
        if hasattr(learner, "summary_") and not np.array_equal(self._names, known):
            raise ValueError("The model was fitted to other columns than these.")

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
                    self.learner.absorb(batch.X, batch.y, batch.weights, times=batch.times)
                else:
                    self.learner._learn(Rows(batch.X, batch.y, batch.weights, batch.times), self._names)
            self.place = batch.place
            self.n_skipped += batch.n_skipped
            self.n_filled += batch.n_filled
            self.n_unknown += batch.n_unknown
            self.finished = False

    def _check(self, batch: Batch) -> None:
        """Raise if any row would be rejected: the first blocks must not be taken then."""
        storage = np.dtype(self.learner.dtype)
        plain = batch.weights is None and is_plain(batch.X, batch.y, len(self._names), storage)
        if len(batch.X) and not plain:
            check_rows(batch.X, batch.y, batch.weights, len(self._names), storage)

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
        made = cls.read(path, fall_back)[1]
        if made is None:
            raise CheckpointError(f"{Path(path)} was not made from a source of rows; there is no row to continue from.")
        return made

    @classmethod
    def read(cls, path: str | os.PathLike[str], fall_back: bool = True) -> "tuple[Any, Ingest | None]":
        """The learner in a file and, if it was fed from a source, all of it."""
        learner, note = load_with_note(path, fall_back)
        try:
            return learner, cls.from_note(learner, note)
        except CheckpointError as error:
            raise CheckpointError(f"{Path(path)}: {error}") from error

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
        if not self.n_skipped <= self.place.n_rows:
            return False
        if isinstance(self.learner, Gram):
            return self.learner.n_features == d
        return not hasattr(self.learner, "summary_") or np.array_equal(
            self._names, getattr(self.learner, "feature_names_in_", ())
        )
