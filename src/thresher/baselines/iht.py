"""Iterative hard thresholding."""

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from thresher.baselines._on_summary import OnSummary, Quadratic, Update
from thresher.io.schema import Schema
from thresher.sparsity.cardinality import Cardinality

# Longer steps diverge in any case, and would overflow.
LONGEST = 1e100


class IHT(OnSummary):
    r"""Best-subset least squares by iterative hard thresholding, offline on the summary of all rows.

    For :math:`\min L(\theta) = \frac{1}{2n} \sum_i (y_i - b - x_i^\top \theta)^2` subject to
    :math:`\|\theta\|_0 \le s`, it iterates from zero

    .. math:: \theta \leftarrow H_s(\theta - \eta \nabla L(\theta)),

    where :math:`H_s` keeps the s entries of largest magnitude. A fixed point is least squares on its support, and no
    other coordinate pulls harder than the smallest kept coefficient: :math:`\eta |\nabla_j L| \le \min_S |\theta|`.

    Each call absorbs its rows (d^2 flops a row) and then solves from zero: O(d s) a step, and O(d^2) once for
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
    coef_ : ndarray of shape (n_features,)
        Coefficients; zero outside the support.
    intercept_ : float
        Intercept; 0.0 if ``fit_intercept=False``.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    n_iter_ : int
        Steps of the last call.
    diverged_ : bool
        Whether steps were so long that the loss ended above that of zero, or coefficients overflowed; then they are
        zero, with a ConvergenceWarning.
    n_samples_seen_ : int
        Rows in the summary.
    summary_ : Gram
        What the rows left behind.

    Notes
    -----
    *Guarantee*: with eta = 1 for columns scaled so that the restricted isometry constant of order 3s is below
    1/sqrt(32), the error is at most a constant times the noise (Blumensath and Davies, 2009). Without that, eta below
    1 / L still makes the loss fall and the iterates converge to a fixed point (2008). With s = 32 kappa^2 s* and
    eta = 2 / (3 L), on columns of any condition number kappa, the loss comes as close as one likes to that of the best
    s* coefficients (Jain, Tewari and Kar, 2014); `thresher.theory.minimum_size` has smaller sizes.

    *Tuning*: on correlated columns ``"auto"`` is short, and a short step is content with a poor support. One over
    the largest eigenvalue of 2s columns at a time is as safe, and longer.

    *Departures*: ``"auto"`` stands for the authors' matrix of norm one. Steps that are too long may cycle between
    supports until `max_iter`, with a ConvergenceWarning.

    References
    ----------
    T. Blumensath and M. E. Davies (2008). Iterative thresholding for sparse approximations. Journal of Fourier Analysis
    and Applications 14, 629-654.

    T. Blumensath and M. E. Davies (2009). Iterative hard thresholding for compressed sensing. Applied and Computational
    Harmonic Analysis 27(3), 265-274.

    P. Jain, A. Tewari and P. Kar (2014). On iterative hard thresholding methods for high-dimensional M-estimation.
    Advances in Neural Information Processing Systems 27: Theorem 1.

    Examples
    --------
    >>> from thresher.baselines import IHT
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(400)
    >>> IHT(3).fit(X, y).support_
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sparsity": [Interval(Integral, 1, None, closed="left")],
        "step_size": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        **OnSummary._parameter_constraints,
    }
    _remedy = "Use a smaller step_size, or rescale the columns or the response."
    _or_else = ", or use a smaller step_size"

    _schema = Schema()

    def __init__(
        self,
        sparsity: int,
        *,
        step_size: float | str = "auto",
        fit_intercept: bool = False,
        standardize: bool = False,
        tol: float = 1e-8,
        max_iter: int = 10_000,
    ) -> None:
        self.sparsity = sparsity
        self.step_size = step_size
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter

    def _update(self, loss: Quadratic) -> Update:
        if isinstance(self.step_size, str):
            step = 1.0 / loss.largest_curvature()
        else:  # in the units of the loss
            step = min(float(self.step_size) * (1.0 if self.standardize else float(loss.unit[0]) ** 2), LONGEST)
        keep = Cardinality(int(self.sparsity))
        return lambda theta, g: keep.project(theta - step * g)
