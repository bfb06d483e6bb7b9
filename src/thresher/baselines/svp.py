"""Singular value projection."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.threads import one_blas_thread
from thresher._utils.warnings import warn_caller
from thresher.baselines._matrix_baseline import MomentsBaseline
from thresher.online.dense import DenseRounds
from thresher.sparsity.rank import Rank

Floats = NDArray[np.float64]

# The step 1 / (1 + delta) for the largest delta of Theorem 1.1, one third.
LONGEST_STEP = 0.75
# An unknown delta is looked for by so many halvings of the step: a curvature 10^6 times that of an isotropic design.
MOST_HALVINGS = 20


class SVP(MomentsBaseline):
    r"""A coefficient matrix of rank at most r by singular value projection on all samples so far.

    For :math:`L(\Theta) = \frac{1}{2n} \sum_i (\langle X_i, \Theta \rangle - y_i)^2` it iterates, from zero,

    .. math:: \Theta \leftarrow P_r\big(\Theta - \eta \nabla L(\Theta)\big)

    until that moves nothing, with P_r the projection on the r largest singular values. This is the offline reference
    for ``LowRankRegressor``, which takes a few such steps whenever a sample comes: SVP starts over instead.

    With d = d1 d2, memory is 12 d^2 bytes at most, as for ``ScaledGD``. A sample costs d^2 flops, and each call of
    ``partial_fit`` as many products with a d x d matrix as it takes iterations, about 20 to 100.

    Parameters
    ----------
    rank : int, default=1
        Rank of the coefficient matrix, r.
    shape : tuple of int, optional
        Shape (d1, d2) of the matrices, if they are given as rows of d1 d2 numbers.
    step_size : float or "auto", default="auto"
        eta. The authors' is 1 / (1 + delta) for X with uncorrelated entries of mean square one, where delta, unknown,
        tells how far the samples distort lengths of matrices of rank 2r. ``"auto"`` is the first of 3/4, 3/8, ... with
        which the loss never rises, in units of the inverse mean square of the entries. Theorem 1.1 needs 3/4 or more.
    fit_intercept : bool, default=False
        Whether the model has an intercept: the best one, at every step.
    tol : float, default=1e-8
        It has settled when a step moves the coefficients less than this, relatively.
    max_iter : int, default=1000
        Most iterations.

    Attributes
    ----------
    coef_ : ndarray of shape (d1, d2)
        Coefficients; zero if the iterations diverged.
    factors_ : tuple of ndarray
        U (d1, r), singular values (r,) and V' (r, d2) of the coefficients.
    intercept_ : float
        Intercept; 0.0 if ``fit_intercept=False``.
    rank_ : int
        r.
    step_size_ : float
        The step taken; 0.0 if there is nothing to learn from.
    n_iter_ : int
        Iterations of the last solution.
    converged_ : bool
        Whether they settled.
    diverged_ : bool
        Whether they diverged instead; then the coefficients are zero, with a ConvergenceWarning.
    n_samples_seen_ : int
        Samples seen.
    n_features_in_ : int
        d1 d2.

    Notes
    -----
    *Guarantee*: linear convergence to the truth without noise, and to within the noise with it, if delta < 1/3 for
    matrices of rank 2r and eta = 1 / (1 + delta). Gaussian X have such a delta once n exceeds a multiple of r (d1 + d2)
    times a logarithm. In practice three samples for each of the r (d1 + d2 - r) degrees of freedom are enough for a
    step of 3/4.

    *Tuning*: none but r. Of float steps, those above 2 / (1 + delta) diverge; then ``coef_`` is zero, with a warning.
    Every call starts over, so a later one may succeed: ``diverged_`` says so, and ``diverged_at_`` stays None.

    *Departures*: the step that is found; a step in units of the data; the intercept. The authors stop when the
    loss is small, which it never is with noise.

    References
    ----------
    P. Jain, R. Meka and I. S. Dhillon (2010). Guaranteed rank minimization via singular value projection. Advances in
    Neural Information Processing Systems 23: Algorithm 1, Theorems 1.1 and 1.2.

    Examples
    --------
    >>> from thresher.baselines import SVP
    >>> from thresher.io.sources.synthetic import LowRankStream
    >>> stream = LowRankStream((6, 4), rank=1, noise=0.1, seed=1)
    >>> model = SVP(rank=1).partial_fit(*stream.draw(200))
    >>> bool(abs(model.coef_ - stream.coef).max() < 0.03)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rank": [Interval(Integral, 1, None, closed="left")],
        "shape": [tuple, list, None],
        "step_size": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        rank: int = 1,
        *,
        shape: tuple[int, int] | None = None,
        step_size: float | str = "auto",
        fit_intercept: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.rank = rank
        self.shape = shape
        self.step_size = step_size
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self.rank_, self.step_size_ = int(self.rank), 0.0
        self.converged_, self.diverged_ = True, False

    def _learn(self, X: Floats, y: Floats) -> int:
        self._summary.absorb(X, y)
        return len(y)

    def _estimate(self) -> Floats:
        return self.coef_

    def _publish(self) -> None:
        self._solve()

    def _solve(self) -> None:
        """Solve. Until that is done, everything stays as it was: it may be interrupted."""
        rank, coef, intercept = int(self.rank), self._zeros(self._summary.n_features), 0.0
        n_iter, step, converged, diverged = 0, 0.0, True, False
        for step in self._steps():
            rounds = DenseRounds(self._summary, Rank(rank, self._shape), bool(self.fit_intercept), False)
            with one_blas_thread():
                converged, diverged = self._iterate(rounds, step)
            n_iter = rounds.n_rounds
            if not diverged:
                coef, intercept = rounds.coef.copy(), float(rounds.intercept[0])
                break
        self.coef_, self.intercept_, self.rank_ = coef, intercept, rank
        self.n_iter_, self.step_size_, self.converged_, self.diverged_ = n_iter, step, converged, diverged
        if diverged:
            remedy = (
                "step_size='auto' tries none that is shorter; bring the entries of X to one scale."
                if isinstance(self.step_size, str)
                else "Use a smaller step_size, or step_size='auto'."
            )
            warn_caller(f"SVP diverged with a step of {step:.3g}, so coef_ is zero. {remedy}", ConvergenceWarning)
        elif not converged:
            warn_caller(
                f"SVP did not settle within max_iter={self.max_iter} iterations. Increase max_iter or tol.",
                ConvergenceWarning,
            )

    def _steps(self) -> list[float]:
        """Steps to try until one does not diverge."""
        if not isinstance(self.step_size, str):
            return [float(self.step_size)]
        with np.errstate(divide="ignore", over="ignore"):
            longest = float(np.divide(LONGEST_STEP, self._mean_square))
        return [longest * 0.5**k for k in range(MOST_HALVINGS + 1)] if np.isfinite(longest) else []

    def _iterate(self, rounds: DenseRounds, eta: float) -> tuple[bool, bool]:
        """Whether it settled, and whether it diverged."""
        settled = False
        while not settled and rounds.n_rounds < self.max_iter:
            settled = rounds.settle(eta, 1, self.tol, 1)
            if rounds.tallies["overflows"] or (isinstance(self.step_size, str) and rounds.tallies["rises"]):
                return False, True
        worse = self._worse_than_zero(rounds.coef, None if self.fit_intercept else 0.0)
        return settled and not worse, worse
