"""Proximal stochastic gradient descent."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.arrays import Floats
from thresher.baselines._baseline import Baseline, working
from thresher.baselines._single_rows import RowTotals, proximal_steps
from thresher.io.schema import Is, Schema


class IncrementalProximal(Baseline):
    r"""The lasso by one proximal gradient step per row.

    The problem is :math:`\min_w \mathbb{E} (y - x^\top w)^2 / 2 + \lambda \|w\|_1`, and the step

    .. math:: w_{t+1} = \operatorname*{argmin}_w \; \langle g_t, w \rangle + \lambda \|w\|_1
              + \frac{1}{2 \eta_t} \|w - w_t\|_2^2 = \mathrm{soft}(w_t - \eta_t g_t, \eta_t \lambda),
              \qquad \eta_t = \eta_0 / t^p,

    with :math:`g_t = (x_t^\top w_t - y_t) x_t`. Without a penalty it is ``SGDRegressor(penalty=None,
    learning_rate="invscaling", power_t=p, fit_intercept=False)``.

    A row costs O(d); the state is d numbers (2 d with averaging).

    Parameters
    ----------
    penalty : float, default=0.05
        lambda, in units of the gradient: about sigma sqrt(log(d) / T) for T rows of columns with mean square one.
    step_size : float or "auto", default="auto"
        eta_0. ``"auto"`` has steps :math:`1 / (L (1 + t/d)^p)`, with L the largest squared length of a row so far:
        none of them overshoots.
    power : float, default=0.5
        p. Zero is a constant step, which reaches a neighbourhood of the solution only.
    average : bool, default=False
        Whether `coef_` is the mean of all iterates so far: less noise, but hardly any exact zeros.

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
    *Guarantee*: convergence in objective value for convex losses with bounded gradients and steps with infinite sum
    and finite sum of squares, hence p above 0.5; at 0.5, that of the mean of iterates up to a logarithm. Each step
    thresholds by eta_t lambda only, while g_t is as noisy as ever, so iterates have many small nonzero coefficients.

    *Tuning*: eta_t times the squared length of a row has to get below 2 soon. *Departures*: the order of the
    rows is that of the stream, a single pass over them.

    References
    ----------
    D. P. Bertsekas (2011). Incremental proximal methods for large scale convex optimization. Mathematical
    Programming 129, 163-195: eq. (14). B. T. Polyak and A. B. Juditsky (1992). Acceleration of stochastic approximation
    by averaging. SIAM Journal on Control and Optimization 30(4), 838-855.

    Examples
    --------
    >>> from thresher.baselines import IncrementalProximal
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> stream = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1)
    >>> model = IncrementalProximal(penalty=0.2).partial_fit(*stream.draw(2000))
    >>> stream.coef[:3].round(1), model.coef_[:3].round(1)
    (array([-0.6,  0.4, -0.4]), array([-0.5,  0.2, -0.2]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [Interval(Real, 0, None, closed="left")],
        "step_size": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "power": [Interval(Real, 0, 1, closed="both")],
        "average": ["boolean"],
    }

    _schema = Schema(
        lambda model: model._totals.n_rows == model._n_learned,
        _coef=working("n_features_in_"),
        _mean=working("n_features_in_"),
        _totals=Is(RowTotals),
    )

    def __init__(
        self, penalty: float = 0.05, *, step_size: float | str = "auto", power: float = 0.5, average: bool = False
    ) -> None:
        self.penalty = penalty
        self.step_size = step_size
        self.power = power
        self.average = average

    def _start(self, n_features: int) -> None:
        self._coef, self._mean, self._totals = np.zeros(n_features), np.zeros(n_features), RowTotals()

    def _learn(self, X: Floats, y: Floats) -> int:
        step = 0.0 if isinstance(self.step_size, str) else self.step_size
        n: int = proximal_steps(X, y, self._totals, self._coef, self._mean, self.penalty, step, self.power)
        return n

    def _estimate(self) -> Floats:
        return self._mean if self.average else self._coef
