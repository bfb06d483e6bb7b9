"""Sums of rows about a shift: the arithmetic behind a Gram.

Every sum is taken about a *shift* (c, c_y) instead of about zero. With z = x - c, v = y - c_y and weights w,

    scatter = sum w z z'    cross = sum w z v    sum_x = sum w z    sum_xx = sum w z^2    sum_yy = sum w v^2

The shift starts at the first row and follows the mean when the mean leaves it, so centred co-moments,
scatter - sum_x sum_x' / weight, never cancel (Chan, Golub and LeVeque, 1983).

The newest rows wait in `buffer` as sqrt(w) z, in `buffer_y` as sqrt(w) v and in `buffer_root` as sqrt(w). They enter
every sum together, by BLAS-3, when the buffer is full: at fixed row counts, so no sum depends on how the stream was cut
into calls. Whoever reads a sum before that adds what is in the buffer (`Sums`).

If rows were scaled, or count less as they age, weights are relative to each other (`_decay`). All sums are then read
in units in which their weight is the effective number of rows.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from thresher._utils.arrays import Floats
from thresher._utils.checks import LARGEST
from thresher._utils.memory import require_bytes
from thresher.io.schema import Array, Count, Flag, Is, Number, Schema
from thresher.summaries._buffer import add_rows, put_rows
from thresher.summaries._decay import ROUNDING, Decay, decayed, weight_and_scale

# The shift moves when the mean is further from it than this share of the second moment about it.
DRIFT_SHARE = 0.1
# Rows of a d x d matrix that are rewritten at a time, so that temporaries stay small.
STRIPE = 32


@dataclass(eq=False)
class State:
    """Everything that a Gram of d columns holds; all sums are over the rows that were folded."""

    _schema = Schema(
        lambda s: 1 <= len(s.sum_x) <= len(s.scatter),
        lambda s: s.started or not (s.weight or s.buffer_root.any()),
        lambda s: not s.buffer_root[s.n_buffered :].any() and not s.buffer[s.n_buffered :].any(),
        lambda s: s.n_samples > s.n_buffered or not s.weight,
        lambda s: s.is_within_reach(),
        # Columns to come are zero until they do.
        lambda s: not s.scatter[len(s.sum_x) :].any() and not s.scatter[:, len(s.sum_x) :].any(),
        lambda s: s.decay is None or len(s.decay.factors) == len(s.buffer),
        lambda s: s.decay is None or s.decay.sum_factors <= (s.n_samples - s.n_buffered) * (1.0 + ROUNDING),
        scatter=Array("room", "room", dtype="f8 f4"),
        buffer=Array("block", "d"),
        buffer_y=Array("block"),
        buffer_root=Array("block", least=0.0),
        shift_x=Array("d"),
        sum_x=Array("d"),
        sum_xx=Array("d"),
        cross=Array("d"),
        weight=Number(least=0.0),
        shift_y=Number(),
        sum_y=Number(),
        sum_yy=Number(),
        n_samples=Count(),
        n_buffered=Count(most="n_samples", below="block"),  # a full buffer is folded at once
        started=Flag(),
        decay=Is(Decay) | None,
    )
    scatter: NDArray[np.floating]  # (d, d) or larger, upper triangle
    buffer: Floats  # (B, d)
    buffer_y: Floats  # (B,)
    buffer_root: Floats  # (B,)
    shift_x: Floats  # (d,)
    sum_x: Floats  # (d,)
    sum_xx: Floats  # (d,), in float64 whatever the storage of `scatter`
    cross: Floats  # (d,)
    weight: float = 0.0
    shift_y: float = 0.0
    sum_y: float = 0.0
    sum_yy: float = 0.0
    n_samples: int = 0  # rows absorbed
    n_buffered: int = 0  # of which this many wait in the buffer
    started: bool = False  # whether a row has set the shift
    decay: Decay | None = None  # if rows were scaled, or count less as they age

    def is_within_reach(self) -> bool:
        """Whether rows within the limits of `check_range` could have left these sums; products do not overflow then."""
        x, y = (2.0 * LARGEST[dtype] for dtype in (self.scatter.dtype, np.dtype(np.float64)))
        if self.decay is not None and not self.decay.is_within_reach(self.weight):
            return False
        w, root = self.weight, max(float(self.buffer_root.max()), 1.0)
        limits = (
            (x, self.shift_x),
            (y, np.array([self.shift_y])),
            (root * x, self.buffer),
            (root * y, self.buffer_y),
            (w * x, self.sum_x),
            (w * y, np.array([self.sum_y])),
            (w * x * x, self.sum_xx, self.scatter),
            (w * x * y, self.cross),
            (w * y * y, np.array([self.sum_yy])),
        )
        return all(-limit <= array.min() and array.max() <= limit for limit, *arrays in limits for array in arrays)

    def check(self) -> None:
        """Raise ValueError if the arrays do not fit together: compiled loops trust them."""
        columns = (self.shift_x, self.sum_x, self.sum_xx, self.cross)
        d, block = len(self.sum_x), len(self.buffer)
        if (
            any(array.shape != (d,) for array in columns)
            or self.buffer.shape != (block, d)
            or not self.buffer_y.shape == self.buffer_root.shape == (block,)
            or self.scatter.ndim != 2
            or min(self.scatter.shape) < d
            or not 0 <= self.n_buffered <= block
            or (self.decay is not None and self.decay.factors.shape != (block,))
        ):
            raise ValueError("The arrays of the summary do not fit together.")


class Sums(NamedTuple):
    """The O(d) sums over all rows, folded or not, of some columns."""

    weight: float
    shift_x: Floats
    sum_x: Floats
    sum_xx: Floats
    cross: Floats
    shift_y: float
    sum_y: float
    sum_yy: float

    def scaled(self, factor: float, weight: float) -> "Sums":
        """The sums in other units, in which the weight is that."""
        return Sums(
            weight,
            self.shift_x,
            factor * self.sum_x,
            factor * self.sum_xx,
            factor * self.cross,
            self.shift_y,
            factor * self.sum_y,
            factor * self.sum_yy,
        )

    @property
    def mean_x(self) -> Floats:
        """Weighted mean of x; zero before the first row."""
        mean: Floats = self.shift_x + self.sum_x / (self.weight or 1.0)
        return mean

    @property
    def mean_y(self) -> float:
        """Weighted mean of y; zero before the first row."""
        return self.shift_y + self.sum_y / (self.weight or 1.0)

    def centring(self) -> Floats:
        """The u of which u u' is to be subtracted to centre products of columns: symmetric, and nothing overflows."""
        u: Floats = self.sum_x / sqrt(self.weight or 1.0)
        return u

    def squares(self, centred: bool) -> Floats:
        """Sum w x^2 of each column, about the mean or about zero; exactly zero for a constant column."""
        about = -(self.centring() ** 2) if centred else (2.0 * self.sum_x + self.weight * self.shift_x) * self.shift_x
        result: Floats = np.maximum(self.sum_xx + about, 0.0)
        return result

    def squares_y(self, centred: bool) -> float:
        """Sum w y^2, about the mean or about zero."""
        beta = self.sum_y / (self.weight or 1.0) if centred else -self.shift_y
        return max(self.sum_yy - 2.0 * beta * self.sum_y + self.weight * beta * beta, 0.0)

    def products_y(self, centred: bool) -> Floats:
        """Sum w x y of each column, about the means or about zero."""
        if centred:
            result: Floats = self.cross - self.sum_y / (self.weight or 1.0) * self.sum_x
            return result
        sum_y = self.sum_y + self.weight * self.shift_y
        return self.cross + self.sum_x * self.shift_y + self.shift_x * sum_y

    def recentre(self, products: Floats, columns: "Sums", centred: bool) -> Floats:
        """Turn sums of w z_i z_j, i in these columns and j in others, into sums about the means or zero; in place.

        A matrix of all columns with themselves stays exactly symmetric.
        """
        ours, theirs = self.centring(), columns.centring()
        for start in range(0, len(products), STRIPE):
            part = slice(start, start + STRIPE)
            if centred:
                products[part] -= np.outer(ours[part], theirs)
            else:
                half = self.sum_x[part] + 0.5 * self.weight * self.shift_x[part]
                other = columns.sum_x + 0.5 * self.weight * columns.shift_x
                products[part] += np.outer(self.shift_x[part], other) + np.outer(half, columns.shift_x)
        return products


