"""Names of features, and the columns that they come from."""

from collections.abc import Iterable, Sequence
from typing import Any


def name_of(feature: int, names: Sequence[Any] | Any | None) -> str:
    """The name of a feature; x0, x1, ... if features have none."""
    return f"x{feature}" if names is None else str(names[feature])


def column_of(feature: str, columns: Iterable[str]) -> str | None:
    """The column of which a feature such as "colour=red" is a level; the longest that fits, or None."""
    return max((column for column in columns if feature.startswith(f"{column}=")), key=len, default=None)
