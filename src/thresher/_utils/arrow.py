"""Tables of anything that speaks Arrow, as blocks of numbers.

An object with ``__arrow_c_stream__`` (pyarrow tables and readers, polars and pandas frames, DuckDB relations, scans of
Delta and Iceberg tables) hands over its rows some at a time, so memory does not depend on how many there are.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher._utils.checks import LARGEST, check_range
from thresher._utils.feature_names import column_of, some_of, warn_of_unused

DOUBLE = np.dtype(np.float64)
# Numbers in a block: large enough for calls to be cheap, small enough to stay in the cache while columns become rows.
BLOCK_NUMBERS = 1 << 20
FEWEST_ROWS, MOST_ROWS = 256, 8192
# What to do where the dictionary of the first rows does not tell all levels.
ADVICE = "name the levels that count with features=['{column}={level}', ...]"
# How a column of texts becomes a feature.
TO_CATEGORY = "cast texts to a category (an Arrow dictionary)"


class Block(NamedTuple):
    """Some rows as numbers; responses and weights are None if no column was named for them.

    y has two dimensions if a list of columns was named.
    """

    X: Floats
    y: Floats | None
    weights: Floats | None
    times: Floats | None = None


class Feature(NamedTuple):
    """A column of the table, or one level of it."""

    column: str
    level: str | None = None

    @property
    def name(self) -> str:
        """How it is called among the features."""
        return self.column if self.level is None else f"{self.column}={self.level}"


def is_table(X: Any) -> bool:
    """Whether an object hands over its rows by Arrow."""
    return hasattr(X, "__arrow_c_stream__")


def import_pyarrow() -> Any:
    """The module pyarrow, or an error that says how to get it."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError as error:
        raise ImportError("Arrow tables need pyarrow; install it with: pip install 'thresher[arrow]'") from error
    return pyarrow


