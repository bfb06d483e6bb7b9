"""What an object in a file may hold: one description per class, checked in one place when a file is read.

A class that can be saved has a `_schema`: a field for each attribute, and rules for what fields have to do with each
other. Sizes have names, and a name stands for the same number throughout an object:

    class Batch:
        _schema = Schema(_X=Array("size", "d"), _y=Array("size"), _n=Count(below="size"))

A subclass has the fields of its bases and its own. Loops trust what was checked here, so a field says all that they
rely on: kind, shape, range, and whether anything else in the file may have the same array or object.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

# Larger counts are never reached, and a little more than this is still exact as a float.
MOST = 2**52
FINITE = sys.float_info.max
HEAP_TYPE = 1 << 9  # a flag of classes that are written in Python

Sizes = dict[str, int]
# Whether an object is referred to only once in the file.
Owned = Callable[[Any], bool]
Bound = int | float | str


class CheckpointError(ValueError):
    """The bytes are not what this package wrote."""


class Field:
    """What an attribute may be."""

    #: Whether an object may do without it.
    optional = False

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether this value may stand here; names of sizes that are met for the first time are taken down."""
        raise NotImplementedError

    def __or__(self, other: "Field | None") -> "Field":
        return Either(self, Nothing() if other is None else other)


class Either(Field):
    """One of several fields. Write ``Count() | None``."""

    def __init__(self, *fields: Field) -> None:
        self._fields = fields

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it fits one of them."""
        return any(field.fits(value, sizes, owned) for field in self._fields)


class Maybe(Either):
    """An attribute that need not be there."""

    optional = True


class Nothing(Field):
    """None."""

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is None."""
        return value is None


class Anything(Field):
    """Whatever can be in a file: for plain values that are checked where they are used, as parameters are."""

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """True."""
        return True


class Flag(Field):
    """True or False."""

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is a truth value."""
        return type(value) in (bool, np.bool_)


class Text(Field):
    """A text, or one of some."""

    def __init__(self, *choices: str) -> None:
        self._choices = choices

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is such a text."""
        return type(value) is str and (not self._choices or value in self._choices)


class Count(Field):
    """An integer from `least` to `most`, each a number, the name of a size, or the name of a count that comes before.

    Parameters
    ----------
    least, most : int or str
    below : int or str, optional
        In place of `most`: what it must not reach.
    """

    def __init__(self, least: Bound = 0, most: Bound = MOST, below: Bound | None = None) -> None:
        self._least, self._most, self._below = least, most, below

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is an integer in this range."""
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            return False
        if self._below is not None and not value < _number(self._below, sizes):
            return False
        return bool(_number(self._least, sizes) <= value <= _number(self._most, sizes))


class Number(Field):
    """A float of this range, finite unless the range is not; or, if `nan`, one that is none."""

    def __init__(self, least: float = -FINITE, most: float = FINITE, nan: bool = False) -> None:
        self._least, self._most, self._nan = least, most, nan

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is a float in this range."""
        if not isinstance(value, float | np.floating):
            return False
        number = float(value)
        return self._least <= number <= self._most or (self._nan and number != number)


