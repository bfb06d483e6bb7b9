"""Second moments of the features that are followed, with several half-lives."""

from copy import copy
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from thresher._utils.arrays import Floats, Integers
from thresher.drift._refit import refit
from thresher.drift._score import count, standardised
from thresher.drift.recent import Recent
from thresher.drift.settings import HALF_LIVES, JITTER, N_LEVELS, OFTEN_SOLVED
from thresher.io.schema import Array, Count, Flag, Number, Schema
from thresher.summaries._shifted import block_sums
from thresher.summaries.gram import Gram

# Directions with a smaller share of the variance are rounding.
SINGULAR = 1e-10


@dataclass(eq=False)
class Levels:
    r"""Estimates from rows that count 2^(-age / h), for several half-lives h, over the same few features.

    Each level keeps :math:`W = \sum_i w_i u_i u_i^\top` of u = (1, x, y), with x the kept features about an origin and
    in units of their deviations. The level of all rows is ridge regression. Every shorter level is shrunk towards the
    next longer one: with M and c the moments of (1, x), and of (1, x) with the residuals of the longer one, and n the
    effective number of rows,

    .. math:: \delta = (M + I / (n \rho))^{-1} c, \quad
              \rho = \arg\min\; n \log(\mathrm{rss} - c^\top \delta) + \log \det (I + n \rho M),

    the marginal likelihood of a random change. It is zero where the data show none, so that a stationary stream costs
    nothing. Changes of the intercept alone, and of single coefficients, are candidates too. The shortest level changes
    the intercept alone.

    Memory is O(s^2) per level. A block of rows costs O(s^2) per row, and O(s^3) for solving.
    """

    _schema = Schema(
        lambda levels: levels.moments.shape[1] == len(levels.features) + 2,
        lambda levels: levels.coef.shape[1] == len(levels.features) + 1,
        lambda levels: len(levels.moments) == N_LEVELS,
        features=Array("s", dtype="i8", least=0, ascending=True, shared=True),
        origin=Array("s"),
        scale=Array("s", least=1e-300),
        origin_y=Number(),
        scale_y=Number(least=1e-300),
        centred=Flag(),
        moments=Array("levels", "p", "p"),
        squares=Array("levels", least=0.0),
        largest=Array("terms", least=0.0),
        ridge=Array("s", least=0.0),
        overall=Array("s", dtype="u1", most=1),
        coef=Array("levels", "terms"),
        n_rows=Array("levels", least=0.0),
        n_blocks=Count(),
    )
    features: Integers
    origin: Floats
    scale: Floats
    origin_y: float
    scale_y: float
    centred: bool
    moments: Floats  # (levels, s + 2, s + 2)
    squares: Floats  # sums of squared weights, a row of weight two being two rows
    largest: Floats  # (s + 1), magnitudes of 1 and the features in rows since these were followed
    ridge: Floats = field(init=False)  # of the level of all rows, in its units
    overall: NDArray[np.uint8] = field(init=False)  # which features the level of all rows has
    coef: Floats = field(init=False)  # (levels, s + 1), the intercept first
    n_rows: Floats = field(init=False)  # effective rows that the coefficients of each level rest on

    n_blocks: int = field(init=False)  # since these features are followed

    def __post_init__(self) -> None:
        s = len(self.features)
        self.ridge, self.overall = np.zeros(s), np.zeros(s, np.uint8)
        self.coef = np.zeros((N_LEVELS, s + 1))
        self.n_rows, self.n_blocks = np.zeros(N_LEVELS), 0

    @property
    def units(self) -> tuple[Integers, Floats, Floats, float, float]:
        """The features, and the origins and scales in which rows are standardised."""
        return self.features, self.origin, self.scale, self.origin_y, self.scale_y

    def rows(self, summary: Gram, start: int, stop: int) -> Floats:
        """Rows of the buffer of a summary, in units of the levels."""
        s = summary.state
        return standardised(s.buffer, s.buffer_root, s.buffer_y, s.shift_x, s.shift_y, *self.units, start, stop)

    def add(self, rows: Floats) -> None:
        """Let a block of rows count, and solve, if it is time."""
        count(rows, self.moments, self.squares, _HALF_LIVES, self.largest)
        self.n_blocks += 1
        stride = max(-(-len(self.features) // OFTEN_SOLVED), 1)
        if self.n_blocks % stride == 0:
            self.refit(self.n_blocks // stride)

    def with_rows(self, rows: Floats) -> "Levels":
        """The same with some more rows; this one is not changed."""
        result = copy(self)
        result.moments, result.squares = self.moments.copy(), self.squares.copy()
        result.largest = self.largest.copy()
        result.coef, result.n_rows = self.coef.copy(), self.n_rows.copy()
        if len(rows):
            count(rows, result.moments, result.squares, _HALF_LIVES, result.largest)
        result.refit(1)
        return result

    def refit(self, time: int = 0) -> None:
        """Coefficients of the levels that are due, from their moments; of all of them at time zero."""
        sums = self.moments, self.squares, self.largest
        refit(*sums, self.ridge, self.overall, self.centred, self.coef, self.n_rows, time)

    def restart(self, recent: Recent) -> None:
        """Let only recent rows count, but for the level of all rows."""
        self.moments[:-1] = recent.moments(*self.units)[:-1]
        counts = recent.rows[:, 0] ** 2
        self.squares[:-1] = [float(recent.weights(h) ** 2 @ counts) for h in HALF_LIVES[:-1]]
        self.refit()

    def follow(self, support: Integers, ridge: Floats | None) -> None:
        """Take the support of all rows and its penalties, both among the features."""
        places = np.searchsorted(self.features, support)
        self.overall[:], self.ridge[:] = 0, 0.0
        self.overall[places] = 1
        if ridge is not None:
            self.ridge[places] = ridge / self.scale[places] ** 2

    def coefficients(self, weights: Floats) -> tuple[Floats, float]:
        """A mixture of the levels as coefficients of the features, and an intercept, in units of the data."""
        mixed = weights @ self.coef
        values = mixed[1:] * (self.scale_y / self.scale)
        intercept = self.origin_y + self.scale_y * float(mixed[0]) - float(self.origin @ values)
        return values, intercept if self.centred else 0.0

    def is_significant(self, weights: Floats, threshold: float) -> NDArray[np.bool_]:
        """Whether the square of each coefficient of the mixture is so many times its variance, or more.

        The variance is that of least squares on the rows of the level with the largest weight.
        """
        level = int(np.argmax(weights))
        mean = self.moments[level] / self.moments[level, 0, 0]
        first = 0 if self.centred else 1
        matrix, mixed = mean[first:-1, first:-1], (weights @ self.coef)[first:]
        n = self.moments[level, 0, 0] ** 2 / self.squares[level]
        noise = max(float(mean[-1, -1] - 2.0 * mixed @ mean[first:-1, -1] + mixed @ matrix @ mixed), 0.0)
        variance = noise / n * np.diagonal(np.linalg.pinv(matrix, rcond=SINGULAR, hermitian=True))
        result: NDArray[np.bool_] = (mixed**2 > threshold * variance)[1 - first :]
        return result


_HALF_LIVES = np.array(HALF_LIVES)


def start(summary: Gram, features: Integers, centred: bool) -> Levels:
    """Levels that know all rows so far, counted equally: as if recent rows had been like the others."""
    sums = summary.sums()
    scale_y = float(np.sqrt(sums.squares_y(centred) / (sums.weight or 1.0))) or 1.0
    overall, origin, scale, origin_y = _overall(summary, features, centred, scale_y)
    # The sums of 2^(-age / h), and of its square, over the rows so far.
    n = overall[0, 0]
    share = 2.0 ** (-1.0 / _HALF_LIVES[:-1])
    weights = np.append((1.0 - share**n) / (1.0 - share), n)
    squares = np.append((1.0 - share ** (2.0 * n)) / (1.0 - share**2), n)
    moments = overall * (weights / n)[:, None, None]
    largest = np.append(1.0, np.zeros(len(features)))
    return Levels(features, origin, scale, origin_y, scale_y, centred, moments, squares, largest)


def moved(levels: Levels, summary: Gram, features: Integers, recent: Recent) -> Levels:
    """The same levels over other features.

    What a level knows of features that stay is kept. Of a new feature it knows the recent rows. What it does not know
    of older rows is what all rows say of it, given the features that stay and y: its conditional mean and variance.
    """
    overall, origin, scale, origin_y = _overall(summary, features, levels.centred, levels.scale_y)
    p = len(features) + 2
    stays = np.isin(features, levels.features)
    before = np.searchsorted(levels.features, features[stays])
    old = np.concatenate([[0], 1 + before, [len(levels.features) + 1]])
    staying = np.concatenate([[True], stays, [True]])
    kept_places, new = np.flatnonzero(staying), np.flatnonzero(~staying)
    # From the old units to the new ones: u <- factor u + offset u_0.
    kept = levels.moments[:, old[:, None], old]
    factor = np.concatenate([[1.0], levels.scale[before] / scale[stays], [1.0]])
    offset = np.zeros(len(old))
    offset[1:-1] = (levels.origin[before] - origin[stays]) / scale[stays]
    offset[-1] = (levels.origin_y - origin_y) / levels.scale_y
    kept *= factor[:, None] * factor
    _shift(kept, offset)
    moments = np.empty((N_LEVELS, p, p))
    moments[:, kept_places[:, None], kept_places] = kept
    if len(new):
        known = overall[kept_places[:, None], new]
        among = overall[kept_places[:, None], kept_places]
        among[np.diag_indices(len(old))] += JITTER * overall[0, 0]
        _, given, failed = dposv(among, known)
        given = np.zeros_like(known).T if failed else given.T
        rest = overall[new[:, None], new] - given @ known
        seen = recent.moments(features, origin, scale, origin_y, levels.scale_y)
        kept -= seen[:, kept_places[:, None], kept_places]
        with_kept = given @ kept
        moments[:, new[:, None], kept_places] = with_kept
        moments[:, kept_places[:, None], new] = with_kept.swapaxes(1, 2)
        moments[:, new[:, None], new] = with_kept @ given.T + rest * (kept[:, 0, 0] / overall[0, 0])[:, None, None]
        moments[:, new] += seen[:, new]
        moments[:, kept_places[:, None], new] += seen[:, kept_places[:, None], new]
    moments[-1] = overall
    squares = levels.squares.copy()
    squares[-1] = overall[0, 0]
    largest = np.append(1.0, np.zeros(len(features)))
    largest[kept_places[1:-1]] = levels.largest[old[1:-1]] * factor[1:-1] + np.abs(offset[1:-1])
    rows = recent.standardised(features, origin, scale, origin_y, levels.scale_y)
    rows = rows[rows[:, 0] > 0.0]
    largest[new] = np.abs(rows[:, new] / rows[:, :1]).max(axis=0, initial=0.0)
    return Levels(features, origin, scale, origin_y, levels.scale_y, levels.centred, moments, squares, largest)


def _overall(summary: Gram, features: Integers, centred: bool, scale_y: float) -> tuple[Floats, Floats, Floats, float]:
    """Moments of all rows, standardised, and the units: origin and scale of the features, origin of y."""
    products, sums = block_sums(summary.state, features)
    weight = sums.weight or 1.0
    origin = sums.mean_x if centred else np.zeros(len(features))
    origin_y = sums.mean_y if centred else 0.0
    scale = np.sqrt(sums.squares(centred) / weight)
    scale[~(scale > 1e-150)] = 1.0
    p = len(features) + 2
    moments = np.empty((p, p))
    moments[0, 0], moments[-1, -1] = sums.weight, sums.sum_yy
    moments[0, -1] = moments[-1, 0] = sums.sum_y
    moments[0, 1:-1] = moments[1:-1, 0] = sums.sum_x
    moments[-1, 1:-1] = moments[1:-1, -1] = sums.cross
    moments[1:-1, 1:-1] = products
    # About the origin instead of the shift, then in units of the scales.
    offset = np.zeros(p)
    offset[1:-1], offset[-1] = sums.shift_x - origin, sums.shift_y - origin_y
    _shift(moments, offset)
    unit = 1.0 / np.concatenate([[1.0], scale, [scale_y]])
    moments *= unit[:, None] * unit
    return moments, origin, scale, origin_y


def _shift(moments: Floats, offset: Floats) -> None:
    """Sums of w u u', with u_0 = 1, become those of u + offset; for one matrix, or for several."""
    along = offset[:, None] * (moments[..., :1, :] + 0.5 * moments[..., :1, :1] * offset)
    moments += along + along.swapaxes(-1, -2)
