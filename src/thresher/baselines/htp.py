"""Hard thresholding pursuit."""

import numpy as np

from thresher.baselines._on_summary import Quadratic, Update
from thresher.baselines.iht import IHT
from thresher.sparsity.cardinality import Cardinality


class HTP(IHT):
    r"""Best-subset least squares by hard thresholding pursuit, offline on the summary of all rows.

    For :math:`\min L(\theta) = \frac{1}{2n} \sum_i (y_i - b - x_i^\top \theta)^2` subject to
    :math:`\|\theta\|_0 \le s`, it iterates from zero

    .. math:: S \leftarrow \text{the } s \text{ largest entries of } |\theta - \eta \nabla L(\theta)|, \quad
              \theta \leftarrow \operatorname*{argmin} \{L(\theta) : \mathrm{supp}(\theta) \subseteq S\},

    until S repeats: thresholding chooses the support, least squares the coefficients.

    Each call absorbs its rows (d^2 flops a row) and then solves from zero: O(d s + s^3) a step, and O(d^2) once for
    ``"auto"``. The state is 8 d^2 bytes and a buffer of at most 256 rows; solving takes another 8 d^2 bytes.

    Parameters
    ----------
    sparsity : int
        s; more than there are columns means all.
    step_size : float or "auto", default="auto"
        eta. ``"auto"`` is one over the largest eigenvalue of the second moments of x, with which the loss never rises.
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

    Notes
    -----
    *Guarantee*: with eta = 1 for columns scaled so that the restricted isometry constant of order 3s is below
    1/sqrt(3), the error is at most a constant times the noise; without noise, the right support is found in
    finitely many steps. With eta below 1 / L the support repeats after finitely many steps on any data.

    *Tuning*: on correlated columns ``"auto"`` is short, and a short step is content with a poor support; a longer
    one may cycle between supports until `max_iter`, with a ConvergenceWarning.
    *Departures*: ``"auto"`` stands for the authors' matrix of norm one; of several least-squares solutions, the
    shortest is taken.

    References
    ----------
    S. Foucart (2011). Hard thresholding pursuit: an algorithm for compressive sensing. SIAM Journal on Numerical
    Analysis 49(6), 2543-2563: algorithm (HTP), with a step as in (HTP^mu).

    Examples
    --------
    >>> from thresher.baselines import HTP
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(400)
    >>> HTP(3).fit(X, y).support_
    array([0, 1, 2])
    """

    def _update(self, loss: Quadratic) -> Update:
        keep, step = Cardinality(int(self.sparsity)), self._step(loss)
        return lambda theta, g: loss.least_squares(np.flatnonzero(keep.project(theta - step * g)))
