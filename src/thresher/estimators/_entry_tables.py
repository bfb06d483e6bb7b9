"""Observed entries from arrays or from Arrow tables, in which rows, columns, values and weights are columns."""

from typing import Any, Self

from thresher._utils.entry_table import EntryColumns, entry_blocks, refuse_names
from thresher._utils.locks import locked
from thresher._utils.memory import require_bytes
from thresher.estimators._ids import IdMap, are_ids, as_ids
from thresher.estimators._ranked import RankedRounds
from thresher.estimators._validation import checked_shape
from thresher.summaries.entries import Entries, Indices

SIDES = ("rows", "cols")


class EntryTables(RankedRounds):
    """An estimator that learns from observed entries of a matrix."""

    shape: tuple[int, int] | None
    _ids: dict[str, IdMap]

    def partial_fit(self, rows: Any, cols: Any, values: Any, sample_weight: Any = None, data: Any = None) -> Self:
        """Absorb observations, with a round after every `round_size` of them.

        Parameters
        ----------
        rows, cols : array-like of int or str, shape (n,), or str
            Where the values were observed: indices from zero, or ids. With `data`, the names of their columns.
        values : array-like of shape (n,), or str
        sample_weight : array-like of shape (n,), or str, optional
            Non-negative.
        data : Arrow table, optional
            Any object with ``__arrow_c_stream__``: pyarrow tables and readers, polars and pandas frames, DuckDB
            relations. Columns of texts are ids, columns of whole numbers are indices. Its rows are read some at a time.

        Returns
        -------
        self
        """
        if data is None:
            refuse_names(rows, cols, values, sample_weight)
            return self._partial_fit(rows, cols, values, sample_weight)
        return self._learn_table(data, EntryColumns(rows, cols, values, sample_weight))

    def fit(self, rows: Any, cols: Any, values: Any, sample_weight: Any = None, data: Any = None) -> Self:
        """Forget everything, absorb all observations, then run rounds on their summary until it settles.

        Parameters and return value are those of ``partial_fit``.
        """
        if data is None:
            refuse_names(rows, cols, values, sample_weight)
            return self._fit(rows, cols, values, sample_weight)
        return self._fit_table(data, EntryColumns(rows, cols, values, sample_weight))

    @locked
    def _learn_table(self, data: Any, columns: EntryColumns) -> Self:
        self._check_parameters()
        blocks = entry_blocks(data, columns, checked_shape(self.shape))
        return self._learn_blocks(blocks, lambda block: self._partial_fit(*block))

    @locked
    def _fit_table(self, data: Any, columns: EntryColumns) -> Self:
        with self._unchanged_by_failure():
            self._check_parameters()
            asked = checked_shape(self.shape)
            entries, ids = Entries(asked or (1, 1)), dict[str, IdMap]()
            for block in entry_blocks(data, columns, asked):
                rows, cols = (
                    _numbered(given, side, ids, None if asked is None else asked[place])
                    for place, (side, given) in enumerate(zip(SIDES, block, strict=False))
                )
                shape = asked or self._reach(rows, cols, entries.shape)
                entries = entries if entries.shape == shape else entries.resized(shape)
                entries.add(rows, cols, block.values, block.weights)
            if entries.weight == 0.0:
                raise ValueError("All sample weights are zero; at least one must be positive.")
            self.__dict__.pop("_warned_of_weights", None)
            self._ids = ids
            self._start(entries)
            if block.weights is not None:
                self._warn_of_weights(block.weights, 2)
            return self._settle()

    @staticmethod
    def _reach(rows: Indices, cols: Indices, shape: tuple[int, int]) -> tuple[int, int]:
        """The shape of a matrix that has these entries and those before; an error if that needs too much memory."""
        d1, d2 = max(shape[0], int(rows.max()) + 1), max(shape[1], int(cols.max()) + 1)
        require_bytes(56 * d1 * d2, f"A matrix of {d1:,} x {d2:,} entries", "Number rows and columns from zero.")
        return d1, d2


def _numbered(given: Any, side: str, ids: dict[str, IdMap], below: int | None) -> Indices:
    """Indices of one side; ids that are new get the next numbers."""
    if not are_ids(given):
        indices: Indices = given
        return indices
    known = ids.setdefault(side, IdMap())
    indices, fresh = known.numbered(as_ids(given, side))
    known.learn(fresh)
    check_count(len(known), side, below)
    return indices


def check_count(n_ids: int, side: str, below: int | None) -> None:
    """Raise if there are more ids than the matrix has rows or columns."""
    if below is not None and n_ids > below:
        raise ValueError(f"There are more than {below} different {side}; set a larger shape, or none.")
