"""Thresher's models for river: rows are dictionaries, features come and go. Needs ``pip install 'thresher[river]'``."""

try:
    import river as _river  # noqa: F401 - the package of that name, not this one
except ImportError as error:
    raise ImportError("thresher.river needs river; install it with: pip install 'thresher[river]'") from error

from thresher.river.sparse_regressor import SparseRegressor

__all__ = ["SparseRegressor"]
