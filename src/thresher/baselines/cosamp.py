"""Compressive sampling matching pursuit."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from thresher.baselines._on_summary import OnSummary, Quadratic, Update
from thresher.sparsity.cardinality import Cardinality

Floats = NDArray[np.float64]


class CoSaMP(OnSummary):
    r"""Best-subset least squares by compressive sampling matching pursuit, offline on the summary of all rows.

    For :math:`\min L(\theta) = \frac{1}{2n} \sum_i (y_i - b - x_i^\top \theta)^2` subject to
    :math:`\|\theta\|_0 \le s`, it iterates from zero

    .. math:: T = \mathrm{supp}(H_{2s}(\nabla L(\theta))) \cup \mathrm{supp}(\theta), \quad
              \theta \leftarrow H_s(\operatorname*{argmin} \{L(u) : \mathrm{supp}(u) \subseteq T\}),

    where :math:`H_s` keeps the s entries of largest magnitude: it looks at up to 3s features together and
    prunes.

    Each call absorbs its rows (d^2 flops a row) and then solves from zero, O(d s + s^3) a step. The state is 8 d^2
    bytes and a buffer of at most 256 rows; solving takes another 8 d^2 bytes.

    Parameters
    ----------
    sparsity : int
        s; more than there are columns means all.
    fit_intercept : bool, default=False
        Whether there is an intercept b: the best one at every step.
    standardize : bool, default=False
        Whether comparisons are made in units of each column's root mean square (standard deviation with an intercept).
        Coefficients are always in the units of the data.
    tol : float, default=1e-8
        Stop when a step moves no coefficient by more than this share of the largest.
    max_iter : int, default=100
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

    Notes
    -----
    *Guarantee*: with a restricted isometry constant of order 4s of at most 0.1, the error halves in every step until it
    is a constant times the noise.

    *Tuning*: none. The estimate is pruned, not fitted again, so it is not least squares on its support. Rows should be
    many times 3s: on 3s features or more that determine each other, the shortest of all least squares is taken.
    On correlated columns it may cycle between supports until `max_iter`, with a ConvergenceWarning. *Departures*: the
    authors leave open when to stop. Here it is when nothing moves any more.

    References
    ----------
    D. Needell and J. A. Tropp (2009). CoSaMP: iterative signal recovery from incomplete and inaccurate samples. Applied
    and Computational Harmonic Analysis 26(3), 301-321: Algorithm 1.

    Examples
    --------
    >>> from thresher.baselines import CoSaMP
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(400)
    >>> CoSaMP(3).fit(X, y).support_
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sparsity": [Interval(Integral, 1, None, closed="left")],
        **OnSummary._parameter_constraints,
    }
    _or_else = ", or use another sparsity"

    def __init__(
        self,
        sparsity: int,
        *,
        fit_intercept: bool = False,
        standardize: bool = False,
        tol: float = 1e-8,
        max_iter: int = 100,
    ) -> None:
        self.sparsity = sparsity
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter

    def _update(self, loss: Quadratic) -> Update:
        few, more = Cardinality(int(self.sparsity)), Cardinality(2 * int(self.sparsity))

        def step(theta: Floats, g: Floats) -> Floats:
            merged = np.flatnonzero((more.project(g) != 0.0) | (theta != 0.0))
            return few.project(loss.least_squares(merged))

        return step
