"""Follow the regularised leader, with steps that adapt coordinate by coordinate."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from thresher._utils.arrays import Floats
from thresher.baselines._baseline import Baseline, working
from thresher.baselines._single_rows import RowTotals, ftrl_proximal
from thresher.io.schema import Is, Schema


class FTRLProximal(Baseline):
    r"""Sparse least squares by FTRL-Proximal, the method behind many advertising systems.

    With :math:`g_t = (x_t^\top w_t - y_t) x_t`, the estimate is

    .. math:: w_{t+1} = \operatorname*{argmin}_w \; \Big\langle \sum_{r \le t} g_r, w \Big\rangle
              + \frac12 \sum_{r \le t} \sigma_r (w - w_r)^2 + \lambda_1 \|w\|_1
              + \frac12 \Big( \lambda_2 + \frac\beta\alpha \Big) \|w\|_2^2

    with weights for which :math:`\sum_{r \le t} \sigma_r = \sqrt{n_t} / \alpha`, coordinate by coordinate,
    :math:`n_t = \sum_{r \le t} g_r^2`. It comes down to :math:`z \mathrel{+}= g - \sigma w` and
    :math:`w = -\mathrm{soft}(z, \lambda_1) / ((\beta + \sqrt n) / \alpha + \lambda_2)`.

    A row costs O(d); the state is 3 d numbers.

    Parameters
    ----------
    l1 : float, default=10.0
        lambda_1, a threshold for *sums* of gradients: about sigma sqrt(T log d) for T rows of columns with mean
        square one keeps most noise out.
    l2 : float, default=0.0
        lambda_2.
    alpha : float, default=0.1
        Step size, in units of the coefficients: about as large as they are.
    beta : float, default=1.0
        Makes the first steps shorter; in units of the gradient.

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
    *Guarantee*: regret of order sqrt(T) for convex losses with bounded gradients. The penalty l1 is paid once, not
    once per row, so its weight relative to the data fades as 1 / t while the noise in z grows as sqrt(t).

    *Tuning*: `alpha` first, in powers of two, then `l1`. *Departures*: the squared loss instead of the logistic one.

    References
    ----------
    H. B. McMahan et al. (2013). Ad click prediction: a view from the trenches. KDD 2013, Algorithm 1. H. B. McMahan
    (2011). Follow-the-regularized-leader and mirror descent: equivalence theorems and L1 regularization. AISTATS 2011.

    Examples
    --------
    >>> from thresher.baselines import FTRLProximal
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(2000)
    >>> FTRLProximal(l1=200.0).partial_fit(X, y).support_
    array([0, 1, 2])
    """

    _remedy = "Use a smaller alpha."
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "l1": [Interval(Real, 0, None, closed="left")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="neither")],
    }

    _schema = Schema(
        lambda model: model._totals.n_rows == model._n_learned,
        _coef=working("n_features_in_"),
        _z=working("n_features_in_"),
        _squares=working("n_features_in_", least=0.0),
        _totals=Is(RowTotals),
    )

    def __init__(self, l1: float = 10.0, l2: float = 0.0, *, alpha: float = 0.1, beta: float = 1.0) -> None:
        self.l1 = l1
        self.l2 = l2
        self.alpha = alpha
        self.beta = beta

    def _start(self, n_features: int) -> None:
        self._coef, self._z, self._squares = (np.zeros(n_features) for _ in range(3))
        self._totals = RowTotals()

    def _learn(self, X: Floats, y: Floats) -> int:
        state = self._totals, self._coef, self._z, self._squares
        n: int = ftrl_proximal(X, y, *state, self.l1, self.l2, self.alpha, self.beta)
        return n

    def _estimate(self) -> Floats:
        return self._coef
