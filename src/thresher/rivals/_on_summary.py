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
from thresher.rivals._order_one import OrderOne, response_scale
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
# Where a round moves nothing, a single step that moves a coefficient by more than this share of the largest, and by far
# more than the tolerance, is part of a circle.
CIRCLE = 1e-6
FAR_MORE = 100.0


class Solution(NamedTuple):
    """Where a method came to on a summary."""

    coef: Floats
    n_iter: int
    fault: str = ""  # what kept it from converging
    diverged: bool = False  # whether it came to nothing


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

        The summary, which must be in float64, is copied; ``partial_fit`` may go on from it.
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            check_summary(summary, Gram)
            if summary.dtype != np.float64:
                raise ValueError("The summary must be in float64; Gram(n_features).merge(summary) makes it so.")
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
        self._fault, self.n_iter_, self.diverged_ = "", 0, False

    def _learn(self, X: Floats, y: Floats) -> int:
        self.summary_.absorb(X, y)
        return len(y)

    def _estimate(self) -> Floats:
        return self.coef_

    def _publish(self) -> None:
        """Solve. Until that is done, everything stays as it was: it may be interrupted."""
        summary, centred = self.summary_, self.fit_intercept
        solution = Solution(np.zeros(summary.n_features), 0)
        # There are no rows at all after an interrupt before the first block.
        if summary.weight > 0.0 and response_scale(summary, centred) > 0.0 and summary.variance(centred).max() >= TINY:
            with one_blas_thread():
                solution = self._solve()
        coef, n_iter, fault, diverged = solution
        with np.errstate(over="ignore", invalid="ignore"):
            intercept = summary.best_intercept(coef) if centred else 0.0
        if not (np.isfinite(coef).all() and np.isfinite(intercept)):
            coef, diverged = np.zeros_like(coef), True
            intercept = summary.mean_y if centred else 0.0
            fault = "diverged: coefficients overflow. Rescale the columns or the response."
        self.coef_, self.intercept_ = coef, intercept
        self.n_iter_, self._fault, self.diverged_ = n_iter, fault, diverged

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
        return Quadratic(self._order_one(), bool(self.fit_intercept))

    def _order_one(self) -> OrderOne:
        """The summary with these units near one."""
        return OrderOne(self.summary_, self._scales(), bool(self.fit_intercept))

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
        """Plain steps from zero, until they move nothing."""
        near_one = self._order_one()
        summary, unit = near_one.summary, near_one.scales / near_one.scales.max()
        rounds = SparseRounds(summary, sparsity, bool(self.fit_intercept), bool(self.standardize), rule=rule)
        step = step_size if self.standardize else near_one.step(step_size)
        settled = self._come_to_rest(rounds, step, unit)
        coef, tallies = rounds.coef.copy(), rounds.tallies
        fault, diverged = "" if settled else self._unsettled(), False
        if settled:
            rounds.run_round(step, 1)
            if not hardly_moved(unit * coef, unit * rounds.coef, max(CIRCLE, FAR_MORE * self.tol)):
                fault = f"goes round in circles: steps of {step_size:.3g} are too long. Use a smaller step_size."
                coef = min(coef, rounds.coef, key=lambda theta: self._loss(summary, theta))
        raised = rule == "hard" and tallies["rises"] > 0  # with pursuit, least squares makes up for it
        if raised or tallies["overflows"]:
            at_zero = self._loss(summary, np.zeros_like(coef))
            diverged = tallies["overflows"] > 0 or not self._loss(summary, coef) <= at_zero * (1.0 + ROUNDING)
            if diverged or not settled:
                what = "raise the loss" if raised else "overflow"
                fault = f"did not converge: steps of {step_size:.3g} {what}. Use a smaller step_size."
        if diverged:
            coef = np.zeros_like(coef)
        return Solution(near_one.coef(coef), tallies["steps"], fault, diverged)

    def _come_to_rest(self, rounds: SparseRounds, step: float, unit: Floats) -> bool:
        """Rounds until one ends where it, or an earlier one, began. False if there were not enough of them.

        The earlier one is the last whose number was a power of two, so that circles of any length are noticed (Brent).
        """
        n_steps, earlier = min(self.max_iter, STEPS_PER_ROUND), rounds.coef.copy()
        for n_rounds in range(1, self.max_iter // n_steps + 1):
            before = rounds.coef.copy()
            rounds.run_round(step, n_steps)
            if any(hardly_moved(unit * old, unit * rounds.coef, self.tol) for old in (before, earlier)):
                return True
            if n_rounds & (n_rounds - 1) == 0:
                earlier = rounds.coef.copy()
        return False

    def _unsettled(self) -> str:
        return f"did not converge within max_iter={self.max_iter} steps. Increase max_iter or tol."

    def _loss(self, summary: Gram, coef: Floats) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return summary.loss(coef, None if self.fit_intercept else 0.0)


def hardly_moved(before: Floats, after: Floats, tol: float) -> bool:
    """Whether no coefficient moved by more than this share of the largest."""
    with np.errstate(over="ignore", invalid="ignore"):  # where steps are too long
        return bool(np.max(np.abs(after - before)) <= tol * np.max(np.abs(after)))


def inverse_of(scale: Floats) -> Floats:
    """1 / scale, and zero where it is zero."""
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)


class Quadratic:
    """The loss of a summary in units that make columns and response of order one.

    With u the units of the columns and v that of the response, theta stands for the coefficients v theta / u.
    """

    def __init__(self, near_one: OrderOne, centred: bool) -> None:
        self.summary, self.centred = near_one.summary, centred
        self.intercept = None if centred else 0.0
        self.inverse = inverse_of(near_one.scales)
        self.unit_y = response_scale(near_one.summary, centred)
        self.in_units_of_the_data = near_one.coef
        self.at_zero = self.gradient(np.zeros(len(near_one.scales)))

    def gradient(self, theta: Floats) -> Floats:
        """G theta - v. O(d s) for s nonzeros."""
        return self.summary.gradient(self._inside(theta), self.intercept) * self.inverse / self.unit_y

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
        """The coefficients that theta stands for; infinite if they overflow."""
        return self.in_units_of_the_data(self._inside(theta))

    def _inside(self, theta: Floats) -> Floats:
        result: Floats = self.unit_y * (theta * self.inverse)
        return result
