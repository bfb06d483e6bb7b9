"""Checks of numbers that come from outside, before any state changes. Each error names the fault and the remedy."""

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from thresher._utils.arrays import Floats

# Squares of larger values, summed over 10^6 rows or more, would overflow the co-moments.
LARGEST = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e151}
LARGEST_WEIGHT = 1e300
# Squares of smaller values, and of what a model leaves of them, would lose digits or vanish.
SMALLEST = 1e-151


def check_positive_integer(value: Any, name: str) -> int:
    """A positive int, or an error that names the parameter."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    return int(value)


def refuse_masked(**arrays: Any) -> None:
    """Raise if one of these has masked values: what is below a mask are numbers, and nobody would notice."""
    for name, values in arrays.items():
        if np.ma.is_masked(values):
            raise ValueError(f"{name} has masked values; drop such rows, or fill them with numpy.ma.filled.")


def as_real(values: Any, name: str) -> NDArray[np.floating[Any]]:
    """A float array, or an error that says what the values are instead."""
    refuse_masked(**{name: values})
    array = np.asarray(values)
    if array.dtype.kind == "c":
        raise ValueError(f"{name} is complex; pass real numbers.")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} has dtype {array.dtype}; pass numbers.")
    return array if array.dtype in (np.float64, np.float32) else array.astype(np.float64)


def check_finite(array: NDArray[Any], name: str) -> None:
    """Raise if there is a NaN or an infinity, saying where the first one is."""
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        what = "NaN" if np.isnan(array[where]) else "infinity"
        raise ValueError(
            f"{name} contains {what} (first at {where if len(where) > 1 else where[0]}, "
            f"{int(bad.sum())} in all); drop or fill such rows first."
        )


def check_weights(sample_weight: Any, n_rows: int) -> Floats | None:
    """Weights as float64, or None."""
    if sample_weight is None:
        return None
    weights = as_real(sample_weight, "sample_weight").astype(np.float64, copy=False)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}; expected ({n_rows},).")
    check_finite(weights, "sample_weight")
    if (weights < 0.0).any():
        first = int(np.argmax(weights < 0.0))
        raise ValueError(f"sample_weight is negative (first at row {first}); weights must be >= 0.")
    return np.ascontiguousarray(weights)


def check_range(X: Any, y: Floats, weights: Floats | None, dtype: np.dtype[Any]) -> None:
    """Raise if co-moments of these values could overflow."""
    root = 1.0
    if weights is not None:
        with np.errstate(over="ignore"):
            total = float(weights.sum())
        if not total <= LARGEST_WEIGHT:
            raise ValueError(f"sample_weight sums to {total:.3g}; rescale the weights.")
        root = max(1.0, float(np.sqrt(weights.max())))
    for name, values, limit in (("X", X, LARGEST[dtype]), ("y", y, LARGEST[np.dtype(np.float64)])):
        largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
        if not largest <= limit / root:
            raise ValueError(
                f"{name} holds values up to {largest:.3g}{' at large weights' if root > 1.0 else ''}, whose squares "
                f"overflow {dtype}; rescale them{' or use float64' if dtype == np.float32 and name == 'X' else ''}."
            )
        if len(y) > 1 and 0.0 < largest < SMALLEST:  # a single row may be so small, if others are not
            raise ValueError(f"{name} holds no value above {largest:.3g}, and squares of that vanish; rescale it.")


def check_matrix(X: Any, n_features: int) -> tuple[Any, NDArray[Any]]:
    """Rows, dense or CSR, of the right width, and their stored values."""
    if scipy.sparse.issparse(X):
        X = X.tocsr()
        values = as_real(X.data, "X")
        if values is not X.data:
            X = scipy.sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)
    else:
        X = values = as_real(X, "X")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s); expected rows by columns. Reshape it.")
    if X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} columns; the summary has {n_features} features.")
    if X.shape[0] == 0:
        raise ValueError("X has no rows; absorb at least one.")
    return X, values


def check_rows(
    X: Any, y: Any, sample_weight: Any, n_features: int, dtype: np.dtype[Any], n_responses: int | None = None
) -> tuple[Any, Floats, Floats | None]:
    """Rows, responses and weights ready to be absorbed; responses as a matrix if their number is given."""
    X, values = check_matrix(X, n_features)
    responses = as_real(y, "y").astype(np.float64, copy=False)
    if n_responses is None and responses.ndim == 2 and responses.shape[1] == 1:
        responses = responses[:, 0]
    if n_responses == 1 and responses.ndim == 1:
        responses = responses[:, None]
    expected = () if n_responses is None else (n_responses,)
    if responses.shape[1:] != expected or responses.ndim == 0:
        wanted = "one response" if n_responses is None else f"{n_responses} response(s)"
        raise ValueError(f"y has shape {responses.shape}; expected {wanted} per row.")
    if responses.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y has {responses.shape[0]}.")
    weights = check_weights(sample_weight, X.shape[0])
    check_finite(values, "X")
    check_finite(responses, "y")
    check_range(values, responses, weights, dtype)
    return X, np.ascontiguousarray(responses), weights


def check_features(features: ArrayLike, n_features: int) -> NDArray[np.intp]:
    """Column numbers in one dimension, each of which exists."""
    index = np.atleast_1d(np.asarray(features))
    if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
        raise ValueError("features must be column numbers in one dimension; np.flatnonzero turns a mask into them.")
    outside = (index < 0) | (index >= n_features)
    if outside.any():
        raise ValueError(f"Feature {index[outside][0]} does not exist; columns are numbered 0 to {n_features - 1}.")
    return index.astype(np.intp)


def check_coef(coef: ArrayLike, n_features: int) -> Floats:
    """A coefficient vector of the right length."""
    theta = np.asarray(coef, np.float64)
    if theta.shape != (n_features,):
        raise ValueError(f"coef has shape {theta.shape}; expected ({n_features},).")
    return theta


def check_summary(summary: Any, kind: type) -> None:
    """Raise unless this is a summary of the right kind that has seen something."""
    if not isinstance(summary, kind):
        raise TypeError(f"summary must be a thresher.{kind.__name__}, got {type(summary).__name__}")
    if summary.weight == 0.0:  # type: ignore[attr-defined]
        raise ValueError("The summary is empty: absorb data with positive weight first.")


def check_partner(summary: Any, other: Any, verb: str, *sizes: str) -> None:
    """Raise unless the other summary is of the same kind and has the same sizes, attributes of both."""
    if not isinstance(other, type(summary)):
        raise TypeError(f"Cannot {verb} a {type(other).__name__} with a {type(summary).__name__}.")
    for name in sizes:
        ours, theirs = getattr(summary, name), getattr(other, name)
        if ours != theirs:
            raise ValueError(f"Cannot {verb} summaries of different {name}: {ours} and {theirs}.")