def require_room(n_features: int, block: int, storage: np.dtype[Any]) -> None:
    """Raise MemoryError if there is no room for the co-moments of so many columns, and a buffer of `block` rows."""
    require_bytes(
        n_features * n_features * storage.itemsize + 8 * n_features * (block + 8),
        f"A Gram of {n_features:,} features in {storage}",
        "Use fewer features."
        if storage == np.float32
        else "dtype=numpy.float32 halves it; otherwise use fewer features.",
    )


def new_state(n_features: int, block: int, storage: np.dtype[Any]) -> State:
    """The state of a Gram that has seen nothing."""
    d = n_features
    require_room(d, block, storage)
    return State(
        scatter=np.zeros((d, d), storage),
        buffer=np.zeros((block, d)),
        buffer_y=np.zeros(block),
        buffer_root=np.zeros(block),
        shift_x=np.zeros(d),
        sum_x=np.zeros(d),
        sum_xx=np.zeros(d),
        cross=np.zeros(d),
    )


def start_shift(state: State, X: Floats, y: Floats, weights: Floats | None) -> None:
    """Let the first row that counts set the shift, if none has."""
    if state.started:
        return
    first = 0 if weights is None else int(np.argmax(weights > 0.0))
    if weights is None or weights[first] > 0.0:
        state.shift_x, state.shift_y, state.started = np.array(X[first], np.float64), float(y[first]), True


