"""Summaries and models from Spark data frames. Needs ``pip install 'thresher[spark]'``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(
        "thresher.integrations.spark needs pyspark 4; install it with: pip install 'thresher[spark]'"
    ) from error

if TYPE_CHECKING:
    from thresher.integrations.spark.regressor import SparkSparseRegressor, SparkSparseRegressorModel
    from thresher.integrations.spark.streaming import foreach_batch
    from thresher.integrations.spark.summarizing import summarize, summarize_entries

# Loaded on first use: the workers of Spark import this package too, and need none of them.
_HOMES = {
    "SparkSparseRegressor": "regressor",
    "SparkSparseRegressorModel": "regressor",
    "foreach_batch": "streaming",
    "summarize": "summarizing",
    "summarize_entries": "summarizing",
}

__all__ = [
    "SparkSparseRegressor",
    "SparkSparseRegressorModel",
    "foreach_batch",
    "summarize",
    "summarize_entries",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