class Array(Field):
    """An array, in C order, with numbers of one kind in a range.

    Parameters
    ----------
    *shape : int or str
        Each side: a number, or the name of a size.
    dtype : str
        Such as "f8"; several, if there is a choice, with spaces between.
    least, most, below : int, float or str, optional
        The range, of all values. Without any, floats are finite.
    nan : bool, default=False
        Whether values may be NaN.
    ascending : bool, default=False
        Whether each value must be larger than the one before.
    shared : bool, default=False
        Whether something else in the file may refer to the same array.
    """

    def __init__(
        self,
        *shape: int | str,
        dtype: str = "f8",
        least: Bound | None = None,
        most: Bound | None = None,
        below: Bound | None = None,
        nan: bool = False,
        ascending: bool = False,
        shared: bool = False,
    ) -> None:
        self._shape, self._dtypes = shape, tuple(map(np.dtype, dtype.split()))
        self._least, self._most, self._below = least, most, below
        self._nan, self._ascending, self._shared = nan, ascending, shared

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is such an array."""
        if type(value) is not np.ndarray or value.dtype not in self._dtypes or value.ndim != len(self._shape):
            return False
        if not value.flags.c_contiguous or not (self._shared or owned(value)):
            return False
        for length, side in zip(value.shape, self._shape, strict=True):
            if length != (side if isinstance(side, int) else sizes.setdefault(side, length)):
                return False
        return self._within(value, sizes) and not (self._ascending and bool((value[1:] <= value[:-1]).any()))

    def _within(self, value: Any, sizes: Sizes) -> bool:
        if self._nan:
            value = value[~np.isnan(value)]
        if not value.size:
            return True
        low, high = value.min().item(), value.max().item()  # NaN, if there is one: it is in no range
        if self._below is not None and not high < _number(self._below, sizes):
            return False
        least, most = self._least, self._most
        least, most = -FINITE if least is None else least, FINITE if most is None else most
        return bool(_number(least, sizes) <= low) and bool(high <= _number(most, sizes))


class Labels(Field):
    """A vector of texts, or of what else can be a label."""

    def __init__(self, length: str, kinds: str = "UO", objects: tuple[type, ...] = (str,)) -> None:
        self._length, self._kinds, self._objects = length, kinds, objects

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is such a vector."""
        if type(value) is not np.ndarray or value.ndim != 1 or value.dtype.kind not in self._kinds:
            return False
        if value.dtype.kind == "O" and not all(isinstance(name, self._objects) for name in value):
            return False
        return len(value) == sizes.setdefault(self._length, len(value))


class Is(Field):
    """An object of one of these classes, itself checked before.

    Parameters
    ----------
    *kinds : type
    shared : bool, default=False
        Whether something else in the file may refer to the same object.
    """

    def __init__(self, *kinds: Any, shared: bool = False) -> None:
        self._kinds, self._shared = kinds, shared

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is such an object."""
        return type(value) in self._kinds and (self._shared or owned(value))


class Of(Field):
    """A value of one of these classes or of one derived from them, which may be shared, for it never changes."""

    def __init__(self, *kinds: type) -> None:
        self._kinds = kinds

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is such a value."""
        return isinstance(value, self._kinds)


class List(Field):
    """A list that nothing else refers to."""

    def __init__(self, item: Field) -> None:
        self._item = item

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is such a list."""
        return type(value) is list and owned(value) and all(self._item.fits(one, sizes, owned) for one in value)


class Tuple(Field):
    """A tuple with these items; of any length with items like `each`, if that is given."""

    def __init__(self, *items: Field, each: Field | None = None) -> None:
        self._items, self._each = items, each

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is such a tuple."""
        if type(value) is not tuple or (self._each is None and len(value) != len(self._items)):
            return False
        items = self._items if self._each is None else (self._each,) * len(value)
        return all(item.fits(one, sizes, owned) for item, one in zip(items, value, strict=True))


class Dict(Field):
    """A dictionary that nothing else refers to: with exactly these keys, or any that fit."""

    def __init__(self, item: Field, keys: Field | tuple[str, ...]) -> None:
        self._item, self._keys = item, keys

    def fits(self, value: Any, sizes: Sizes, owned: Owned) -> bool:
        """Whether it is such a dictionary."""
        if type(value) is not dict or not owned(value):
            return False
        if not isinstance(self._keys, tuple):
            keys = all(self._keys.fits(key, sizes, owned) for key in value)
        else:
            keys = set(value) == set(self._keys)
        return keys and all(self._item.fits(one, sizes, owned) for one in value.values())


Rule = Callable[[Any], Any]
Kind = TypeVar("Kind", bound=type)


