"""The lasso, solved after every row."""

from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.arrays import Floats
from thresher._utils.warnings import warn_caller
from thresher.baselines._lasso_baseline import LassoBaseline
from thresher.baselines._lasso_stream import LassoStream
from thresher.io.schema import Flag, Is, Schema
from thresher.summaries.gram import Gram


class OnlineLasso(LassoBaseline):
    r"""The lasso over all rows so far, solved to the end after every row.

    .. math:: \hat\theta_t = \operatorname*{argmin}_\theta \; \frac1{2t} \sum_{i \le t} (y_i - x_i^\top \theta)^2
              + \lambda_t \|\theta\|_1, \qquad \lambda_t = C \sigma \sqrt{\log(d) / t}

    Equivalent to ``sklearn.linear_model.Lasso(alpha=penalty_, fit_intercept=...)`` on all rows so far. This is the
    penalised regression that methods with cheaper rounds are meant to approximate.

    Coordinate descent goes on from the last solution on those features that are, or have to be, nonzero; the pull on
    all features is computed and checked after every row, so the solution is that of the whole problem. A row costs
    d^2 flops in blocks of BLAS-3, O(d m) for the m features in the descent, and O(d) per move; the state is a
    Gram, 8 d^2 bytes and its buffer, and m columns of it.

    Parameters
    ----------
    penalty : float, default=1.0
        C. Theory asks for more than 2 for every irrelevant column to be left out; prediction is best below 1.
    noise : float or "auto", default="auto"
        sigma times the scale of the columns. ``"auto"`` is the root mean square of the errors of one-step-ahead
        predictions, times that of the columns.
    n_warmup : int, default=0
        Rows absorbed before the first solution.
    round_size : int, default=1
        Rows between solutions; the last few wait for the next call.
    fit_intercept : bool, default=False
        Whether there is an intercept, without a penalty: the best one for all rows so far.
    tol : float, default=1e-10
        Descent ends when a sweep moves nothing by more than this, relative to the length of the responses.
    max_sweeps : int, default=1000
        Most sweeps of a descent; the next row goes on where it was. If they were not enough for the last row of a
        call, there is a ConvergenceWarning.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        Intercept.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    penalty_ : float
        lambda_t of the last solution.
    summary_ : Gram
        What the rows left behind.
    n_samples_seen_ : int
        Rows seen.
    diverged_at_ : None
        A convex problem that is solved does not diverge.

    Notes
    -----
    *Guarantee*: error of order s log(d) / t for lambda_t above twice the largest noise gradient and a restricted
    eigenvalue condition. *Tuning*: C, by a validation set; it shrinks what it keeps, at any C. Far too small a
    penalty keeps hundreds of columns in the descent, and a row then takes seconds at d = 1000.
    *Departures*: the paper leaves sigma open; all columns have the same penalty, in their own units.

    References
    ----------
    S. Yang and Q. Sun (2026). Online Generalized Sparse Regression: How Does Overparametrization Help?,
    eq. (online:penalized). J. Friedman, T. Hastie and R. Tibshirani (2010). Regularization paths for generalized linear
    models via coordinate descent. Journal of Statistical Software 33(1).

    Examples
    --------
    >>> from sklearn.linear_model import Lasso
    >>> from thresher.baselines import OnlineLasso
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(500)
    >>> model = OnlineLasso(penalty=1.5).partial_fit(X, y)
    >>> lasso = Lasso(model.penalty_, fit_intercept=False, tol=1e-12).fit(X, y)
    >>> bool(abs(model.coef_ - lasso.coef_).max() < 1e-8)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "noise": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_warmup": [Interval(Integral, 0, None, closed="left")],
        "round_size": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_sweeps": [Interval(Integral, 1, None, closed="left")],
    }

    _schema = Schema(
        lambda model: model.summary_.n_features == model.n_features_in_ and model.summary_.dtype == float,
        lambda model: model.summary_.n_samples == model.n_samples_seen_ or model.diverged_at_ is not None,
        lambda model: model._stream.centred == model._centred,
        lambda model: model._stream.sums.agree_with(model.summary_.sums()),
        summary_=Is(Gram),
        _centred=Flag(),
    )

    def __init__(
        self,
        penalty: float = 1.0,
        *,
        noise: float | str = "auto",
        n_warmup: int = 0,
        round_size: int = 1,
        fit_intercept: bool = False,
        tol: float = 1e-10,
        max_sweeps: int = 1000,
    ) -> None:
        self.penalty = penalty
        self.noise = noise
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_sweeps = max_sweeps

    def _start(self, n_features: int) -> None:
        self.summary_ = Gram(n_features)
        self._centred = bool(self.fit_intercept)
        self._stream = LassoStream(n_features, self._centred)

    def _take(self, X: Any, y: Any, reset: bool) -> Self:
        told = not reset and self._stream.unsolved
        super()._take(X, y, reset)
        if self._stream.unsolved and not told:
            warn_caller(
                f"The lasso of these rows was not solved to tol within max_sweeps={self.max_sweeps} sweeps. "
                "Use fit_intercept=True if columns are far from zero, a larger penalty, or more sweeps.",
                ConvergenceWarning,
            )
        return self

    def _check_against_features(self, n_features: int) -> None:
        if getattr(self, "_centred", self.fit_intercept) != self.fit_intercept and self.n_samples_seen_:
            raise ValueError("fit_intercept cannot change while rows stream in; start over with fit.")

    def _learn(self, X: Floats, y: Floats) -> int:
        settings = self.n_warmup, self.round_size, self.tol, self.max_sweeps
        return self._follow(self.summary_, X, y, self._stream.solve_rows, *settings)

    def _publish(self) -> None:
        super()._publish()
        if self._centred:
            self.intercept_ = self.summary_.best_intercept(self.coef_)
