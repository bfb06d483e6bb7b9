"""Objects of this package as bytes, and back: no pickle, nothing that runs code, nothing used before it is verified.

A file is

    magic (8 bytes)  format (4)  length of the header (8)  header, in JSON  padding  arrays  SHA-256 (32 bytes)

with numbers little-endian, arrays on multiples of 64 bytes, and the SHA-256 over all that precedes it. The header has a
list of nodes, each a container, an array or an object of this package, in which other nodes stand as {"@": number}. So
what is shared stays shared. Arrays are kept bit for bit.

A checksum keeps out accidents, not intent, so the reader takes nothing on trust: it makes what the writer could have
written, of classes that describe what they hold (`io.schema`), and refuses the rest.
"""

import hashlib
import json
import math
import re
import struct
import sys
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from thresher._utils.times import as_microseconds, is_timedelta
from thresher._version import __version__
from thresher.io.schema import CheckpointError, check, describes, is_kernel

MAGIC = b"thresher"
FORMAT = 1
ALIGNMENT = 64
HEAD = struct.Struct("<8sIQ")
DIGEST = 32
# Arrays that are kept as bytes: numbers of sizes that are the same on all machines, and texts.
DTYPE = re.compile(r"\|[biu]1|[<>](?:[iu][248]|f[248]|c8|c16|U[1-9][0-9]{0,8})|\|S[1-9][0-9]{0,8}")
# Where classes that hold state live. Nothing else is imported because a file says so.
CLASS = re.compile(
    r"(thresher\.(?:"
    r"(?:baselines|drift|estimators|online|selection|solvers|sparsity|summaries)\.(?!__)[a-z0-9_]{1,50}"
    r"|io\.sources\.(?:batches|columns)|io\.ingest"
    r")):([A-Za-z0-9_]{1,50})"
)
# Parameters that are types.
TYPES: dict[str, Any] = {"float32": np.float32, "float64": np.float64}
NOT_FINITE = {repr(value): value for value in (math.nan, math.inf, -math.inf)}
LARGEST_CHARACTER = 0x10FFFF
MOST_AXES = 32  # of any NumPy
MOST_NESTED = 100  # containers in containers, so that neither writing nor reading depends on how deep the stack is


class NewerFormatError(CheckpointError):
    """The bytes are of a newer version of this package."""