def buffer_rows(state: State, X: Floats, y: Floats, weights: Floats | None, times: Floats | None = None) -> None:
    """Put rows into the buffer, which must have room."""
    if state.decay is None:
        _buffer_rows(state, X, y, weights)
        return
    for piece, factors in decayed(state, state.decay, len(y), times):
        n = state.n_buffered
        state.decay.factors[n : n + len(factors)] = factors
        _buffer_rows(state, X[piece], y[piece], factors if weights is None else weights[piece] * factors)


def _buffer_rows(state: State, X: Floats, y: Floats, weights: Floats | None) -> None:
    start_shift(state, X, y, weights)
    put_rows(
        X,
        y,
        weights,
        state.shift_x,
        state.shift_y,
        state.buffer,
        state.buffer_y,
        state.buffer_root,
        state.n_buffered,
    )
    state.n_samples += len(y)
    state.n_buffered += len(y)


def sums(state: State) -> Sums:
    """The O(d) sums of all columns, over all rows."""
    if state.decay is None:
        return stored_sums(state)
    weight, scale = weight_and_scale(state)
    return stored_sums(state).scaled(scale, weight)


def stored_sums(state: State) -> Sums:
    """The same in the units in which they are stored."""
    n = state.n_buffered
    buffer, root, v = state.buffer[:n], state.buffer_root[:n], state.buffer_y[:n]
    sum_x, sum_xx, cross = state.sum_x, state.sum_xx, state.cross
    if n == 0:
        return Sums(state.weight, state.shift_x, sum_x, sum_xx, cross, state.shift_y, state.sum_y, state.sum_yy)
    sum_x, sum_xx, cross = sum_x.copy(), sum_xx.copy(), cross.copy()
    sum_y, sum_yy = add_rows(buffer, root, v, sum_x, sum_xx, cross)
    return Sums(
        weight=state.weight + float(root @ root),
        shift_x=state.shift_x,
        sum_x=sum_x,
        sum_xx=sum_xx,
        cross=cross,
        shift_y=state.shift_y,
        sum_y=state.sum_y + sum_y,
        sum_yy=state.sum_yy + sum_yy,
    )


def fold(state: State) -> bool:
    """Add the rows in the buffer to every sum, and empty it. True if the shift moved, to follow the mean."""
    rows, scatter = state.buffer[: state.n_buffered], state.scatter
    total = stored_sums(state)
    if state.decay is not None:
        state.decay.fold(state.buffer_root[: state.n_buffered])
    _, _, state.sum_x, state.sum_xx, state.cross, _, state.sum_y, state.sum_yy = total
    state.weight = total.weight
    if rows.shape[1] < len(scatter):  # which has room for columns to come
        rows = np.pad(rows, ((0, 0), (0, len(scatter) - rows.shape[1])))
    syrk = blas.dsyrk if scatter.dtype == np.float64 else blas.ssyrk
    # In place: the transposes are Fortran-ordered, and their lower triangle is our upper one.
    syrk(1.0, rows.astype(scatter.dtype, copy=False).T, beta=1.0, c=scatter.T, lower=1, overwrite_c=1)
    # Rows that were folded are not kept, not even in the file of a summary.
    new = slice(state.n_buffered)
    state.buffer[new], state.buffer_y[new], state.buffer_root[new], state.n_buffered = 0.0, 0.0, 0.0, 0
    moved = state.weight > 0.0 and mean_left_shift(state)
    if moved:
        recentre_shift(state)
    return moved


def mean_left_shift(of: "State | Sums") -> bool:
    """Whether some column's mean is too far from its shift for cheap, accurate centring."""
    return bool((of.sum_x * (of.sum_x / of.weight) > DRIFT_SHARE * of.sum_xx).any())


def recentre_shift(state: State) -> None:
    """Move the shift to the mean; the buffer must be empty."""
    shift = state.shift_x + state.sum_x / state.weight
    shift_y = state.shift_y + state.sum_y / state.weight
    # What the rounded shift really moved by.
    translate(state, shift - state.shift_x, shift_y - state.shift_y)
    state.shift_x, state.shift_y = shift, shift_y


