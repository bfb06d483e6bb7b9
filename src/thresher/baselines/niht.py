"""Normalised iterative hard thresholding."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from thresher._utils.arrays import Floats
from thresher.baselines._on_summary import OnSummary, Quadratic, Update
from thresher.io.schema import Schema
from thresher.sparsity.cardinality import Cardinality


class NIHT(OnSummary):
    r"""Best-subset least squares by normalised iterative hard thresholding, offline on the summary of all rows.

    For :math:`\min L(\theta) = \frac{1}{2n} \sum_i (y_i - b - x_i^\top \theta)^2` subject to
    :math:`\|\theta\|_0 \le s`, with G the second moments of x and g the gradient, it iterates from zero

    .. math:: \theta^+ = H_s(\theta - \mu g), \qquad \mu = \frac{\|g_S\|^2}{g_S^\top G_{SS} \, g_S},

    where :math:`H_s` keeps the s entries of largest magnitude and S is the support (at zero, that of
    :math:`H_s(g)`): the best step if the support holds. If it does not, the step is taken only if

    .. math:: \mu \le (1 - c) \frac{\|\theta^+ - \theta\|^2}{(\theta^+ - \theta)^\top G (\theta^+ - \theta)},

    and otherwise :math:`\mu \leftarrow \mu / (\kappa (1 - c))` until that holds. The loss never rises, whatever the
    scale of the columns: there is no step to tune.

    Each call absorbs its rows (d^2 flops a row) and then solves from zero, O(d s) a step. The state is 8 d^2 bytes and
    a buffer of at most 256 rows; solving takes another 8 d^2 bytes.

    Parameters
    ----------
    sparsity : int
        s; more than there are columns means all.
    c : float, default=0.01
        The margin of the condition on steps that change the support, in (0, 1).
    shrink : float, default=2.0
        kappa, how fast a step that fails it is shortened; larger than 1 / (1 - c).
    fit_intercept : bool, default=False
        Whether there is an intercept b: the best one at every step.
    standardize : bool, default=False
        Whether steps and comparisons are made in units of each column's root mean square (standard deviation with an
        intercept). Coefficients are always in the units of the data.
    tol : float, default=1e-8
        Stop when a step moves no coefficient by more than this share of the largest.
    max_iter : int, default=1000
        Steps at most.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
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

    Notes
    -----
    *Guarantee*: if 2s columns at a time are well enough conditioned, whatever their scale, the error is at most a
    constant times the noise; without that, the iterates still converge to a local minimum if every s columns are
    independent.

    *Tuning*: none. *Departures*: none but the end by `tol`.

    References
    ----------
    T. Blumensath and M. E. Davies (2010). Normalized iterative hard thresholding: guaranteed stability and performance.
    IEEE Journal of Selected Topics in Signal Processing 4(2), 298-309.

    Examples
    --------
    >>> from thresher.baselines import NIHT
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(400)
    >>> NIHT(3).fit(X, y).support_
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sparsity": [Interval(Integral, 1, None, closed="left")],
        "c": [Interval(Real, 0, 1, closed="neither")],
        "shrink": [Interval(Real, 1, None, closed="neither")],
        **OnSummary._parameter_constraints,
    }

    _schema = Schema()

    def __init__(
        self,
        sparsity: int,
        *,
        c: float = 0.01,
        shrink: float = 2.0,
        fit_intercept: bool = False,
        standardize: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.sparsity = sparsity
        self.c = c
        self.shrink = shrink
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter

    def _check_against_features(self, n_features: int) -> None:
        if not self.shrink * (1.0 - self.c) > 1.0:
            raise ValueError(f"shrink={self.shrink} must be larger than 1 / (1 - c) = {1.0 / (1.0 - self.c):.6g}.")

    def _update(self, loss: Quadratic) -> Update:
        keep = Cardinality(int(self.sparsity))
        return lambda theta, g: self._step(loss, keep, theta, g)

    def _step(self, loss: Quadratic, keep: Cardinality, theta: Floats, g: Floats) -> Floats:
        direction = keep.restrict(g, theta)
        if not direction.any():
            return theta
        bend = loss.bend(direction)
        if not bend > 0.0:  # nothing but rounding pulls
            return theta
        mu = 1.0 / bend
        moved = keep.project(theta - mu * g)
        if not theta.any() or np.array_equal(moved != 0.0, theta != 0.0):
            return moved
        # A step may become too short to move anything.
        while (move := moved - theta).any() and mu * loss.bend(move) > 1.0 - self.c:
            mu /= self.shrink * (1.0 - self.c)
            moved = keep.project(theta - mu * g)
        return moved