class Schema:
    """The description of a class.

    Parameters
    ----------
    *rules : callable
        What the fields have to do with each other: each gets the object once all fields fit, and returns whether it
        is consistent.
    **fields : Field
        By name. What is not `optional` must be there, and nothing else may.
    """

    def __init__(self, *rules: Rule, **fields: Field) -> None:
        self.rules, self.fields = rules, fields
        self.whole = True  # whether objects of the class itself are saved; otherwise it has what subclasses share


def part(*rules: Rule, **fields: Field) -> Schema:
    """The part of a description that several classes share; their common base is not saved itself."""
    result = Schema(*rules, **fields)
    result.whole = False
    return result


def described(*rules: Rule, **fields: Field) -> Callable[[Kind], Kind]:
    """A decorator that gives a named tuple its description."""

    def describe(kind: Kind) -> Kind:
        kind._schema = Schema(*rules, **fields)  # type: ignore[attr-defined]
        return kind

    return describe


def describes(kind: Any) -> bool:
    """Whether objects of a class may be in files."""
    return getattr(vars(kind).get("_schema"), "whole", False)


@cache
def _merged(kind: Any) -> tuple[dict[str, Field], tuple[Rule, ...], frozenset[str]]:
    """Fields and rules of a class and its bases, and the parameters, for an estimator.

    Parameters are all that an estimator has before it is fitted. They were chosen by the user, so they can be anything.
    """
    schemas = [vars(base)["_schema"] for base in reversed(kind.__mro__) if "_schema" in vars(base)]
    parameters = frozenset(getattr(kind, "_parameter_constraints", ()))
    fields: dict[str, Field] = dict.fromkeys(parameters, Anything())
    for schema in schemas:
        fields |= schema.fields
    return fields, tuple(rule for schema in schemas for rule in schema.rules), parameters


def check(kind: Any, values: dict[str, Any], instance: Any, owned: Owned) -> None:
    """Raise CheckpointError unless an object of a class may have these attributes.

    Parameters
    ----------
    kind : type
    values : dict
        By name.
    instance : object or None
        What rules look at: something with these attributes. None shows them no more than `contents` does.
    owned : callable
        Whether a value is referred to only once in the file.
    """
    fields, rules, parameters = _merged(kind)
    if parameters and not any(name in values for name in fields.keys() - parameters if not fields[name].optional):
        fields, rules = {name: field for name, field in fields.items() if name in parameters or field.optional}, ()
    for name in _differences(fields, values):
        raise CheckpointError(f"its {kind.__name__} {'has' if name in values else 'lacks'} {str(name)[:50]!r}.")
    sizes: Sizes = {}
    for name, field in fields.items():
        if name not in values:
            continue
        value = values[name]
        if not field.fits(value, sizes, owned):
            raise CheckpointError(f"{name!r} of its {kind.__name__} is not what it can be.")
        if isinstance(value, int):
            sizes.setdefault(name, value)
    if rules and instance is None:
        instance = _shown(values)
    with np.errstate(all="ignore"):  # numbers may be such that sums of them overflow
        for rule in rules:
            if not rule(instance):
                raise CheckpointError(f"the parts of its {kind.__name__} do not fit together.")


def is_kernel(kind: Any) -> bool:
    """Whether a class is compiled: such a class says itself what is to be kept."""
    return not kind.__flags__ & HEAP_TYPE and "_schema" in vars(kind)


def contents(kernel: Any) -> SimpleNamespace:
    """What a compiled object keeps, by name, for rules; what is compiled in it, likewise."""
    return _shown(kernel.__getstate__())


def _shown(values: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(
        **{name: contents(value) if is_kernel(type(value)) else value for name, value in values.items()}
    )


def _differences(fields: dict[str, Field], values: dict[str, Any]) -> Iterator[str]:
    yield from (name for name in values if name not in fields)
    yield from (name for name, field in fields.items() if not field.optional and name not in values)


def _number(bound: Bound, sizes: Sizes) -> Any:
    return sizes[bound] if isinstance(bound, str) else bound
