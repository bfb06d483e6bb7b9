"""Adaptive gradient methods with an l1 penalty."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.arrays import Floats
from thresher.baselines._baseline import Baseline, working
from thresher.baselines._single_rows import RowTotals, ada_grad_l1
from thresher.io.schema import Is, Schema


class AdaGradL1(Baseline):
    r"""Sparse least squares by AdaGrad: steps that shrink, coordinate by coordinate, with the gradients seen so far.

    With :math:`g_t = (x_t^\top w_t - y_t) x_t` and :math:`h_t = \delta + (\sum_{r \le t} g_r^2)^{1/2}`, coordinate by
    coordinate, the update is by dual averaging

    .. math:: w_{t+1} = \operatorname*{argmin}_w \; \eta \Big\langle \sum_{r \le t} g_r, w \Big\rangle
              + \eta \lambda t \|w\|_1 + \frac12 \langle w, h_t w \rangle
              = - \eta \, \mathrm{soft}\Big(\sum_{r \le t} g_r, \lambda t\Big) / h_t

    or by composite mirror descent, :math:`w_{t+1} = \mathrm{soft}(w_t - \eta g_t / h_t, \eta \lambda / h_t)`.

    A row costs O(d); the state is 3 d numbers.

    Parameters
    ----------
    penalty : float, default=0.05
        lambda, in units of the gradient: about sigma sqrt(log(d) / T) for T rows of columns with mean square one.
    step_size : float, default=0.1
        eta, in units of the coefficients: about as large as they are.
    update : {"dual", "mirror"}, default="dual"
        Dual averaging makes more exact zeros.
    delta : float, default=1e-6
        Keeps the first division finite; far below the gradients.

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
    *Guarantee*: regret for convex losses that adapts to the geometry of the gradients, and is much smaller than
    that of ordinary gradient descent if they are mostly zero. Nothing is said about the error of the coefficients.

    *Tuning*: `step_size` is the one that matters; try 0.01 to 1. *Departures*: none.

    References
    ----------
    J. Duchi, E. Hazan and Y. Singer (2011). Adaptive subgradient methods for online learning and stochastic
    optimization. Journal of Machine Learning Research 12, 2121-2159: eqs. (3), (4) and Section 5.1.

    Examples
    --------
    >>> from thresher.baselines import AdaGradL1
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(2000)
    >>> AdaGradL1(penalty=0.2).partial_fit(X, y).support_
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [Interval(Real, 0, None, closed="left")],
        "step_size": [Interval(Real, 0, None, closed="neither")],
        "update": [StrOptions({"dual", "mirror"})],
        "delta": [Interval(Real, 0, None, closed="neither")],
    }

    _schema = Schema(
        lambda model: model._totals.n_rows == model._n_learned,
        _coef=working("n_features_in_"),
        _sum=working("n_features_in_"),
        _squares=working("n_features_in_", least=0.0),
        _totals=Is(RowTotals),
    )

    def __init__(
        self, penalty: float = 0.05, *, step_size: float = 0.1, update: str = "dual", delta: float = 1e-6
    ) -> None:
        self.penalty = penalty
        self.step_size = step_size
        self.update = update
        self.delta = delta

    def _start(self, n_features: int) -> None:
        self._coef, self._sum, self._squares = (np.zeros(n_features) for _ in range(3))
        self._totals = RowTotals()

    def _learn(self, X: Floats, y: Floats) -> int:
        state = self._totals, self._coef, self._sum, self._squares
        n: int = ada_grad_l1(X, y, *state, self.penalty, self.step_size, self.delta, self.update == "dual")
        return n

    def _estimate(self) -> Floats:
        return self._coef
