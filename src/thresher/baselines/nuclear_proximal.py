"""Stochastic proximal gradient descent with the nuclear norm."""

import math
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.lapack import dgesdd
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.arrays import Floats
from thresher._utils.threads import one_blas_thread
from thresher.baselines._baseline import StreamingBaseline
from thresher.baselines._single_rows import RowTotals
from thresher.estimators._matrix_rows import LowRankRows
from thresher.io.schema import Array, Count, Is, Schema, Tuple

# The step is halved after this many passes over as many samples as there are entries.
DECAY = 2.0


class NuclearProximal(LowRankRows, StreamingBaseline):
    r"""A coefficient matrix with small singular values, by a proximal gradient step for every sample.

    Where :math:`\min_\Theta \, \frac12 \mathbb{E} (\langle X, \Theta \rangle - y)^2 + \lambda \|\Theta\|_*` penalises
    the sum of the singular values, sample t brings the step

    .. math:: \Theta \leftarrow \operatorname{SVT}_{\eta_t \lambda_t}\big(\Theta
              - \eta_t (\langle X_t, \Theta \rangle - y_t) X_t\big), \qquad
              \eta_t = \frac{\eta_0}{1 + t / (2 d)}, \qquad \lambda_t = c \, \sigma \sqrt{(d_1 + d_2) / t},

    with d = d1 d2. SVT, singular value thresholding, takes its index from every singular value and stops at zero: it
    is the proximal operator of that multiple of the nuclear norm.

    A sample costs one singular value decomposition, O(d min(d1, d2)); the state is d numbers.

    Parameters
    ----------
    penalty : float, default=0.5
        c. The noise alone moves singular values by up to :math:`\sigma (\sqrt{d_1} + \sqrt{d_2}) / \sqrt t`, which
        is c = sqrt(2) if d1 = d2; smaller ones shrink the signal less.
    shape : tuple of int, optional
        Shape (d1, d2) of the matrices, if they are given as rows of d1 d2 numbers.
    step_size : float or "auto", default="auto"
        eta_0. It diverges if eta_0 times the squared Frobenius norm of X exceeds two. ``"auto"`` is one over the
        largest of these so far, so that no step overshoots.
    noise : float, default=1.0
        sigma, the standard deviation of the noise, times that of the entries of X if it is not one.

    Attributes
    ----------
    coef_ : ndarray of shape (d1, d2)
        Coefficients.
    factors_ : tuple of ndarray
        U (d1, rank_), singular values (rank_,) and V' (rank_, d2) of the coefficients.
    intercept_ : float
        0.0; centre the matrices and the response if they need it.
    rank_ : int
        Singular values different from zero.
    n_samples_seen_ : int
        Samples seen.
    diverged_at_ : int or None
        The sample, counted from zero, whose prediction had become absurd; the estimate before it is kept.
    n_features_in_ : int
        d1 d2.

    Notes
    -----
    *Guarantee*: as stochastic proximal gradient descent with steps of order 1/t on a strongly convex loss, an
    expected squared error of order 1/t for fixed lambda; X must have a second moment with smallest
    eigenvalue above a quarter of the mean square of its entries, or the steps shrink too fast for that rate.

    A single gradient, of the size of the noise times X, has larger singular values than the threshold takes away. So
    the rank of the estimate is usually full: its singular values beyond the true rank are small, not zero.
    Batches or averages of gradients would be needed for low rank.

    *Tuning*: `penalty` by how well it predicts the next samples; halve `step_size` if it diverges. *Departures*: the
    method is folklore, with many schedules. Ours for eta_t is stable at first and 2 / (v t) at last, v the mean square
    of the entries of X: the classical step for a loss that is strongly convex with parameter v. It makes the noise
    that is left in the estimate of the size of lambda_t.

    References
    ----------
    J. Duchi and Y. Singer (2009). Efficient online and batch learning using forward backward splitting. Journal of
    Machine Learning Research 10, 2899-2934.

    J.-F. Cai, E. J. Candes and Z. Shen (2010). A singular value thresholding algorithm for matrix completion. SIAM
    Journal on Optimization 20(4), 1956-1982: Theorem 2.1.

    S. Negahban and M. J. Wainwright (2011). Estimation of (near) low-rank matrices with noise and high-dimensional
    scaling. Annals of Statistics 39(2), 1069-1097: the size of lambda.

    Examples
    --------
    >>> from thresher.baselines import NuclearProximal
    >>> from thresher.io.sources.synthetic import LowRankStream
    >>> stream = LowRankStream((6, 4), rank=1, noise=0.1, seed=1)
    >>> model = NuclearProximal(noise=0.1).partial_fit(*stream.draw(1000))
    >>> bool(abs(model.coef_ - stream.coef).max() < 0.03)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [Interval(Real, 0, None, closed="left")],
        "shape": [tuple, list, None],
        "step_size": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "noise": [Interval(Real, 0, None, closed="left")],
    }

    _schema = Schema(
        lambda model: model._coef.shape == model.coef_.shape == model._shape,
        lambda model: model._coef.size == model.n_features_in_,
        coef_=Array("d1", "d2"),
        _shape=Tuple(Count(1), Count(1)),
        _coef=Array("d1", "d2"),
        _totals=Is(RowTotals),
        _rank=Count(most="d1"),
        rank_=Count(most="d1"),
    )

    def __init__(
        self,
        penalty: float = 0.5,
        *,
        shape: tuple[int, int] | None = None,
        step_size: float | str = "auto",
        noise: float = 1.0,
    ) -> None:
        self.penalty = penalty
        self.shape = shape
        self.step_size = step_size
        self.noise = noise

    def _check(self, X: Any, y: Any, reset: bool) -> tuple[Any, Floats]:
        rows = self._check_rows(self._take_matrices(X, reset), y, None, reset, np.dtype(np.float64))
        return rows.X, rows.y

    def _check_against_features(self, n_features: int) -> None:
        self._check_shape_asked()

    def _zeros(self, n_features: int) -> Floats:
        return np.zeros(self._shape)

    def _start(self, n_features: int) -> None:
        self._coef, self._totals, self._rank = np.zeros(self._shape), RowTotals(), 0

    def _learn(self, X: Floats, y: Floats) -> int:
        with one_blas_thread(), np.errstate(over="ignore"):
            for i, x in enumerate(X):
                if not self._step(x, y[i]):
                    return i
        return len(X)

    def _step(self, x: Floats, y: float) -> bool:
        """Learn from one sample. False if the estimate has diverged."""
        totals, (d1, d2) = self._totals, self._shape
        error = totals.take_row(x, y, self._coef.reshape(-1))
        if np.isnan(error):
            return False
        if totals.longest == 0.0:  # nothing but zeros so far
            return True
        t = totals.n_rows
        first = 1.0 / totals.longest if isinstance(self.step_size, str) else self.step_size
        eta = first / (1.0 + t / (DECAY * x.size))
        moved = self._coef - eta * error * x.reshape(d1, d2)
        if not np.isfinite(moved).all():
            return False
        threshold = eta * self.penalty * self.noise * math.sqrt((d1 + d2) / t)
        self._coef, self._rank = shrink(moved, threshold)
        return True

    def _estimate(self) -> Floats:
        return self._coef

    def _publish(self) -> None:
        super()._publish()
        self.rank_ = self._rank

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # as for `Baseline`
        return tags


def shrink(matrix: Floats, threshold: float) -> tuple[Floats, int]:
    """Singular value thresholding, U (S - threshold)_+ V', and how many singular values are left."""
    u, s, vt, failure = dgesdd(matrix, full_matrices=False)  # without the checks of np.linalg.svd, which take as long
    if failure:
        raise np.linalg.LinAlgError("The singular value decomposition did not converge.")
    n_left = int(np.count_nonzero(s > threshold))
    left: Floats = (u[:, :n_left] * (s[:n_left] - threshold)) @ vt[:n_left]
    return left, n_left
