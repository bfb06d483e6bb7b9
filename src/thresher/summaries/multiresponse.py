"""The summary of a stream of rows with many responses."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Self

import numpy as np
from scipy.linalg import blas
from scipy.sparse import issparse

from thresher._utils.arrays import ArrayLike, Floats
from thresher._utils.checks import check_partner, check_positive_integer, check_rows
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.locks import lock_of, locked
from thresher.io.checkpoint import Saving
from thresher.io.schema import Count, Is, Schema
from thresher.summaries._decay import weight_and_scale
from thresher.summaries._tables import absorb_table, are_names, refuse_names
from thresher.summaries.gram import Gram


class MultiResponse(Saving):
    r"""What rows (x, y) with p features and q responses leave behind for least squares.

    All responses share one p x p matrix of co-moments of x; there is a p x q one of x with y and a q x q one of y. They
    are the blocks of the co-moments of the joined row (x, y), so this *is* a ``Gram`` of p + q columns, with
    its accuracy, its merging and its cost: (p + q)^2 flops per row in blocks of BLAS-3 and 8 (p + q)^2 bytes.

    Equivalent to keeping all rows and calling ``np.cov(np.hstack([X, Y]), rowvar=False)``.

    Parameters
    ----------
    n_features, n_responses : int
        p and q.
    half_life : float or timedelta, optional
        Rows of age u count 2^(-u / half_life), in rows or in seconds, as in ``Gram``.
    window : int, float or timedelta, optional
        Only the last rows count, or those of the last seconds, as in ``Gram``.
    exact_window : bool, default=False
        Let each row leave on its own, as in ``Gram``.

    References
    ----------
    A. J. Izenman (1975). Reduced-rank regression for the multivariate linear model. Journal of Multivariate
    Analysis 5(2), 248-264.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import MultiResponse
    >>> X = np.array([[1.0], [2.0], [3.0]])
    >>> Y = np.array([[2.0, 0.0], [4.0, 1.0], [6.0, 2.0]])
    >>> summary = MultiResponse(1, 2).absorb(X, Y)
    >>> summary.cross_comoment()
    array([[4., 2.]])
    >>> float(summary.loss([[2.0, 1.0]], intercept=[0.0, -1.0]))
    0.0
    """

    _schema = Schema(
        lambda summary: summary.n_features + summary.n_responses == summary._joint.n_features,
        lambda summary: summary._joint.dtype == np.float64,
        n_features=Count(1),
        n_responses=Count(1),
        _joint=Is(Gram),
    )

    def __init__(
        self,
        n_features: int,
        n_responses: int,
        half_life: float | timedelta | None = None,
        window: float | timedelta | None = None,
        exact_window: bool = False,
    ) -> None:
        self.n_features = check_positive_integer(n_features, "n_features")
        self.n_responses = check_positive_integer(n_responses, "n_responses")
        self._joint = Gram(n_features + n_responses, half_life=half_life, window=window, exact_window=exact_window)

    # -- what it holds ---------------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Number of rows absorbed, whatever their weights."""
        return self._joint.n_samples

    @property
    def weight(self) -> float:
        """Sum of the weights; the effective number of rows, if they were scaled or count less as they age."""
        return self._joint.weight

    @property
    def half_life(self) -> float | None:
        """Age at which a row counts half as much, in rows or seconds; None if all rows count equally."""
        return self._joint.half_life

    @property
    def window(self) -> float | None:
        """How many of the last rows count, or seconds; None if all do."""
        return self._joint.window

    @property
    def exact_window(self) -> bool:
        """Whether each row leaves the window on its own."""
        return self._joint.exact_window

    @property
    def last_time(self) -> float | None:
        """Time of the newest row in seconds; None if rows had no times."""
        return self._joint.last_time

    @property
    def forgets(self) -> bool:
        """Whether rows were scaled, or count less as they age, or leave."""
        return self._joint.forgets

    @property
    def mean_x(self) -> Floats:
        """Weighted mean of x; zero before the first row."""
        return self._joint.mean_x[: self.n_features]

    @property
    def mean_y(self) -> Floats:
        """Weighted mean of y; zero before the first row."""
        return self._joint.mean_x[self.n_features :]

    @property
    def dtype(self) -> np.dtype[Any]:
        """How co-moments are stored: float64."""
        return self._joint.dtype

    def variance(self, centred: bool = True) -> Floats:
        """Mean square of each feature, about its mean or about zero; exactly zero for a constant column."""
        return self._joint.variance(centred)[: self.n_features]

    def moments(self, centred: bool = True) -> tuple[Floats, Floats]:
        """(Co)moments of x with x, p x p, and of x with y, p x q: two views of one new array."""
        joint = self.joint_moments(centred)
        return joint[: self.n_features, : self.n_features], joint[: self.n_features, self.n_features :]

    @locked
    def joint_moments(self, centred: bool = True) -> Floats:
        """(Co)moments of the joined rows (x, y), (p + q) x (p + q)."""
        return self._joint.comoment() if centred else self._joint.second_moment()

    def comoment(self) -> Floats:
        """Sum w (x - mean)(x - mean)', p x p."""
        return self.moments()[0]

    def second_moment(self) -> Floats:
        """Sum w x x', p x p."""
        return self.moments(centred=False)[0]

    def cross_comoment(self) -> Floats:
        """Sum w (x - mean_x)(y - mean_y)', p x q."""
        return self.moments()[1]

    def cross_moment(self) -> Floats:
        """Sum w x y', p x q."""
        return self.moments(centred=False)[1]

    # -- the loss --------------------------------------------------------------------------------------

    @locked
    def loss(self, coef: ArrayLike, intercept: ArrayLike | None = 0.0) -> float:
        """Half the weighted mean of ``|y - x coef - intercept|^2`` over all rows so far; None is the best intercept."""
        joined, product, along_sum, beta = self._residual_sums(coef, intercept)
        total = np.sum(joined * product) + 2.0 * beta @ along_sum + self.weight * beta @ beta
        return max(float(total), 0.0) / (2.0 * self.weight)

    @locked
    def gradient(self, coef: ArrayLike, intercept: ArrayLike | None = 0.0) -> Floats:
        """The gradient of the loss in the coefficients, p x q, at a fixed intercept (None: the best one)."""
        _, product, along_sum, beta = self._residual_sums(coef, intercept)
        sums = self._joint.sums()
        result = product + np.outer(sums.sum_x, beta) + np.outer(sums.shift_x, along_sum + sums.weight * beta)
        gradient: Floats = result[: self.n_features] / sums.weight
        return gradient

    @locked
    def best_intercept(self, coef: ArrayLike) -> Floats:
        """The intercepts that minimise the loss for these coefficients."""
        return self.mean_y - self.mean_x @ self._check_coef(coef)

    def _residual_sums(self, coef: ArrayLike, intercept: ArrayLike | None) -> tuple[Floats, Floats, Floats, Floats]:
        """W = (coef, -I), (sum z z') W, (sum z)' W and what is constant in the residual W' z + beta.

        z is the joined row (x, y) less the shift.
        """
        joined = np.vstack([self._check_coef(coef), -np.eye(self.n_responses)])
        if self.weight == 0.0:
            raise ValueError("The summary is empty: absorb rows with positive weight first.")
        with lock_of(self._joint):
            state, sums = self._joint.state, self._joint.sums()
            buffer = state.buffer[: state.n_buffered]
            product = blas.dsymm(1.0, state.scatter.T, joined, lower=1) + buffer.T @ (buffer @ joined)
            if state.decay is not None:
                product *= weight_and_scale(state)[1]
        along_sum: Floats = sums.sum_x @ joined
        if intercept is None:
            beta = -along_sum / sums.weight
        else:
            beta = sums.shift_x @ joined + np.asarray(intercept, np.float64)
        return joined, product, along_sum, beta

    def _check_coef(self, coef: ArrayLike) -> Floats:
        theta = np.asarray(coef, np.float64)
        if theta.shape != (self.n_features, self.n_responses):
            raise ValueError(f"coef has shape {theta.shape}; expected ({self.n_features}, {self.n_responses}).")
        return theta

    # -- absorbing rows --------------------------------------------------------------------------------

    def absorb(
        self, X: Any, Y: Any, sample_weight: Any = None, features: Sequence[str] | None = None, times: Any = None
    ) -> Self:
        """Add rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p), or Arrow table
            An Arrow table is any object with ``__arrow_c_stream__``: pyarrow tables and readers, polars and pandas
            frames, DuckDB relations. Its rows are read some at a time.
        Y : array-like of shape (n, q), or list of str
            Responses; the names of their columns if X is an Arrow table.
        sample_weight : array-like of shape (n,), or str, optional
            Non-negative; a weight of two counts a row twice. The name of the column if X is an Arrow table.
        features : list of str, optional
            Columns of an Arrow table, as in ``Gram.absorb``.
        times : array-like of shape (n,), or str, optional
            When each row was, with `half_life` or `window`: numbers of seconds, or dates and times. They must not go
            back. The name of the column if X is an Arrow table.
        """
        if are_names(Y):
            names = [Y] if isinstance(Y, str) else Y
            if len(names) != self.n_responses:
                raise ValueError(f"Y names {len(names)} columns; the summary has {self.n_responses} responses.")
            absorb_table(self, self._joint, X, names, sample_weight, features, times)
            return self
        refuse_names(sample_weight, features, times)
        double = np.dtype(np.float64)
        rows, responses, weights = check_rows(X, Y, sample_weight, self.n_features, double, self.n_responses)
        with lock_of(self):
            return self.absorb_checked(rows, responses, weights, self.check_times(times, len(responses)))

    def check_times(self, times: Any, n_rows: int) -> Floats | None:
        """Times of the next rows in seconds; an error if they go back, or if there should be some, or none."""
        return self._joint.check_times(times, n_rows)

    def absorb_checked(self, X: Any, Y: Floats, weights: Floats | None, times: Floats | None = None) -> Self:
        """Add rows that were checked."""
        with lock_of(self), InterruptsDeferred() as interrupts:
            for start in range(0, X.shape[0], size := self._joint.block_size):
                piece = slice(start, start + size)
                rows = np.hstack([X[piece].toarray() if issparse(X) else X[piece], Y[piece]])
                some, when = (None if part is None else part[piece] for part in (weights, times))
                self._joint.absorb_checked(rows, np.zeros(len(rows)), some, when)
                interrupts.check()
        return self

    # -- summaries as values ---------------------------------------------------------------------------

    def copy(self) -> "MultiResponse":
        """An independent copy."""
        return self._with(self._joint.copy())

    def empty(self) -> "MultiResponse":
        """A summary of the same kind that has seen nothing."""
        return self._with(self._joint.empty())

    def scaled(self, factor: float) -> "MultiResponse":
        """The summary of the same rows, each counting `factor` times as much beside rows of others: a new object."""
        return self._with(self._joint.scaled(factor))

    def plain(self) -> "MultiResponse":
        """A summary with the same sums that does not forget, as a new object: of as many rows as are effective."""
        return self._with(self._joint.plain())

    def merge(self, other: "MultiResponse") -> "MultiResponse":
        """The summary of both streams, as a new object; of the same half-life, if they have one."""
        check_partner(self, other, "merge", "n_features", "n_responses")
        return self._with(self._joint.merge(other._joint))

    def subtract(self, other: "MultiResponse") -> "MultiResponse":
        """The summary of the rows that are in this one but not in `other`, as a new object."""
        check_partner(self, other, "subtract", "n_features", "n_responses")
        return self._with(self._joint.subtract(other._joint))

    def _with(self, joint: Gram) -> "MultiResponse":
        result = MultiResponse.__new__(MultiResponse)
        result.n_features, result.n_responses, result._joint = self.n_features, self.n_responses, joint
        return result

    def __repr__(self) -> str:
        return (
            f"MultiResponse(n_features={self.n_features}, n_responses={self.n_responses}, n_samples={self.n_samples})"
        )
