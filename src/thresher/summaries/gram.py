"""The Gram summary of a stream of rows with one response."""

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Self

import numpy as np
import scipy.sparse

from thresher._utils.arrays import ArrayLike, DTypeLike, Floats, Integers
from thresher._utils.checks import check_coef, check_features, check_partner, check_positive_integer, check_rows
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.locks import lock_of, locked
from thresher.io.checkpoint import Saving
from thresher.io.schema import Flag, Is, Schema
from thresher.summaries import _shifted
from thresher.summaries._combining import add, check_part, copied, make_constant
from thresher.summaries._decay import new_decay, weight_and_scale
from thresher.summaries._forgetting import Forgetting
from thresher.summaries._shifted import State, Sums
from thresher.summaries._tables import absorb_table, are_names, refuse_names
from thresher.summaries._widening import room_for, widened
from thresher.summaries._window import BlockWindow, RowWindow, new_window
from thresher.summaries.moments import Moments

# What is left of a column is constant if its variance is below this share of what there was.
CANCELLED_SHARE = 1e-13


def block_rows(n_features: int, hold_rows: bool = False) -> int:
    """Rows per fold: enough for BLAS-3 speed, at most an eighth of the Gram's own memory if it is large.

    Where rows are held, products with all moments are frequent, and each goes over the buffer: a shorter one.
    """
    if hold_rows:
        return 64
    return min(max((n_features // 8 + 15) // 16 * 16, 128), 256)


class Gram(Forgetting, Saving):
    r"""What a stream of rows (x, y) leaves behind for least squares: its second moments.

    With weights w (one, unless given) it keeps :math:`\sum w`, the means of x and y and the co-moments

    .. math:: \sum w (x - \bar x)(x - \bar x)^\top, \quad \sum w (x - \bar x)(y - \bar y), \quad
              \sum w (y - \bar y)^2,

    from which the loss of every linear model on all rows so far, with or without an intercept, follows
    exactly. Equivalent to keeping all rows and calling ``np.cov(X, y, aweights=w)``, in memory that does not
    grow: 8 d^2 bytes (4 d^2 in float32) and a buffer of at most 256 rows.

    Summaries are values: ``a.merge(b)`` is the summary of both streams, ``a.subtract(b)`` forgets one, and
    ``a.scaled(0.5)`` lets its rows count half as much beside others. With `half_life`, rows count less as they age.

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
    half_life : float or timedelta, optional
        Rows of age u count 2^(-u / half_life). Ages are in rows, or in seconds if ``absorb`` is given times. By
        default all rows count equally. It costs no memory, and no time but for scaling all sums every 32 half-lives.
    window : int, float or timedelta, optional
        Only the last so many rows count, or those of the last so many seconds if ``absorb`` is given times. Up to a
        tenth more are in the window, since rows leave in blocks. It takes 112 d^2 bytes and two to four times the time.
    exact_window : bool, default=False
        Let each row leave on its own. The rows in the window are kept, 8 (d + 3) bytes for each, or up to three times
        that with times, and no others. Reading s columns takes O(s) for each of them.

    Notes
    -----
    A row costs O(d) at once and d^2 flops when its block is folded by one BLAS-3 call (``syrk``). Blocks
    end at fixed row counts, so the arrays do not depend on how the stream was cut into calls.

    Sums are taken about a shift that follows the mean (it starts at the first row), which is why
    co-moments keep full accuracy when the mean is 10^8 standard deviations away from zero: the corrected
    two-pass idea of Chan, Golub and LeVeque (1983), in one pass.

    Weights by `half_life` and ``scaled`` are relative, and all sums are read in units of the effective number of rows:
    ``weight`` is :math:`(\sum f)^2 / \sum f^2` over the factors f of all rows (Kish, 1965), a row with a
    ``sample_weight`` of two being two rows. Everything that depends on n takes that for it. ``comoment() / weight``
    is the weighted covariance.

    After ``merge``, rows with times are as old as their times say. Rows without are as old as they were in their part:
    the newest rows of both parts have age zero. Rows that were scaled cannot be subtracted.

    References
    ----------
    T. F. Chan, G. H. Golub and R. J. LeVeque (1983). Algorithms for computing the sample variance: analysis
    and recommendations. The American Statistician 37(3), 242-247.

    G. Cormode, V. Shkapenyuk, D. Srivastava and B. Xu (2009). Forward decay: a practical time decay model for streaming
    systems. International Conference on Data Engineering, 138-149.

    L. Kish (1965). Survey Sampling. Wiley.

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

    The last row counts 1, the one before 1/2, the first 1/4:

    >>> recent = Gram(2, half_life=1.0).absorb(X, y)
    >>> recent.mean_x.round(3), np.average(X, axis=0, weights=[0.25, 0.5, 1.0]).round(3)
    (array([3.857, 4.571]), array([3.857, 4.571]))
    >>> round(recent.weight, 3), round((0.25 + 0.5 + 1.0) ** 2 / (0.25**2 + 0.5**2 + 1.0**2), 3)
    (2.333, 2.333)
    """

    _schema = Schema(
        lambda gram: len(gram.state.buffer) >= gram.block_size,
        lambda gram: gram._window is None or (not gram._hold_rows and gram._state.decay is None),
        lambda gram: gram._window is None or gram._window.fits(gram._state),
        lambda gram: not isinstance(gram._window, RowWindow) or gram._window.n_waiting < gram.block_size,
        _hold_rows=Flag(),
        _state=Is(State),
        _window=Is(BlockWindow, RowWindow) | None,
    )

    def __init__(
        self,
        n_features: int,
        dtype: DTypeLike = np.float64,
        hold_rows: bool = False,
        half_life: float | timedelta | None = None,
        window: float | timedelta | None = None,
        exact_window: bool = False,
    ) -> None:
        d = check_positive_integer(n_features, "n_features")
        storage = np.dtype(dtype)
        if storage not in (np.dtype(np.float64), np.dtype(np.float32)):
            raise ValueError(f"dtype must be float64 or float32, got {storage}")
        # Memory that is allocated but not written to takes no room, so a long first buffer costs what is in it.
        block = max(block_rows(d, hold_rows), d // 2 if hold_rows else 0)
        if half_life is not None and window is not None:
            raise ValueError(f"Rows fade by half_life={half_life!r} or leave by window={window!r}; give one of them.")
        if hold_rows and window is not None:
            raise ValueError("A window folds rows as it goes, or holds them all; leave out hold_rows.")
        decay = None if half_life is None else new_decay(half_life, block)
        self._hold_rows = bool(hold_rows)
        self._state = _shifted.new_state(d, block, storage)
        self._state.decay = decay
        self._window = None if window is None else new_window(window, exact_window, self._state)

    # -- what it holds ---------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The live state, for kernels. Everyone else should use the methods."""
        return self._state

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return len(self._state.sum_x)

    @property
    def dtype(self) -> np.dtype[Any]:
        """How co-moments are stored."""
        return self._state.scatter.dtype

    @property
    def n_samples(self) -> int:
        """Number of rows absorbed, whatever their weights."""
        return self._state.n_samples

    @property
    def n_folded(self) -> int:
        """Rows in the co-moments; the others are still in the buffer."""
        return self._state.n_samples - self._state.n_buffered

    @property
    def block_size(self) -> int:
        """Rows that are folded at once."""
        return block_rows(self.n_features, self._hold_rows)

    @locked
    def sums(self) -> Sums:
        """Weight, shift and first-order sums over all rows."""
        return _shifted.sums(self._state)

    @locked
    def _sums_of_response(self) -> Sums:
        """The same of no column: in O(1), but for rows not yet folded."""
        return _shifted.block_sums(self._state, np.zeros(0, np.intp))[1]

    @property
    @locked
    def weight(self) -> float:
        """Sum of the weights; the effective number of rows, if they were scaled or count less as they age."""
        return weight_and_scale(self._state)[0]

    @property
    def mean_x(self) -> Floats:
        """Weighted mean of x; zero before the first row."""
        return self.sums().mean_x

    @property
    def mean_y(self) -> float:
        """Weighted mean of y; zero before the first row."""
        return self._sums_of_response().mean_y

    @locked
    def variance(self, centred: bool = True) -> Floats:
        """Mean square of each column, about its mean or about zero; exactly zero for a constant column."""
        sums = self.sums()
        result: Floats = sums.squares(centred) / (sums.weight or 1.0)
        return result

    @locked
    def response_variance(self, centred: bool = True) -> float:
        """The weighted mean of y^2 over all rows so far, about the mean or zero: twice the loss of no features."""
        sums = self._sums_of_response()
        self._require_weight(sums)
        return sums.squares_y(centred) / sums.weight

    def comoment(self) -> Floats:
        """Sum w (x - mean)(x - mean)', as a new d x d array."""
        return self._full(centred=True)

    def second_moment(self) -> Floats:
        """Sum w x x', as a new d x d array."""
        return self._full(centred=False)

    @locked
    def _full(self, centred: bool) -> Floats:
        sums, result = self.sums(), _shifted.shifted_scatter(self._state)
        np.fill_diagonal(result, sums.sum_xx)  # float64 whatever the storage
        return sums.recentre(result, sums, centred)

    def cross_comoment(self) -> Floats:
        """Sum w (x - mean_x)(y - mean_y)."""
        return self.sums().products_y(centred=True)

    def cross_moment(self) -> Floats:
        """Sum w x y."""
        return self.sums().products_y(centred=False)

    @locked
    def moments(self, centred: bool = True) -> Moments:
        """The (co)moments of x and y; columns are read when they are asked for, without a d x d temporary."""
        return Moments(self._state, centred)

    def normal_equations(self, features: ArrayLike, centred: bool = True) -> tuple[Floats, Floats]:
        """The rows and columns `features` of the (co)moments of x, and of those of x with y.

        Solving them is least squares on these features alone. O(s^2), without a d x d temporary.
        """
        return self.equations(check_features(features, self.n_features), centred)[:2]

    @locked
    def equations(self, features: Integers, centred: bool) -> tuple[Floats, Floats, Sums]:
        """The same for features that were checked, and their sums."""
        matrix, sums = _shifted.block_sums(self._state, features)
        sums.recentre(matrix, sums, centred)
        matrix[np.diag_indices(len(features))] = sums.squares(centred)  # float64 whatever the storage
        return matrix, sums.products_y(centred), sums

    # -- the loss --------------------------------------------------------------------------------------

    @locked
    def loss(self, coef: ArrayLike, intercept: float | None = 0.0) -> float:
        """Half the weighted mean of (y - x . coef - intercept)^2 over all rows so far.

        None stands for the best intercept, without the rounding of a large mean.
        """
        theta, product, along_sum, beta, sums = self._residual_sums(coef, intercept)
        total = float(theta @ (product - 2.0 * sums.cross)) + sums.sum_yy
        total += 2.0 * beta * (along_sum - sums.sum_y) + sums.weight * beta * beta
        return max(total, 0.0) / (2.0 * sums.weight)

    @locked
    def gradient(self, coef: ArrayLike, intercept: float | None = 0.0) -> Floats:
        """The gradient of the loss in the coefficients, at a fixed intercept (None: the best one)."""
        _, product, along_sum, beta, sums = self._residual_sums(coef, intercept)
        result = product - sums.cross + sums.sum_x * beta
        result += sums.shift_x * (along_sum - sums.sum_y + sums.weight * beta)
        gradient: Floats = result / sums.weight
        return gradient

    @locked
    def best_intercept(self, coef: ArrayLike) -> float:
        """The intercept that minimises the loss for these coefficients."""
        sums = self.sums()
        return sums.mean_y - float(sums.mean_x @ check_coef(coef, self.n_features))

    def _residual_sums(self, coef: ArrayLike, intercept: float | None) -> tuple[Floats, Floats, float, float, Sums]:
        """coef; (sum w z z') coef; (sum w z) . coef; what is constant in the residual z . coef - v + beta; the sums."""
        theta, sums = check_coef(coef, self.n_features), self.sums()
        self._require_weight(sums)
        along_sum = float(sums.sum_x @ theta)
        if intercept is None:
            beta = (sums.sum_y - along_sum) / sums.weight
        else:
            beta = float(sums.shift_x @ theta) + intercept - sums.shift_y
        return theta, _shifted.scatter_product(self._state, theta), along_sum, beta, sums

    @staticmethod
    def _require_weight(sums: Sums) -> None:
        if sums.weight == 0.0:
            raise ValueError("The summary is empty: absorb rows with positive weight first.")

    # -- absorbing rows --------------------------------------------------------------------------------

    def absorb(
        self, X: Any, y: Any, sample_weight: Any = None, features: Sequence[str] | None = None, times: Any = None
    ) -> Self:
        """Add rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or Arrow table
            An Arrow table is any object with ``__arrow_c_stream__``: pyarrow tables and readers, polars and pandas
            frames, DuckDB relations. Its rows are read some at a time.
        y : array-like of shape (n,), or str
            Responses; the name of their column if X is an Arrow table.
        sample_weight : array-like of shape (n,), or str, optional
            Non-negative; a weight of two counts a row twice. The name of the column if X is an Arrow table.
        features : list of str, optional
            Columns of an Arrow table, in this order, or levels of categories such as ``"colour=red"``. By default all
            other columns of numbers. Give it in every call, or keep the order of columns: a Gram has no names.
        times : array-like of shape (n,), optional
            When each row was, with `half_life` or `window`: numbers of seconds, or dates and times. They must not go
            back. The name of the column if X is an Arrow table.
        """
        if are_names(y):
            if not isinstance(y, str):
                raise ValueError(f"y names {len(y)} columns; a Gram has one response: use a MultiResponse.")
            absorb_table(self, self, X, y, sample_weight, features, times)
            return self
        refuse_names(sample_weight, features, times)
        rows, responses, weights = check_rows(X, y, sample_weight, self.n_features, self.dtype)
        with lock_of(self):
            return self.absorb_checked(rows, responses, weights, self.check_times(times, len(responses)))

    def absorb_checked(self, X: Any, y: Floats, weights: Floats | None, times: Floats | None = None) -> Self:
        """Add rows that were checked."""
        start = 0
        with lock_of(self), InterruptsDeferred() as interrupts:
            for rows, responses, some in self.blocks(X, y, weights):
                self.put(rows, responses, some, None if times is None else times[start : start + len(rows)])
                self.fold_if_full()
                start += len(rows)
                interrupts.check()
        return self

    def put(self, X: Floats, y: Floats, weights: Floats | None, times: Floats | None = None) -> None:
        """Add checked rows, dense and in float64, that the buffer has room for; if it is full then, fold it next."""
        if self._window is None:
            _shifted.buffer_rows(self._state, X, y, weights, times)
        else:
            self._state = self._window.put(self._state, X, y, weights, times)

    def blocks(self, X: Any, y: Floats, weights: Floats | None) -> Iterator[tuple[Floats, Floats, Floats | None]]:
        """Cut checked rows where the buffer fills up, or sooner, each piece dense and in float64."""
        sparse, block = scipy.sparse.issparse(X), self.block_size
        start, stop = 0, X.shape[0]
        while start < stop:
            piece = slice(start, min(stop, start + min(self.rows_until_fold, block)))
            rows = X[piece].toarray() if sparse else X[piece]
            yield (
                np.ascontiguousarray(rows, np.float64),
                y[piece],
                None if weights is None else weights[piece],
            )
            start = piece.stop

    @property
    def rows_until_fold(self) -> int:
        """How many more rows fill the buffer."""
        if isinstance(self._window, RowWindow):
            return self._window.rows_until_fold(self._state, self.block_size)
        return len(self._state.buffer) - self._state.n_buffered

    def fold_if_full(self) -> bool:
        """Fold the buffer once it is full. True if the shift moved, so that derived sums must be redone."""
        return False if self.rows_until_fold else self._fold()

    def _fold(self) -> bool:
        if self._window is not None:
            return self._window.fold(self._state)
        moved, block = _shifted.fold(self._state), self.block_size
        if len(self._state.buffer) != block:  # it was the first, long one
            self._state.buffer = np.zeros((block, self.n_features))
            self._state.buffer_y, self._state.buffer_root = np.zeros(block), np.zeros(block)
            if self._state.decay is not None:
                self._state.decay.factors = np.zeros(block)
        return moved

    def undoing(self, n_rows: int) -> Callable[[], None]:
        """What takes back the next `n_rows` rows, bit for bit: O(n_rows d), or a copy if they fill the buffer."""
        state = self._state
        if n_rows >= self.rows_until_fold or not state.started or self.forgets:
            before = self.copy()

            def restore() -> None:
                self._state, self._window = before._state, before._window

            return restore
        counts, new = (state.n_samples, state.n_buffered), slice(state.n_buffered, state.n_buffered + n_rows)
        places = state.buffer[new], state.buffer_y[new], state.buffer_root[new]
        contents = [place.copy() for place in places]

        def take_back() -> None:
            state.n_samples, state.n_buffered = counts
            for place, content in zip(places, contents, strict=True):
                place[...] = content

        return take_back

    # -- summaries as values ---------------------------------------------------------------------------

    def copy(self) -> "Gram":
        """An independent copy."""
        return self._copy(self.dtype)

    def empty(self) -> "Gram":
        """A summary of the same kind that has seen nothing."""
        result = Gram(self.n_features, self.dtype, self._hold_rows)
        if self._state.decay is not None and self.half_life is not None:
            result._state.decay = self._state.decay.emptied(len(result._state.buffer))
        if self._window is not None:
            result._window = new_window(self._window.length, self.exact_window, result._state)
            result._window.timed = self._window.timed or None
        return result

    @locked
    def select(self, features: ArrayLike) -> "Gram":
        """The summary of the same rows with only these columns, in this order, as a new object."""
        index = check_features(features, self.n_features)
        result = Gram(len(index), self.dtype)
        ours, new = self._state, result._state
        new.scatter[...], sums = _shifted.stored_block_sums(ours, index)
        np.fill_diagonal(new.scatter, sums.sum_xx)  # float64 whatever the storage
        _, new.shift_x, new.sum_x, new.sum_xx, new.cross, new.shift_y, new.sum_y, new.sum_yy = sums
        new.weight, new.n_samples, new.started = sums.weight, ours.n_samples, ours.started
        if ours.decay is not None:
            new.decay = ours.decay.folded(ours.buffer_root[: ours.n_buffered], len(new.buffer))
        return result

    @locked
    def grown(self, n_features: int) -> "Gram":
        """The summary of the same rows with columns of zeros appended; it takes over the storage of this one.

        This one must not go on; `copy` it first if it has to. Equal to a summary of `n_features` columns that saw these
        rows with zeros in the new columns, to the rounding of sums that are added in another order: blocks are longer
        where there are more than 1031 columns. O(d) and a copy of the buffer, but for a copy of the co-moments
        whenever there are an eighth more columns.
        """
        d = check_positive_integer(n_features, "n_features")
        if d < self.n_features:
            raise ValueError(f"Cannot widen a summary of {self.n_features} features to {d}; select() leaves some out.")
        room = room_for(self._state, d)
        if room > len(self._state.scatter):
            _shifted.require_room(room, self.block_size, self.dtype)
        result = Gram.__new__(Gram)
        result._hold_rows, block = self._hold_rows, block_rows(d, self._hold_rows)
        result._state = widened(self._state, d, room, block)
        result._window = None if self._window is None else self._window.grown(d, block)
        return result

    def merge(self, other: "Gram") -> "Gram":
        """The summary of both streams, as a new object; of the same half-life, if they have one."""
        check_partner(self, other, "merge", "n_features", "half_life", "window")
        if self._window is not None:
            raise ValueError(
                "Cannot merge windows: rows would leave them at other times. Merge what is in them now, plain(), or "
                "let one window see all rows."
            )
        # About the shift of the heavier one, which is the closer one to the common mean.
        large, small = (self, other) if self.weight >= other.weight else (other, self)
        return large._copy(np.result_type(self.dtype, other.dtype))._add(small.copy(), 1.0)

    def subtract(self, other: "Gram") -> "Gram":
        """The summary of the rows that are in this one but not in `other`, as a new object."""
        check_partner(self, other, "subtract", "n_features")
        if self.forgets or other.forgets:
            raise ValueError(
                "Cannot subtract: rows that were scaled, or that count less as they age, or that leave a window, no "
                "longer count what they did. Keep the parts apart and merge those that are wanted."
            )
        result, other = self.copy(), other.copy()  # one after the other, so that nobody waits for both
        n, weight, before = result.n_samples, result.weight, result.sums().sum_xx
        if other.n_samples > n or other.weight > weight * (1.0 + 1e-12):
            raise ValueError(
                f"Cannot subtract {other.n_samples} rows of total weight {other.weight:g} from "
                f"{n} rows of total weight {weight:g}: that is more than was absorbed."
            )
        result._add(other, -1.0)
        after = result._state.sum_xx
        nothing_left = result.n_samples == 0 or result.weight <= 1e-12 * weight
        check_part(before, after, nothing_left)
        result._state.sum_xx = np.maximum(after, 0.0)
        if nothing_left:
            n_left, result = result.n_samples, self.empty()
            result._state.n_samples = n_left
        else:
            cancelled = result.weight * result.variance() <= CANCELLED_SHARE * before
            make_constant(result._state, np.flatnonzero(cancelled))
        return result

    def _add(self, other: "Gram", sign: float) -> "Gram":
        """Add `sign` times the other, about this one's shift; both are folded."""
        for one in (self, other):
            if one._state.n_buffered:
                one._fold()
        add(self._state, other._state, sign)
        return self

    @locked
    def _copy(self, dtype: DTypeLike) -> "Gram":
        result = Gram(self.n_features, dtype, self._hold_rows)
        result._state = copied(self._state, result._state.scatter)
        result._window = None if self._window is None else self._window.copy()
        return result

    def __repr__(self) -> str:
        return f"Gram(n_features={self.n_features}, dtype={self.dtype}, n_samples={self.n_samples})"
