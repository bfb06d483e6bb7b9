"""The Gram summary of a stream of rows with one response."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.linalg import blas

from thresher._arrays import NO_WEIGHTS, read_only
from thresher._checks import check_coef, check_features, check_positive_integer, check_rows
from thresher._interrupts import InterruptsDeferred
from thresher.checkpoint import Saving
from thresher.kernels import gram as kernel
from thresher.kernels.gram import (
    CROSS,
    N_BUFFERED,
    N_MOMENTS,
    N_SAMPLES,
    SHIFT_X,
    SHIFT_Y,
    SUM_X,
    SUM_XX,
    SUM_Y,
    SUM_YY,
    GramArrays,
)
from thresher.summaries._combining import add, check_part, copied, make_constant, selected
from thresher.summaries._folding import block_rows, fold, require_room
from thresher.summaries._moments import Moments
from thresher.summaries._widening import room_for, widened

Floats = NDArray[np.float64]

# What is left of a column is constant if its variance is below this share of what there was.
CANCELLED_SHARE = 1e-13


class Gram(Moments, Saving):
    r"""What a stream of rows (x, y) leaves behind for least squares: its second moments.

    With weights w (one, unless given) it keeps :math:`\sum w`, the means of x and y and the co-moments

    .. math:: \sum w (x - \bar x)(x - \bar x)^\top, \quad \sum w (x - \bar x)(y - \bar y), \quad
              \sum w (y - \bar y)^2,

    from which the loss of every linear model on all rows so far, with or without an intercept, follows
    exactly. Equivalent to keeping all rows and calling ``np.cov(X, y, aweights=w)``, in memory that does not
    grow: 8 d^2 bytes (4 d^2 in float32) and a buffer of at most 256 rows.

    Summaries are values: ``a.merge(b)`` is the summary of both streams, ``a.subtract(b)`` forgets one.

    Parameters
    ----------
    n_features : int
        Number of columns d.
    dtype : {float64, float32}, default=float64
        How the d x d co-moments are stored. Counts, means, variances and cross moments are always float64.
        In float32, values must stay below 1e15, and co-moments are good to about 1e-6 of the scales at 10^6
        rows and 1e-5 at 10^8.
    hold_rows : bool, default=False
        Hold the first d/2 rows as they are, which takes less memory than their co-moments and makes products
        cheaper, and fold them all at once when they have become the larger of the two.

    Notes
    -----
    A row costs O(d) at once and d^2 flops when its block is folded by one BLAS-3 call (``syrk``). Blocks
    end at fixed row counts, so the arrays do not depend on how the stream was cut into calls.

    Sums are taken about a shift that follows the mean (it starts at the first row), which is why
    co-moments keep full accuracy when the mean is 10^8 standard deviations away from zero: the corrected
    two-pass idea of Chan, Golub and LeVeque (1983), in one pass.

    References
    ----------
    T. F. Chan, G. H. Golub and R. J. LeVeque (1983). Algorithms for computing the sample variance: analysis
    and recommendations. The American Statistician 37(3), 242-247.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import Gram
    >>> X = np.array([[1.0, 2.0], [3.0, 5.0], [5.0, 5.0]])
    >>> y = np.array([1.0, 2.0, 3.0])
    >>> summary = Gram(2).absorb(X[:2], y[:2]).absorb(X[2:], y[2:])
    >>> summary.n_samples, summary.mean_x
    (3, array([3., 4.]))
    >>> summary.comoment()
    array([[8., 6.],
           [6., 6.]])
    >>> float(summary.loss([0.5, 0.0], intercept=0.5))
    0.0
    """

    def __init__(self, n_features: int, dtype: DTypeLike = np.float64, hold_rows: bool = False) -> None:
        d = check_positive_integer(n_features, "n_features")
        storage = np.dtype(dtype)
        if storage not in (np.dtype(np.float64), np.dtype(np.float32)):
            raise ValueError(f"dtype must be float64 or float32, got {storage}")
        # Memory that is allocated but not written to takes no room, so a long first buffer costs what is in it.
        block = max(block_rows(d, hold_rows), d // 2 if hold_rows else 0)
        self._hold_rows = bool(hold_rows)
        require_room(d, block, storage)
        self._arrays = GramArrays(
            scatter=np.zeros((d, d), storage),
            buffer=np.zeros((block, d)),
            buffer_y=np.zeros(block),
            moments=np.zeros((N_MOMENTS, d)),
            totals=np.zeros(4),
            counts=np.zeros(2, np.int64),
        )

    # -- what it holds ---------------------------------------------------------------------------------

    @property
    def arrays(self) -> GramArrays:
        """The live state, for kernels. Everyone else should use the methods."""
        return self._arrays

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return int(self._arrays.moments.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """How co-moments are stored."""
        return self._arrays.scatter.dtype

    @property
    def n_samples(self) -> int:
        """Number of rows absorbed, whatever their weights."""
        return int(self._arrays.counts[N_SAMPLES])

    # -- the loss --------------------------------------------------------------------------------------

    def loss(self, coef: ArrayLike, intercept: float | None = 0.0) -> float:
        """Half the weighted mean of (y - x . coef - intercept)^2 over all rows so far.

        None stands for the best intercept, without the rounding of a large mean.
        """
        theta, product, along_sum, beta = self._residual_sums(coef, intercept)
        totals, weight = self._arrays.totals, self.weight
        total = theta @ (product - 2.0 * self._arrays.moments[CROSS]) + totals[SUM_YY]
        total += 2.0 * beta * (along_sum - totals[SUM_Y]) + weight * beta * beta
        return max(float(total), 0.0) / (2.0 * weight)

    def response_variance(self, centred: bool = True) -> float:
        """The weighted mean of y^2 over all rows so far, about the mean or zero: twice the loss of no features."""
        self._require_weight()
        totals, weight = self._arrays.totals, self.weight
        beta = float(totals[SUM_Y]) / weight if centred else -float(totals[SHIFT_Y])
        total = totals[SUM_YY] - 2.0 * beta * totals[SUM_Y] + weight * beta * beta
        return max(float(total), 0.0) / weight

    def _require_weight(self) -> None:
        if self.weight == 0.0:
            raise ValueError("The summary is empty: absorb rows with positive weight first.")

    def gradient(self, coef: ArrayLike, intercept: float | None = 0.0) -> Floats:
        """The gradient of the loss in the coefficients, at a fixed intercept (None: the best one)."""
        _, product, along_sum, beta = self._residual_sums(coef, intercept)
        moments, totals = self._arrays.moments, self._arrays.totals
        result = product - moments[CROSS] + moments[SUM_X] * beta
        result += moments[SHIFT_X] * (along_sum - totals[SUM_Y] + self.weight * beta)
        gradient: Floats = result / self.weight
        return gradient

    def best_intercept(self, coef: ArrayLike) -> float:
        """The intercept that minimises the loss for these coefficients."""
        return self.mean_y - float(self.mean_x @ check_coef(coef, self.n_features))

    def _residual_sums(self, coef: ArrayLike, intercept: float | None) -> tuple[Floats, Floats, float, float]:
        """coef; (sum w z z') coef; (sum w z) . coef; and what is constant in the residual z . coef - v + beta."""
        theta = check_coef(coef, self.n_features)
        self._require_weight()
        arrays, n = self._arrays, self._arrays.counts[N_BUFFERED]
        product = np.zeros(self.n_features)
        exact = arrays.scatter.shape == (self.n_features, self.n_features) and arrays.scatter.dtype == np.float64
        if not exact or 8 * np.count_nonzero(theta) < len(theta):
            kernel.add_scatter_product(arrays.scatter, theta, product)
        elif self.n_folded:
            product += blas.dsymv(1.0, arrays.scatter.T, theta, lower=1)
        product += (arrays.buffer[:n] @ theta) @ arrays.buffer[:n]
        along_sum = float(arrays.moments[SUM_X] @ theta)
        if intercept is None:
            beta = (float(arrays.totals[SUM_Y]) - along_sum) / self.weight
        else:
            beta = float(arrays.moments[SHIFT_X] @ theta) + intercept - float(arrays.totals[SHIFT_Y])
        return theta, product, along_sum, beta

    def normal_equations(self, features: ArrayLike, centred: bool = True) -> tuple[Floats, Floats]:
        """The rows and columns `features` of the (co)moments of x, and of those of x with y.

        Solving them is least squares on these features alone. O(s^2), without a d x d temporary.
        """
        part = self.select(features, np.float64)  # what float32 holds is exact in it
        return (part.comoment(), part.cross_comoment()) if centred else (part.second_moment(), part.cross_moment())

    # -- absorbing rows --------------------------------------------------------------------------------

    def absorb(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Non-negative; a weight of two counts a row twice.
        """
        rows, responses, weights = check_rows(X, y, sample_weight, self.n_features, self.dtype)
        with InterruptsDeferred() as interrupts:
            for block in self.blocks(rows, responses, weights):
                kernel.absorb_rows(self._arrays, *block)
                self.fold_if_full()
                interrupts.check()
        return self

    def blocks(self, X: Any, y: Floats, weights: Floats | None) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Cut checked rows where the buffer fills up, or sooner, each piece dense and in float64."""
        sparse, block = scipy.sparse.issparse(X), self.block_size
        start, stop = 0, X.shape[0]
        while start < stop:
            room = len(self._arrays.buffer) - self._arrays.counts[N_BUFFERED]
            piece = slice(start, min(stop, start + min(room, block)))
            rows = X[piece].toarray() if sparse else X[piece]
            yield (
                read_only(np.ascontiguousarray(rows, np.float64)),
                read_only(y[piece]),
                NO_WEIGHTS if weights is None else read_only(weights[piece]),
            )
            start = piece.stop

    @property
    def block_size(self) -> int:
        """Rows that are folded at once."""
        return block_rows(self.n_features, self._hold_rows)

    @property
    def n_folded(self) -> int:
        """Rows in the co-moments; the others are still in the buffer."""
        return int(self._arrays.counts[N_SAMPLES] - self._arrays.counts[N_BUFFERED])

    def fold_if_full(self) -> bool:
        """Fold the buffer once it is full. True if the shift moved, so that derived sums must be redone."""
        return self._fold() if self._arrays.counts[N_BUFFERED] == len(self._arrays.buffer) else False

    def _fold(self) -> bool:
        fold(self._arrays)
        block = self.block_size
        if len(self._arrays.buffer) != block:  # it was the first, long one
            self._arrays = self._arrays._replace(buffer=np.zeros((block, self.n_features)), buffer_y=np.zeros(block))
        moved = self.weight > 0.0 and bool(kernel.mean_left_shift(self._arrays))
        if moved:
            kernel.recentre(self._arrays)
        return moved

    def twin(self) -> "Gram":
        """Another Gram that shares co-moments and buffer with this one, which alone may fold; see ``catch_up``."""
        result = Gram.__new__(Gram)
        result._hold_rows = self._hold_rows
        return result.catch_up(self)

    def catch_up(self, other: "Gram") -> Self:
        """Share co-moments and buffer with the other, which alone may fold, and copy its O(d) sums.

        Both may then take the same rows, each at its own pace.
        """
        own = {name: getattr(other._arrays, name).copy() for name in ("moments", "totals", "counts")}
        self._arrays = other._arrays._replace(**own)
        return self

    # -- summaries as values ---------------------------------------------------------------------------

    def copy(self) -> "Gram":
        """An independent copy."""
        return self._folded_copy(fold=False)

    def empty(self) -> "Gram":
        """A summary of the same kind that has seen nothing."""
        return Gram(self.n_features, self.dtype, self._hold_rows)

    def select(self, features: ArrayLike, dtype: DTypeLike | None = None) -> "Gram":
        """The summary of the same rows with only these columns, in this order, as a new object."""
        index = check_features(features, self.n_features)
        result = Gram(len(index), self.dtype if dtype is None else dtype)
        selected(self._arrays, index, result._arrays)
        return result

    def widened(self, n_features: int) -> "Gram":
        """The summary of the same rows with columns of zeros appended, as a new object.

        Equal to a summary of `n_features` columns that saw these rows with zeros in the columns that are new, to the
        rounding of sums that are added in another order: blocks are longer where there are more than 1031 columns.
        """
        return self.copy().grown(n_features, n_features)

    def grown(self, n_features: int, room: int | None = None) -> "Gram":
        """The same, but it takes over the storage of this one, which must not go on: for columns that come and come.

        O(d) and a copy of the buffer, but for a copy of the co-moments whenever there are an eighth more columns.
        """
        d = check_positive_integer(n_features, "n_features")
        if d < self.n_features:
            raise ValueError(f"Cannot widen a summary of {self.n_features} features to {d}; select() leaves some out.")
        room = room_for(self._arrays, d) if room is None else room
        if room > len(self._arrays.scatter):
            require_room(room, self.block_size, self.dtype)
        result = Gram.__new__(Gram)
        result._hold_rows = self._hold_rows
        result._arrays = widened(self._arrays, d, room, block_rows(d, self._hold_rows))
        return result

    def trim(self) -> None:
        """Let go of room for columns to come: BLAS called by address takes the matrix as it is."""
        d, arrays = self.n_features, self._arrays
        if len(arrays.scatter) > d:
            self._arrays = arrays._replace(scatter=arrays.scatter[:d, :d].copy())

    def merge(self, other: "Gram") -> "Gram":
        """The summary of both streams, as a new object."""
        self._check_partner(other, "merge")
        # About the shift of the heavier one, which is the closer one to the common mean.
        large, small = (self, other) if self.weight >= other.weight else (other, self)
        return large._combine(small, 1.0, np.result_type(self.dtype, other.dtype))

    def subtract(self, other: "Gram") -> "Gram":
        """The summary of the rows that are in this one but not in `other`, as a new object."""
        self._check_partner(other, "subtract")
        if other.n_samples > self.n_samples or other.weight > self.weight * (1.0 + 1e-12):
            raise ValueError(
                f"Cannot subtract {other.n_samples} rows of total weight {other.weight:g} from "
                f"{self.n_samples} rows of total weight {self.weight:g}: that is more than was absorbed."
            )
        result = self._combine(other, -1.0, self.dtype)
        before, after = self._arrays.moments[SUM_XX], result._arrays.moments[SUM_XX]
        nothing_left = result.n_samples == 0 or result.weight <= 1e-12 * self.weight
        check_part(before, after, nothing_left)
        np.maximum(after, 0.0, out=after)
        if nothing_left:
            n_left, result = result.n_samples, self.empty()
            result._arrays.counts[N_SAMPLES] = n_left
        else:
            cancelled = result.weight * result.variance() <= CANCELLED_SHARE * before
            make_constant(result._arrays, np.flatnonzero(cancelled))
        return result

    def _check_partner(self, other: "Gram", verb: str) -> None:
        if not isinstance(other, Gram):
            raise TypeError(f"Cannot {verb} a {type(other).__name__} with a Gram.")
        if other.n_features != self.n_features:
            raise ValueError(
                f"Cannot {verb} summaries of different widths: {self.n_features} and {other.n_features} features."
            )

    def _combine(self, other: "Gram", sign: float, dtype: DTypeLike) -> "Gram":
        """This summary plus `sign` times the other, about this one's shift."""
        result = self._folded_copy(dtype=dtype)
        add(result._arrays, other._folded_copy()._arrays, sign)
        return result

    def _folded_copy(self, dtype: DTypeLike | None = None, fold: bool = True) -> "Gram":
        result = Gram(self.n_features, self.dtype if dtype is None else dtype, self._hold_rows)
        result._arrays = copied(self._arrays, result._arrays.scatter)
        if fold and result._arrays.counts[N_BUFFERED]:
            result._fold()
        return result

    def __repr__(self) -> str:
        return f"Gram(n_features={self.n_features}, dtype={self.dtype}, n_samples={self.n_samples})"
