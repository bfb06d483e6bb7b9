"""A short memory of how a stream went: what was chosen when."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thresher._utils.arrays import Floats, Integers

# Summaries of the support are kept at choices this factor apart, back to this share of the samples.
PARTS_APART, OLDEST_PART = 1.2, 0.125


@dataclass(frozen=True, eq=False)
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

    n_samples: int
    size: int
    support: Integers
    values: Floats
    part: Any


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
    if len(support) and hasattr(summary, "select") and n >= PARTS_APART * newest:
        part = summary.select(support)
    history.append(Record(n, size, support, values, part))


def stability(history: list[Record], n_samples: int, n_features: int) -> Floats:
    """How often each feature was kept, between 0 (never) and 1 (always); sample t counts for t."""
    kept, total = np.zeros(n_features), 0.0
    ends = [*(record.n_samples for record in history[1:]), n_samples + 1]
    for record, end in zip(history, ends, strict=True):
        span = float(end * (end - 1) - record.n_samples * (record.n_samples - 1))  # twice the sum of t on the way
        kept[record.support] += span
        total += span
    share: Floats = kept / (total or 1.0)
    return share
