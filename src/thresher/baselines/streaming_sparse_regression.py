"""Streaming sparse regression: adaptively averaged mirror descent with a growing threshold."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.arrays import Floats
from thresher.baselines._baseline import Baseline, working
from thresher.baselines._single_rows import RowTotals, streaming_sparse_regression
from thresher.io.schema import Is, Schema


class StreamingSparseRegression(Baseline):
    r"""Sparse least squares by streaming sparse regression (SSR): a penalty that grows like the noise.

    With :math:`g_r = (x_r^\top w_r - y_r) x_r` the gradient at row r, the estimate for row t is

    .. math:: w_t = \operatorname*{argmin}_w \; \frac\epsilon2 \|w\|_2^2
              + \frac\alpha2 \sum_{r < t} \|w - w_r\|_2^2 + \lambda \sqrt t \, \|w\|_1
              + \Big\langle \sum_{r < t} g_r, w \Big\rangle,

    hence, with :math:`q_t = \sum_{r < t} (\alpha w_r - g_r)`,
    :math:`w_t = \mathrm{soft}(q_t, \lambda \sqrt t) / (\epsilon + \alpha (t - 1))`. Sums of gradients of
    irrelevant columns grow like :math:`\sqrt t` and stay below the threshold; those of the others grow like t.

    A row costs O(d); the state is 2 d numbers (3 d with averaging).

    Parameters
    ----------
    penalty : float, default=2.0
        lambda: about twice the noise level times the scale of the columns. Theory asks for sigma sqrt(2 log d).
    strong_convexity : float, default=0.5
        alpha: below the smallest eigenvalue of the columns' second moments.
    ridge : float or "auto", default="auto"
        epsilon: at first, steps are 1 / epsilon. ``"auto"`` is the largest squared length of a row so far, so that no
        step overshoots.
    average : bool, default=False
        Whether `coef_` is the mean of the iterates w_r, weighted by r: what the theorem on prediction is about. It has
        the zeros that all iterates share.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients for the next row.
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
    *Guarantee*: with bounded columns, strong convexity on the support and irrepresentability (irrelevant columns are
    hardly explained by relevant ones), no irrelevant column ever enters and the error is of order
    s log(d) / t, with high probability.

    *Tuning*: `penalty` between one and four noise levels; too small a penalty lets so many columns in that it diverges,
    which a larger `ridge` delays. *Departures*: the published algorithm and its analysis leave `ridge` to the user;
    whether the threshold is lambda sqrt(t) or lambda sqrt(t + 1), and the weights of the mean, follow our reading.

    References
    ----------
    J. Steinhardt, S. Wager and P. Liang (2014). The statistics of streaming sparse regression. arXiv:1412.4182:
    Algorithm 1.

    Examples
    --------
    >>> from thresher.baselines import StreamingSparseRegression
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(2000)
    >>> StreamingSparseRegression(penalty=3.0).partial_fit(X, y).support_
    array([0, 1, 2])
    """

    _remedy = "Use a larger penalty or ridge."
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [Interval(Real, 0, None, closed="left")],
        "strong_convexity": [Interval(Real, 0, None, closed="neither")],
        "ridge": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "average": ["boolean"],
    }

    _schema = Schema(
        lambda model: model._totals.n_rows == model._n_learned,
        _coef=working("n_features_in_"),
        _dual=working("n_features_in_"),
        _mean=working("n_features_in_"),
        _totals=Is(RowTotals),
    )

    def __init__(
        self,
        penalty: float = 2.0,
        *,
        strong_convexity: float = 0.5,
        ridge: float | str = "auto",
        average: bool = False,
    ) -> None:
        self.penalty = penalty
        self.strong_convexity = strong_convexity
        self.ridge = ridge
        self.average = average

    def _start(self, n_features: int) -> None:
        self._coef, self._dual, self._mean = (np.zeros(n_features) for _ in range(3))
        self._totals = RowTotals()

    def _learn(self, X: Floats, y: Floats) -> int:
        ridge = 0.0 if isinstance(self.ridge, str) else self.ridge
        state = self._totals, self._coef, self._dual, self._mean
        n: int = streaming_sparse_regression(X, y, *state, self.penalty, self.strong_convexity, ridge)
        return n

    def _estimate(self) -> Floats:
        return self._mean if self.average else self._coef