class Table:
    """The rows of an Arrow stream as blocks of numbers, once.

    Parameters
    ----------
    stream : object with ``__arrow_c_stream__``
    target : str or sequence of str, optional
        The column with the responses, or several of them.
    weight : str, optional
        The column with the weights.
    features : sequence of str, optional
        Columns of numbers, columns of categories, or levels of them as ``"colour=red"``, in this order. By default all
        other columns of numbers, and all levels of columns with an Arrow dictionary, sorted.
    dtype : dtype, default=float64
        How co-moments are stored, which limits how large values may be.
    lenient : bool, default=False
        Whether a level that is not among the features is no error: all its columns are zero then.
    time : str, optional
        Column with the times of the rows: numbers of seconds, dates or timestamps.

    Attributes
    ----------
    features : list of Feature
    names : list of str
    unused : list of str
        Columns that are no features because of their types, if `features` was not given.
    n_unknown : int
        Values so far whose level is not among the features.
    """

    def __init__(
        self,
        stream: Any,
        target: str | Sequence[str] | None = None,
        weight: str | None = None,
        features: Sequence[str] | None = None,
        dtype: np.dtype[Any] = DOUBLE,
        lenient: bool = False,
        time: str | None = None,
    ) -> None:
        self._pa = import_pyarrow()
        if not is_table(stream):
            raise TypeError(
                f"X is a {type(stream).__name__}, which has no columns to name; pass an Arrow table, a data frame or "
                "another object with __arrow_c_stream__, or y as an array."
            )
        reader = self._pa.RecordBatchReader.from_stream(stream)
        self._schema = reader.schema
        self._types = {field.name: field.type for field in self._schema}
        self._one_target = isinstance(target, str)
        self._targets = [] if target is None else [target] if isinstance(target, str) else list(target)
        self._weight, self._dtype, self._lenient, self._time = weight, dtype, lenient, time
        self._others = [*self._targets, *([] if weight is None else [weight])]
        self.n_unknown = 0
        self.unused: list[str] = []
        self._last_time = -np.inf
        self._check_columns()
        if time is not None and time not in self._types:
            raise ValueError(f"The table has no column {time!r}; it has {some_of(self._schema.names)}.")
        if time in self._others:
            raise ValueError(f"Column {time!r} has the times and cannot be a response or a weight as well.")
        self._batches = iter(reader)
        self._first = next((batch for batch in self._batches if batch.num_rows), None)
        if self._first is None:
            raise ValueError("The table has no rows.")
        self.features = self._chosen(features)
        self.names = [feature.name for feature in self.features]
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(f"The feature {twice[0]!r} is there twice; name each once.")
        if not self.features:
            advice = f"; {TO_CATEGORY}" if self.unused else ""
            raise ValueError(f"The table has no columns of numbers or categories to be features{advice}.")
        self._places = _places_by_column(self.features)

    def warn_of_unused(self) -> None:
        """Warn of columns that are no features because of their types."""
        warn_of_unused(self.unused, f"{TO_CATEGORY} to use them")

    # -- columns ---------------------------------------------------------------------------------------

    def _check_columns(self) -> None:
        """Raise unless all names are there once, and those of responses and weights have numbers."""
        names = self._schema.names
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(f"The table has more than one column named {twice[0]!r}; rename them.")
        for name in self._others:
            if self._others.count(name) > 1:
                raise ValueError(f"Column {name!r} is named twice among the responses and the weight; name it once.")
            if name not in names:
                raise ValueError(f"The table has no column {name!r}; it has {some_of(names)}.")
            self._require_numbers(name)

    def _require_numbers(self, name: str) -> None:
        if not is_numeric(self._types[name]):
            raise ValueError(f"Column {name!r} has values of type {self._types[name]}, and numbers are needed there.")

    def _is_category(self, name: str) -> bool:
        types, kind = self._pa.types, self._types[name]
        return bool(types.is_dictionary(kind) or types.is_string(kind) or _is_other_string(types, kind))

    def _chosen(self, features: Sequence[str] | None) -> list[Feature]:
        is_dictionary, kinds = self._pa.types.is_dictionary, self._types
        if features is None:
            left_out = {*self._others, self._time, *_index_columns(self._schema)}
            others = {
                name: is_numeric(kind) or is_dictionary(kind) for name, kind in kinds.items() if name not in left_out
            }
            features = [name for name, fits in others.items() if fits]
            self.unused = [name for name, fits in others.items() if not fits]
        elif isinstance(features, str):
            raise TypeError(f"features must be a list of names, got the text {features!r}.")
        found: list[Feature] = []
        for given in features:
            name = str(given)
            if name in self._others:
                raise ValueError(f"Column {name!r} cannot be a feature as well.")
            if name in kinds:
                if is_dictionary(kinds[name]):
                    found += [Feature(name, level) for level in self._levels(name)]
                elif self._is_category(name):
                    raise ValueError(
                        f"Column {name!r} has values of type {kinds[name]}, and features are numbers or categories; "
                        f"{TO_CATEGORY}, or {ADVICE.format(column=name, level='LEVEL')}."
                    )
                else:
                    self._require_numbers(name)
                    found.append(Feature(name))
            else:
                found.append(self._level_of(name))
        return found

    def _level_of(self, name: str) -> Feature:
        """The feature behind a name such as "colour=red", or an error."""
        column = column_of(name, self._schema.names)
        if column is None:
            raise ValueError(f"The table has no column {name!r}; it has {some_of(self._schema.names)}.")
        if not self._is_category(column):
            raise ValueError(f"Column {column!r} has no levels, for its type is {self._types[column]}.")
        return Feature(column, name[len(column) + 1 :])

    def _levels(self, name: str) -> list[str]:
        assert self._first is not None
        texts = self._first.column(name).dictionary.cast(self._pa.string())
        levels = sorted(set(texts.drop_null().to_pylist()))
        if not levels:
            raise ValueError(f"Column {name!r} has an empty dictionary; {ADVICE.format(column=name, level='red')}.")
        return levels

    # -- rows ------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Block]:
        size = min(max(BLOCK_NUMBERS // len(self.features), FEWEST_ROWS), MOST_ROWS)
        first_row = 1
        for batch in self._all_batches():
            for start in range(0, batch.num_rows, size):
                piece = batch.slice(start, size)
                yield self._block(piece, first_row)
                first_row += piece.num_rows

    def _all_batches(self) -> Iterator[Any]:
        """The first batch, which was read for its dictionaries, and the others."""
        first, self._first = self._first, None
        if first is None:
            raise ValueError("The table was read before; a stream hands over its rows once.")
        yield first
        yield from self._batches

    def _block(self, batch: Any, first_row: int) -> Block:
        numbers = [column for column, places in self._places if not isinstance(places, dict)]
        if len(numbers) == len(self._places):
            X = self._matrix(batch, numbers, first_row, self._dtype)
        else:
            X = np.zeros((batch.num_rows, len(self.features)))
            if numbers:
                where = [places for _, places in self._places if not isinstance(places, dict)]
                X[:, where] = self._matrix(batch, numbers, first_row, self._dtype)
            for column, places in self._places:
                if isinstance(places, dict):
                    self._one_hot(batch, column, places, X, first_row)
        y = weights = None
        if self._targets:
            responses = self._matrix(batch, self._targets, first_row, DOUBLE)
            y = np.ascontiguousarray(responses[:, 0] if self._one_target else responses)
        if self._weight is not None:
            weights = np.ascontiguousarray(self._matrix(batch, [self._weight], first_row, DOUBLE)[:, 0])
        if weights is not None:
            check_weight_column(weights, str(self._weight), first_row)
            check_range(X, np.zeros(1) if y is None else y, weights, self._dtype)
        times = None if self._time is None else self._times(batch.column(self._time), self._time, first_row)
        return Block(X, y, weights, times)

    def _times(self, column: Any, name: str, first_row: int) -> Floats:
        """Times in seconds that do not go back, from this block or from the one before."""
        check_no_nulls(column, name, first_row)
        seconds = seconds_of(column, name)
        if (bad := ~np.isfinite(seconds)).any():
            row = int(bad.argmax())
            raise ValueError(
                f"Row {first_row + row}: column {name!r} has {seconds[row]}; drop or fill such rows first."
            )
        before = np.concatenate([[self._last_time], seconds[:-1]])
        if (back := seconds < before).any():
            row = int(back.argmax())
            raise ValueError(
                f"Row {first_row + row}: column {name!r} goes back, from {before[row]:.15g} to {seconds[row]:.15g} "
                "seconds; sort the rows by time."
            )
        self._last_time = float(seconds[-1])
        return seconds

    def _matrix(self, batch: Any, names: list[str], first_row: int, storage: np.dtype[Any]) -> Floats:
        """Columns of numbers, rows by columns, all of them there and in the range of the storage."""
        pa, columns = self._pa, []
        for name in names:
            column = batch.column(name)
            check_no_nulls(column, name, first_row)
            columns.append(column if column.type == pa.float64() else column.cast(pa.float64(), safe=False))
        if len(columns) == 1:
            X: Floats = columns[0].to_numpy()[:, None]
        else:
            X = pa.RecordBatch.from_arrays(columns, names).to_tensor().to_numpy()
        check_numbers(X, names, storage, first_row)
        return X

    def _one_hot(self, batch: Any, column: str, places: dict[str, int], X: Floats, first_row: int) -> None:
        pa, values = self._pa, batch.column(column)
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        check_no_nulls(values, column, first_row)
        levels = values.dictionary.cast(pa.string()).to_pylist()
        of_level = np.array([places.get(level, -1) for level in levels], np.intp)
        places_of_rows: NDArray[np.intp] = of_level[values.indices.to_numpy(zero_copy_only=False)]
        known = np.flatnonzero(places_of_rows >= 0)
        X[known, places_of_rows[known]] = 1.0
        if len(known) < len(places_of_rows):
            if not self._lenient:
                row = int(np.argmax(places_of_rows < 0))
                level = levels[int(values.indices[row].as_py())]
                advice = ADVICE.format(column=column, level=level)
                raise ValueError(
                    f"Row {first_row + row}: column {column!r} has the level {level!r}, which is not among the "
                    f"features; {advice}."
                )
            self.n_unknown += len(places_of_rows) - len(known)


def is_numeric(kind: Any, booleans: bool = True) -> bool:
    """Whether an Arrow type is one of numbers; true and false are one and zero, unless told otherwise."""
    types = import_pyarrow().types
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(numbers or (booleans and types.is_boolean(kind)))


def seconds_of_timestamps(column: Any) -> Floats:
    """A column that can be cast to timestamps as seconds; NaN where it is null."""
    pa = import_pyarrow()
    ticks = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
    return np.asarray(ticks.to_numpy(zero_copy_only=False)) / 1e6


def seconds_of(column: Any, name: str) -> Floats:
    """A column of times as seconds: numbers, dates or timestamps."""
    pa = import_pyarrow()
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return seconds_of_timestamps(column)
    if not is_numeric(kind, booleans=False):
        raise ValueError(f"Column {name!r} has values of type {kind}; times are seconds, dates or timestamps.")
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def check_no_nulls(values: Any, name: str, first_row: int) -> None:
    """Raise if a value of an Arrow array is null."""
    if values.null_count:
        row = first_row + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"Row {row}: column {name!r} is null; drop or fill such rows first.")


def check_weight_column(weights: Floats, name: str, first_row: int) -> None:
    """Raise if a weight is negative."""
    if (bad := weights < 0.0).any():
        raise ValueError(f"Row {first_row + int(bad.argmax())}: the weight in {name!r} is negative.")


def check_numbers(X: Floats, names: Sequence[str], dtype: np.dtype[Any], first_row: int) -> None:
    """Raise if a number is not finite, or if its square would overflow."""
    limit = LARGEST[dtype]
    if X.max() <= limit and X.min() >= -limit:
        return
    with np.errstate(invalid="ignore"):
        row, j = (int(place) for place in np.argwhere(~(np.abs(X) <= limit))[0])
    value = X[row, j]
    fault = f"the value {value:g}, whose square overflows" if np.isfinite(value) else f"{value}"
    raise ValueError(f"Row {first_row + row}: column {names[j]!r} has {fault}; fix, fill or rescale it.")


def _places_by_column(features: Sequence[Feature]) -> list[tuple[str, Any]]:
    """Columns of the table, each with its place in X, or the places of its levels."""
    found: dict[str, Any] = {}
    for place, (column, level) in enumerate(features):
        if level is None:
            found[column] = place
        else:
            found.setdefault(column, {})[level] = place
    return list(found.items())


def _index_columns(schema: Any) -> list[str]:
    """Columns that are the index of a pandas frame."""
    kept = (schema.pandas_metadata or {}).get("index_columns", ())
    return [name for name in kept if isinstance(name, str)]


def _is_other_string(types: Any, kind: Any) -> bool:
    return bool(types.is_large_string(kind) or types.is_string_view(kind))
