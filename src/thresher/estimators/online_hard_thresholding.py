"""Algorithm 1 of the paper for sparse vectors, as a scikit-learn estimator."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, Options, StrOptions

from thresher.estimators._linear import SummaryLinear
from thresher.estimators._online import OnlineRows
from thresher.online.dense import DenseRounds
from thresher.online.sparse import RULES, SparseRounds
from thresher.online.step_size import StepSize, safe_step
from thresher.selection.criteria import Chooser
from thresher.selection.cross_validation import CrossValidation
from thresher.selection.family import RoundsFamily
from thresher.selection.selecting import SelectingRounds
from thresher.selection.subset_family import SubsetFamily
from thresher.sparsity.groups import Groups
from thresher.summaries.gram import Gram


class _Problem(NamedTuple):
    """What makes other rounds necessary when it changes."""

    size: int | None  # None if it is chosen
    centred: bool
    standardized: bool
    groups: Groups | None
    rule: str


@dataclass(frozen=True)
class ThresholdedFamily(SubsetFamily, RoundsFamily):
    """Linear models that hard thresholding estimates, by their number of features or groups."""

    standardized: bool = False
    rule: str = "hard"

    def new_rounds(self, summary: Gram, size: int) -> Any:
        """Rounds that keep `size` features, or groups."""
        if self.groups is None or size == 0:
            return SparseRounds(summary, size, self.centred, self.standardized, rule=self.rule)
        return DenseRounds(summary, self.groups.keeping(size), self.centred, self.standardized)

    def largest(self, summary: Gram) -> int:
        """The largest size that there is."""
        return self.n_units(summary)


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
    :math:`K`                       `n_steps`         steps per round
    :math:`\eta_{t,k}`              `step_size`       a number, a callable (t, k) -> eta, or "auto"
    :math:`t_0`                     `n_warmup`        rows of the initial batch, before the first round
    rows per round (1)              `round_size`      rows between rounds
    :math:`\Theta_0 = 0`                              where it starts
    :math:`\Theta_t`                `coef_`           the estimate after round t
    ==============================  ================  ===================================================

    Parameters
    ----------
    sparsity : int or "auto", default="auto"
        The s of the paper; more than there are columns means all. With `groups` it counts groups. ``"auto"`` finds one
        as the paper proposes: by 5-fold cross-validation on the initial batch, or in the first 2000 rows if there is no
        batch. Then it stays. A hash of the values of a row decides which fold it belongs to.
    n_steps : int, default=5
        Steps per round, K.
    step_size : float, callable or "auto", default="auto"
        Step size eta. ``"auto"`` finds, at each step, one for which the loss provably does not rise. A
        callable is called with the round t (from one) and the step k (from zero).
    n_warmup : int, default=0
        Rows absorbed before the first round, t0.
    round_size : int, default=1
        Rows per round. Rows short of a full round wait for the next call, or for ``finish``.
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
    coef_ : ndarray of shape (n_features_in_,)
        Coefficients; zero outside the support.
    intercept_ : float
        Intercept; 0.0 if ``fit_intercept=False``.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    sparsity_ : int
        The s in use.
    selection_ : Selection
        The last choice of s and its cross-validated error for every s, with ``sparsity="auto"``.
    selection_history_ : list of Record
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
    The paper's first experiments: d = 1000, ten features that matter, s = 50, K = 5, a batch of 100 rows.

    >>> from thresher import OnlineHardThresholding
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> stream = SparseLinearStream(1000, 10, signal=0.5, seed=0)
    >>> model = OnlineHardThresholding(50, n_steps=5, step_size=0.001, n_warmup=100)
    >>> model = model.partial_fit(*stream.draw(3000))
    >>> len(model.support_)
    50
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineRows._parameter_constraints,
        "sparsity": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
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
        n_steps: int = 5,
        step_size: StepSize = "auto",
        n_warmup: int = 0,
        round_size: int = 1,
        rule: str = "hard",
        fit_intercept: bool = False,
        standardize: bool = False,
        groups: ArrayLike | None = None,
        dtype: str = "float64",
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.sparsity = sparsity
        self.n_steps = n_steps
        self.step_size = step_size
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.groups = groups
        self.dtype = dtype
        self.tol = tol
        self.max_iter = max_iter

    def _get_chooser(self) -> Chooser | None:
        return self._rounds.chooser

    def _set_chooser(self, chooser: Chooser | None) -> None:
        self._rounds.chooser = chooser

    def _problem(self) -> _Problem:
        groups = self._checked_groups(self.summary_.n_features)
        if groups is not None and self.summary_.dtype != np.float64:
            raise ValueError("groups need co-moments in float64; use dtype='float64'.")
        if groups is not None and self.rule != "hard":
            raise ValueError(f"groups move by hard thresholding, not by rule={self.rule!r}; use rule='hard'.")
        return _Problem(self._given_size(groups), bool(self.fit_intercept), bool(self.standardize), groups, self.rule)

    @property
    def _family(self) -> ThresholdedFamily:
        problem = self._solved
        return ThresholdedFamily(problem.centred, problem.groups, problem.standardized, problem.rule)

    def _new_rounds(self) -> SelectingRounds:
        size = self._solved.size
        method = CrossValidation() if size is None else None
        return SelectingRounds(self.summary_, self._family, size or 0, method, self.n_warmup)

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
