"""The last rows as they were, so that features can be chosen from them, and be followed from then on."""

from dataclasses import dataclass

import numpy as np

from thresher._utils.arrays import Floats, Integers, padded
from thresher.drift.settings import (
    BLOCK,
    ENTER,
    HALF_LIVES,
    JITTER,
    LAST_ROWS,
    MORE_ROWS,
    MOST_AT_ONCE,
    RECENT_HALF_LIFE,
)
from thresher.io.schema import Array, Count, Number, Schema
from thresher.summaries.gram import Gram


@dataclass(eq=False)
class Recent:
    """The last rows, sqrt(w) (1, x, y), about a fixed origin.

    When another feature is followed, every level knows it from these rows at once: its moments are sums over rows that
    are still there, and over older ones as all rows describe them. A feature that begins to matter is found by forward
    selection from them; the more rows are kept, the weaker it may be.

    Memory is 8 (d + 3) bytes for each row, and adding a row takes O(d). A search takes O(d) per row and feature found.
    """

    _schema = Schema(
        lambda recent: recent.rows.shape[1] == len(recent.origin) + 2,
        lambda recent: len(recent.rows) in (LAST_ROWS, MORE_ROWS),
        lambda recent: recent.ends.max() <= recent.n_rows,
        origin=Array("d"),
        origin_y=Number(),
        rows=Array("last", "columns"),
        ends=Array("last", dtype="i8", least=0),
        n_rows=Count(),
        since=Count(most="n_rows"),
    )
    origin: Floats
    origin_y: float
    rows: Floats  # a ring
    ends: Integers  # the count of rows at the end of the block of each, which tells its age
    n_rows: int = 0  # since it began
    since: int = 0  # rows that came before do not count

    @classmethod
    def new(cls, summary: Gram, centred: bool, size: int) -> "Recent":
        """Room for so many rows; about zero if there is no intercept."""
        sums = summary.sums()
        rows = np.zeros((size, summary.n_features + 2))
        origin, origin_y = (sums.shift_x.copy(), float(sums.shift_y)) if centred else (np.zeros_like(sums.shift_x), 0.0)
        return cls(origin, origin_y, rows, np.zeros(size, np.int64))

    def widened(self, n_features: int) -> "Recent":
        """The same with more columns, which were zero so far."""
        rows = np.zeros((len(self.rows), n_features + 2))
        d = len(self.origin)
        rows[:, : d + 1], rows[:, -1] = self.rows[:, :-1], self.rows[:, -1]
        return Recent(padded(self.origin, n_features), self.origin_y, rows, self.ends, self.n_rows, self.since)

    def add(self, summary: Gram, start: int, stop: int) -> None:
        """Add rows of the buffer of a summary; blocks end at multiples of their length, and with the last row."""
        state, size, n = summary.state, len(self.rows), self.n_rows - start
        offset, offset_y = state.shift_x - self.origin, state.shift_y - self.origin_y
        moved, i = offset.any(), max(start, stop - size)
        while i < stop:
            place = (n + i) % size
            end = min(stop, i + size - place)
            some, ring = slice(i, end), slice(place, place + end - i)
            root = state.buffer_root[some]
            self.rows[ring, 0], self.rows[ring, 1:-1] = root, state.buffer[some]
            self.rows[ring, -1] = state.buffer_y[some] + root * offset_y
            if moved:
                self.rows[ring, 1:-1] += root[:, None] * offset
            self.ends[ring] = n + np.minimum(np.arange(i, end) // BLOCK * BLOCK + BLOCK, stop)
            i = end
        self.n_rows = n + stop

    def skip(self, count: int) -> None:
        """Leave out so many rows: those kept are older then. Only without breaks, which need rows in a row."""
        self.n_rows += count

    def weights(self, half_life: float) -> Floats:
        """What each row counts, 2^(-age / half-life), in the order of the ring; rows of a block have the same age."""
        result: Floats = 2.0 ** ((self.ends - self.n_rows) / half_life)
        size = len(self.rows)
        if self.since > self.n_rows - size:
            ages = (self.n_rows - 1 - np.arange(size)) % size
            result[ages >= self.n_rows - self.since] = 0.0
        return result

    def moments(self, features: Integers, origin: Floats, scale: Floats, origin_y: float, scale_y: float) -> Floats:
        """Sums of w u u', u = (1, x, y) of these features in these units, for each half-life."""
        u = self.standardised(features, origin, scale, origin_y, scale_y)
        return np.array([(self.weights(half_life)[:, None] * u).T @ u for half_life in HALF_LIVES])

    def standardised(
        self, features: Integers, origin: Floats, scale: Floats, origin_y: float, scale_y: float
    ) -> Floats:
        """The rows (1, x, y) of these features in these units, times sqrt(w)."""
        u = self._columns(features)
        u[:, 1:-1] = (u[:, 1:-1] + u[:, :1] * (self.origin[features] - origin)) / scale
        u[:, -1] = (u[:, -1] + u[:, 0] * (self.origin_y - origin_y)) / scale_y
        return u

    def candidates(self, summary: Gram, followed: Integers, centred: bool) -> list[int]:
        """Features to follow besides, by forward selection: the strongest first, each given those before it."""
        weights = self.weights(RECENT_HALF_LIFE)
        counts = weights * self.rows[:, 0] ** 2
        total, squares = float(counts.sum()), float((weights * counts).sum())
        if not total > 0.0:
            return []
        deviations = np.sqrt(summary.variance())
        unit = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 1e-150)
        features, found, n = followed, list[int](), total * total / squares
        while len(found) < MOST_AT_ONCE and n > 2.0 * len(features) + 2.0:
            errors = self._residuals(features, weights, centred)
            products = ((weights * errors) @ self.rows[:, 1:-1]) * unit
            products[features] = 0.0
            j = int(np.argmax(np.abs(products)))
            noise = float(weights @ errors**2) / total * n / (n - len(features) - 1.0)
            if not products[j] ** 2 > ENTER * np.log(max(len(products), 2)) * noise * squares:
                break
            found.append(j)
            features = np.append(features, j)
        return found

    def _columns(self, features: Integers) -> Floats:
        """Copies of (1, x, y) of these features."""
        result: Floats = self.rows[:, np.concatenate([[0], features + 1, [self.rows.shape[1] - 1]])]
        return result

    def _residuals(self, features: Integers, weights: Floats, centred: bool) -> Floats:
        """Of weighted least squares on these features."""
        u = self._columns(features)[:, 0 if centred else 1 :]
        products = (weights[:, None] * u).T @ u
        scale = np.sqrt(np.diagonal(products)).copy()
        scale[~(scale > 1e-150)] = 1.0
        matrix = products[:-1, :-1] / np.outer(scale[:-1], scale[:-1])
        matrix[np.diag_indices(len(matrix))] += JITTER
        coef = np.linalg.solve(matrix, products[:-1, -1] / scale[:-1]) / scale[:-1]
        result: Floats = u[:, -1] - u[:, :-1] @ coef
        return result
