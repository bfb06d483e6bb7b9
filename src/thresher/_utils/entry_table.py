"""Observed entries of a matrix, such as (user, item, rating), from anything that speaks Arrow."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.arrow import (
    DOUBLE,
    check_no_nulls,
    check_numbers,
    check_weight_column,
    import_pyarrow,
    is_numeric,
    is_table,
)
from thresher._utils.checks import check_range

# Entries that are read at a time.
MOST_ENTRIES = 1 << 16


class EntryBlock(NamedTuple):
    """Some observed entries: places as indices or as names, values, and weights if there are any."""

    rows: Any
    cols: Any
    values: Any
    weights: Floats | None


class EntryColumns(NamedTuple):
    """Which columns have the places, the values (None to predict them) and the weights of entries."""

    row: str
    col: str
    value: str | None = None
    weight: str | None = None

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        return [name for name in self if name is not None]

    def check(self) -> None:
        """Raise unless these are names, each once."""
        for what, name in zip(("rows", "cols", "values", "sample_weight"), self, strict=True):
            if name is not None and not isinstance(name, str):
                raise ValueError(f"With data, {what} must be the name of a column, got a {type(name).__name__}.")
            if name is not None and self.names.count(name) > 1:
                raise ValueError(f"Column {name!r} is named twice; name each column once.")


def refuse_names(*columns: Any) -> None:
    """Raise if columns are named, and there is no table."""
    for name in columns:
        if isinstance(name, str):
            raise ValueError(f"{name!r} is the name of a column; give the table that has it as data=.")


def entry_blocks(
    data: Any, columns: EntryColumns, shape: tuple[int, int] | None = None, ids: bool = True
) -> Iterator[EntryBlock]:
    """The entries of a table, some at a time.

    Parameters
    ----------
    data : object with ``__arrow_c_stream__``
    columns : EntryColumns
    shape : tuple of int, optional
        What indices must be below.
    ids : bool, default=True
        Whether places may be names, in columns of texts; otherwise they are indices.
    """
    pa = import_pyarrow()
    columns.check()
    if not is_table(data):
        raise TypeError(
            f"data is a {type(data).__name__}, which has no columns to name; pass an Arrow table, a data frame or "
            "another object with __arrow_c_stream__."
        )
    reader = pa.RecordBatchReader.from_stream(data)
    known = reader.schema.names
    for name in columns.names:
        if known.count(name) != 1:
            fault = "no column" if name not in known else "more than one column"
            raise ValueError(f"The table has {fault} {name!r}; it has {', '.join(map(repr, known[:8]))}.")
    found = False
    for block in blocks_of(reader, columns, shape, ids):
        found = True
        yield block
    if not found:
        raise ValueError("The table has no rows.")


def blocks_of(
    batches: Iterable[Any], columns: EntryColumns, shape: tuple[int, int] | None, ids: bool
) -> Iterator[EntryBlock]:
    """The entries of some Arrow record batches that have these columns."""
    first_row = 1
    for batch in batches:
        for start in range(0, batch.num_rows, MOST_ENTRIES):
            piece = batch.slice(start, MOST_ENTRIES)
            yield _block(piece, columns, shape or (None, None), ids, first_row)
            first_row += piece.num_rows


def _block(batch: Any, columns: EntryColumns, shape: Any, ids: bool, first_row: int) -> EntryBlock:
    rows, cols = (
        _places(batch.column(name), name, below, ids, first_row)
        for name, below in zip((columns.row, columns.col), shape, strict=True)
    )
    values, weights = (_numbers(batch, name, first_row) for name in (columns.value, columns.weight))
    if weights is not None:
        check_weight_column(weights, str(columns.weight), first_row)
    if values is not None:
        check_range(np.empty(0), values, weights, DOUBLE)
    return EntryBlock(rows, cols, values, weights)


def _numbers(batch: Any, name: str | None, first_row: int) -> Floats | None:
    if name is None:
        return None
    pa, column = import_pyarrow(), batch.column(name)
    if not is_numeric(column.type):
        raise ValueError(f"Column {name!r} has values of type {column.type}, and numbers are needed there.")
    check_no_nulls(column, name, first_row)
    numbers = np.ascontiguousarray(column.cast(pa.float64(), safe=False).to_numpy())
    check_numbers(numbers[:, None], [name], DOUBLE, first_row)
    return numbers


def _places(column: Any, name: str, below: int | None, ids: bool, first_row: int) -> Any:
    """Indices, or names as an array of objects."""
    pa = import_pyarrow()
    types, kind = pa.types, column.type
    if types.is_dictionary(kind):
        names = column.dictionary
        if types.is_string_view(names.type):  # which cannot be decoded
            names = names.cast(pa.string())
        column = pa.DictionaryArray.from_arrays(column.indices, names).dictionary_decode()
        kind = column.type
    check_no_nulls(column, name, first_row)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        if not ids:
            raise ValueError(f"Column {name!r} has names, and indices from zero are needed there; number them first.")
        return column.to_numpy(zero_copy_only=False)
    if types.is_integer(kind) or types.is_floating(kind):  # numbering in other tools often gives doubles
        numbers = column.to_numpy(zero_copy_only=False)
        bad = (numbers < 0) | (numbers != np.floor(numbers)) | (numbers >= (2**53 if below is None else below))
        if bad.any():
            row = int(bad.argmax())
            limit = "" if below is None else f" below {below}"
            raise ValueError(
                f"Row {first_row + row}: column {name!r} has {numbers[row]:g}; indices are whole numbers from zero"
                f"{limit}."
            )
        return numbers.astype(np.intp)
    raise ValueError(f"Column {name!r} has values of type {kind}; indices from zero or names are needed there.")