def translate(state: State, move: Floats, move_y: float) -> None:
    """Rewrite every sum for a shift that is about to move by (move, move_y); the buffer must be empty.

    scatter <- scatter - sum_x move' - move sum_x' + weight move move', and likewise for the others.
    """
    weight, sum_x, sum_y, d = state.weight, state.sum_x, state.sum_y, len(move)
    rest = sum_x - weight * move
    for start in range(0, d, STRIPE):
        part = slice(start, min(start + STRIPE, d))
        rows = state.scatter[part, start:d]
        rows -= np.outer(rest[part], move[start:]) + np.outer(move[part], sum_x[start:])
    state.cross = state.cross - (sum_x * move_y + (sum_y - weight * move_y) * move)
    state.sum_xx = state.sum_xx - (2.0 * sum_x - weight * move) * move
    state.sum_x = rest
    state.sum_yy -= (2.0 * sum_y - weight * move_y) * move_y
    state.sum_y -= weight * move_y


def shifted_columns(state: State, columns: NDArray[np.intp]) -> Floats:
    """Sum w z_i z_j over all rows, for the columns i with these numbers and all j: a new array, a row for each i."""
    buffer, d = state.buffer[: state.n_buffered], len(state.sum_x)
    result: Floats = buffer[:, columns].T @ buffer if len(buffer) else np.zeros((len(columns), d))
    if state.n_samples > state.n_buffered:
        for row, i in zip(result, columns, strict=True):
            row[i:] += state.scatter[i, i:d]
            row[:i] += state.scatter[:i, i]
    if state.decay is not None:
        result *= weight_and_scale(state)[1]
    return result


def scatter_product(state: State, vector: Floats) -> Floats:
    """(sum w z z') vector over all rows; O(s d) for a vector with s nonzeros, if they are few."""
    d, support = len(vector), np.flatnonzero(vector)
    if 8 * len(support) < d or state.scatter.shape != (d, d) or state.scatter.dtype != np.float64:
        product = np.zeros(d)
        for start in range(0, len(support), STRIPE):
            some = support[start : start + STRIPE]
            product += vector[some] @ shifted_columns(state, some)
        return product
    buffer = state.buffer[: state.n_buffered]
    result: Floats = blas.dsymv(1.0, state.scatter.T, vector, lower=1) + (buffer @ vector) @ buffer
    if state.decay is not None:
        result *= weight_and_scale(state)[1]
    return result


def block_sums(state: State, columns: NDArray[np.intp]) -> tuple[Floats, Sums]:
    """Sum w z_i z_j over all rows, for i and j among some columns, and their O(d) sums; the buffer is read once."""
    block, total = stored_block_sums(state, columns)
    if state.decay is not None:
        weight, scale = weight_and_scale(state)
        block, total = scale * block, total.scaled(scale, weight)
    return block, total


def stored_block_sums(state: State, columns: NDArray[np.intp]) -> tuple[Floats, Sums]:
    """The same in the units in which they are stored."""
    n, s = state.n_buffered, len(columns)
    rows = np.empty((n, s + 2))
    state.buffer[:n].take(columns, axis=1, out=rows[:, :s], mode="clip")
    rows[:, s], rows[:, s + 1] = state.buffer_root[:n], state.buffer_y[:n]
    products = rows.T @ rows
    block = products[:s, :s].copy()
    if state.n_samples > n:
        block += state.scatter[np.minimum.outer(columns, columns), np.maximum.outer(columns, columns)]
    return block, Sums(
        weight=state.weight + products.item(s, s),
        shift_x=state.shift_x[columns],
        sum_x=state.sum_x[columns] + products[s, :s],
        sum_xx=state.sum_xx[columns] + products.diagonal()[:s],
        cross=state.cross[columns] + products[s + 1, :s],
        shift_y=state.shift_y,
        sum_y=state.sum_y + products.item(s, s + 1),
        sum_yy=state.sum_yy + products.item(s + 1, s + 1),
    )


def shifted_scatter(state: State) -> Floats:
    """Sum w z z' over all rows, full and symmetric: a new array."""
    d = len(state.sum_x)
    result: Floats = np.triu(state.scatter[:d, :d]).astype(np.float64, copy=False)
    for start in range(0, d, STRIPE):
        stop = min(start + STRIPE, d)
        result[start:stop, :start] = result[:start, start:stop].T
        corner = result[start:stop, start:stop]
        corner += np.triu(corner, 1).T
    buffer = state.buffer[: state.n_buffered]
    if len(buffer):
        result += buffer.T @ buffer
    if state.decay is not None:
        result *= weight_and_scale(state)[1]
    return result
