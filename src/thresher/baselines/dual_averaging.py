"""Regularised dual averaging with an l1 penalty."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.arrays import Floats
from thresher.baselines._baseline import Baseline, working
from thresher.baselines._single_rows import RowTotals, dual_averaging
from thresher.io.schema import Is, Schema


class DualAveraging(Baseline):
    r"""Sparse least squares by regularised dual averaging (l1-RDA): a penalty on the mean of all past gradients.

    With :math:`g_r = (x_r^\top w_r - y_r) x_r` the gradient at row r, the estimate after t rows is

    .. math:: w_{t+1} = \operatorname*{argmin}_w \; \frac1t \sum_{r \le t} \langle g_r, w \rangle + \lambda \|w\|_1
              + \frac{\gamma}{\sqrt t} \Big( \frac12 \|w\|_2^2 + \rho \|w\|_1 \Big),

    hence :math:`w_{t+1} = -(\sqrt t / \gamma) \, \mathrm{soft}(\bar g_t, \lambda + \gamma\rho/\sqrt t)`. The threshold
    does not shrink with the step, as it does in proximal gradient descent, so zeros are exact and many.

    A row costs O(d); the state is 2 d numbers.

    Parameters
    ----------
    penalty : float, default=0.05
        lambda, in units of the gradient: about sigma sqrt(log(d) / T) for T rows of columns with mean square one.
    gamma : float or "auto", default="auto"
        Inverse step: larger is slower and more stable. ``"auto"`` puts :math:`L \sqrt{1 + t/d}` in the place of
        :math:`\gamma \sqrt t`, with L the largest squared length of a row so far, which is stable from the start.
    rho : float, default=0.0
        An extra penalty that fades, "enhanced" RDA.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        0.0; centre the columns and the response if they need it.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    n_samples_seen_ : int
        Rows seen.
    diverged_at_ : int or None
        The row, counted from zero, whose prediction had become absurd; the estimate before it is kept.

    Notes
    -----
    *Guarantee*: regret of order sqrt(T) for convex losses with bounded gradients, for any gamma > 0. Gradients of
    squared loss are not bounded, so gamma must be large enough for these rows. Nothing is said about
    the error of the coefficients or about the support.

    *Tuning*: Xiao's gamma = 5000 and rho = 0.005 are for classification of digits. Multiply gamma by two until it does
    not diverge: with unit columns, sqrt(d) or a little less is about the limit. *Departures*: none but ``"auto"``.

    References
    ----------
    L. Xiao (2010). Dual averaging methods for regularized stochastic learning and online optimization. Journal of
    Machine Learning Research 11, 2543-2596: Algorithm 2 and eq. (10).

    Examples
    --------
    >>> from thresher.baselines import DualAveraging
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(2000)
    >>> DualAveraging(penalty=0.2).partial_fit(X, y).support_
    array([0, 1, 2])
    """

    _remedy = "Use a larger gamma."
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "rho": [Interval(Real, 0, None, closed="left")],
    }

    _schema = Schema(
        lambda model: model._totals.n_rows == model._n_learned,
        _coef=working("n_features_in_"),
        _mean=working("n_features_in_"),
        _totals=Is(RowTotals),
    )

    def __init__(self, penalty: float = 0.05, *, gamma: float | str = "auto", rho: float = 0.0) -> None:
        self.penalty = penalty
        self.gamma = gamma
        self.rho = rho

    def _start(self, n_features: int) -> None:
        self._coef, self._mean = np.zeros(n_features), np.zeros(n_features)
        self._totals = RowTotals()

    def _learn(self, X: Floats, y: Floats) -> int:
        gamma = 0.0 if isinstance(self.gamma, str) else self.gamma
        n: int = dual_averaging(X, y, self._totals, self._coef, self._mean, self.penalty, gamma, self.rho)
        return n

    def _estimate(self) -> Floats:
        return self._coef
