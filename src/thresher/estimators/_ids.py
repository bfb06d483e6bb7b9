"""Names of rows and columns, numbered as they first appear."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.io.schema import Count, Dict, Of, Schema

Indices = NDArray[np.intp]


class IdMap:
    """A stable numbering of ids: an id keeps its number for ever."""

    _schema = Schema(
        lambda ids: list(ids._numbers.values()) == list(range(len(ids._numbers))),
        _numbers=Dict(Count(), keys=Of(str, int, bytes)),
    )

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def ids(self) -> list[Any]:
        """All ids, in the order of their numbers."""
        return list(self._numbers)

    def numbered(self, ids: list[Any]) -> tuple[Indices, dict[Any, int]]:
        """Numbers of the ids, and the ids among them that are new, with theirs. Changes nothing."""
        fresh: dict[Any, int] = {}
        known, next_number = self._numbers, len(self._numbers)
        numbers = np.empty(len(ids), np.intp)
        for place, name in enumerate(ids):
            number = known.get(name)
            if number is None:
                number = fresh.setdefault(name, next_number + len(fresh))
            numbers[place] = number
        return numbers, fresh

    def learn(self, fresh: dict[Any, int]) -> None:
        """Take up new ids."""
        self._numbers.update(fresh)

    def look_up(self, ids: list[Any]) -> Indices:
        """Numbers of the ids, -1 for those never seen."""
        return np.array([self._numbers.get(name, -1) for name in ids], np.intp)


def as_ids(values: Any, name: str) -> list[Any]:
    """A list of ids, or an error."""
    shape = np.shape(values)
    if len(shape) != 1:
        raise ValueError(f"{name} has shape {shape}; expected one id per entry.")
    # Not through an array, which would make strings of integers among strings.
    ids = list(values) if isinstance(values, list | tuple) else np.asarray(values).tolist()
    for place, value in enumerate(ids):
        if isinstance(value, bool) or not isinstance(value, str | int | bytes):
            raise ValueError(f"{name} holds {value!r} (first at {place}); ids must be strings or integers.")
    return ids


def are_ids(values: Any) -> bool:
    """Whether these are names rather than indices."""
    return np.asarray(values).dtype.kind in "USO"
