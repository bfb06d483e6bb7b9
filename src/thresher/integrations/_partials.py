"""What a task of a cluster does: the summary of the rows of one partition, and the merge of two summaries.

Engines call these functions in their own tasks. What moves between tasks are the bytes of `io/encoding.py`, never
pickled code.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.arrow import (
    Block,
    Table,
    check_no_nulls,
    check_numbers,
    check_weight_column,
    import_pyarrow,
)
from thresher._utils.checks import check_partner, check_positive_integer, check_range
from thresher._utils.entry_table import EntryColumns, blocks_of
from thresher._utils.threads import one_blas_thread
from thresher._version import __version__
from thresher.selection.cross_validation import folds_by_hash
from thresher.summaries.entries import Entries
from thresher.summaries.gram import Gram
from thresher.summaries.multiresponse import MultiResponse

# How columns become features that are none by default.
TO_USE = "name the levels of columns of texts to use them, such as features=['size', 'colour=red']"


@dataclass(frozen=True)
class Plan:
    """Which columns of the partitions are what, and which summary is wanted.

    Attributes
    ----------
    features : tuple of str, or str
        Names of columns, or the name of one column of vectors.
    targets : tuple of str
        One for a Gram, several for a MultiResponse.
    weight : str or None
    dtype : str
        How co-moments are stored.
    n_folds : int
        How many fold summaries to make, by a hash of the rows; 0 for one summary of all rows.
    version : str
        The version of this package where the work was planned.
    """

    features: tuple[str, ...] | str
    targets: tuple[str, ...]
    weight: str | None = None
    dtype: str = "float64"
    n_folds: int = 0
    version: str = field(default=__version__)

    @property
    def columns(self) -> list[str]:
        """All columns that are read, features as they are named."""
        features = [self.features] if isinstance(self.features, str) else list(self.features)
        return [*features, *self.targets, *([] if self.weight is None else [self.weight])]

    def summary(self, batches: Iterable[Any]) -> Any:
        """The summary of the rows of some Arrow record batches, None if there are none."""
        check_version(self.version)
        batches = iter(batches)
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return None
        everything = chain((first,), batches)
        found: Any = None
        with one_blas_thread():
            for X, y, weights, _ in self._blocks(first.schema, everything):
                if found is None:
                    found = self._new(X.shape[1])
                self._absorb(found, X, y, weights)
        return found

    def _new(self, n_features: int) -> Any:
        if len(self.targets) > 1:
            return MultiResponse(n_features, len(self.targets))
        if self.n_folds:
            return [Gram(n_features, self.dtype) for _ in range(self.n_folds)]
        return Gram(n_features, self.dtype)

    def _absorb(self, found: Any, X: Any, y: Any, weights: Any) -> None:
        if not self.n_folds:
            found.absorb_checked(X, y, weights)
            return
        fold_of = folds_by_hash(X, y, self.n_folds)
        for number, own in enumerate(found):
            mine = np.flatnonzero(fold_of == number)
            if len(mine):
                own.absorb_checked(X[mine], y[mine], None if weights is None else weights[mine])

    def _blocks(self, schema: Any, batches: Iterator[Any]) -> Iterator[Block]:
        dtype = np.dtype(self.dtype)
        if isinstance(self.features, str):
            yield from _vector_blocks(batches, self.features, self.targets, self.weight, dtype)
            return
        reader = import_pyarrow().RecordBatchReader.from_batches(schema, batches)
        target = self.targets if len(self.targets) > 1 else self.targets[0]
        yield from Table(reader, target, self.weight, self.features, dtype, lenient=True)


@dataclass(frozen=True)
class EntriesPlan:
    """Which columns have the places and the values of observed entries of a matrix.

    Without a shape, the matrix is as large as the largest indices.
    """

    row: str
    col: str
    value: str
    weight: str | None = None
    shape: tuple[int, int] | None = None
    version: str = field(default=__version__)

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return EntryColumns(self.row, self.col, self.value, self.weight).names

    def summary(self, batches: Iterable[Any]) -> Any:
        """The summary of the entries of some Arrow record batches, None if there are none."""
        check_version(self.version)
        found: Entries | None = None
        columns = EntryColumns(self.row, self.col, self.value, self.weight)
        for block in blocks_of(batches, columns, self.shape, ids=False):
            reach = self.shape or (int(block.rows.max()) + 1, int(block.cols.max()) + 1)
            found = Entries(reach) if found is None else _fitting(found, reach)
            found.add(*block)
        return found


def merged(left: Any, right: Any) -> Any:
    """Two summaries of the same plan as one, the left one first; neither must be used any more."""
    if isinstance(left, list):
        return [merged(one, other) for one, other in zip(left, right, strict=True)]
    if isinstance(left, Gram) and isinstance(right, Gram):
        return _merged_in_place(left, right)
    if isinstance(left, Entries) and isinstance(right, Entries):
        return _fitting(left, right.shape).merge(_fitting(right, left.shape))
    return left.merge(right)


def _merged_in_place(left: Gram, right: Gram) -> Gram:
    """The same bits as ``left.merge(right)``, without copies of both."""
    check_partner(left, right, "merge", "n_features")
    large, small = (left, right) if left.weight >= right.weight else (right, left)
    return large._add(small, 1.0)


def in_partition(error: ValueError, number: int) -> ValueError:
    """The same error with the number of the partition."""
    fault = str(error)
    where = f", row{fault[3:]}" if fault.startswith("Row ") else f": {fault}"
    return ValueError(f"Partition {number}{where}")


def check_version(planned: str) -> None:
    """Raise unless this worker runs the version that planned the work: bits could differ."""
    if planned != __version__:
        raise ValueError(
            f"The driver runs thresher {planned} and this worker runs {__version__}; install one version everywhere."
        )


def plan_for(
    features: Sequence[str] | str,
    target: str | Sequence[str],
    weight: str | None,
    dtype: str,
    n_folds: int,
) -> Plan:
    """A plan whose parts go together."""
    targets = (target,) if isinstance(target, str) else tuple(target)
    if not targets:
        raise ValueError("target names no column.")
    if n_folds and check_positive_integer(n_folds, "n_folds") < 2:
        raise ValueError(f"n_folds must be 0 or at least 2, got {n_folds}.")
    if len(targets) > 1 and (n_folds or dtype != "float64"):
        raise ValueError("Several targets give one summary in float64; leave n_folds and dtype as they are.")
    if dtype not in ("float64", "float32", np.float64, np.float32):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
    names = features if isinstance(features, str) else tuple(features)
    plan = Plan(names, targets, weight, str(np.dtype(dtype)), n_folds)
    twice = [name for name, count in Counter(plan.columns).items() if count > 1]
    if twice:
        raise ValueError(f"Column {twice[0]!r} is named twice among features, target and weight.")
    if not names:
        raise ValueError("features names no column.")
    return plan


def entries_plan_for(row: str, col: str, value: str, weight: str | None, shape: tuple[int, int] | None) -> EntriesPlan:
    """A plan whose parts go together."""
    EntryColumns(row, col, value, weight).check()
    if shape is not None:
        if not isinstance(shape, tuple | list) or len(shape) != 2:
            raise ValueError(f"shape must be two numbers, rows and columns, got {shape!r}.")
        shape = check_positive_integer(shape[0], "shape"), check_positive_integer(shape[1], "shape")
    return EntriesPlan(row, col, value, weight, shape)


def _fitting(entries: Entries, shape: tuple[int, int]) -> Entries:
    """Entries that have at least this shape."""
    wanted = (max(entries.shape[0], shape[0]), max(entries.shape[1], shape[1]))
    return entries if wanted == entries.shape else entries.resized(wanted)


def _vector_blocks(
    batches: Iterator[Any], column: str, targets: Sequence[str], weight: str | None, dtype: np.dtype[Any]
) -> Iterator[Block]:
    """Rows whose features are one column of lists, all of the same length; without a copy where they are doubles."""
    pa, first_row, width = import_pyarrow(), 1, None
    for batch in batches:
        if not batch.num_rows:
            continue
        vectors = batch.column(column)
        check_no_nulls(vectors, column, first_row)
        values = vectors.flatten()
        lengths = np.diff(vectors.offsets.to_numpy())
        width = int(lengths[0]) if width is None else width
        if (other := lengths != width).any():
            row = int(other.argmax())
            raise ValueError(
                f"Row {first_row + row}: column {column!r} has a vector of length {int(lengths[row])}; the first had "
                f"{width}."
            )
        if width == 0:
            raise ValueError(f"Row {first_row}: column {column!r} has vectors of length 0.")
        if values.null_count:
            row, place = divmod(int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))), width)
            raise ValueError(f"Row {first_row + row}: {column}[{place}] is null; drop or fill such rows first.")
        X = values.cast(pa.float64(), safe=False).to_numpy().reshape(-1, width)
        check_numbers(X, [f"{column}[{j}]" for j in range(width)], dtype, first_row)
        responses = [_column(batch, name, first_row) for name in targets]
        y = responses[0] if len(targets) == 1 else np.column_stack(responses)
        weights = None if weight is None else _column(batch, weight, first_row)
        if weights is not None:
            check_weight_column(weights, str(weight), first_row)
            check_range(X, y, weights, dtype)
        yield Block(X, y, weights)
        first_row += batch.num_rows


def _column(batch: Any, name: str, first_row: int) -> Floats:
    """A column of numbers, all of them there and in range."""
    values = batch.column(name)
    check_no_nulls(values, name, first_row)
    numbers = np.ascontiguousarray(values.cast(import_pyarrow().float64(), safe=False).to_numpy())
    check_numbers(numbers[:, None], [name], np.dtype(np.float64), first_row)
    return numbers
