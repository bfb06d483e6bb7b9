"""Objects of this package as bytes, and back: no pickle, nothing that runs code, nothing used before it is verified.

A file is

    magic (8 bytes)  format (4)  length of the header (8)  header, in JSON  padding  arrays  SHA-256 (32 bytes)

with numbers little-endian, arrays on multiples of 64 bytes, and the SHA-256 over all that precedes it. The header has a
list of nodes, each a container, an array or an object of this package, in which other nodes stand as {"@": number}. So
what is shared stays shared. Arrays are kept bit for bit.
"""

import hashlib
import json
import math
import struct
from importlib import import_module
from typing import Any

import numpy as np

from thresher._version import __version__

MAGIC = b"thresher"
FORMAT = 1
ALIGNMENT = 64
HEAD = struct.Struct("<8sIQ")
DIGEST = 32
PLAIN = "biufc"  # kinds of arrays that are kept as bytes


class CheckpointError(ValueError):
    """The bytes are not what this package wrote."""


class NewerFormatError(CheckpointError):
    """The bytes are of a newer version of this package."""


def encode(value: Any, note: Any = None) -> bytes:
    """Bytes of an object of this package, or of containers of such, with a note that can be read without it."""
    writer = _Writer()
    root = writer.write(value)
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


def decode(content: bytes) -> tuple[Any, Any]:
    """The object and the note, from bytes that are verified first."""
    try:
        return _decode(memoryview(content))
    except CheckpointError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, ImportError, RecursionError) as error:
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
    header = json.loads(bytes(body[HEAD.size : start]))
    arrays = []
    for dtype, shape, fortran in header["arrays"]:
        start += -start % ALIGNMENT
        array, start = _array(body, start, np.dtype(dtype), tuple(shape), bool(fortran))
        arrays.append(array)
    if start != len(body):
        raise CheckpointError("it has more bytes than its header says.")
    reader = _Reader(header["nodes"], arrays)
    return reader.read(header["root"]), reader.read(header["note"])


def _array(
    body: memoryview, start: int, dtype: np.dtype[Any], shape: tuple[int, ...], fortran: bool
) -> tuple[Any, int]:
    if dtype.kind not in PLAIN or any(type(n) is not int or n < 0 for n in shape):
        raise CheckpointError("it has an array of a kind that is never written.")
    end = start + math.prod(shape) * dtype.itemsize
    if end > len(body):
        raise CheckpointError("it has fewer bytes than its header says.")
    flat = np.frombuffer(body[start:end], dtype)
    return flat.reshape(shape, order="F" if fortran else "C").copy("K"), end


class _Writer:
    """Nodes for everything that can be shared or nested; numbers and texts stand for themselves."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.arrays: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no identity is given away twice

    def write(self, value: Any) -> Any:
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int:
            return value if abs(value) < 2**53 else {"int": str(value)}
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if id(value) not in self._numbers:
            self._numbers[id(value)] = number = len(self.nodes)
            self._alive.append(value)
            self.nodes.append(None)
            self.nodes[number] = self._node(value)
        return {"@": self._numbers[id(value)]}

    def _node(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, np.ndarray | np.generic):
            return self._numeric(value)
        if kind in (list, tuple):
            return [kind.__name__, [self.write(item) for item in value]]
        if kind is dict:
            return ["dict", [[self.write(key), self.write(item)] for key, item in value.items()]]
        name = f"{kind.__module__}:{kind.__qualname__}"
        if not _is_ours(kind.__module__) or _class(name) is not kind:
            raise TypeError(
                f"A {kind.__module__}.{kind.__qualname__} cannot be saved. Give parameters as numbers, texts and "
                "arrays, not as functions."
            )
        if isinstance(value, tuple):
            return ["tuple of", name, [self.write(item) for item in value]]
        return ["object", name, [[key, self.write(item)] for key, item in vars(value).items()]]

    def _numeric(self, value: Any) -> Any:
        if value.dtype.kind in PLAIN and type(value) is np.ndarray:
            if not (value.flags.c_contiguous or value.flags.f_contiguous):
                value = np.ascontiguousarray(value)
            self.arrays.append(value)
            return ["array", len(self.arrays) - 1]
        if isinstance(value, np.generic) and value.dtype.kind in PLAIN:
            self.arrays.append(np.asarray(value))
            return ["scalar", len(self.arrays) - 1]
        if type(value) is np.ndarray and value.dtype.kind in "OU":  # names
            return ["names", value.dtype.kind, list(value.shape), [self.write(item) for item in value.ravel().tolist()]]
        raise TypeError(f"An array of {value.dtype} cannot be saved.")


class _Reader:
    """Objects from nodes. Containers are made before they are filled, for they may hold each other."""

    def __init__(self, nodes: list[Any], arrays: list[Any]) -> None:
        self._nodes, self._arrays = nodes, arrays
        self._made: dict[int, Any] = {}

    def read(self, value: Any) -> Any:
        if not isinstance(value, dict):
            if isinstance(value, list):
                raise CheckpointError("its header is malformed.")
            return value
        ((kind, content),) = value.items()
        if kind == "int":
            return int(content)
        if kind == "float":
            return float(content)
        number = content
        if kind != "@" or type(number) is not int or not 0 <= number < len(self._nodes):
            raise CheckpointError("its header is malformed.")
        if number not in self._made:
            self._make(number)
        return self._made[number]

    def _make(self, number: int) -> None:
        kind, *content = self._nodes[number]
        if kind in ("tuple", "tuple of"):
            *name, items = content
            values = tuple(map(self.read, items))
            if number in self._made:
                raise CheckpointError("its header is malformed.")
            self._made[number] = _class(name[0])(*values) if name else values
        elif kind == "array":
            self._made[number] = self._arrays[content[0]]
        elif kind == "scalar":
            self._made[number] = self._arrays[content[0]][()]
        elif kind == "names":
            letter, shape, items = content
            array = np.empty(len(items), object)
            array[:] = list(map(self.read, items))
            # Texts take the width of the longest, whatever the file says.
            self._made[number] = (array.astype(str) if letter == "U" else array).reshape(shape)
        elif kind == "list":
            made: list[Any] = []
            self._made[number] = made
            made.extend(map(self.read, content[0]))
        elif kind == "dict":
            entries: dict[Any, Any] = {}
            self._made[number] = entries
            for key, item in content[0]:
                entries[self.read(key)] = self.read(item)
        elif kind == "object":
            name, items = content
            found = _class(name)
            self._made[number] = instance = found.__new__(found)
            for key, item in items:
                instance.__dict__[str(key)] = self.read(item)
        else:
            raise CheckpointError("its header is malformed.")


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == "thresher"


def _class(name: str) -> Any:
    """A class of this package by its name; nothing else is ever looked up, let alone called."""
    module, _, path = name.partition(":")
    if not _is_ours(module):
        raise CheckpointError(f"it asks for {name}, which is not of this package.")
    found: Any = import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if not isinstance(found, type) or not _is_ours(found.__module__):
        raise CheckpointError(f"it asks for {name}, which is not a class of this package.")
    return found
