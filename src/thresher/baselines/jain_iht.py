"""Iterative hard thresholding that keeps more than it looks for."""

from math import ceil
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from thresher.baselines._on_summary import OnSummary, Quadratic, Update
from thresher.sparsity.cardinality import Cardinality


class JainIHT(OnSummary):
    r"""Least squares by iterative hard thresholding with far more coefficients than are active, offline on a summary.

    To do as well as the best :math:`s^*` coefficients for :math:`L(\theta) = \frac{1}{2n} \sum_i (y_i - b -
    x_i^\top \theta)^2` on columns of any condition number :math:`\kappa`, it keeps many more and iterates from zero

    .. math:: \theta \leftarrow H_s\Big(\theta - \frac{2}{3L} \nabla L(\theta)\Big), \quad s = 32 \kappa^2 s^*,

    where :math:`H_s` keeps the s entries of largest magnitude.

    Each call absorbs its rows (d^2 flops a row) and then solves from zero: O(d s) a step, and once O(d^2) for the
    curvature L, or O(d^3) for L and kappa. The state is 8 d^2 bytes and a buffer of at most 256 rows; solving takes
    another 8 d^2 bytes.

    Parameters
    ----------
    n_active : int
        s*, how many coefficients an estimate to compete with has; more than there are columns means all.
    condition : float or "auto", default="auto"
        kappa, the ratio of the largest and the smallest eigenvalue of the second moments of x over 2s + s* columns at
        a time. ``"auto"`` is the ratio over all columns at once, which is larger, and infinite if rows are fewer.
    fit_intercept : bool, default=False
        Whether there is an intercept b: the best one at every step.
    standardize : bool, default=False
        Whether steps and comparisons are made in units of each column's root mean square (standard deviation with an
        intercept). Coefficients are always in the units of the data.
    tol : float, default=1e-8
        Stop when a step moves no coefficient by more than this share of the largest.
    max_iter : int, default=10000
        Steps at most.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Coefficients; zero outside the support.
    intercept_ : float
        Intercept; 0.0 if ``fit_intercept=False``.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    n_iter_ : int
        Steps of the last call.
    diverged_ : bool
        Whether coefficients overflowed; then they are zero, with a ConvergenceWarning.
    n_samples_seen_ : int
        Rows in the summary.
    summary_ : Gram
        What the rows left behind.
    sparsity_ : int
        The s in use: 32 kappa^2 s*, rounded up, or the number of columns if there are fewer. 0 if there was nothing
        to explain yet.
    condition_ : float
        The kappa in use; NaN if there was nothing to explain yet.

    Notes
    -----
    *Guarantee*: the loss comes as close as one likes to that of the best s*-sparse estimate, in O(kappa log(1/epsilon))
    steps, on columns of any condition number: no restricted isometry. The price is a support of 32 kappa^2 s*
    columns, of which at least 31 in 32 are not active even where kappa = 1.

    *Tuning*: a `condition` below one makes s smaller than the theory asks for; sqrt(2/32) = 0.25 keeps 2 s*.
    *Departures*: L is the largest eigenvalue over all columns instead of over 2s + s* at a time.

    References
    ----------
    P. Jain, A. Tewari and P. Kar (2014). On iterative hard thresholding methods for high-dimensional M-estimation.
    Advances in Neural Information Processing Systems 27: Theorem 1.

    Examples
    --------
    >>> from thresher.baselines import JainIHT
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=150, n_active=3, signal=1.0, seed=1).draw(400)
    >>> model = JainIHT(3, condition=1.0).fit(X, y)
    >>> model.sparsity_
    96
    >>> {0, 1, 2} <= set(model.support_)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_active": [Interval(Integral, 1, None, closed="left")],
        "condition": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        **OnSummary._parameter_constraints,
    }

    def __init__(
        self,
        n_active: int,
        *,
        condition: float | str = "auto",
        fit_intercept: bool = False,
        standardize: bool = False,
        tol: float = 1e-8,
        max_iter: int = 10_000,
    ) -> None:
        self.n_active = n_active
        self.condition = condition
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self.sparsity_, self.condition_ = 0, np.nan

    def _update(self, loss: Quadratic) -> Update:
        d = len(loss.v)
        if isinstance(self.condition, str):
            spectrum = np.linalg.eigvalsh(loss.G)
            curvature = float(spectrum[-1])
            rounding = d * np.finfo(np.float64).eps * curvature
            self.condition_ = curvature / float(spectrum[0]) if spectrum[0] > rounding else np.inf
        else:
            curvature, self.condition_ = loss.largest_curvature(), float(self.condition)
        wanted = 32.0 * self.condition_ * self.condition_ * min(self.n_active, d)  # infinite at most
        self.sparsity_ = max(ceil(wanted), 1) if wanted < d else d
        keep, step = Cardinality(self.sparsity_), 2.0 / 3.0 / curvature
        return lambda theta, g: keep.project(theta - step * g)
