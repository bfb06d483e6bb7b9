"""Sparse linear models, kept current while data streams in."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thresher.estimators.sparse_regressor import SparseRegressor
    from thresher.sparsity.cardinality import Cardinality
    from thresher.summaries.gram import Gram

__version__ = "0.1.0"

# Loaded on first use: scikit-learn and numba take seconds to import.
_HOMES = {
    "Cardinality": "thresher.sparsity.cardinality",
    "Gram": "thresher.summaries.gram",
    "SparseRegressor": "thresher.estimators.sparse_regressor",
}

__all__ = ["Cardinality", "Gram", "SparseRegressor", "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'thresher' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
