"""A short memory of how a stream went: what was chosen when."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher._utils.records import Records
from thresher.io.schema import Array, Count, Is, Schema
from thresher.summaries.gram import Gram

# So many records are kept of a stream that forgets, in which choices never become rarer; then every other one.
MOST_RECORDS = 1000
# Summaries of the support are kept at choices this factor apart, back to this share of the samples.
PARTS_APART, OLDEST_PART = 1.2, 0.125


@dataclass(frozen=True, eq=False, repr=False)
class Record:
    """What was chosen after some samples.

    Attributes
    ----------
    n_samples : int
        Samples until then.
    size : int
        The size in use.
    support : ndarray of int
        Places of the nonzero coefficients; none are kept of a matrix.
    values : ndarray
        Those coefficients.
    part : summary or None
        The summary of the features in the support; kept for some of the recent records.
    """

    _schema = Schema(
        lambda record: record.part is None or record.part.n_features == len(record.support),
        lambda record: record.part is None or record.part.n_samples == record.n_samples,
        n_samples=Count(),
        size=Count(),
        support=Array("support", dtype="i8", least=0, ascending=True, shared=True),
        values=Array("support", shared=True),
        part=Is(Gram) | None,
    )
    n_samples: int
    size: int
    support: Integers
    values: Floats
    part: Any

    def __repr__(self) -> str:
        return f"Record(n_samples={self.n_samples}, size={self.size}, support={self.support.tolist()})"


class History(Records[Record]):
    """Records of a stream, the oldest first. A list that prints as a table.

    Parameters
    ----------
    records : iterable of Record
    names : sequence of str, optional
        The names of the features.

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> model = SparseRegressor().partial_fit(*SparseLinearStream(30, 3, signal=1.0, seed=4).draw(9))
    >>> model.selection_history_
    rows  size  came  left
       1     0
       2     0
       3     0
       4     0
       5     0
       7     1  x8
       9     2  x17
    """

    _columns = (("size", "size", ""),)


def follows(history: Sequence[Record], n_samples: int, n_features: int | None) -> bool:
    """Whether these may be the records of a stream of so many samples; matrices have no support."""
    counts = [record.n_samples for record in history]
    most = 0 if n_features is None else n_features
    ordered = all(before <= after for before, after in zip(counts, [*counts[1:], n_samples], strict=False))
    return ordered and all(
        not len(record.support) or (record.support[-1] < most and record.size <= most) for record in history
    )


def note(history: list[Record], summary: Any, size: int, support: Integers, values: Floats) -> None:
    """Add a record of how things stand; only a few recent ones keep a summary, so that memory is O(s^2)."""
    n, newest, part = summary.n_samples, 0, None
    for i in range(len(history) - 1, -1, -1):
        record = history[i]
        if record.part is not None:
            newest = max(newest, record.n_samples)
            if record.n_samples < n * OLDEST_PART:
                history[i] = replace(record, part=None)
        if record.n_samples < n * OLDEST_PART / 2:  # older ones have lost theirs, for choices are no further apart
            break
    if len(support) and hasattr(summary, "select") and n >= PARTS_APART * newest and not summary.forgets:
        part = summary.select(support)
    if summary.forgets and len(history) >= MOST_RECORDS:
        del history[: MOST_RECORDS // 2 : 2]
    history.append(Record(n, size, support, values, part))


def stability(history: Sequence[Record], n_samples: int, n_features: int) -> Floats:
    """How often each feature was kept, between 0 (never) and 1 (always); sample t counts for t."""
    kept, total = np.zeros(n_features), 0.0
    ends = [*(record.n_samples for record in history[1:]), n_samples + 1]
    for record, end in zip(history, ends, strict=True):
        span = float(end * (end - 1) - record.n_samples * (record.n_samples - 1))  # twice the sum of t on the way
        kept[record.support] += span
        total += span
    share: Floats = kept / (total or 1.0)
    return share
