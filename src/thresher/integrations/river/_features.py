"""Dictionaries and data frames as rows of numbers: which feature is which column, numbered as features appear."""

import math
import struct
from collections.abc import Hashable, Mapping
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher._utils.checks import LARGEST, check_finite
from thresher.summaries._buffer import all_within

Name = Hashable


class Layout(NamedTuple):
    """Where the features of a row go, for all rows with the same keys in the same order."""

    keys: list[Name]
    new: list[Name]  # features that have no column yet, in the order in which they get one
    places: NDArray[np.intp]  # the columns of the keys
    order: NDArray[np.intp] | None  # the keys in the order of the columns, if these are the first columns
    packing: struct.Struct  # turns that many numbers into their bytes, and rejects anything else


class Columns:
    """The features seen so far. A feature keeps its column; one that a row does not have is zero there.

    New features of one row get their columns in sorted order, so that the order within a dictionary does not matter.
    """

    def __init__(self) -> None:
        self.names: list[Name] = []
        self.texts = True  # whether all names are
        self._places: dict[Name, int] = {}
        self._last = self._layout([])

    def __getstate__(self) -> dict[str, list[Name]]:
        return {"names": self.names}  # all the rest follows; a bare empty list would not be given back

    def __setstate__(self, state: dict[str, list[Name]]) -> None:
        self.__init__()  # type: ignore[misc]
        self.add(state["names"])

    def add(self, new: list[Name]) -> None:
        """Give features a column each, from the first one that is free."""
        first = len(self.names)
        self.names.extend(new)
        self.texts = self.texts and all(isinstance(name, str) for name in new)
        self._places.update(zip(new, range(first, first + len(new)), strict=True))

    def cut(self, n_columns: int) -> None:
        """Take the columns from `n_columns` on away from their features."""
        for name in self.names[n_columns:]:
            del self._places[name]
        del self.names[n_columns:]
        self.texts = all(isinstance(name, str) for name in self.names)

    def row(self, x: Mapping[Name, Any], dtype: np.dtype[Any]) -> tuple[Floats, list[Name]]:
        """A dictionary as a row of all features including its new ones, and those; nothing is changed.

        Features whose keys are those of the last row are not looked up again. O(d), with no Python per feature.
        """
        layout = self._layout_of(list(x))
        try:
            values = np.frombuffer(layout.packing.pack(*x.values()))
        except (struct.error, TypeError, OverflowError):
            for name, value in x.items():
                check_number(name, value)
            raise
        # No features at all yet: a column of zeros, which the first feature will take.
        width = max(len(self.names) + len(layout.new), 1)
        if layout.order is not None and len(values) == width:
            result = values.take(layout.order).reshape(1, -1)
        else:
            result = np.zeros((1, width))
            result[0, layout.places] = values
        if not all_within(result.ravel(), LARGEST[dtype]):
            for name, value in x.items():
                check_number(name, value, LARGEST[dtype])
        return result, layout.new

    def rows(self, names: list[Name], matrix: Floats, dtype: np.dtype[Any]) -> tuple[Floats, list[Name]]:
        """A matrix with named columns as rows of all features including new ones, and those; nothing is changed."""
        layout = self._layout_of(names)
        result = np.zeros((len(matrix), max(len(self.names) + len(layout.new), 1)))
        result[:, layout.places] = matrix
        if not all_within(result.ravel(), LARGEST[dtype]):
            for name, column in zip(names, matrix.T, strict=True):
                check_finite(column, f"Feature {name!r}")
                check_number(name, column[np.argmax(np.abs(column))], LARGEST[dtype])
        return result, layout.new

    def _layout_of(self, keys: list[Name]) -> Layout:
        if keys != self._last.keys or self._last.new:  # those have their columns by now, or never got any
            self._last = self._layout(keys)
        return self._last

    def _layout(self, keys: list[Name]) -> Layout:
        places = np.fromiter(map(self._places.get, keys, repeat(-1)), np.intp, len(keys))
        missing = np.flatnonzero(places < 0).tolist()
        new = in_order([keys[i] for i in missing])
        to_come = dict(zip(new, range(len(self.names), len(self.names) + len(new)), strict=True))
        for i in missing:
            places[i] = to_come[keys[i]]
        order = np.argsort(places) if len(keys) and places.max() == len(keys) - 1 else None
        return Layout(keys, new, places, order, struct.Struct(f"{len(keys)}d"))


def in_order(names: list[Name]) -> list[Name]:
    """Names in an order that depends on nothing but the names, of whatever types they are."""
    if len({type(name) for name in names}) <= 1 and isinstance(names[0] if names else "", str | int | float):
        return sorted(names)  # type: ignore[type-var]
    return sorted(names, key=lambda name: (type(name).__name__, repr(name)))


def check_number(name: Name, value: Any, limit: float = math.inf) -> None:
    """Raise if the value of a feature is not a number, not finite or too large, naming the feature and the remedy."""
    what = f"Feature {name!r}"
    if value is None:
        raise ValueError(
            f"{what} is None; leave a feature that is missing out of the row, where it counts as zero, or fill it "
            "first, for instance by river.preprocessing.StatImputer."
        )
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        number = float(value)
    except TypeError:
        raise ValueError(
            f"{what} is {value!r}, which is not a number; encode it first, for instance by "
            "river.preprocessing.OneHotEncoder."
        ) from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(
            f"{what} is {value!r:.40}; leave such a row out or fill the value first, for instance by "
            "river.preprocessing.StatImputer."
        )
    if abs(number) > limit:
        raise ValueError(f"{what} is {number:.3g}, whose square overflows; rescale it.")
