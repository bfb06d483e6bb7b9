"""What the offline methods do alike: rows go into a Gram, and the method runs from zero on it."""

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from thresher._checks import check_summary
from thresher._threads import one_blas_thread
from thresher._warnings import warn_caller
from thresher.kernels.problem import TINY
from thresher.rivals._rival import Rival
from thresher.rounds.sparse import SparseRounds
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]

# Steps of a round: enough to make its overhead small.
STEPS_PER_ROUND = 20
# Columns for which all eigenvalues are as cheap as the largest.
SMALL = 100
# The share of the loss at zero that rounding may add to an estimate that is no better than zero.
ROUNDING = 1e-9


class Solution(NamedTuple):
    """Where a method came to on a summary."""

    coef: Floats
    n_iter: int
    fault: str = ""  # what kept it from converging


class OnSummary(Rival):
    """An offline method that needs no more of the rows than their Gram: its result is a function of the summary."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "fit_intercept": ["boolean"],
        "standardize": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    fit_intercept: bool
    standardize: bool
    tol: float
    max_iter: int

    def fit_summary(self, summary: Gram) -> Self:
        """Fit from second moments alone: as ``fit`` on the rows that the summary has seen.

        The summary is copied; ``partial_fit`` may go on from it.
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            check_summary(summary, Gram)
            self._begin(summary.n_features)
            self._check_against_features(summary.n_features)
            self._forget_features(summary.n_features)
            self.n_samples_seen_ = summary.n_samples
            self._start(summary.n_features)
            self.summary_ = summary.copy()
            self._publish()
        return self._tell()

    @abstractmethod
    def _solve(self) -> Solution:
        """Run the method from zero on `summary_`, in which there is something to explain."""

    def _start(self, n_features: int) -> None:
        self.summary_ = Gram(n_features)
        self._fault, self.n_iter_ = "", 0

    def _learn(self, X: Floats, y: Floats) -> int:
        self.summary_.absorb(X, y)
        return len(y)

    def _estimate(self) -> Floats:
        summary, centred = self.summary_, self.fit_intercept
        coef, self.n_iter_, self._fault = Solution(np.zeros(summary.n_features), 0)
        if summary.weight == 0.0:  # interrupted before the first block
            return coef
        if response_scale(summary, centred) > 0.0 and summary.variance(centred).max() >= TINY:
            with one_blas_thread():
                coef, self.n_iter_, self._fault = self._solve()
        return coef

    def _publish(self) -> None:
        self.coef_ = self._estimate()
        self.intercept_ = self.summary_.best_intercept(self.coef_) if self.fit_intercept else 0.0

    def _take(self, X: Any, y: Any, reset: bool) -> Self:
        return super()._take(X, y, reset)._tell()

    def _tell(self) -> Self:
        if self._fault:
            warn_caller(f"{type(self).__name__} {self._fault}", ConvergenceWarning)
        return self

    def _scales(self) -> Floats:
        """The units of the columns: their root mean squares if standardised, else the largest of these for all."""
        scale = np.sqrt(self.summary_.variance(self.fit_intercept))
        return scale if self.standardize else np.full_like(scale, scale.max())

    def _quadratic(self) -> "Quadratic":
        """The loss in these units."""
        return Quadratic(self.summary_, self._scales(), bool(self.fit_intercept))

    def _moments(self) -> Floats:
        """Second moments of the columns in these units."""
        moments = self.summary_.comoment() if self.fit_intercept else self.summary_.second_moment()
        inverse = inverse_of(self._scales())
        moments *= inverse
        moments *= inverse[:, None] / self.summary_.weight
        return moments

    def _largest_curvature(self) -> float:
        """The largest eigenvalue of these moments."""
        moments = self._moments()
        if len(moments) <= SMALL:
            return float(np.linalg.eigvalsh(moments)[-1])
        start = np.random.default_rng(0).standard_normal(len(moments))
        return float(eigsh(moments, k=1, v0=start, tol=1e-10, return_eigenvectors=False)[0])

    def _unit_step(self) -> float:
        """A step of one in these units, in those of `SparseRounds`."""
        return 1.0 if self.standardize else float(self._scales()[0]) ** -2

    def _settle(self, sparsity: int, step_size: float, rule: str) -> Solution:
        """Rounds of plain steps from zero, until one moves nothing."""
        rounds = SparseRounds(self.summary_, sparsity, bool(self.fit_intercept), bool(self.standardize), rule=rule)
        unit = self._scales() / self._scales().max()
        n_steps, settled = min(self.max_iter, STEPS_PER_ROUND), False
        for _ in range(self.max_iter // n_steps):
            before = rounds.coef.copy()
            rounds.run_round(step_size, n_steps)
            settled = hardly_moved(unit * before, unit * rounds.coef, self.tol)
            if settled:
                break
        coef, tallies = rounds.coef, rounds.tallies
        fault = "" if settled else self._unsettled()
        if rule == "hard" and tallies["rises"] + tallies["overflows"]:
            better = self._better_than_zero(coef)
            if not (settled and better):
                fault = f"did not converge: steps of {step_size:.3g} raise the loss. Use a smaller step_size."
            coef = coef if better else np.zeros_like(coef)
        return Solution(coef, tallies["steps"], fault)

    def _unsettled(self) -> str:
        return f"did not converge within max_iter={self.max_iter} steps. Increase max_iter or tol."

    def _better_than_zero(self, coef: Floats) -> bool:
        intercept = None if self.fit_intercept else 0.0
        at_zero = self.summary_.loss(np.zeros_like(coef), intercept)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.summary_.loss(coef, intercept) <= at_zero * (1.0 + ROUNDING)


def hardly_moved(before: Floats, after: Floats, tol: float) -> bool:
    """Whether no coefficient moved by more than this share of the largest."""
    with np.errstate(over="ignore", invalid="ignore"):  # where steps are too long
        return bool(np.max(np.abs(after - before)) <= tol * np.max(np.abs(after)))


def response_scale(summary: Gram, centred: bool) -> float:
    """Root mean square of the response, about its mean or about zero."""
    return float(np.sqrt(2.0 * summary.loss(np.zeros(summary.n_features), None if centred else 0.0)))


def inverse_of(scale: Floats) -> Floats:
    """1 / scale, and zero where it is zero."""
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)


