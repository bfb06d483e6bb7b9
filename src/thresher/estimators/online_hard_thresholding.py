"""Algorithm 1 of the paper for sparse vectors, as a scikit-learn estimator."""

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, Options, StrOptions

from thresher._utils.arrays import ArrayLike
from thresher.estimators._linear import SummaryLinear
from thresher.estimators._online import OnlineRows
from thresher.io.schema import Anything, Array, Count, Flag, Is, Number, Schema, Text, described
from thresher.online.prequential import Prequential
from thresher.online.sparse import RULES
from thresher.online.step_size import StepCount, StepSize, safe_step
from thresher.selection.criteria import Chooser
from thresher.selection.cross_validation import CrossValidation
from thresher.selection.selecting import SelectingRounds
from thresher.selection.thresholded_family import AlgorithmFamily, ThresholdedFamily, Thresholding
from thresher.sparsity.groups import Groups


@described(
    size=Count(1) | None,
    centred=Flag(),
    standardized=Flag(),
    groups=Is(Groups, shared=True) | None,
    rule=Text(*RULES),
    algorithm=Anything(),  # parameters, which are checked as such
)
class _Problem(NamedTuple):
    """What makes other rounds necessary when it changes."""

    size: int | None  # None if it is chosen
    centred: bool
    standardized: bool
    groups: Groups | None
    rule: str
    algorithm: tuple[Any, ...] | None  # steps and limits of Algorithm 1, where it is what is cross-validated


