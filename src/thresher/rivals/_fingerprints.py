"""Texts that tell settings and data apart, the same in every process."""

import hashlib
import re
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator


def settings_text(estimator: Any) -> str:
    """Class and parameters of an estimator and of those inside it, in alphabetical order."""
    parameters = sorted(estimator.get_params(deep=True).items())
    kind = type(estimator)
    return f"{kind.__module__}.{kind.__qualname__}({', '.join(f'{name}={_text(value)}' for name, value in parameters)})"


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
            total.update(array.tobytes())
    return total.hexdigest()[:16]


def _text(value: Any) -> str:
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, np.ndarray):
        return f"array{value.shape}<{digest(value)}>"
    if isinstance(value, BaseEstimator):  # its parameters are listed beside it
        return type(value).__name__
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_text(key)}: {_text(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(_text, value))})"
    if isinstance(value, partial):
        return f"partial({_text(value.func)}, {_text(value.args)}, {_text(value.keywords)})"
    if isinstance(value, FunctionType):
        inside = [cell.cell_contents for cell in value.__closure__ or ()]
        return f"{value.__qualname__}<{digest(_code_text(value.__code__), _text([value.__defaults__, inside]))}>"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))  # addresses differ from process to process


def _code_text(code: CodeType) -> str:
    """What a function does, without where it stands."""
    constants = [_code_text(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"
