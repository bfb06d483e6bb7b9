"""Thresher's models for river: rows are dictionaries, features come and go. Needs ``pip install 'thresher[river]'``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import river  # noqa: F401
except ImportError as error:
    raise ImportError(
        "thresher.integrations.river needs river; install it with: pip install 'thresher[river]'"
    ) from error

if TYPE_CHECKING:
    from thresher.integrations.river.hard_thresholding import OnlineHardThresholding
    from thresher.integrations.river.sparse import SparseRegressor

__all__ = ["OnlineHardThresholding", "SparseRegressor"]

_HOMES = {"OnlineHardThresholding": "hard_thresholding", "SparseRegressor": "sparse"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
