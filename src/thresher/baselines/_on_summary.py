"""What the offline methods have in common: rows go into a Gram, and the method runs from zero on it."""

from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from thresher._utils.arrays import Floats
from thresher._utils.checks import check_summary
from thresher._utils.locks import locked
from thresher._utils.threads import one_blas_thread
from thresher._utils.tolerances import TINY
from thresher._utils.warnings import warn_caller
from thresher.baselines._baseline import Baseline
from thresher.baselines._single_rows import ABSURD
from thresher.io.schema import Count, Flag, Is, Text, part
from thresher.summaries.gram import Gram

# The next estimate, from an estimate and its gradient.
Update = Callable[[Floats, Floats], Floats]

# Columns for which all eigenvalues are as cheap as the largest.
SMALL = 100
# The share of the loss at zero that rounding may add to an estimate that is no better than zero.
ROUNDING = 1e-9


class Quadratic:
    """The loss theta' G theta / 2 - v' theta of a summary, with columns and response of order one.

    With u the units of the columns (their scales if standardised, else the largest scale for all) and w that of the
    response, theta stands for the coefficients w theta / u.
    """

    def __init__(self, summary: Gram, centred: bool, standardized: bool) -> None:
        variance, n = summary.variance(centred), summary.weight
        scale = np.sqrt(np.where(variance >= TINY, variance, 0.0))
        self.unit = scale if standardized else np.full_like(scale, scale.max())
        self.unit_y = float(np.sqrt(summary.response_variance(centred)))
        self._inverse = np.divide(1.0, self.unit, out=np.zeros_like(scale), where=scale > 0.0)
        self.G = summary.comoment() if centred else summary.second_moment()
        self.G *= self._inverse
        self.G *= self._inverse[:, None] / n
        cross = summary.cross_comoment() if centred else summary.cross_moment()
        self.v: Floats = cross * self._inverse / self.unit_y / n

    def gradient(self, theta: Floats) -> Floats:
        """G theta - v. O(d s) for s nonzeros."""
        support = np.flatnonzero(theta)
        product = theta[support] @ self.G[support] if 4 * len(support) < len(theta) else self.G @ theta
        result: Floats = product - self.v
        return result

    def value(self, theta: Floats) -> float:
        """The loss, less that of zero."""
        return float(theta @ (self.gradient(theta) - self.v)) / 2.0

    def bend(self, direction: Floats) -> float:
        """U' G u for the unit vector u along the direction."""
        unit = direction / np.sqrt(direction @ direction)
        return float(unit @ (self.gradient(unit) + self.v))

    def largest_curvature(self) -> float:
        """The largest eigenvalue of G."""
        if len(self.v) <= SMALL:
            return float(np.linalg.eigvalsh(self.G)[-1])
        start = np.random.default_rng(0).standard_normal(len(self.v))
        return float(eigsh(self.G, k=1, v0=start, tol=1e-10, return_eigenvectors=False)[0])

    def coef(self, theta: Floats) -> Floats:
        """The coefficients that theta stands for; infinite if they overflow."""
        result: Floats = self.unit_y * (theta * self._inverse)
        return result


class OnSummary(Baseline):
    """An offline method that needs no more of the rows than their Gram: its result is a function of the summary."""

    _schema = part(
        lambda model: model.summary_.n_features == model.n_features_in_ and model.summary_.dtype == np.float64,
        lambda model: model.summary_.n_samples == model.n_samples_seen_ and model.diverged_at_ is None,
        summary_=Is(Gram),
        _fault=Text(),
        n_iter_=Count(),
        diverged_=Flag(),
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "fit_intercept": ["boolean"],
        "standardize": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }
    _remedy = "Rescale the columns or the response."
    # What else helps if max_iter steps are not enough.
    _or_else: ClassVar[str] = ""
    fit_intercept: bool
    standardize: bool
    tol: float
    max_iter: int

    @locked
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
    def _update(self, loss: Quadratic) -> Update:
        """A step of the method on this loss."""

    def _start(self, n_features: int) -> None:
        self.summary_ = Gram(n_features)
        self._fault, self.n_iter_, self.diverged_ = "", 0, False

    def _learn(self, X: Floats, y: Floats) -> int:
        self.summary_.absorb_checked(X, y, None)
        return len(y)

    def _estimate(self) -> Floats:
        return self.coef_

    def _publish(self) -> None:
        """Solve. An interrupt leaves the estimate before."""
        summary, centred = self.summary_, bool(self.fit_intercept)
        coef, n_iter, fault = np.zeros(summary.n_features), 0, ""
        with self._unchanged_by_failure(), one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            if self._has_something_to_explain(centred):
                loss = Quadratic(summary, centred, bool(self.standardize))
                theta, n_iter, fault = self._iterate(loss)
                coef = loss.coef(theta)
            intercept = summary.best_intercept(coef) if centred and np.isfinite(coef).all() else 0.0
        diverged = not (np.isfinite(coef).all() and np.isfinite(intercept))
        if diverged:
            coef, intercept = np.zeros_like(coef), summary.mean_y if centred else 0.0
            fault = f"diverged, so coef_ is zero. {self._remedy}"
        self.coef_, self.intercept_ = coef, intercept
        self.n_iter_, self._fault, self.diverged_ = n_iter, fault, diverged

    def _has_something_to_explain(self, centred: bool) -> bool:
        summary = self.summary_
        if summary.weight == 0.0:  # after an interrupt before the first block
            return False
        return summary.response_variance(centred) > 0.0 and float(summary.variance(centred).max()) >= TINY

    def _iterate(self, loss: Quadratic) -> tuple[Floats, int, str]:
        """Steps from zero until they move nothing: the estimate (infinite if they diverge), their number, a fault."""
        update, theta, g = self._update(loss), np.zeros_like(loss.v), -loss.v
        for n_iter in range(1, self.max_iter + 1):
            before, theta = theta, update(theta, g)
            if np.max(np.abs(theta - before)) <= self.tol * np.max(np.abs(theta)):
                return theta, n_iter, ""
            g = loss.gradient(theta)
            if not theta @ (g + loss.v) <= ABSURD * ABSURD:  # the mean square of the predictions
                break
        if not loss.value(theta) <= ROUNDING:
            theta = np.full_like(theta, np.inf)
        fault = f"did not converge within max_iter={self.max_iter} steps. Increase max_iter or tol{self._or_else}."
        return theta, n_iter, fault

    def _take(self, X: Any, y: Any, reset: bool) -> Self:
        return super()._take(X, y, reset)._tell()

    def _tell(self) -> Self:
        if self._fault:
            warn_caller(f"{type(self).__name__} {self._fault}", ConvergenceWarning)
        return self
