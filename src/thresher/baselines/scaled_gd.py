"""Scaled gradient descent on the factors of a matrix."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.threads import one_blas_thread
from thresher._utils.warnings import warn_caller
from thresher.baselines._matrix_baseline import MomentsBaseline
from thresher.baselines._single_rows import ABSURD

Floats = NDArray[np.float64]

# The first estimate is made of this many samples for each of about r (d1 + d2) unknowns.
SAMPLES_PER_UNKNOWN = 2
# Eigenvalues below this share of the largest are rounding.
ZERO = 1e-15


class ScaledGD(MomentsBaseline):
    r"""A coefficient matrix L R' of rank r by gradient steps on its factors, scaled so that conditioning is harmless.

    With Z the gradient at L R' of :math:`\frac{1}{2n} \sum_{i \le n} (\langle X_i, \Theta \rangle - y_i)^2`, over all
    n samples so far, and v the mean square of the entries of X, a step is

    .. math:: L \leftarrow L - \tfrac{\eta}{v} Z R (R^\top R)^{-1}, \qquad
              R \leftarrow R - \tfrac{\eta}{v} Z^\top L (L^\top L)^{-1},

    both from the old factors. L and R begin as :math:`U \sqrt S` and :math:`V \sqrt S` of the r largest singular
    values of :math:`\frac{1}{n v} \sum_i y_i X_i`. A projection on a rank, which needs singular
    values in each step, is never made.

    With d = d1 d2, memory is 12 d^2 bytes while the first d/2 samples are held as they are, then 8 d^2 and a buffer of
    at most 256 samples. A sample costs d^2 flops, and each step one product with a d x d matrix and r d more.

    Parameters
    ----------
    rank : int, default=1
        Rank of the coefficient matrix, r.
    shape : tuple of int, optional
        Shape (d1, d2) of the matrices, if they are given as rows of d1 d2 numbers.
    step_size : float, default=0.5
        eta. If X has uncorrelated entries, the error shrinks by 1 - eta per step up to 2/3, and steps of one or more
        lead astray; so do shorter ones if entries are correlated or samples are few.
    n_steps : int, default=1
        Steps per round, K.
    n_warmup : int or "auto", default="auto"
        Samples of which the first estimate is made; until then it is zero. ``"auto"`` is 2 r (d1 + d2).
    round_size : int, default=1
        Samples per round. Every round costs K passes over a d x d matrix, so larger ones save time; samples short of
        a full round wait for the next.
    tol : float, default=1e-8
        ``fit`` stops when a step moves the coefficients less than this, relatively.
    max_iter : int, default=1000
        ``fit`` stops after this many steps at the latest.

    Attributes
    ----------
    coef_ : ndarray of shape (d1, d2)
        Coefficients, L R'.
    left_, right_ : ndarray of shape (d1, r) and (d2, r)
        L and R.
    factors_ : tuple of ndarray
        U (d1, r), singular values (r,) and V' (r, d2) of the coefficients.
    intercept_ : float
        0.0; centre the matrices and the response if they need it.
    rank_ : int
        r.
    n_rounds_ : int
        Rounds done.
    n_iter_ : int
        Steps done by the last ``fit``; 0 if there was none.
    n_samples_seen_ : int
        Samples seen.
    diverged_at_ : int or None
        The sample, counted from zero, after which predictions had become absurd: 10^4 times as large as responses, or
        not finite. In a stream the estimate stays as it is then, so it is far too large; after ``fit`` it is zero.
    n_features_in_ : int
        d1 d2.

    Notes
    -----
    *Guarantee*: without noise, from a first estimate that is close, the error shrinks by 1 - 0.6 eta per
    step for eta <= 2/3, whatever the condition number of the truth; gradient descent on the factors slows down with it.
    For Gaussian X, n of the order r^2 (d1 + d2) times the squared condition number makes the first estimate close.

    The iterates do not depend on the choice of factors: (L Q, R Q^-T) takes the same path for any invertible Q. With
    P_L and P_R the projections on the column spaces of L and R, a step of :math:`\Theta = L R^\top` is
    :math:`\Theta - \eta (Z P_R + P_L Z) + \eta^2 Z \Theta^+ Z`.

    *Tuning*: eta = 0.5 as in the paper; halve it if it diverges. Too long a step need not diverge: as both factors move
    at once, it may also rest where the loss has a slope. ``fit`` notices, since the loss is then larger than at zero or
    the factors keep moving; of a stream, look at ``score``. *Departures*: the paper is about a fixed sample, which is
    what ``fit`` does. The stream, a few steps on all samples so far whenever samples come, is ours. So is v, which the
    paper's designs have equal to one. Directions in which R'R or L'L is zero to rounding do not move.

    References
    ----------
    T. Tong, C. Ma and Y. Chi (2021). Accelerating ill-conditioned low-rank matrix estimation via scaled gradient
    descent. Journal of Machine Learning Research 22(150), 1-63: ScaledGD for matrix sensing, with spectral start.

    Examples
    --------
    >>> from thresher.baselines import ScaledGD
    >>> from thresher.io.sources.synthetic import LowRankStream
    >>> stream = LowRankStream((6, 4), rank=1, noise=0.1, seed=1)
    >>> model = ScaledGD(rank=1).partial_fit(*stream.draw(200))
    >>> bool(abs(model.coef_ - stream.coef).max() < 0.03)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rank": [Interval(Integral, 1, None, closed="left")],
        "shape": [tuple, list, None],
        "step_size": [Interval(Real, 0, None, closed="neither")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "n_warmup": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "round_size": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        rank: int = 1,
        *,
        shape: tuple[int, int] | None = None,
        step_size: float = 0.5,
        n_steps: int = 1,
        n_warmup: int | str = "auto",
        round_size: int = 1,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.rank = rank
        self.shape = shape
        self.step_size = step_size
        self.n_steps = n_steps
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.tol = tol
        self.max_iter = max_iter

    # -- samples in ------------------------------------------------------------------------------------------

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        d1, d2 = self._shape
        self.left_, self.right_ = np.zeros((d1, self.rank)), np.zeros((d2, self.rank))
        self.rank_, self.n_rounds_ = int(self.rank), 0

    def _check(self, X: Any, y: Any, reset: bool) -> tuple[Any, Floats]:
        if not reset and self.rank != self.rank_:
            raise ValueError(f"rank={self.rank}, but the factors have rank {self.rank_}; start over with fit.")
        return super()._check(X, y, reset)

    def _take(self, X: Any, y: Any, reset: bool) -> Self:
        with one_blas_thread():
            return super()._take(X, y, reset)

    def _learn(self, X: Floats, y: Floats) -> int:
        until_event = self._rows_until_event()
        self._summary.absorb(X, y)
        if len(y) < until_event:
            return len(y)
        if not self.left_.any():
            self.left_, self.right_ = self._spectral()
            return len(y)
        factors = self.left_, self.right_
        for _ in range(self.n_steps):
            after = self._step(*factors)
            if after is None:
                return len(y) - 1
            factors = after
        self.left_, self.right_ = factors
        self.n_rounds_ += 1
        return len(y)

    def _rows_until_event(self) -> int:
        n_warmup = SAMPLES_PER_UNKNOWN * self.rank_ * sum(self._shape)
        n_past = self._summary.n_samples - (n_warmup if isinstance(self.n_warmup, str) else int(self.n_warmup))
        return -n_past if n_past < 0 else int(self.round_size) - n_past % int(self.round_size)

    def _estimate(self) -> Floats:
        return self.left_ @ self.right_.T

    # -- all at once -----------------------------------------------------------------------------------------

    def _solve(self) -> None:
        with one_blas_thread():
            settled = self._settle()
        self.coef_ = self._estimate()
        if self.diverged_at_ is not None:
            self._warn_of_divergence()
        elif not settled:
            warn_caller(
                f"ScaledGD did not settle within max_iter={self.max_iter} steps. Increase max_iter or tol.",
                ConvergenceWarning,
            )

    def _settle(self) -> bool:
        """Steps until neither factor moves; False if there were not enough of them, or if they went astray."""
        left, right = self._spectral()
        settled, astray = not left.any(), False
        while not settled and self.n_iter_ < self.max_iter:
            after = self._step(left, right)
            if after is None:
                astray = True
                break
            # One by one: both moves together may undo each other.
            moves = (after[0] - left) @ right.T, left @ (after[1] - right).T
            settled = max(map(np.linalg.norm, moves)) <= self.tol * np.linalg.norm(left @ right.T)
            left, right = after
            self.n_iter_ += 1
        if astray or self._worse_than_zero(left @ right.T, 0.0):
            self.diverged_at_ = self.n_samples_seen_ - 1
            return False
        self.left_, self.right_ = left, right
        return settled

    # -- the method ------------------------------------------------------------------------------------------

    def _spectral(self) -> tuple[Floats, Floats]:
        """Factors of the best approximation of rank r to what correlations with the response suggest."""
        scale = self._summary.weight * self._mean_square
        with np.errstate(all="ignore"):
            suggested = (self._summary.cross_moment() / scale).reshape(self._shape)
        if not np.isfinite(suggested).all():  # matrices of zeros, or nearly
            return np.zeros_like(self.left_), np.zeros_like(self.right_)
        u, s, vt = np.linalg.svd(suggested, full_matrices=False)
        root = np.sqrt(s[: self.rank_])
        return u[:, : self.rank_] * root, vt[: self.rank_].T * root

    def _step(self, left: Floats, right: Floats) -> tuple[Floats, Floats] | None:
        """The factors after one step; None if they, or what they predict, are absurd."""
        summary, theta = self._summary, (left @ right.T).reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = summary.gradient(theta)
            squares = float(theta @ (gradient + summary.cross_moment() / summary.weight))  # of the predictions, mean
            if not squares <= ABSURD * ABSURD * summary.response_variance(centred=False):
                return None
            step = self.step_size / self._mean_square
            after = scaled_step(left, right, gradient.reshape(self._shape), step)
            return after if np.isfinite(after[0] @ after[1].T).all() else None


def scaled_step(left: Floats, right: Floats, gradient: Floats, step: float) -> tuple[Floats, Floats]:
    """One step of both factors down the gradient at left @ right.T, each scaled by the inverse moments of the other."""
    return (
        left - step * (gradient @ right) @ _inverse_moments(right),
        right - step * (gradient.T @ left) @ _inverse_moments(left),
    )


def _inverse_moments(factor: Floats) -> Floats:
    """The inverse of factor' factor, where it has one."""
    values, vectors = np.linalg.eigh(factor.T @ factor)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > ZERO * values[-1])
    result: Floats = (vectors * inverse) @ vectors.T
    return result
