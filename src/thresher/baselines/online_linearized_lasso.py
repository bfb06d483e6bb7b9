"""The online linearised lasso: the curvature of a batch, the gradient of the stream."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.arrays import Floats
from thresher._utils.threads import one_blas_thread
from thresher.baselines._lasso import solve
from thresher.baselines._lasso_baseline import LassoBaseline, penalties
from thresher.baselines._lasso_stream import LassoStream
from thresher.io.schema import Array, Is, Maybe, Number, Schema
from thresher.summaries.gram import Gram


class OnlineLinearizedLasso(LassoBaseline):
    r"""The lasso by a surrogate loss: the loss of an initial batch, tilted to have the gradient of the stream.

    With :math:`L_0` the loss of the first t0 rows and :math:`L_t` that of the t rows since, the estimate is

    .. math:: \theta_t = \operatorname*{argmin}_\theta \; L_0(\theta)
              + \langle \nabla L_t(\theta_{t-1}) - \nabla L_0(\theta_{t-1}), \theta \rangle
              + \lambda_t \|\theta\|_1, \qquad \lambda_t = C \sigma \sqrt{\log(d) / t}.

    A point that does not move satisfies the conditions of the lasso on the stream:
    :math:`-\nabla L_t(\theta) \in \lambda_t \partial \|\theta\|_1`.

    It is found, from :math:`\theta_{t-1}`, by proximal gradient steps, which end when they have become short.

    A row costs d^2 flops in blocks of BLAS-3, O(d m) for the m features around the support and as much for each
    proximal step. The state is the second moments of the batch and the Gram of the stream, 16 d^2 bytes, and m columns
    of the latter.

    Parameters
    ----------
    penalty : float, default=1.0
        C.
    noise : float or "auto", default="auto"
        sigma times the scale of the columns; 1.0 is the authors' choice. ``"auto"`` is the root mean square of the
        errors of one-step-ahead predictions, times that of the columns.
    n_warmup : int, default=200
        t0, the rows of the batch. Its curvature is all the method ever knows, so it must be large enough for sparse
        vectors.
    n_wait : int, default=50
        Rows of the stream before the estimate first moves from the lasso of the batch.
    n_steps : int, default=1
        Surrogate problems per row.
    step_size : float, default=0.05
        The length of proximal steps, as a share of the longest safe one; at most 1.
    tol : float, default=3e-4
        Steps end when they move the coefficients by less than this times the root mean square of the responses over
        that of the columns.
    max_sweeps : int, default=100
        Most proximal steps per problem, and most sweeps of the descent for the lasso of the batch.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients; zero until the batch is full.
    intercept_ : float
        0.0; centre the columns and the response if they need it.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    penalty_ : float
        lambda_t of the last round.
    n_samples_seen_ : int
        Rows seen.
    diverged_at_ : int or None
        The row, counted from zero, whose prediction had become absurd; the estimate before it is kept.

    Notes
    -----
    *Guarantee*: error of order sqrt(s log(d) / t) under restricted strong convexity of the batch. With fewer rows than
    columns in the batch, the surrogate need not have a minimum: it has one only if the gradient of the stream exceeds
    lambda_t along no direction but those of the batch. Long steps then diverge; short ones that end early often do not.

    *Tuning*: C, and a batch of several s log(d) rows. *Departures*: the authors' steps, 0.003 to 0.05 of the longest
    safe one, end when they are shorter than 3e-4, whatever the units, and however many they are; `max_sweeps`, `noise`
    and its estimate are ours.

    References
    ----------
    S. Yang, Y. Yan, X. Zhu and Q. Sun (2022). Online linearized LASSO. arXiv:2211.06039.

    Examples
    --------
    >>> from thresher.baselines import OnlineLinearizedLasso
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(2000)
    >>> OnlineLinearizedLasso(penalty=2.0).partial_fit(X, y).support_
    array([0, 1, 2])
    """

    _remedy = "Use a larger penalty or a larger batch (n_warmup)."
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "noise": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "n_warmup": [Interval(Integral, 1, None, closed="left")],
        "n_wait": [Interval(Integral, 0, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "step_size": [Interval(Real, 0, 1, closed="right")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_sweeps": [Interval(Integral, 1, None, closed="left")],
    }

    _schema = Schema(
        lambda model: model._gram.n_features == model.n_features_in_ and model._gram.dtype == np.float64,
        lambda model: not model._stream.centred and (model._curvature is None or hasattr(model, "_longest_step")),
        lambda model: model._curvature is None or model._stream.sums.agree_with(model._gram.sums()),
        _gram=Is(Gram),
        _curvature=Array("n_features_in_", "n_features_in_") | None,
        _longest_step=Maybe(Number(least=0.0)),
    )

    def __init__(
        self,
        penalty: float = 1.0,
        *,
        noise: float | str = "auto",
        n_warmup: int = 200,
        n_wait: int = 50,
        n_steps: int = 1,
        step_size: float = 0.05,
        tol: float = 3e-4,
        max_sweeps: int = 100,
    ) -> None:
        self.penalty = penalty
        self.noise = noise
        self.n_warmup = n_warmup
        self.n_wait = n_wait
        self.n_steps = n_steps
        self.step_size = step_size
        self.tol = tol
        self.max_sweeps = max_sweeps

    def _start(self, n_features: int) -> None:
        self._gram = Gram(n_features)  # of the batch, then of the stream
        self._curvature: Floats | None = None
        self._stream = LassoStream(n_features, centred=False)
        self.penalty_ = 0.0

    def _rows_until_event(self) -> int:
        if self._curvature is None:
            return max(int(self.n_warmup) - self._gram.n_samples, 1)
        return super()._rows_until_event()

    def _learn(self, X: Floats, y: Floats) -> int:
        if self._curvature is None:
            self._gram.absorb(X, y)
            if self._gram.n_samples >= self.n_warmup:
                self._end_batch()
            return len(X)
        schedule = self.n_wait, self.n_steps
        limits = self.step_size * self._longest_step, self.tol, self.max_sweeps
        return self._follow(self._gram, X, y, self._stream.linearized_rows, self._curvature, *schedule, *limits)

    def _end_batch(self) -> None:
        """Keep the curvature of the batch and start from its lasso."""
        batch, t0, d = self._gram, self._gram.n_samples, self._gram.n_features
        curvature = batch.second_moment() / t0
        with one_blas_thread():
            largest = float(scipy.linalg.eigvalsh(curvature, subset_by_index=[d - 1, d - 1])[0])
        self._longest_step = 1.0 / largest if largest > 0.0 else 0.0
        spread = np.sqrt(batch.response_variance(centred=False))
        noise = spread * np.sqrt(batch.variance(centred=False).mean())
        level = penalties(self.penalty, noise if isinstance(self.noise, str) else self.noise, d, t0 - 1, 1)[0]
        target = batch.cross_moment() / t0
        solve(curvature, target, level, self._stream.coef, self.tol * spread, self.max_sweeps)
        self._stream.penalty = level
        self._curvature, self._gram = curvature, Gram(d)
