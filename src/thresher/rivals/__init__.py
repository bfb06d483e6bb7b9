"""Other methods for the same streams, each as its authors meant it, behind one interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.rivals.dual_averaging import DualAveraging

# Loaded on first use: scikit-learn and numba take seconds to import.
_HOMES = {
    "DualAveraging": "dual_averaging",
}

__all__ = [
    "DualAveraging",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thresher.rivals' has no attribute {name!r}")
    return getattr(import_module(f"thresher.rivals.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
