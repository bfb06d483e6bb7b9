"""Rows of an Arrow table for a Gram."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from thresher._utils.arrow import Table
from thresher._utils.locks import lock_of
from thresher._utils.threads import blas_threads_for
from thresher.summaries._combining import copied

if TYPE_CHECKING:
    from thresher.summaries.gram import Gram


def absorb_table(gram: "Gram", X: Any, y: str, sample_weight: Any, features: Sequence[str] | None) -> None:
    """Add all rows of a table, or none if there is a bad one among them."""
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ValueError("With y as the name of a column, sample_weight must be the name of a column, too.")
    table = Table(X, y, sample_weight, features, gram.dtype, lenient=features is not None)
    if features is None and any(feature.level is not None for feature in table.features):
        raise ValueError(
            "The table has columns of categories, and a summary has no names to tell their levels by; give all "
            "features by name, such as features=['size', 'colour=red']."
        )
    if len(table.names) != gram.n_features:
        raise ValueError(f"The table has {len(table.names)} features; the summary has {gram.n_features}.")
    blocks = iter(table)
    first, second = next(blocks), next(blocks, None)
    with lock_of(gram), blas_threads_for(gram.n_features):
        if second is None:  # one block is checked as a whole
            gram.absorb_checked(*first)  # type: ignore[arg-type]
            return
        before = copied(gram.state, gram.empty().state.scatter)
        try:
            for block in chain((first, second), blocks):
                gram.absorb_checked(*block)  # type: ignore[arg-type]
        except Exception:
            gram._state = before
            raise
