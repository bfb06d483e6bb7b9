"""Streaming regression on matrices, with a coefficient matrix of low rank."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from thresher._utils.arrays import ArrayLike
from thresher._utils.memory import require_bytes
from thresher.estimators._matrix_rows import LowRankRows
from thresher.estimators._online import OnlineRows
from thresher.estimators._ranked import RankedRounds
from thresher.io.schema import Array, Count, Flag, Is, Labels, Maybe, Number, Of, Schema, Tuple
from thresher.online.samples import Rows
from thresher.online.step_size import StepCount, StepSize
from thresher.selection.criteria import Method
from thresher.selection.selecting import SelectingRounds
from thresher.selection.sensing_ranks import SensingRanks
from thresher.summaries.gram import Gram


class LowRankRegressor(LowRankRows, RankedRounds, OnlineRows):
    r"""Regression on d1 x d2 matrices with a coefficient matrix of rank at most r, kept current while data stream in.

    After every sample it takes a few projected gradient steps towards

    .. math:: \min_{\Theta, b} \; \frac{1}{2 n} \sum_{i \le n} (y_i - b - \langle X_i, \Theta \rangle)^2
              \quad \text{subject to} \quad \operatorname{rank}(\Theta) \le r

    over *all* samples so far: Algorithm 1 of Yang and Sun (2026) for low-rank matrix sensing. ``fit`` on samples in
    memory is singular value projection (Jain, Meka and Dhillon, 2010).

    With d = d1 d2, a sample costs d^2 flops in blocks of BLAS-3, and each step one pass over half a d x d matrix in
    float32. Memory is 12 d^2 bytes and does not grow: that is 75 MB for 50 x 50 matrices but 1.2 GB for 100 x 100.
    Where X has a single nonzero entry, use ``MatrixCompleter``; where one row of features
    predicts many responses, ``ReducedRankRegressor``. Both keep far less.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Rank of the coefficient matrix, r. ``"auto"`` chooses it from the data, again whenever there are a quarter
        more samples.
    selection : {"noise_edge", "ebic", "cv"} or a NoiseEdge, Ebic or CrossValidation, default="noise_edge"
        How ``"auto"`` chooses: a further rank must explain more than it could make of noise; by the BIC, which wants
        more; or by cross-validation on the initial batch or in the early rounds, which keeps more summaries.
    shape : tuple of int, optional
        Shape (d1, d2) of the matrices, if they are given as rows of d1 d2 numbers.
    n_steps : int or callable, default=5
        Steps per round, K; or a callable that is called with the round t (from one) and returns K_t.
    step_size : float, callable or "auto", default="auto"
        Step size eta. ``"auto"`` finds, at each step, one for which the loss provably does not rise. A
        callable is called with the round t (from one) and the step k (from zero).
    n_warmup : int, default=0
        Samples absorbed before the first round, t0.
    round_size : int, default=1
        Samples per round. Samples short of a full round wait for the next call, or for ``finish``.
    start : array-like of shape (d1, d2) or a fitted model, optional
        Theta_0: where the first round, or ``fit``, starts; of a model, its `coef_`. Zero by default. A start that is
        not in the set is projected onto it.
    fit_intercept : bool, default=False
        Whether the model has an intercept: the best one for all samples so far, at every round.
    tol : float, default=1e-8
        ``fit`` stops when a round moves the coefficients less than this, relatively.
    max_iter : int, default=1000
        ``fit`` stops after this many rounds at the latest.

    Attributes
    ----------
    coef_ : ndarray of shape (d1, d2)
        Coefficients.
    factors_ : tuple of ndarray
        U (d1, r), singular values (r,) and V' (r, d2) of the coefficients.
    intercept_ : float
        Intercept; 0.0 if ``fit_intercept=False``.
    rank_ : int
        The r in use: the one chosen, or `rank`.
    selection_ : Selection
        The last choice of r and its criterion for every r, with ``rank="auto"``.
    selection_history_ : History
        Samples and r whenever there were a quarter more samples.
    step_size_ : float
        The last step taken.
    n_samples_seen_, n_rounds_ : int
        Samples absorbed and rounds done.
    n_iter_ : int
        Rounds done by the last ``fit``; 0 if there was none.
    summary_ : Gram
        What the samples, as rows of d1 d2 numbers, left behind.
    n_features_in_ : int
        d1 d2.

    Notes
    -----
    ``partial_fit`` gives bit-identical coefficients however the samples are cut into calls. With
    ``fit_intercept=False`` and a float `step_size` the coefficients are the iterates of Algorithm 1, to 1e-8.

    The first d/2 samples are kept as they are, being smaller than their moments.

    References
    ----------
    S. Yang and Q. Sun (2026). Online Generalized Sparse Regression: How Does Overparametrization Help?

    P. Jain, R. Meka and I. S. Dhillon (2010). Guaranteed rank minimization via singular value projection.
    Advances in Neural Information Processing Systems 23.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import LowRankRegressor
    >>> rng = np.random.default_rng(0)
    >>> truth = np.outer([1.0, -2.0, 0.5], [1.0, 0.0, 1.0, 2.0])
    >>> X = rng.standard_normal((400, 3, 4))
    >>> y = (X * truth).sum(axis=(1, 2)) + 0.01 * rng.standard_normal(400)
    >>> model = LowRankRegressor().partial_fit(X, y)
    >>> model.rank_
    1
    >>> model.coef_.round(1) + 0.0
    array([[ 1. ,  0. ,  1. ,  2. ],
           [-2. ,  0. , -2. , -4. ],
           [ 0.5,  0. ,  0.5,  1. ]])
    """

    _schema = Schema(
        lambda model: model._shape[0] * model._shape[1] == model.n_features_in_ == model.summary_.n_features,
        lambda model: model.rank_ == model._rounds.size and model._rounds.family == model._family(),
        lambda model: np.array_equal(model.coef_, model._rounds.inner.coef),
        lambda model: model.intercept_ in (0.0, model._rounds.inner.intercept),
        n_features_in_=Count(1),
        feature_names_in_=Maybe(Labels("n_features_in_")),
        summary_=Is(Gram, shared=True),
        _shape=Tuple(Count(1), Count(1)),
        _solved=Tuple(Count(1) | None, Of(Method) | None, Flag()),
        rank_=Count(1),
        coef_=Array("d1", "d2"),
        intercept_=Number(),
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RankedRounds._parameter_constraints,
        "shape": [tuple, list, None],
        "fit_intercept": ["boolean"],
    }
    _summary_type = Gram
    summary_: Gram

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        selection: str | Method = "noise_edge",
        shape: tuple[int, int] | None = None,
        n_steps: StepCount = 5,
        step_size: StepSize = "auto",
        n_warmup: int = 0,
        round_size: int = 1,
        start: ArrayLike | BaseEstimator | None = None,
        fit_intercept: bool = False,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.rank = rank
        self.selection = selection
        self.shape = shape
        self.n_steps = n_steps
        self.step_size = step_size
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.start = start
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    # -- fitting ---------------------------------------------------------------------------------------

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Rows:
        rows = self._take_matrices(X, reset)
        return self._check_rows(rows, y, sample_weight, reset, np.dtype(np.float64))

    def _new_summary(self, rows: Rows) -> Gram:
        d = rows.X.shape[1]
        require_bytes(
            12 * d * d,
            f"Sensing with matrices of shape {self._shape} keeps second moments of {d:,} numbers and",
            "If each X observes one entry, MatrixCompleter keeps 16 d1 d2 bytes; if X is one row of features for many "
            "responses, ReducedRankRegressor keeps 8 (p + q)^2 bytes; otherwise use smaller matrices.",
        )
        return Gram(d, hold_rows=True)

    def _take_summary(self, summary: Gram) -> None:
        self._take_shape_for(summary)
        self._forget_features(summary.n_features)

    def _problem(self) -> Any:
        self._check_shape_asked()
        return *self._asked(min(self._shape)), bool(self.fit_intercept)

    def _family(self) -> SensingRanks:
        return SensingRanks(self._shape, self._solved[-1])

    def _new_rounds(self) -> SelectingRounds:
        return self._selecting(*self._solved[:2])

    def _coef_shape(self) -> tuple[int, ...]:
        shape: tuple[int, int] = self._shape
        return shape

    def _publish_estimate(self) -> None:
        self.rank_ = self._rounds.size
        self.coef_ = self._rounds.inner.coef.copy()
        self.intercept_ = self._rounds.inner.intercept if self.fit_intercept else 0.0
