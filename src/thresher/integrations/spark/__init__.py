"""Summaries and models from Spark data frames. Needs ``pip install 'thresher[spark]'``."""

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError(
        "thresher.integrations.spark needs pyspark 4; install it with: pip install 'thresher[spark]'"
    ) from error

from thresher.integrations.spark.regressor import SparkSparseRegressor, SparkSparseRegressorModel
from thresher.integrations.spark.streaming import foreach_batch
from thresher.integrations.spark.summarizing import summarize, summarize_entries

__all__ = [
    "SparkSparseRegressor",
    "SparkSparseRegressorModel",
    "foreach_batch",
    "summarize",
    "summarize_entries",
]
