"""Texts that tell settings and data apart, the same in every process."""

import hashlib
import re
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

# In a repr: an address, which says nothing of what is there, or something left out.
SILENT = re.compile(r" at 0x[0-9a-fA-F]+|\.\.\.")
PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Settings(NamedTuple):
    """Class and parameters of an estimator, and the names of those that the text does not tell from others."""

    text: str
    untold: tuple[str, ...]


def settings_of(estimator: Any) -> Settings:
    """Class and parameters of an estimator and of those inside it, in alphabetical order."""
    kind, parts, untold = type(estimator), [], []
    for name, value in sorted(estimator.get_params(deep=True).items()):
        # Parameters of an estimator are listed beside it.
        writer = _Writer()
        parts.append(f"{name}={type(value).__name__ if isinstance(value, BaseEstimator) else writer.write(value)}")
        if not writer.told:
            untold.append(name)
    return Settings(f"{kind.__module__}.{kind.__qualname__}({', '.join(parts)})", tuple(untold))


def digest(*parts: Any) -> str:
    """A short digest of arrays, sparse matrices, frames, texts and None."""
    total = hashlib.sha256()
    for part in parts:
        if issparse(part):
            part = part.tocsr()
            total.update(digest(part.data, part.indices, part.indptr).encode())
        elif part is None or isinstance(part, str):
            total.update(repr(part).encode())
        else:
            array = np.asarray(part)
            total.update(f"{array.dtype}{array.shape}".encode())
            # Bytes of objects, such as a frame of numbers and texts, would be addresses.
            total.update(repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes())
    return total.hexdigest()[:16]


class _Writer:
    """Values as texts; `told` is whether equal texts mean equal values."""

    def __init__(self) -> None:
        self.told = True
        self._inside: list[int] = []

    def write(self, value: Any) -> str:
        if id(value) in self._inside:  # a function may call itself
            return "itself"
        self._inside.append(id(value))
        text = self._write(value)
        self._inside.pop()
        return text

    def _write(self, value: Any) -> str:
        if type(value) in PLAIN:
            return repr(value)
        if isinstance(value, np.generic):
            return repr(value.item())
        if isinstance(value, np.ndarray):
            inside = self.write(value.tolist()) if value.dtype.hasobject else f"<{digest(value)}>"
            return f"array{value.shape}{inside}"
        if issparse(value):
            return f"{type(value).__name__}{value.shape}<{digest(value)}>"
        if isinstance(value, BaseEstimator):
            settings = settings_of(value)
            self.told &= not settings.untold
            return settings.text
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self.write(key)}: {self.write(item)}' for key, item in value.items())}}}"
        if isinstance(value, list | tuple):
            return f"{type(value).__name__}({', '.join(map(self.write, value))})"
        if isinstance(value, set | frozenset):
            return f"{type(value).__name__}({', '.join(sorted(map(self.write, value)))})"
        if isinstance(value, partial):
            return f"partial({self.write(value.func)}, {self.write(value.args)}, {self.write(value.keywords)})"
        if isinstance(value, MethodType):
            return f"{self.write(value.__self__)}.{self.write(value.__func__)}"
        if isinstance(value, FunctionType):
            return f"{value.__qualname__}<{digest(self._function(value))}>"
        text = repr(value)
        if SILENT.search(text) or hasattr(value, "__array__"):  # frames and the like show a few digits
            self.told = False
        return SILENT.sub("", text)

    def _function(self, function: FunctionType) -> str:
        """What a function does and with which values, without where it stands."""
        code = function.__code__
        around = {name: function.__globals__.get(name) for name in code.co_names}
        values = [
            function.__defaults__,
            function.__kwdefaults__,
            [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()],
            {name: value for name, value in around.items() if type(value) in PLAIN},
        ]
        return f"{self._code(code)} {self.write(values)}"

    def _code(self, code: CodeType) -> str:
        constants = [self._code(c) if isinstance(c, CodeType) else self.write(c) for c in code.co_consts]
        return f"{code.co_code.hex()} {code.co_names} {constants}"