class OnlineHardThresholding(OnlineRows, SummaryLinear):
    r"""Online hard thresholding: sparse linear regression by K projected gradient steps after every row.

    After every row it takes K steps towards

    .. math:: \min_{\theta, b} \; \frac{1}{2 n} \sum_{i \le n} (y_i - b - x_i^\top \theta)^2
              \quad \text{subject to} \quad \|\theta\|_0 \le s

    over *all* rows so far, from summary statistics alone. This is Algorithm 1 of Yang and Sun (2026). With a number for
    `step_size` the coefficients after each row are its iterates, to rounding. ``fit`` is iterative hard thresholding
    (Blumensath and Davies, 2009) run until it settles. ``SparseRegressor`` solves the same problem directly.

    A row costs d^2 flops in blocks of BLAS-3 plus O(d + K s^2). Memory is 8 d^2 bytes and O(s^2), and does not grow.

    ==============================  ================  ===================================================
    paper                           parameter         meaning
    ==============================  ================  ===================================================
    :math:`s`                       `sparsity`        features that are kept
    :math:`K`                       `n_steps`         steps per round: a number, or a callable t -> K_t
    :math:`\eta_{t,k}`              `step_size`       a number, a callable (t, k) -> eta, or "auto"
    :math:`t_0`                     `n_warmup`        rows of the initial batch, before the first round
    rows per round (1)              `round_size`      rows between rounds
    :math:`\Theta_0`                `start`           where it starts; zero by default
    :math:`\Theta_t`                `coef_`           the estimate after round t
    ==============================  ================  ===================================================

    Parameters
    ----------
    sparsity : int or "auto", default="auto"
        The s of the paper; more than there are columns means all. With `groups` it counts groups. ``"auto"`` finds one
        as the paper proposes: by 5-fold cross-validation on the initial batch, or in the first 2000 rows if there is no
        batch. Then it stays. A hash of the values of a row decides which fold it belongs to.
    selection : {"path", "algorithm"}, default="path"
        What ``"auto"`` cross-validates: least squares on the best subset of every size, or Algorithm 1 itself with
        these steps and this start, run on the other folds until it rests. The second tries every size up to 20 and
        then some, and takes longer.
    n_steps : int or callable, default=5
        Steps per round, K; or a callable that is called with the round t (from one) and returns K_t.
    step_size : float, callable or "auto", default="auto"
        Step size eta. ``"auto"`` finds, at each step, one for which the loss provably does not rise. A
        callable is called with the round t (from one) and the step k (from zero).
    n_warmup : int, default=0
        Rows absorbed before the first round, t0.
    round_size : int, default=1
        Rows per round. Rows short of a full round wait for the next call, or for ``finish``.
    start : array-like of shape (n_features,) or a fitted model, optional
        Theta_0: where the first round, or ``fit``, starts; of a model, its `coef_`. Zero by default. Of a start with
        more than s entries, the s largest are kept. With `standardize`, columns that do not vary yet lose theirs.
    rule : {"hard", "pursuit", "reciprocal"}, default="hard"
        How the estimate moves. ``"hard"`` is the paper's step; ``"pursuit"`` adds least squares on the support after
        it; ``"reciprocal"`` shrinks what is just kept. Groups need ``"hard"``.
    fit_intercept : bool, default=False
        Whether the model has an intercept: the best one for all rows so far, at every round.
    standardize : bool, default=False
        Whether steps and comparisons are made in units of each column's standard deviation over all rows so far
        (root mean square without an intercept). Coefficients are always in the units of the data.
    groups : array-like of shape (n_features,), optional
        The group of each column, as integers or strings. Columns of a group are kept or dropped together: the s groups
        of largest norm are kept. A step then costs O(d s) instead of O(s^2).
    dtype : {"float64", "float32"}, default="float64"
        Storage of the d x d co-moments; float32 halves the memory. Groups need float64.
    tol : float, default=1e-8
        ``fit`` stops when a round moves the coefficients less than this, relatively.
    max_iter : int, default=1000
        ``fit`` stops after this many rounds at the latest.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients; zero outside the support.
    intercept_ : float
        Intercept; 0.0 if ``fit_intercept=False``.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    sparsity_ : int
        The s in use.
    selection_ : Selection
        The last choice of s and its cross-validated error for every s, with ``sparsity="auto"``.
    selection_history_ : History
        Rows, s, support and coefficients whenever there were a twentieth more rows.
    selected_groups_ : ndarray
        Labels of the groups that are kept, if there are `groups`.
    step_size_ : float
        The last step taken.
    n_samples_seen_, n_rounds_ : int
        Rows absorbed and rounds done.
    n_iter_ : int
        Rounds done by the last ``fit``; 0 if there was none.
    summary_ : Gram
        The summary of all rows so far.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if X had them.

    Notes
    -----
    ``partial_fit`` gives bit-identical coefficients however the rows are cut into calls. ``fit`` depends on the
    rows but not on their order, to rounding, and ``partial_fit`` may go on from there.

    References
    ----------
    S. Yang and Q. Sun (2026). Online Generalized Sparse Regression: How Does Overparametrization Help?

    T. Blumensath and M. E. Davies (2009). Iterative hard thresholding for compressed sensing. Applied and Computational
    Harmonic Analysis 27(3), 265-274.

    Examples
    --------
    The paper's first experiments: d = 1000, 15 features that matter, s = 50, K = 5, a batch of 100 rows.

    >>> from thresher import OnlineHardThresholding
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> stream = SparseLinearStream(1000, 15, signal=0.2, seed=0)
    >>> model = OnlineHardThresholding(50, n_steps=5, step_size=0.001, n_warmup=100)
    >>> model = model.partial_fit(*stream.draw(3000))
    >>> len(model.support_)
    50
    """

    _schema = Schema(
        lambda model: model.sparsity_ == model._rounds.size,
        lambda model: model._rounds.family == model._rounds_family(),
        lambda model: np.array_equal(model.coef_, model._rounds.inner.coef.reshape(-1)),
        lambda model: model.intercept_ == (model._rounds.inner.intercept if model._solved.centred else 0.0),
        _solved=Is(_Problem),
        coef_=Array("n_features_in_"),
        intercept_=Number(),
        sparsity_=Count(),
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineRows._parameter_constraints,
        "sparsity": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "selection": [StrOptions({"path", "algorithm"})],
        "rule": [StrOptions(set(RULES))],
        "fit_intercept": ["boolean"],
        "standardize": ["boolean"],
        "groups": ["array-like", None],
        "dtype": [StrOptions({"float64", "float32"}), Options(type, {np.float64, np.float32})],
    }

    def __init__(
        self,
        sparsity: int | str = "auto",
        *,
        selection: str = "path",
        n_steps: StepCount = 5,
        step_size: StepSize = "auto",
        n_warmup: int = 0,
        round_size: int = 1,
        start: ArrayLike | BaseEstimator | None = None,
        rule: str = "hard",
        fit_intercept: bool = False,
        standardize: bool = False,
        groups: ArrayLike | None = None,
        dtype: str = "float64",
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.sparsity = sparsity
        self.selection = selection
        self.n_steps = n_steps
        self.step_size = step_size
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.start = start
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.groups = groups
        self.dtype = dtype
        self.tol = tol
        self.max_iter = max_iter

    @property
    def _chooser(self) -> Chooser | None:
        return self._rounds.chooser

    @_chooser.setter
    def _chooser(self, chooser: Chooser | None) -> None:
        self._rounds.chooser = chooser

    def _problem(self) -> _Problem:
        groups = self._checked_groups(self.summary_.n_features)
        if groups is not None and self.summary_.dtype != np.float64:
            raise ValueError("groups need co-moments in float64; use dtype='float64'.")
        if groups is not None and self.rule != "hard":
            raise ValueError(f"groups move by hard thresholding, not by rule={self.rule!r}; use rule='hard'.")
        size = self._given_size(groups)
        algorithm = None
        if size is None and self.selection == "algorithm":
            start = self._checked_start()
            at = None if start is None else tuple(start.tolist())
            steps = self.n_steps if callable(self.n_steps) else int(self.n_steps)
            size_of_steps = float(self.step_size) if isinstance(self.step_size, Real) else self.step_size
            algorithm = size_of_steps, steps, float(self.tol), int(self.max_iter), at
        return _Problem(size, bool(self.fit_intercept), bool(self.standardize), groups, self.rule, algorithm)

    @property
    def _scored(self) -> Prequential:
        scored: Prequential = self._rounds.inner.prequential
        return scored

    @property
    def _family(self) -> ThresholdedFamily:
        problem = self._solved
        return ThresholdedFamily(problem.centred, problem.groups, problem.standardized, problem.rule)

    def _new_rounds(self) -> SelectingRounds:
        problem = self._solved
        method = CrossValidation() if problem.size is None else None
        return SelectingRounds(self.summary_, self._rounds_family(), problem.size or 0, method, self.n_warmup)

    def _rounds_family(self) -> Thresholding:
        """The models that rounds choose from."""
        problem = self._solved
        if problem.algorithm is None:
            return self._family
        what = problem.centred, problem.groups, problem.standardized, problem.rule
        return AlgorithmFamily(*what, *problem.algorithm)

    def _coef_shape(self) -> tuple[int, ...]:
        return (self.summary_.n_features,)

    def _publish_estimate(self) -> None:
        rounds = self._rounds.inner
        self.coef_ = rounds.coef.flatten()
        self.intercept_ = rounds.intercept if self._solved.centred else 0.0
        self.sparsity_ = self._rounds.size

    def _safe_step(self) -> float | None:
        if self.rule == "reciprocal":  # it shrinks what it keeps, which may raise the loss at any step
            return None
        moment = self.summary_.comoment() if self.fit_intercept else self.summary_.second_moment()
        moment /= self.summary_.weight
        scale = self.summary_.variance(self.fit_intercept) if self.standardize else np.ones(len(moment))
        kept = self.sparsity_
        if self._solved.groups is not None:
            kept *= int(np.bincount(self._solved.groups.index).max())
        return safe_step(moment, np.sqrt(scale), kept)

    def _widen(self, n_features: int) -> None:
        self._adopt_parameters()
        size = self._rounds.size if isinstance(self.sparsity, str) else int(min(self.sparsity, n_features))
        self._rounds = self._rounds.widened(n_features, size)
        self.summary_ = self._rounds.summary
        self._solved = self._problem()
        self._forget_features(n_features)
        self._publish()
