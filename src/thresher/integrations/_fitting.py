"""Models from summaries that an engine makes. Workers do not import this: scikit-learn takes its time."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from thresher.estimators.online_hard_thresholding import OnlineHardThresholding
from thresher.estimators.reduced_rank_regressor import ReducedRankRegressor
from thresher.estimators.sparse_regressor import SparseRegressor
from thresher.selection.cross_validation import CrossValidation
from thresher.summaries.gram import Gram


def refuse_memory(estimator: Any, remedy: str) -> None:
    """Raise if an estimator forgets: the rows of an engine have no order, so none of them is older than another."""
    for name in ("half_life", "window"):
        if (given := getattr(estimator, name, None)) is not None:
            raise ValueError(f"{name}={given!r} needs rows in order, and those of an engine have none; {remedy}.")


def n_folds_for(estimator: Any) -> int:
    """How many folds an estimator needs to choose its size by cross-validation; 0 if it chooses otherwise, or not."""
    always = isinstance(estimator, OnlineHardThresholding)
    method = CrossValidation() if always or estimator.selection == "cv" else estimator.selection
    size = estimator.rank if isinstance(estimator, ReducedRankRegressor) else estimator.sparsity
    return method.n_folds if isinstance(method, CrossValidation) and size == "auto" else 0


def refuse_folds(estimator: Any) -> None:
    """Raise if an estimator chooses its size by cross-validation, where a summary is all there is."""
    if n_folds_for(estimator):
        size = "rank" if isinstance(estimator, ReducedRankRegressor) else "sparsity"
        raise ValueError(
            f"{type(estimator).__name__} would choose its {size} by cross-validation, which a summary of all rows does "
            f"not allow; give {size} as a number."
        )


def fitted(estimator: Any, summarized: Callable[[int], Any]) -> Any:
    """Fit an estimator to what ``summarized(n_folds)`` returns; with folds where it chooses by cross-validation."""
    if not isinstance(estimator, SparseRegressor):
        refuse_folds(estimator)
    if not (n_folds := n_folds_for(estimator)):
        return estimator.fit_summary(summarized(0))
    folds = summarized(n_folds)
    return estimator.fit_summary(reduce(Gram.merge, folds), folds)
