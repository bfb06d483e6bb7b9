"""The summary of a stream of observed matrix entries."""

from typing import Any, Self

import numpy as np

from thresher._utils.arrays import ArrayLike, Floats, Integers, running_sum
from thresher._utils.checks import (
    as_real,
    check_finite,
    check_partner,
    check_positive_integer,
    check_range,
    check_weights,
)
from thresher._utils.entry_table import EntryColumns, entry_blocks, refuse_names
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.locks import lock_of, locked
from thresher._utils.memory import require_bytes
from thresher.io.checkpoint import Saving
from thresher.io.schema import Array, Count, Number, Schema
from thresher.summaries._decay import check_factor, refuse_factor

Indices = Integers
# Sums of squared factors below this lose digits.
SMALLEST_SQUARED = 1e-290


class Entries(Saving):
    r"""What a stream of observed entries (i, j, value) of a d1 x d2 matrix leaves behind for completion.

    For each entry the total weight and the weighted sum of the values seen there, and one sum of squares: enough for

    .. math:: \frac{1}{2 \sum w} \sum_t w_t (v_t - \Theta_{i_t j_t})^2

    at every :math:`\Theta`, however often an entry is observed. Equivalent to keeping all observations; memory is
    16 d1 d2 bytes, an observation costs O(1).

    To forget, scale what there is before newer observations are merged: ``old.scaled(0.5).merge(new)``. `weight` is
    then the effective number of observations, as in ``Gram``, and `counts` and `sums` are in units of the newest.

    Parameters
    ----------
    shape : tuple of int
        (d1, d2).

    References
    ----------
    P. Jain, R. Meka and I. S. Dhillon (2010). Guaranteed rank minimization via singular value projection.
    Advances in Neural Information Processing Systems 23.

    Examples
    --------
    >>> from thresher import Entries
    >>> summary = Entries((2, 2)).absorb([0, 0, 1], [0, 0, 1], [1.0, 3.0, 5.0])
    >>> summary.counts
    array([[2., 0.],
           [0., 1.]])
    >>> summary.gradient([[2.0, 0.0], [0.0, 8.0]])
    array([[0., 0.],
           [0., 1.]])
    """

    _schema = Schema(
        lambda summary: min(summary.shape) >= 1,
        lambda summary: not summary.sums[summary.counts == 0.0].any(),
        counts=Array("d1", "d2", least=0.0),
        sums=Array("d1", "d2"),
        n_samples=Count(),
        sum_squares=Number(least=0.0),
        _total=Number(least=0.0),
        _squared=Number(least=0.0) | None,
    )

    def __init__(self, shape: tuple[int, int]) -> None:
        d1, d2 = (check_positive_integer(side, "shape") for side in shape)
        require_bytes(16 * d1 * d2, f"A summary of {d1:,} x {d2:,} entries", "Use fewer rows or columns.")
        self.counts = np.zeros((d1, d2))
        self.sums = np.zeros((d1, d2))
        self.n_samples = 0
        self.sum_squares = 0.0
        self._total = 0.0
        self._squared: float | None = None  # sum of w f over the factors f of observations, if there are any

    @property
    def shape(self) -> tuple[int, int]:
        """(d1, d2)."""
        return self.counts.shape[0], self.counts.shape[1]

    @property
    def weight(self) -> float:
        """Sum of the weights; the effective number of observations, if they were scaled."""
        if self._squared is None:
            return self._total
        return self._total * (self._total / self._squared) if self._squared else 0.0

    @property
    def forgets(self) -> bool:
        """Whether observations were scaled."""
        return self._squared is not None

    def variance(self, centred: bool = True) -> Floats:
        """Scales of the coefficients: ones, since every entry is in the units of the values."""
        return np.ones(self.shape)

    # -- the loss --------------------------------------------------------------------------------------

    @locked
    def loss(self, coef: ArrayLike, intercept: float | None = 0.0) -> float:
        """Half the weighted mean of (value - coef - intercept)^2 over all observations; None: the best intercept."""
        theta = self._fitted(coef, intercept)
        total = np.vdot(theta, self.counts * theta - 2.0 * self.sums) + self.sum_squares
        return max(float(total), 0.0) / (2.0 * self._total)

    @locked
    def gradient(self, coef: ArrayLike, intercept: float | None = 0.0) -> Floats:
        """The gradient of the loss in the coefficients, d1 x d2, at a fixed intercept (None: the best one)."""
        result: Floats = (self.counts * self._fitted(coef, intercept) - self.sums) / self._total
        return result

    @locked
    def best_intercept(self, coef: ArrayLike) -> float:
        """The number that, added to every entry of coef, minimises the loss."""
        return float(np.sum(self.sums - self.counts * self._check_coef(coef)) / self._total)

    def _fitted(self, coef: ArrayLike, intercept: float | None) -> Floats:
        theta = self._check_coef(coef)
        if self.weight == 0.0:
            raise ValueError("The summary is empty: absorb entries with positive weight first.")
        fitted: Floats = theta + (self.best_intercept(theta) if intercept is None else intercept)
        return fitted

    def _check_coef(self, coef: ArrayLike) -> Floats:
        theta = np.asarray(coef, np.float64)
        if theta.shape != self.shape:
            raise ValueError(f"coef has shape {theta.shape}; expected {self.shape}.")
        return theta

    # -- absorbing -------------------------------------------------------------------------------------

    def absorb(self, rows: Any, cols: Any, values: Any, sample_weight: Any = None, data: Any = None) -> Self:
        """Add observations.

        Parameters
        ----------
        rows, cols : array-like of int, shape (n,), or str
            Indices, from zero; with `data`, the names of their columns.
        values : array-like of shape (n,), or str
        sample_weight : array-like of shape (n,), or str, optional
            Non-negative; a weight of two counts an observation twice.
        data : Arrow table, optional
            Any object with ``__arrow_c_stream__``. Its rows are read some at a time: all are added, or none.
        """
        if data is None:
            refuse_names(rows, cols, values, sample_weight)
            return self.add(*check_entries(rows, cols, values, sample_weight, self.shape))
        with lock_of(self):
            total = self.copy()
            for block in entry_blocks(data, EntryColumns(rows, cols, values, sample_weight), self.shape, ids=False):
                total.add(*block)
            self.counts[...], self.sums[...] = total.counts, total.sums
            self.n_samples, self.sum_squares, self._total = total.n_samples, total.sum_squares, total._total
            self._squared = total._squared
        return self

    @locked
    def add(self, rows: Indices, cols: Indices, values: Floats, weights: Floats | None) -> Self:
        """Add observations that were checked."""
        weighted = values if weights is None else weights * values
        place = rows * self.shape[1] + cols
        with InterruptsDeferred():
            # In the order of the stream, so that sums do not depend on how it was cut.
            np.add.at(self.counts.reshape(-1), place, 1.0 if weights is None else weights)
            np.add.at(self.sums.reshape(-1), place, weighted)
            self.sum_squares = running_sum(self.sum_squares, weighted * values)
            if self._squared is not None:
                self._squared = running_sum(self._squared, np.ones(len(values)) if weights is None else weights)
            self._total = self._total + len(values) if weights is None else running_sum(self._total, weights)
            self.n_samples += len(values)
        return self

    # -- summaries as values ---------------------------------------------------------------------------

    def copy(self) -> "Entries":
        """An independent copy."""
        with lock_of(self):
            return self.resized(self.shape)

    @locked
    def resized(self, shape: tuple[int, int]) -> "Entries":
        """A copy with more rows and columns, in which nothing was observed."""
        result = Entries(shape)
        corner = np.s_[: self.shape[0], : self.shape[1]]
        result.counts[corner], result.sums[corner] = self.counts, self.sums
        result.n_samples, result.sum_squares, result._total = self.n_samples, self.sum_squares, self._total
        result._squared = self._squared
        return result

    def empty(self) -> "Entries":
        """A summary of the same kind that has seen nothing."""
        return Entries(self.shape)

    @locked
    def scaled(self, factor: float) -> "Entries":
        """The same observations, each counting `factor` times as much beside others, as a new object.

        Examples
        --------
        >>> from thresher import Entries
        >>> old, new = Entries((1, 1)).absorb([0, 0], [0, 0], [1.0, 1.0]), Entries((1, 1)).absorb([0], [0], [4.0])
        >>> both = old.scaled(0.25).merge(new)
        >>> both.sums / both.counts, both.weight
        (array([[3.]]), 2.0)
        """
        check_factor(factor)
        result = self._scaled(float(factor))
        if result._squared is not None and result._squared < SMALLEST_SQUARED and self._total:
            refuse_factor(factor)
        return result

    @locked
    def plain(self) -> "Entries":
        """A summary with the same means that does not forget: of as many observations as are effective."""
        result = self._scaled(self._total / self._squared) if self._squared else self.copy()
        result._squared = None
        return result

    def _scaled(self, factor: float) -> "Entries":
        result = self.copy()
        result._squared = factor * factor * (self._total if self._squared is None else self._squared)
        result.counts *= factor
        result.sums *= factor
        result.sum_squares *= factor
        result._total *= factor
        return result

    def merge(self, other: "Entries") -> "Entries":
        """The summary of both streams, as a new object."""
        check_partner(self, other, "merge", "shape")
        return self._combine(other.copy(), 1)

    def subtract(self, other: "Entries") -> "Entries":
        """The summary of the observations that are in this one but not in `other`, as a new object."""
        check_partner(self, other, "subtract", "shape")
        if self.forgets or other.forgets:
            raise ValueError("Cannot subtract: observations that were scaled no longer count what they did.")
        self, other = self.copy(), other.copy()  # one after the other, so that nobody waits for both
        result = self._combine(other, -1)
        wrong = result.counts < -1e-9 * np.maximum(self.counts, 1.0)
        if wrong.any() or result.n_samples < 0 or result.sum_squares < -1e-8 * self.sum_squares:
            where = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), self.shape))
            raise ValueError(f"Cannot subtract: more was observed at {where}, or in all, than this summary has seen.")
        empty = result.counts <= 1e-12 * self.counts
        result.counts[empty], result.sums[empty] = 0.0, 0.0
        result._total, result.sum_squares = max(result._total, 0.0), max(result.sum_squares, 0.0)
        return result

    def _combine(self, other: "Entries", sign: int) -> "Entries":
        result = self.copy()
        result.counts += sign * other.counts
        result.sums += sign * other.sums
        result.n_samples += sign * other.n_samples
        result.sum_squares += sign * other.sum_squares
        result._total += sign * other._total
        if self.forgets or other.forgets:
            result._squared = sum(one._total if one._squared is None else one._squared for one in (self, other))
        return result

    def __repr__(self) -> str:
        return f"Entries(shape={self.shape}, n_samples={self.n_samples})"


