"""Rows of an Arrow table for a Gram, or for a MultiResponse."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from thresher._utils.arrow import Block, Table
from thresher._utils.locks import lock_of
from thresher._utils.threads import blas_threads_for

if TYPE_CHECKING:
    from thresher.summaries.gram import Gram
    from thresher.summaries.multiresponse import MultiResponse


def are_names(y: Any) -> bool:
    """Whether y names one column or several, instead of holding the responses."""
    if isinstance(y, str):
        return True
    return isinstance(y, list | tuple) and len(y) > 0 and all(isinstance(name, str) for name in y)


def refuse_names(sample_weight: Any, features: Any, times: Any = None) -> None:
    """Raise if columns are named, and y is an array."""
    if features is not None or isinstance(sample_weight, str) or isinstance(times, str):
        raise ValueError("Names of columns go with an Arrow table X and y as the name of a column.")


def column_name(given: Any, parameter: str) -> str | None:
    """The name of a column, if there is one."""
    if given is not None and not isinstance(given, str):
        raise ValueError(f"With y as the name of a column, {parameter} must be the name of a column, too.")
    return given


def absorb_table(
    summary: "Gram | MultiResponse",
    gram: "Gram",
    X: Any,
    y: str | Sequence[str],
    sample_weight: Any,
    features: Sequence[str] | None,
    times: Any,
) -> None:
    """Add all rows of a table to a summary that keeps them in a Gram; or none, if there is a bad one among them."""
    weight, time = column_name(sample_weight, "sample_weight"), column_name(times, "times")
    table = Table(X, y, weight, features, gram.dtype, features is not None, time)
    if features is None and any(feature.level is not None for feature in table.features):
        raise ValueError(
            "The table has columns of categories, and a summary has no names to tell their levels by; give all "
            "features by name, such as features=['size', 'colour=red']."
        )
    if len(table.names) != summary.n_features:
        raise ValueError(f"The table has {len(table.names)} features; the summary has {summary.n_features}.")
    table.warn_of_unused()
    blocks = iter(table)
    first, second = next(blocks), next(blocks, None)
    with lock_of(summary), lock_of(gram), blas_threads_for(gram.n_features):
        if second is None:  # one block is checked as a whole
            _absorb(summary, first)
            return
        before = gram.copy()
        try:
            for block in chain((first, second), blocks):
                _absorb(summary, block)
        except Exception:
            gram._state, gram._window = before._state, before._window
            raise


def _absorb(summary: "Gram | MultiResponse", block: Block) -> None:
    assert block.y is not None
    summary.absorb_checked(block.X, block.y, block.weights, summary.check_times(block.times, len(block.y)))
