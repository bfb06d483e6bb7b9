"""A support from a batch, then gradient descent on it: statistical sparse online regression."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LassoCV
from sklearn.utils._param_validation import Interval, StrOptions

from thresher._utils.arrays import Floats
from thresher._utils.threads import one_blas_thread
from thresher.baselines._baseline import BLOCK, Baseline
from thresher.baselines._batch import Batch
from thresher.baselines._single_rows import HOPELESS, RowTotals, proximal_steps
from thresher.io.schema import Array, Flag, Is, Maybe, Schema
from thresher.online.samples import Rows
from thresher.online.sparse import SparseRounds
from thresher.summaries.gram import Gram

# Rows between looks at whether the descent on the summary diverges.
LOOK_EVERY = 64


class OSLasso(Baseline):
    r"""Least squares by gradient descent on a support that a lasso found in an initial batch, once and for all.

    A cross-validated lasso on the first t0 rows gives the support F and the start. Then either K steps per row on the
    loss of all rows so far (``update="rounds"``),

    .. math:: \theta_F \leftarrow \theta_F - \frac\eta n \sum_{i \le n} (x_{i,F}^\top \theta_F - y_i) x_{i,F},

    or one on the last row (``update="samples"``), :math:`\theta_F \leftarrow \theta_F - \eta (x_{n,F}^\top
    \theta_F - y_n) x_{n,F}`. All other coefficients are zero for ever.

    With f features in F, a row costs O(K f^2), or O(f); the state is 8 f^2 bytes, or 8 f. Until then it is the batch,
    8 t0 d bytes.

    Parameters
    ----------
    n_warmup : int, default=100
        t0, at least `cv`.
    n_steps : int, default=1
        K; only for ``update="rounds"``.
    step_size : float, default=0.001
        eta.
    update : {"rounds", "samples"}, default="rounds"
        On which loss the steps are taken.
    average : bool, default=False
        With ``update="samples"``: whether `coef_` is the mean of the iterates since the batch.
    cv : int, default=5
        Folds of the cross-validation.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients; zero until the batch is full.
    intercept_ : float
        0.0; centre the columns and the response if they need it.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    n_samples_seen_ : int
        Rows seen.
    diverged_at_ : int or None
        The row, counted from zero, at which it was seen to have diverged: its prediction was absurd, or (``"rounds"``,
        looked at every 64 rows) its loss. The last estimate that was well is kept.

    Notes
    -----
    *Guarantee*: least-squares rates on the support, if the batch is large enough and the coefficients strong enough
    for the lasso to find every one of them. What it misses is never found.

    *Tuning*: t0. Steps shorter than one over the largest eigenvalue of F's second moments converge; for ``"samples"``
    the authors take about log(T) / T for T rows, or a longer one and averaging.

    *Departures*: ``"rounds"`` is how Yang and Sun (2026) run it, with the batch in the loss; Fan et al. take one step
    per sample. Cross-validation is ``LassoCV(cv=5, fit_intercept=False)``.

    References
    ----------
    J. Fan, W. Gong, C. J. Li and Q. Sun (2018). Statistical sparse online regression: a diffusion approximation
    perspective. AISTATS 2018. S. Yang and Q. Sun (2026). Online Generalized Sparse Regression: How Does
    Overparametrization Help?, Section 5.

    Examples
    --------
    >>> from thresher.baselines import OSLasso
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> stream = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1)
    >>> model = OSLasso(step_size=0.1).partial_fit(*stream.draw(2000))
    >>> stream.coef[:3].round(1), model.coef_[:3].round(1)
    (array([-0.6,  0.4, -0.4]), array([-0.7,  0.4, -0.4]))
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_warmup": [Interval(Integral, 2, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "step_size": [Interval(Real, 0, None, closed="neither")],
        "update": [StrOptions({"rounds", "samples"})],
        "average": ["boolean"],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    _schema = Schema(
        lambda model: model._is_consistent(),
        _batch=Is(Batch) | None,
        _features=Array("features", dtype="i8", least=0, below="n_features_in_", ascending=True),
        _shown=Array("n_features_in_"),
        _samplewise=Maybe(Flag()),
        _coef=Maybe(Array("features")),
        _mean=Maybe(Array("features")),
        _totals=Maybe(Is(RowTotals)),
        _rounds=Maybe(Is(SparseRounds)),
        _well=Maybe(Array("features")),
    )

    def __init__(
        self,
        n_warmup: int = 100,
        *,
        n_steps: int = 1,
        step_size: float = 0.001,
        update: str = "rounds",
        average: bool = False,
        cv: int = 5,
    ) -> None:
        self.n_warmup = n_warmup
        self.n_steps = n_steps
        self.step_size = step_size
        self.update = update
        self.average = average
        self.cv = cv

    def _is_consistent(self) -> bool:
        """Whether it has what a method before or after its batch needs."""
        n_chosen = len(self._features)
        if self._batch is not None:
            return self._batch._X.shape[1] == self.n_features_in_ and not n_chosen
        if not hasattr(self, "_samplewise") or not n_chosen:
            return hasattr(self, "_samplewise")
        if self._samplewise:
            return hasattr(self, "_coef") and hasattr(self, "_mean") and hasattr(self, "_totals")
        return hasattr(self, "_well") and hasattr(self, "_rounds") and self._rounds.summary.n_features == n_chosen

    def _check_against_features(self, n_features: int) -> None:
        if self.n_warmup < self.cv:
            raise ValueError(
                f"n_warmup={self.n_warmup} rows cannot be cut into cv={self.cv} folds; use a larger n_warmup."
            )

    def _start(self, n_features: int) -> None:
        self._batch: Batch | None = Batch(int(self.n_warmup), n_features)
        self._features = np.empty(0, np.intp)
        self._shown = np.zeros(n_features)

    def _rows_until_event(self) -> int:
        if self._batch is not None:
            return self._batch.n_missing
        return BLOCK if self._samplewise else LOOK_EVERY - self.n_samples_seen_ % LOOK_EVERY

    def _learn(self, X: Floats, y: Floats) -> int:
        if self._batch is not None:
            if self._batch.add(X, y, self._end_batch):
                self._batch = None
            return len(y)
        if not len(self._features):
            return len(y)
        rows = np.ascontiguousarray(X[:, self._features])
        return self._sample_steps(rows, y) if self._samplewise else self._round_steps(rows, y)

    def _end_batch(self, X: Floats, y: Floats) -> None:
        with one_blas_thread():
            coef = LassoCV(cv=int(self.cv), fit_intercept=False, random_state=0).fit(X, y).coef_
        self._features = np.flatnonzero(coef)
        self._samplewise = self.update == "samples"
        self._shown[self._features] = coef[self._features]
        if not len(self._features):
            return
        if self._samplewise:
            self._coef, self._mean = coef[self._features], np.zeros(len(self._features))
            self._totals = RowTotals()
            return
        gram = Gram(len(self._features)).absorb(X[:, self._features], y)
        # Keeping the f largest of f coefficients keeps them all: the step is plain gradient descent.
        self._rounds = SparseRounds(gram, len(self._features), centred=False, standardized=False)
        self._rounds.start_from(coef[self._features])
        self._well = coef[self._features]  # at the last look

    def _sample_steps(self, X: Floats, y: Floats) -> int:
        n: int = proximal_steps(X, y, self._totals, self._coef, self._mean, 0.0, self.step_size, 0.0)
        averaged = self.average and self._totals.n_rows > 0
        self._shown[self._features] = self._mean if averaged else self._coef
        return n

    def _round_steps(self, X: Floats, y: Floats) -> int:
        steps = self._rounds.steps_for(len(y), float(self.step_size), int(self.n_steps), 0, 1)
        self._rounds.absorb(Rows(X, y), steps)
        at_look = (self.n_samples_seen_ + len(y)) % LOOK_EVERY == 0
        if at_look and self._has_diverged():
            self._shown[self._features] = self._well
            return len(y) - 1
        self._shown[self._features] = self._rounds.coef
        if at_look:
            self._well = self._rounds.coef.copy()
        return len(y)

    def _has_diverged(self) -> bool:
        gram, coef = self._rounds.summary, self._rounds.coef
        with np.errstate(over="ignore", invalid="ignore"):
            return not gram.loss(coef) <= HOPELESS * gram.loss(np.zeros_like(coef))

    def _estimate(self) -> Floats:
        return self._shown