def check_entries(
    rows: Any, cols: Any, values: Any, sample_weight: Any, shape: tuple[int, int] | None
) -> tuple[Indices, Indices, Floats, Floats | None]:
    """Observations ready to be absorbed; indices are checked against the shape, if there is one."""
    numbers = as_real(values, "values").astype(np.float64, copy=False)
    if numbers.ndim != 1:
        raise ValueError(f"values has shape {numbers.shape}; expected one number per entry.")
    if not len(numbers):
        raise ValueError("There are no entries; pass at least one.")
    places = [check_indices(side, name) for side, name in ((rows, "rows"), (cols, "cols"))]
    for name, side, d in zip(("rows", "cols"), places, shape or (None, None), strict=True):
        if len(side) != len(numbers):
            raise ValueError(f"{name} has {len(side)} entries and values has {len(numbers)}.")
        check_within(side, name, d)
    check_finite(numbers, "values")
    weights = check_weights(sample_weight, len(numbers))
    check_range(np.empty(0), numbers, weights, np.dtype(np.float64))
    return places[0], places[1], np.ascontiguousarray(numbers), weights


def check_indices(side: Any, name: str) -> Indices:
    """A vector of integers."""
    array = np.asarray(side)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(f"{name} has shape {array.shape} and dtype {array.dtype}; expected a vector of integers.")
    return array.astype(np.intp, copy=False)


def check_within(side: Indices, name: str, d: int | None) -> None:
    """Raise if an index is outside 0, ..., d - 1."""
    wrong = (side < 0) | (side >= d if d is not None else False)
    if wrong.any():
        first = int(np.argmax(wrong))
        limit = "" if d is None else f" and below {d}"
        raise ValueError(
            f"{name} holds the index {int(side[first])} (first at {first}); indices must be at least 0{limit}."
        )
