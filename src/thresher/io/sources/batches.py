"""Rows of a source as numbers, some at a time, each with the place where the next begins."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher.io.schema import Count, Text, described
from thresher.io.sources.choices import LatePolicy, Policy
from thresher.io.sources.columns import Columns, Rows
from thresher.io.sources.source import Source
from thresher.io.sources.source_error import ChangedSourceError
from thresher.io.sources.table_file import TableFile

# Rows at a time: enough to make calls cheap, few enough for columns to become rows in the cache.
MOST_ROWS = 4096


@described(n_rows=Count(), digest=Text(), n_gone=Count(most="n_rows"))
class Place(NamedTuple):
    """How far a source was read, so that reading can go on from there.

    Attributes
    ----------
    n_rows : int
        Rows read.
    digest : str
        What was in them; without it, nobody can go on.
    n_gone : int
        Rows of those that are no longer in the source, because the file that was followed was replaced by a new one.
        The digest is of the others.
    """

    n_rows: int
    digest: str
    n_gone: int = 0


START = Place(0, "")


class Digest:
    """Of all numbers so far, row by row, so that it does not depend on how many come at a time."""

    def __init__(self) -> None:
        self._parts = [hashlib.sha256() for _ in range(4)]

    def update(self, rows: Rows) -> None:
        """Take the next rows into account."""
        for part, numbers in zip(self._parts, (rows.X, rows.y, rows.weights, rows.times), strict=True):
            if numbers is not None:
                part.update(numbers.data)

    def __str__(self) -> str:
        return hashlib.sha256(b"".join(part.digest() for part in self._parts)).hexdigest()


class Batch(NamedTuple):
    """Some rows.

    Attributes
    ----------
    names : list of str
        Of the columns of X.
    X, y, weights, times : ndarray
        Without missing values. Responses, weights and times are None if there are none.
    place : Place
        Where the next batch begins.
    n_skipped : int
        Rows left out because a value was missing, or because they came late.
    n_filled : int
        Values that were missing and are column means now.
    n_unknown : int
        Texts that are not among the levels of their column.
    kept : ndarray of bool or None
        Which rows are there, if some were left out.
    unterminated : bool
        Whether this is the last line of the source, alone, and without its end: somebody may still be writing it.
    """

    names: list[str]
    X: Floats
    y: Floats | None
    weights: Floats | None
    place: Place
    n_skipped: int
    n_filled: int
    n_unknown: int
    kept: NDArray[np.bool_] | None
    unterminated: bool = False
    times: Floats | None = None


class Batches:
    r"""The rows of a source, each once, from any place on.

    Rows before that place are read again, and must be what they were.

    Parameters
    ----------
    source : Source
    columns : Columns
    missing : {"error", "skip", "mean"}
        What to do about missing values: fail, leave the row out, or fill in the mean that the column had in the first
        rows. A row without its response or weight is left out in either of the last two.
    start : Place
    digest : bool, default=True
        Whether places are to be used later: telling what was in the rows takes a little time.
    most_rows : int, default=4096
        The largest batch, if that is to be smaller.
    late : {"error", "skip"}
        What to do about a row whose time is before that of an earlier row: fail, or leave it out.

    Attributes
    ----------
    n_again : int
        Rows read of those before `start`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresher.io.sources.batches import Batches
    >>> from thresher.io.sources.columns import Columns
    >>> from thresher.io.sources.source import open_source
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     _ = Path(directory, "a.csv").write_text("x,colour,y\n1,red,2\n3,blue,4\n")
    ...     source = open_source(directory)
    ...     for batch in Batches(source, Columns.choose(source, target="y")):
    ...         print(batch.names, batch.X.tolist(), batch.y, batch.place.n_rows)
    ['x', 'colour=blue', 'colour=red'] [[1.0, 0.0, 1.0], [3.0, 1.0, 0.0]] [2. 4.] 2
    """

    def __init__(
        self,
        source: Source,
        columns: Columns,
        missing: Policy = "error",
        start: Place = START,
        digest: bool = True,
        most_rows: int = MOST_ROWS,
        late: LatePolicy = "error",
    ) -> None:
        self._late = late
        self._source, self._columns, self._missing, self._start = source, columns, missing, start
        self._most_rows = min(most_rows, MOST_ROWS)
        self.n_again = 0
        self._digest = Digest() if digest or start.n_rows else None
        self._names = columns.names

    def __iter__(self) -> Iterator[Batch]:
        n_read = self._n_gone = self._start.n_gone
        self._digest = None if self._digest is None else Digest()
        n_replaced = self._source.n_replaced
        newest = -np.inf
        for table, file, first_row in self._source.tables(self._columns.kinds):
            if self._source.n_replaced > n_replaced:
                if n_read < self._start.n_rows:
                    break
                n_replaced, self._n_gone = self._source.n_replaced, n_read
                self._digest = None if self._digest is None else Digest()
            for piece in table.to_batches(self._most_rows):
                left = self._start.n_rows - n_read
                for part in (piece,) if not 0 < left < piece.num_rows else (piece[:left], piece[left:]):
                    rows = self._columns.rows(part, file, first_row)
                    if self._digest is not None:
                        self._digest.update(rows)
                    n_read += part.num_rows
                    late, newest = self._late_rows(rows, newest, file, first_row)
                    self.n_again = min(n_read, self._start.n_rows)
                    if n_read == self._start.n_rows:
                        self._check_digest()
                    elif n_read > self._start.n_rows:
                        yield self._batch(rows, late, file, first_row, n_read)
                    first_row += part.num_rows
        if n_read < self._start.n_rows:
            raise self._too_few(n_read)

    def check_waiting(self) -> None:
        """Raise if a file that is followed has no more rows now, and not all of those that were read before."""
        if self._source.waiting and self.n_again < self._start.n_rows:
            raise self._too_few(max(self.n_again, self._start.n_gone))

    def _too_few(self, n_read: int) -> ChangedSourceError:
        n_gone = self._start.n_gone
        return ChangedSourceError(
            f"{self._source.name} has {n_read - n_gone:,} rows now, and {self._start.n_rows - n_gone:,} were read "
            "before. Start again without the old model, or bring the old file back."
        )

    def _check_digest(self) -> None:
        if str(self._digest) != self._start.digest:
            n_rows = self._start.n_rows - self._start.n_gone
            raise ChangedSourceError(
                f"{self._source.name} has changed: its first {n_rows:,} rows are not those that were read before. "
                "Start again without the old model, or bring the old file back."
            )

    def _late_rows(
        self, rows: Rows, newest: float, file: TableFile, first_row: int
    ) -> tuple[NDArray[np.bool_] | None, float]:
        """Which rows come after later ones, None if none does; and the latest time so far."""
        if rows.times is None or not len(rows.times):
            return None, newest
        latest = np.fmax.accumulate(np.append(newest, rows.times))
        late = rows.times < latest[:-1]
        if not late.any():
            return None, float(latest[-1])
        if self._late == "error":
            row = int(late.argmax())
            raise file.error(
                f"column {self._columns.time!r} goes back, from {latest[row]:.15g} to {rows.times[row]:.15g} seconds; "
                "sort the rows by time, or leave late ones out with --late-rows skip.",
                first_row + row,
            )
        return late, float(latest[-1])

    def _batch(self, rows: Rows, late: NDArray[np.bool_] | None, file: TableFile, first_row: int, n_read: int) -> Batch:
        X, y, weights, times = rows.X, rows.y, rows.weights, rows.times
        place = Place(n_read, "" if self._digest is None else str(self._digest), self._n_gone)
        kept, n_filled = None, 0
        if late is not None or any(part is not None and np.isnan(part.sum()) for part in (X, y, weights, times)):
            gaps = np.isnan(X)
            lost = np.zeros(len(X), bool)
            for part in (y, weights, times):
                if part is not None:
                    lost |= np.isnan(part)
            if self._missing == "mean":
                n_filled = int(gaps[~lost].sum())
                X = np.where(gaps, self._columns.means, X)
                if np.isnan(hopeless := X[~lost].sum(axis=0)).any():
                    name = self._names[int(np.isnan(hopeless).argmax())]
                    raise file.error(
                        f"column {name!r} has no value here and had none in the first rows to take the mean of; "
                        f"leave it out with --drop {name}.",
                        first_row,
                    )
            else:
                lost |= gaps.any(axis=1)
            if self._missing == "error" and lost.any():
                raise self._complaint(gaps, rows, int(lost.argmax()), file, first_row)
            if late is not None:
                lost |= late
            if lost.any():
                kept = ~lost
                X = X[kept]
                y, weights, times = (None if part is None else part[kept] for part in (y, weights, times))
        n_skipped = 0 if kept is None else int((~kept).sum())
        last = self._source.unterminated
        return Batch(self._names, X, y, weights, place, n_skipped, n_filled, rows.n_unknown, kept, last, times)

    def _complaint(self, gaps: NDArray[np.bool_], rows: Rows, row: int, file: TableFile, first_row: int) -> Exception:
        name: str | None
        if gaps[row].any():
            name = self._columns.groups[int(gaps[row].argmax())]
        else:
            given = (
                (rows.y, self._columns.target),
                (rows.weights, self._columns.weight),
                (rows.times, self._columns.time),
            )
            name = next(name for numbers, name in given if numbers is not None and np.isnan(numbers[row]))
        return file.error(
            f"column {name!r} has no value; --missing skip leaves such rows out, --missing mean fills them in.",
            first_row + row,
        )
