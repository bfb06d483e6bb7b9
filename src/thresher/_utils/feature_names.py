"""Names of features, and the columns that they come from."""

from collections.abc import Iterable, Sequence
from typing import Any

from thresher._utils.warnings import warn_caller


def name_of(feature: int, names: Sequence[Any] | Any | None) -> str:
    """The name of a feature; x0, x1, ... if features have none."""
    return f"x{feature}" if names is None else str(names[feature])


def column_of(feature: str, columns: Iterable[str]) -> str | None:
    """The column of which a feature such as "colour=red" is a level; the longest that fits, or None."""
    return max((column for column in columns if feature.startswith(f"{column}=")), key=len, default=None)


def some_of(names: Sequence[Any]) -> str:
    """At most eight names, and how many more there are."""
    shown = ", ".join(repr(str(name)) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def warn_of_unused(columns: Sequence[Any], to_use: str) -> None:
    """Warn once of columns that are no features because of their types, and say how to use them."""
    if not columns:
        return
    one = len(columns) == 1
    warn_caller(
        f"The column{'' if one else 's'} {some_of(columns)} {'is' if one else 'are'} left out of the features, because "
        f"of {'its type' if one else 'their types'}; {to_use}, or name the features to use with features=[...].",
        UserWarning,
    )