def encode(value: Any, note: Any = None) -> bytes:
    """Bytes of an object of this package, or of containers of such, with a note that can be read without it.

    Raises TypeError for what cannot be kept, such as functions and classes from elsewhere, and ValueError for an object
    that is not consistent, such as a model with a parameter that cannot be.
    """
    writer = _Writer()
    try:
        root = writer.write(value)
    except CheckpointError as error:
        raise ValueError(f"It cannot be saved as it is: {error}") from error
    header = {
        "library": __version__,
        "note": writer.write(note),
        "root": root,
        "nodes": writer.nodes,
        "arrays": [(array.dtype.str, array.shape, not array.flags.c_contiguous) for array in writer.arrays],
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    parts = [HEAD.pack(MAGIC, FORMAT, len(text)), text]
    size = HEAD.size + len(text)
    for array in writer.arrays:
        padding = -size % ALIGNMENT
        content = array.tobytes("A")
        parts += [bytes(padding), content]
        size += padding + len(content)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return b"".join([*parts, digest.digest()])


def decode(content: bytes | memoryview) -> tuple[Any, Any]:
    """The object and the note, from bytes that are verified first.

    Whatever the bytes are, this returns or raises CheckpointError, and allocates at most 64 times their number plus
    64 kB, not counting modules of this package that are loaded. What this package wrote takes the size of its arrays
    and about thirty times that of its header, which is small.
    """
    try:
        return _decode(memoryview(content))
    except CheckpointError:
        raise
    except ImportError as error:  # of a module that does not exist, or that needs what is not installed
        raise CheckpointError(f"what it holds cannot be loaded here: {error}.") from error
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        raise CheckpointError("its contents are not those of a checkpoint.") from error


def _decode(content: memoryview) -> tuple[Any, Any]:
    if len(content) < HEAD.size + DIGEST or bytes(content[:8]) != MAGIC:
        raise CheckpointError("it is not a checkpoint of thresher, or only a piece of one.")
    if hashlib.sha256(content[:-DIGEST]).digest() != bytes(content[-DIGEST:]):
        raise CheckpointError("it is damaged: its contents do not agree with their checksum.")
    _, version, length = HEAD.unpack_from(content)
    if version > FORMAT:
        raise NewerFormatError(
            f"it has format {version}, and thresher {__version__} reads up to {FORMAT}. Update thresher."
        )
    body = content[: len(content) - DIGEST]
    start = HEAD.size + length
    if version != FORMAT or start > len(body):
        _refuse()
    # In ASCII, as it is written: one other character would make every one take four bytes.
    header = json.loads(str(body[HEAD.size : start], "ascii"), parse_constant=_refuse)
    arrays = []
    for dtype, shape, fortran in _listed(header["arrays"]):
        start += -start % ALIGNMENT
        array, start = _array(body, start, dtype, shape, fortran)
        arrays.append(array)
    if start != len(body):
        raise CheckpointError("it has more bytes than its header says.")
    reader = _Reader(_listed(header["nodes"]), arrays)
    return reader.read(header["root"]), reader.read(header["note"])


def _array(body: memoryview, start: int, name: Any, shape: Any, fortran: Any) -> tuple[Any, int]:
    """An array with memory of its own, and where its bytes end."""
    if type(name) is not str or not DTYPE.fullmatch(name) or not _is_shape(shape):
        raise CheckpointError("it has an array of a kind that is never written.")
    dtype = np.dtype(name)
    end = start + math.prod(shape) * dtype.itemsize
    if end > len(body):
        raise CheckpointError("it has fewer bytes than its header says.")
    array = np.frombuffer(body[start:end], dtype).reshape(shape, order="F" if fortran is True else "C").copy("K")
    if not _is_valid(array):
        _refuse()
    return array, end


def _is_valid(array: Any) -> bool:
    """Whether these bytes stand for values: others than 0 and 1 are no truth values, and not all numbers characters."""
    if array.dtype.kind not in "bU" or array.size == 0:
        return True
    flat = array.ravel("K")
    if array.dtype.kind == "b":
        return bool(flat.view(np.uint8).max() <= 1)
    return bool(flat.view(array.dtype.str[0] + "u4").max() <= LARGEST_CHARACTER)


class _Writer:
    """Nodes for everything that can be shared or nested; numbers and texts stand for themselves."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.arrays: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no identity is given away twice
        self._depth = 0

    def write(self, value: Any) -> Any:
        """What stands for a value in the header."""
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int:
            return value if abs(value) < 2**53 else {"int": str(value)}
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is bytes:
            return {"bytes": value.hex()}
        if is_timedelta(value):  # of NumPy or pandas, too; it is one of Python when it is read again
            return {"timedelta": str(as_microseconds(value))}
        if isinstance(value, type) and value in TYPES.values():
            return {"type": value.__name__}
        if id(value) not in self._numbers:
            self._numbers[id(value)] = number = len(self.nodes)
            self._alive.append(value)
            self.nodes.append(None)
            self._depth += 1
            if self._depth > MOST_NESTED:
                raise TypeError("What is nested so deeply cannot be saved.")
            self.nodes[number] = self._node(value)
            self._depth -= 1
        elif self.nodes[self._numbers[id(value)]] is None:
            raise TypeError("What holds itself cannot be saved.")
        return {"@": self._numbers[id(value)]}

    def _node(self, value: Any) -> Any:
        kind: Any = type(value)
        if isinstance(value, np.ndarray | np.generic):
            return self._numeric(value)
        if kind is list:
            return ["list", [self.write(item) for item in value]]
        if kind is tuple:
            return ["tuple", [self.write(item) for item in value]]
        if kind is dict:
            if not all(map(_is_key, value)):
                raise TypeError("A dictionary with keys other than numbers and texts cannot be saved.")
            return ["dict", [[self.write(key), self.write(item)] for key, item in value.items()]]
        if kind is np.random.Generator and type(value.bit_generator) is np.random.PCG64:
            self.arrays.append(_generator_numbers(value))
            return ["PCG64", len(self.arrays) - 1]
        name = f"{kind.__module__}:{kind.__qualname__}"
        if not CLASS.fullmatch(name) or _class(name) is not kind:
            raise TypeError(
                f"A {kind.__module__}.{kind.__qualname__} cannot be saved: files hold data, not code. Use pickle or "
                "joblib, or set the parameter to a number or an array first and to this again after loading."
            )
        if isinstance(value, tuple):
            check(kind, dict(zip(kind._fields, value, strict=True)), value, _is_fine)
            return ["tuple of", name, [self.write(item) for item in value]]
        if is_kernel(kind):
            values = value.__getstate__()
        else:
            left_out = getattr(kind, "_transient", ())  # what is computed again when it is needed
            values = {key: item for key, item in vars(value).items() if key not in left_out}
        # What is written can be read again: an object that cannot be is refused while it is still in memory.
        check(kind, values, None if is_kernel(kind) else value, _is_fine)
        return ["kernel" if is_kernel(kind) else "object", name, [[key, self.write(values[key])] for key in values]]

    def _numeric(self, value: Any) -> Any:
        if type(value) is np.ndarray and value.dtype.kind == "O" and all(map(_is_key, value.flat)):
            return ["names", list(value.shape), [self.write(item) for item in value.flat]]
        scalar = isinstance(value, np.generic)
        array = np.asarray(value)
        if not (scalar or type(value) is np.ndarray) or not DTYPE.fullmatch(array.dtype.str):
            raise TypeError(f"A {type(value).__name__} of {value.dtype} cannot be saved.")
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            array = np.ascontiguousarray(array)
        self.arrays.append(array)
        return ["scalar" if scalar else "array", len(self.arrays) - 1]


class _Reader:
    """Objects from nodes. What a node refers to is complete and checked before the node is: nothing holds itself."""

    def __init__(self, nodes: list[Any], arrays: list[Any]) -> None:
        self._nodes, self._arrays = nodes, arrays
        self._made: dict[int, Any] = {}
        self._open: set[int] = set()
        self._numbers: dict[int, int] = {}  # of nodes, by the identity of what they stand for
        self._n_references: dict[int, int] = {}
        self._owned: set[int] = set()  # nodes that belong to one object alone

    def read(self, value: Any) -> Any:
        """The value that this stands for."""
        if type(value) is not dict:
            return value if type(value) is not list else _refuse()
        ((kind, content),) = value.items()
        if kind == "@":
            if type(content) is not int or not 0 <= content < len(self._nodes):
                _refuse()
            if content in self._owned:
                _refuse()
            if content not in self._made:
                if content in self._open or len(self._open) >= MOST_NESTED:
                    _refuse()
                self._open.add(content)
                self._made[content] = made = self._make(content)
                self._numbers[id(made)] = content
                self._open.remove(content)
            self._n_references[content] = self._n_references.get(content, 0) + 1
            return self._made[content]
        if type(content) is not str:
            _refuse()
        if kind == "int":
            return int(content)
        if kind == "bytes":
            return bytes.fromhex(content)
        if kind == "timedelta":
            return timedelta(microseconds=int(content))
        if kind == "float":
            return NOT_FINITE[content]
        return TYPES[content] if kind == "type" else _refuse()

    def _make(self, number: int) -> Any:
        kind, *content = _listed(self._nodes[number])
        if kind == "tuple":
            (items,) = content
            return tuple([self.read(item) for item in _listed(items)])
        if kind in ("array", "scalar", "PCG64"):
            (place,) = content
            return self._numeric(kind, self._taken(place))
        if kind == "names":
            shape, items = content
            names = np.empty(len(_listed(items)), object)
            for place, item in enumerate(items):
                names[place] = self._key(item)
            return names.reshape(shape) if _is_shape(shape) else _refuse()
        if kind == "list":
            (items,) = content
            return [self.read(item) for item in _listed(items)]
        if kind == "dict":
            (items,) = content
            return {self._key(key): self.read(item) for key, item in _listed(items)}
        if kind in ("tuple of", "kernel", "object"):
            name, items = content
            return self._instance(kind, _class(name), _listed(items))
        return _refuse()

    def _instance(self, kind: str, found: Any, items: list[Any]) -> Any:
        """An object of a class, once what it is to hold is what the class says it may."""
        if kind != ("tuple of" if issubclass(found, tuple) else "kernel" if is_kernel(found) else "object"):
            _refuse()
        if kind == "tuple of":
            made = tuple.__new__(found, [self.read(item) for item in items])
            check(found, dict(zip(found._fields, made, strict=True)), made, self._is_owned)
            return made
        values = {sys.intern(key): self.read(item) for key, item in items if type(key) is str}
        if len(values) != len(items):
            _refuse()
        made = found.__new__(found)
        if kind == "kernel":
            check(found, values, None, self._is_owned)
            made.__setstate__(values)
        else:
            made.__dict__.update(values)
            check(found, values, made, self._is_owned)
        return made

    def _is_owned(self, value: Any) -> bool:
        """Whether only one object has this one. What was checked must not change under it, so none may come later."""
        number = self._numbers[id(value)]
        self._owned.add(number)
        return self._n_references[number] == 1

    def _key(self, value: Any) -> Any:
        found = self.read(value)
        return found if _is_key(found) else _refuse()

    def _taken(self, place: Any) -> Any:
        """An array, which only one node may have: so no file makes more of it than it holds."""
        if type(place) is not int or not 0 <= place < len(self._arrays) or self._arrays[place] is None:
            _refuse()
        array, self._arrays[place] = self._arrays[place], None
        return array

    def _numeric(self, kind: str, array: Any) -> Any:
        if kind == "array":
            return array
        if kind == "scalar":
            return array[()] if array.ndim == 0 else _refuse()
        return _generator(array)


def _is_fine(value: Any) -> bool:
    """Whether an object that is about to be written has this one for itself: nobody could have changed that."""
    return True


def _refuse(_: Any = None) -> NoReturn:
    raise CheckpointError("its header is malformed.")


def _listed(value: Any) -> list[Any]:
    """The value, which must be a list."""
    return value if type(value) is list else _refuse()


def _is_shape(value: Any) -> bool:
    """Whether an array may have this shape. Numbers of any length would take long to multiply."""
    return len(_listed(value)) <= MOST_AXES and all(type(n) is int and 0 <= n < 2**63 for n in value)


def _is_key(value: Any) -> bool:
    """Whether it is a number or a text, or a tuple of such: what can be compared without going any deeper."""
    plain = type(value) is tuple and all(type(item) is not tuple and _is_key(item) for item in value)
    return plain or value is None or isinstance(value, bool | int | float | str | bytes | np.generic)


def _generator_numbers(generator: np.random.Generator) -> Any:
    """The state of PCG64 as 64-bit numbers. The seed is not kept, for which only ``spawn`` asks."""
    state = generator.bit_generator.state
    words = [state["state"][name] >> shift & (2**64 - 1) for name in ("state", "inc") for shift in (0, 64)]
    return np.array([*words, state["has_uint32"], state["uinteger"]], "<u8")


def _generator(numbers: Any) -> np.random.Generator:
    """The generator with these numbers as its state."""
    if numbers.dtype.str != "<u8" or numbers.shape != (6,):
        _refuse()
    low, high, low_inc, high_inc, has_half, half = numbers.tolist()
    if low_inc % 2 == 0 or has_half > 1 or half >= 2**32:
        _refuse()
    made = np.random.PCG64(0)
    made.state = {
        "bit_generator": "PCG64",
        "state": {"state": low | high << 64, "inc": low_inc | high_inc << 64},
        "has_uint32": has_half,
        "uinteger": half,
    }
    return np.random.Generator(made)


@cache
def _class(name: str) -> Any:
    """A class that says what it holds, by its name; nothing else is ever looked up, let alone called."""
    match = CLASS.fullmatch(name)
    if not match:
        raise CheckpointError(f"it asks for {name[:100]!r}, which is not of this package.")
    found = getattr(import_module(match[1]), match[2])
    if not (isinstance(found, type) and found.__module__ == match[1] and describes(found)):
        raise CheckpointError(f"it asks for {name}, which is not a class that is ever written.")
    return found
