"""How every kernel is compiled: cached on disk, outside the interpreter lock, with IEEE semantics."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def _digest_of_kernels() -> str:
    digest = hashlib.sha256()
    package = Path(__file__).parent.parent
    for source in sorted([*package.glob("online/*.py"), *package.glob("baselines/*.py")]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


# numba's cache notices a change in a function's own file, not in the functions it calls. Naming cached code after
# all kernel sources makes a stale mixture impossible.
_DIGEST = _digest_of_kernels()


def _jit(function: F, fastmath: bool | set[str]) -> F:
    function.__qualname__ = f"{function.__qualname__}.{_DIGEST}"
    jit = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)
    return cast(F, jit(function))


def compiled(function: F) -> F:
    """Compile `function`.

    Functions on a hot path take bare arrays and index them directly: taking an array out of a tuple, or a row
    out of a matrix, costs two atomic reference counts, which at this scale is as much as the arithmetic.
    """
    return _jit(function, fastmath=False)


def compiled_sums(function: F) -> F:
    """Compile a function whose sums may be taken in another order than written, hence in vector registers.

    The order is fixed at compile time, so results stay reproducible.
    """
    return _jit(function, fastmath={"reassoc", "contract", "nsz"})
