"""Candidates with few features: the path of forward selection, or back from its end."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtrtri

from thresher.kernels.backward import eliminate
from thresher.kernels.forward import Found, forward_path
from thresher.kernels.problem import PERFECT
from thresher.rounds.sparse import SparseRounds
from thresher.selection.ebic import Ebic
from thresher.selection.path import Family, Path, log_choices
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]

# A path goes on for so many features, and half of those at the best one, after the best one.
PATIENCE = 20
# The criterion that ends a path, and says whether elimination pays, is the extended BIC with this gamma.
GAMMA_OF_END = 0.25
# Paths are not longer than this unless asked for.
LONGEST = 1000
# The criterion, per row, by which elimination has to be better; less may be rounding.
TELLING = 1e-9


@dataclass(frozen=True, eq=False)
class FeaturePath(Path):
    """Nested supports, with least squares on each. Memory O(s^2)."""

    order: NDArray[np.int64]
    upper: Floats  # Cholesky factor of the moments of the features in that order
    rhs: Floats  # upper'^-1 times their moments with y
    n_features: int
    mean_x: Floats  # of the features in the order
    mean_y: float
    centred: bool

    @cached_property
    def table(self) -> Floats:
        """Coefficients of the features in the order, one row for each size.

        The inverse of a leading block of U is the leading block of its inverse, so one inverse serves all sizes.
        """
        n = len(self.order)
        result = np.zeros((n + 1, n))
        if n:
            terms = solve_triangular(self.upper, np.eye(n)) * self.rhs
            np.cumsum(terms.T, axis=0, out=result[1:])
        return result

    def coef(self, size: int) -> Floats:
        """Coefficients of all features; zero for those that this size does not have."""
        coef = np.zeros(self.n_features)
        coef[self.order[:size]] = self.table[size, :size]
        return coef

    def intercept(self, size: int) -> float:
        """The intercept; zero if there is none."""
        return self.mean_y - float(self.mean_x @ self.table[size]) if self.centred else 0.0


def _falls(found: Found) -> Floats:
    """By how much the residual sum of squares falls for each size."""
    return np.concatenate([[0.0], np.cumsum(found.rhs**2)])


def _taken_back(found: Found, total: float, weight: float, penalty: Floats) -> Found:
    """Without the features that the best candidate can do without, if a better candidate is found so. O(n^3)."""
    falls = _falls(found)
    criterion = _criterion(falls, total, weight, penalty)
    size = int(np.argmin(criterion))
    if size == 0:
        return found
    root = dtrtri(found.upper[:size, :size])[0]
    places, rises = np.arange(len(found.order)), np.empty(size)
    eliminate(root @ root.T, root @ found.rhs[:size], places[:size], rises)
    left = falls[size] - np.cumsum(rises[::-1])[::-1]  # with 0, 1, ..., size - 1 features
    if _criterion(left, total, weight, penalty).min() >= criterion[size] - TELLING * weight:
        return found
    return _reordered(found, places)


def _reordered(found: Found, places: NDArray[np.intp]) -> Found:
    """The same features in another order.

    A permutation P of the features leaves P'GP = (UP)'(UP), so the new factor is the triangular one of UP = QR.
    """
    q, r = np.linalg.qr(found.upper[:, places])
    signs = np.where(np.diag(r) < 0.0, -1.0, 1.0)
    return Found(found.order[places], signs[:, None] * r, signs * (q.T @ found.rhs))


def _criterion(falls: Floats, total: float, weight: float, penalty: Floats) -> Floats:
    """Weight log(residual) + penalty for sizes from zero on."""
    residual = np.maximum(total - falls, PERFECT * total)
    result: Floats = weight * np.log(residual) + penalty[: len(residual)]
    return result


@dataclass(frozen=True)
class Features(Family):
    r"""Linear models with few features.

    ``path`` is forward selection (orthogonal least squares): supports are nested, each new feature is the one that
    lowers the loss most, and every candidate is least squares on its support. Forward selection never takes a feature
    back, even if those that came later make it superfluous, as they do among columns that are much alike. So the
    features of its best candidate are also eliminated one by one, each time the one that explains least, and if a
    better candidate lies on that way, it is the path. O(d s^2) time for a path of length s, after O(d b) per feature
    for the b rows that are not yet folded.

    Parameters
    ----------
    centred, standardized : bool
        Whether there is an intercept, and whether rounds measure in units of the column scales.
    rule : {"hard", "pursuit", "reciprocal"}
        How the rounds move.
    patient : bool
        Whether rounds end early.
    follow : bool
        Whether rounds follow a stream that changes.
    prudent : bool
        Whether coefficients are trusted only as far as there are rows to carry them.

    References
    ----------
    S. Chen, S. A. Billings and W. Luo (1989). Orthogonal least squares methods and their application to non-linear
    system identification. International Journal of Control 50(5), 1873-1896.
    """

    centred: bool = True
    standardized: bool = True
    rule: str = "pursuit"
    patient: bool = False
    follow: bool = False
    prudent: bool = False

    def most(self, summary: Gram) -> int:
        """The largest size worth considering: with more, noise explains as much as it likes."""
        d, n = summary.n_features, summary.weight
        room = int((n - 1.0 - self.centred) / (np.log(max(d, 3)) * max(np.log(np.log(max(n, 3.0))), 1.0)))
        return max(min(d, room, LONGEST), 0)

    def path(self, summary: Gram, n_most: int | None = None) -> FeaturePath:
        """Candidates of sizes from zero on, until they do not get better; forward up to `n_most` exactly, if given."""
        d = summary.n_features
        patient = n_most is None
        n = self.most(summary) if n_most is None else min(n_most, d)
        weight = summary.weight
        total = weight * summary.response_variance(self.centred)
        log_models = log_choices(d, min(d, max(n, LONGEST)))[: n + 1]
        penalty = np.arange(n + 1) * np.log(max(weight, 1.0)) + 2.0 * GAMMA_OF_END * log_models
        found = forward_path(summary.arrays, self.centred, total, penalty, PATIENCE if patient else n + 1)
        n = len(found.order)
        if patient and n:
            found = _taken_back(found, total, weight, penalty)
        return FeaturePath(
            sizes=np.arange(n + 1),
            loss=np.maximum(total - _falls(found), 0.0) / (2.0 * weight),
            freedom=np.arange(n + 1.0),
            log_models=log_models[: n + 1],
            weight=weight,
            spread=0.5 * summary.response_variance(),
            order=found.order,
            upper=found.upper,
            rhs=found.rhs,
            n_features=d,
            mean_x=summary.mean_x[found.order],
            mean_y=summary.mean_y,
            centred=self.centred,
        )

    def largest(self, summary: Gram) -> int:
        """The largest size that there is."""
        return summary.n_features

    def candidate(self, summary: Gram, size: int) -> Floats:
        """The candidate of forward selection; a shorter one, if features are collinear."""
        path = self.path(summary, size)
        return path.coef(int(path.sizes[-1]))

    def fallback(self) -> Ebic:
        """The criterion that chooses while there is nothing to hold out."""
        return Ebic(parsimony=0.0)

    def new_rounds(self, summary: Gram, size: int) -> SparseRounds:
        """Rounds with `size` features."""
        return SparseRounds(
            summary,
            size,
            self.centred,
            self.standardized,
            rule=self.rule,
            patient=self.patient,
            follow=self.follow,
            prudent=self.prudent,
        )

    def loss(self, summary: Gram, coef: Floats) -> float:
        """Half the mean squared residual of an estimate."""
        return summary.loss(coef, None if self.centred else 0.0)

    def part(self, path: Path, summary: Gram) -> Gram:
        """The summary of the features on the path (of the first one, if there is none)."""
        assert isinstance(path, FeaturePath)
        return summary.select(path.order if len(path.order) else [0])

    def loss_of_part(self, path: Path, part: Gram) -> Floats:
        """Half the mean squared error of every candidate on the rows of such a part."""
        assert isinstance(path, FeaturePath)
        if not len(path.order):
            return np.array([part.loss(np.zeros(1), path.intercept(0))])
        table, total = path.table, 0.5 * part.response_variance(path.centred)
        moments, cross = part.normal_equations(np.arange(part.n_features), path.centred)
        quadratic = np.einsum("ij,ij->i", table @ moments, table) - 2.0 * (table @ cross)
        losses: Floats = total + quadratic / (2.0 * part.weight)
        if path.centred:  # what the intercept of the path is off by, over the rows of the part
            off = (part.mean_y - path.mean_y) - table @ (part.mean_x - path.mean_x)
            losses += 0.5 * off**2
        return np.maximum(losses, 0.0)
