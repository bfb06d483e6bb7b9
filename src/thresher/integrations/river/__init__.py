"""Thresher's models for river: rows are dictionaries, features come and go. Needs ``pip install 'thresher[river]'``."""

try:
    import river  # noqa: F401
except ImportError as error:
    raise ImportError(
        "thresher.integrations.river needs river; install it with: pip install 'thresher[river]'"
    ) from error

from thresher.integrations.river.hard_thresholding import OnlineHardThresholding
from thresher.integrations.river.sparse import SparseRegressor

__all__ = ["OnlineHardThresholding", "SparseRegressor"]
