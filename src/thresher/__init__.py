"""Sparse linear models and low-rank matrix models, kept current while data streams in."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thresher._version import __version__

if TYPE_CHECKING:
    from thresher.estimators.constrained_regressor import ConstrainedRegressor
    from thresher.estimators.low_rank_regressor import LowRankRegressor
    from thresher.estimators.matrix_completer import MatrixCompleter
    from thresher.estimators.online_hard_thresholding import OnlineHardThresholding
    from thresher.estimators.reduced_rank_regressor import ReducedRankRegressor
    from thresher.estimators.sparse_regressor import SparseRegressor
    from thresher.io.checkpoint import load
    from thresher.io.sources.sql import read_sql
    from thresher.selection.cross_validation import CrossValidation
    from thresher.selection.ebic import Ebic
    from thresher.selection.noise_edge import NoiseEdge
    from thresher.selection.short_list import PosteriorSelection
    from thresher.solvers.posterior import posterior
    from thresher.sparsity.cardinality import Cardinality
    from thresher.sparsity.groups import Groups
    from thresher.sparsity.rank import Rank
    from thresher.summaries.entries import Entries
    from thresher.summaries.gram import Gram
    from thresher.summaries.multiresponse import MultiResponse

# Loaded on first use: scikit-learn takes a second to import.
_HOMES = {
    "Cardinality": "thresher.sparsity.cardinality",
    "Ebic": "thresher.selection.ebic",
    "NoiseEdge": "thresher.selection.noise_edge",
    "Entries": "thresher.summaries.entries",
    "ConstrainedRegressor": "thresher.estimators.constrained_regressor",
    "CrossValidation": "thresher.selection.cross_validation",
    "Gram": "thresher.summaries.gram",
    "Groups": "thresher.sparsity.groups",
    "LowRankRegressor": "thresher.estimators.low_rank_regressor",
    "MatrixCompleter": "thresher.estimators.matrix_completer",
    "MultiResponse": "thresher.summaries.multiresponse",
    "OnlineHardThresholding": "thresher.estimators.online_hard_thresholding",
    "PosteriorSelection": "thresher.selection.short_list",
    "Rank": "thresher.sparsity.rank",
    "ReducedRankRegressor": "thresher.estimators.reduced_rank_regressor",
    "SparseRegressor": "thresher.estimators.sparse_regressor",
    "load": "thresher.io.checkpoint",
    "posterior": "thresher.solvers.posterior",
    "read_sql": "thresher.io.sources.sql",
}

__all__ = [
    "Cardinality",
    "ConstrainedRegressor",
    "CrossValidation",
    "Ebic",
    "Entries",
    "Gram",
    "Groups",
    "LowRankRegressor",
    "MatrixCompleter",
    "MultiResponse",
    "NoiseEdge",
    "OnlineHardThresholding",
    "PosteriorSelection",
    "Rank",
    "ReducedRankRegressor",
    "SparseRegressor",
    "__version__",
    "load",
    "posterior",
    "read_sql",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thresher' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