class Quadratic:
    """The loss of a summary in units that make columns and response of order one.

    With u the units of the columns and v that of the response, theta stands for the coefficients v theta / u.
    """

    def __init__(self, summary: Gram, scales: Floats, centred: bool) -> None:
        self.summary, self.centred = summary, centred
        self.intercept = None if centred else 0.0
        self.inverse = inverse_of(scales)
        self.unit_y = response_scale(summary, centred)
        self.at_zero = self.gradient(np.zeros(len(scales)))

    def gradient(self, theta: Floats) -> Floats:
        """G theta - v. O(d s) for s nonzeros."""
        return self.summary.gradient(self.coef(theta), self.intercept) * self.inverse / self.unit_y

    def bend(self, direction: Floats) -> float:
        """U' G u for the unit vector u along the direction."""
        unit = direction / np.sqrt(direction @ direction)
        return float(unit @ (self.gradient(unit) - self.at_zero))

    def least_squares(self, features: NDArray[np.intp]) -> Floats:
        """The minimiser over vectors that live on these features, the shortest if there are several."""
        matrix, _ = self.summary.normal_equations(features, self.centred)
        unit = self.inverse[features]
        matrix = unit[:, None] * matrix * (unit / self.summary.weight)
        theta = np.zeros(len(self.inverse))
        theta[features] = np.linalg.lstsq(matrix, -self.at_zero[features], rcond=1e-12)[0]
        return theta

    def coef(self, theta: Floats) -> Floats:
        """The coefficients that theta stands for."""
        result: Floats = self.unit_y * (theta * self.inverse)
        return result
