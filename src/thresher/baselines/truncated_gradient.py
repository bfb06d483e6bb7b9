"""Stochastic gradient descent whose small coefficients are pulled to zero now and then."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.compile import compiled
from thresher.baselines._baseline import Baseline
from thresher.baselines._single_rows import LENGTH, N_ROWS, N_TOTALS, take_row

Floats = NDArray[np.float64]

# The share of the longest stable step that "auto" takes: the error of a constant step is proportional to it.
CAUTIOUS = 0.1


class TruncatedGradient(Baseline):
    r"""Sparse least squares by stochastic gradient descent with truncation.

    Each row takes :math:`w \leftarrow w - \eta (x_t^\top w - y_t) x_t`. After every K rows, coefficients no
    larger than :math:`\theta` move towards zero by :math:`\eta K g`, and stop there:

    .. math:: w_j \leftarrow \begin{cases} \mathrm{soft}(w_j, \eta K g) & |w_j| \le \theta \\ w_j & \text{else.}
              \end{cases}

    With :math:`\theta = \infty` that is a subgradient method for the lasso with penalty g whose zeros are exact.
    Without gravity it is ``SGDRegressor(penalty=None, learning_rate="constant", fit_intercept=False)``.

    A row costs O(d); the state is d numbers.

    Parameters
    ----------
    gravity : float, default=0.05
        g, in units of the gradient: about sigma sqrt(log(d) / T) for T rows of columns with mean square one.
    step_size : float or "auto", default="auto"
        eta, the same for all rows. ``"auto"`` is a tenth of one over the largest squared length of a row so far.
    period : int, default=10
        K.
    ceiling : float, default=inf
        theta. Coefficients above are not pulled, hence not biased.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Coefficients.
    intercept_ : float
        0.0; centre the columns and the response if they need it.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients; all of them, nearly, until the next truncation.
    n_samples_seen_ : int
        Rows seen.
    diverged_at_ : int or None
        The row, counted from zero, whose prediction had become absurd; the estimate before it is kept.

    Notes
    -----
    *Guarantee*: regret of order sqrt(T) with eta of order 1 / sqrt(T), compared with any w at cost g |w|_1.
    Nothing is said about the error of the coefficients or the support.

    *Tuning*: a constant step leaves an error proportional to it, a shorter one takes longer to get there.
    *Departures*: none but ``"auto"``.

    References
    ----------
    J. Langford, L. Li and T. Zhang (2009). Sparse online learning via truncated gradient. Journal of Machine Learning
    Research 10, 777-801: eqs. (4) and (5).

    Examples
    --------
    >>> from thresher.baselines import TruncatedGradient
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> stream = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1)
    >>> model = TruncatedGradient(gravity=0.2).partial_fit(*stream.draw(2000))
    >>> stream.coef[:3].round(1), model.coef_[:3].round(1)
    (array([-0.6,  0.4, -0.4]), array([-0.4,  0.2, -0.2]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gravity": [Interval(Real, 0, None, closed="left")],
        "step_size": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "period": [Interval(Integral, 1, None, closed="left")],
        "ceiling": [Interval(Real, 0, None, closed="both")],
    }

    def __init__(
        self,
        gravity: float = 0.05,
        *,
        step_size: float | str = "auto",
        period: int = 10,
        ceiling: float = np.inf,
    ) -> None:
        self.gravity = gravity
        self.step_size = step_size
        self.period = period
        self.ceiling = ceiling

    def _start(self, n_features: int) -> None:
        self._coef, self._totals = np.zeros(n_features), np.zeros(N_TOTALS)

    def _learn(self, X: Floats, y: Floats) -> int:
        step = 0.0 if isinstance(self.step_size, str) else float(self.step_size)
        n: int = _run(X, y, self._coef, self._totals, float(self.gravity), step, int(self.period), float(self.ceiling))
        return n

    def _estimate(self) -> Floats:
        return self._coef


@compiled
def _run(
    X: Floats,
    y: Floats,
    coef: Floats,
    totals: Floats,
    gravity: float,
    step: float,
    period: int,
    ceiling: float,
) -> int:
    for i in range(len(X)):
        error = take_row(X, y, i, coef, totals)
        if np.isnan(error):
            return i
        eta = step
        if step == 0.0:
            eta = CAUTIOUS / totals[LENGTH] if totals[LENGTH] > 0.0 else 0.0
        for j in range(coef.shape[0]):
            coef[j] -= eta * error * X[i, j]
        if totals[N_ROWS] % period == 0:
            pull = eta * period * gravity
            for j in range(coef.shape[0]):
                size = abs(coef[j])
                if size <= ceiling:
                    coef[j] = np.sign(coef[j]) * max(size - pull, 0.0)
    return len(X)
