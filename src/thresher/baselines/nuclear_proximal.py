"""Stochastic proximal gradient descent with the nuclear norm."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.compile import compiled
from thresher._utils.threads import one_blas_thread
from thresher.baselines._matrix_baseline import MatrixBaseline
from thresher.baselines._single_rows import LENGTH, N_ROWS, N_TOTALS, take_row

Floats = NDArray[np.float64]

# The step is halved after this many passes over as many samples as there are entries.
DECAY = 2.0


class NuclearProximal(MatrixBaseline):
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

    def _start(self, n_features: int) -> None:
        self._coef, self._totals = np.zeros(self._shape), np.zeros(N_TOTALS)
        self._rank = np.zeros(1, np.int64)

    def _learn(self, X: Floats, y: Floats) -> int:
        step = 0.0 if isinstance(self.step_size, str) else float(self.step_size)
        level = float(self.penalty) * float(self.noise)
        with one_blas_thread():
            n: int = _run(X, y, self._coef, self._totals, self._rank, step, level)
        return n

    def _estimate(self) -> Floats:
        return self._coef

    def _publish(self) -> None:
        super()._publish()
        self.rank_ = int(self._rank[0])


@compiled
def _run(X: Floats, y: Floats, coef: Floats, totals: Floats, rank: Any, first_step: float, level: float) -> int:
    d1, d2 = coef.shape
    flat, moved = coef.reshape(-1), np.empty((d1, d2))
    for i in range(X.shape[0]):
        error = take_row(X, y, i, flat, totals)
        if np.isnan(error):
            return i
        if totals[LENGTH] == 0.0:  # nothing but zeros so far
            continue
        t = totals[N_ROWS]
        eta = (first_step if first_step > 0.0 else 1.0 / totals[LENGTH]) / (1.0 + t / (DECAY * X.shape[1]))
        size = 0.0
        for j in range(d1):
            for k in range(d2):
                moved[j, k] = coef[j, k] - eta * error * X[i, j * d2 + k]
                size = max(size, abs(moved[j, k]))
        if not size < np.inf:
            return i
        rank[0] = shrink(moved, eta * level * np.sqrt((d1 + d2) / t), coef)
    return len(X)


@compiled
def shrink(matrix: Floats, threshold: float, out: Floats) -> int:
    """Singular value thresholding: out = U (S - threshold)_+ V'. Returns how many singular values are left."""
    u, s, vt = np.linalg.svd(matrix, False)
    n_left = 0
    while n_left < s.shape[0] and s[n_left] > threshold:
        n_left += 1
    out[:] = 0.0
    for q in range(n_left):
        for j in range(out.shape[0]):
            share = u[j, q] * (s[q] - threshold)
            for k in range(out.shape[1]):
                out[j, k] += share * vt[q, k]
    return n_left
