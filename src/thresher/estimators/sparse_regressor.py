"""Streaming sparse linear regression as a scikit-learn estimator."""

from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from thresher._warnings import warn_caller
from thresher.estimators._explaining import Explaining
from thresher.estimators._growing import Growing
from thresher.estimators._linear import SparseLinear
from thresher.rounds.sparse import RULES
from thresher.rounds.step_size import StepSize, safe_step
from thresher.selection.criteria import Method
from thresher.selection.ebic import Ebic
from thresher.selection.features import Features
from thresher.selection.folds import Folds
from thresher.selection.grouped import GroupedFeatures
from thresher.selection.path import Family
from thresher.selection.prequential import Prequential
from thresher.selection.selecting import SelectingRounds
from thresher.sparsity.groups import Groups
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]

# How to choose a size, by name.
METHODS: dict[str, Method] = {"ebic": Ebic(), "folds": Folds(), "prequential": Prequential()}


class _Problem(NamedTuple):
    """What makes other rounds necessary when it changes."""

    size: int | None  # None if it is chosen
    method: Method | None
    centred: bool
    standardized: bool
    groups: Groups | None
    rule: str
    patient: bool
    follow: bool = False
    prudent: bool = False


class SparseRegressor(Explaining, SparseLinear, Growing):
    r"""Linear regression with at most s nonzero coefficients, kept current while rows stream in.

    After every row it takes a few hard-thresholding steps towards

    .. math:: \min_{\theta, b} \; \frac{1}{2 n} \sum_{i \le n} (y_i - b - x_i^\top \theta)^2
              \quad \text{subject to} \quad \|\theta\|_0 \le s

    over *all* rows so far, from summary statistics alone: Algorithm 1 of Yang and Sun (2026), followed by least squares
    on the support, with s chosen from the data: there is nothing to tune. ``fit`` on rows in memory is best-subset
    selection by forward selection and pursuit, as ``abess.LinearRegression()`` is by splicing; ``partial_fit`` comes to
    the same in one pass, up to local minima.

    A row costs d^2 flops in blocks of BLAS-3 plus O(d + K s^2). Memory is 8 d^2 bytes and O(s^2), and does not grow but
    for O(s) at each milestone, of which there are O(log t).

    Parameters
    ----------
    sparsity : int or "auto", default="auto"
        How many features to keep, s; more than there are columns means all. With `groups` it counts groups.
        ``"auto"`` chooses it from the data, anew whenever there are a twentieth more rows.
    selection : {"ebic", "folds", "prequential"} or an instance of Ebic, Folds or Prequential, default="ebic"
        How ``"auto"`` chooses: by an information criterion over the path of forward selection (and a much shorter
        list where that explains nearly as much: ``Ebic(parsimony=0.0)`` does without), by exact cross-validation in the
        early rounds, or by how well each size predicts the next rows.
    rule : {"auto", "hard", "pursuit", "reciprocal"}, default="auto"
        How the estimate moves. ``"hard"`` is the paper's step; ``"pursuit"`` adds least squares on the support after
        it; ``"reciprocal"`` shrinks what is just kept. ``"auto"`` is pursuit, and the paper's step with groups or a
        `step_size` of your own.
    n_steps : int or "auto", default=5
        Thresholding steps per round, K. ``"auto"`` ends a round when a further step would gain less than a hundredth
        of the statistical error, and after 20 steps at the latest. Pursuit ends a round when the support holds.
    step_size : float, callable or "auto", default="auto"
        Step size eta. ``"auto"`` finds, at each step, one for which the loss provably does not rise. A
        callable is called with the round t (from one) and the step k (from zero).
    n_warmup : int, default=0
        Rows absorbed before the first round, t0.
    round_size : int, default=1
        Rows per round. Rows short of a full round wait for the next call, or for ``finish``.
    fit_intercept : bool, default=True
        Whether the model has an intercept: the best one for all rows so far, at every round.
    standardize : bool, default=True
        Whether steps and comparisons are made in units of each column's standard deviation over all rows so far
        (root mean square without an intercept). Coefficients are always in the units of the data.
    follow_drift : bool, default=True
        Whether coefficients may follow a stream that changes. What the estimate leaves of each row before it has seen
        it is also predicted from what it left of the rows just before, by an adaptive filter on the kept features. When
        that has been better by five standard errors, it is added to `coef_` and `intercept_`, until it has been no
        better than nothing for some thousand rows. Only for ``partial_fit`` with the rule pursuit; in ``fit``, all
        rows count alike.
    prudent : bool or "auto", default="auto"
        Whether `coef_` trusts a coefficient only as far as there are rows to carry it: as if four more rows had shown
        no effect of the feature (see Notes). If not, it is least squares on the support. Only with the rule pursuit
        and without groups; ``"auto"`` is yes if `sparsity` is "auto".
    groups : array-like of shape (n_features,), optional
        The group of each column, as integers or strings. Columns of a group (one-hot levels, lags of one signal)
        are kept or dropped together: the s groups of largest norm are kept. A step then costs O(d s) instead of O(s^2).
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
        The s in use: the one chosen, or `sparsity`, or the number of columns (or groups) if there are fewer.
    selection_ : Selection
        The last choice of s and its criterion for every s, with ``sparsity="auto"``.
    drifts_ : bool
        Whether the stream has changed, so that coefficients follow its recent rows.
    overall_coef_, overall_intercept_ : ndarray of shape (n_features_in_,), float
        What fits all rows best, counted alike: with pursuit, least squares on the support.
    milestones_ : list of Milestone
        How things stood whenever there were a twentieth more rows: rows, rounds, s, support and coefficients.
    selected_groups_ : ndarray
        Labels of the groups that are kept, if there are `groups`.
    step_size_ : float
        The last step taken.
    n_samples_seen_ : int
        Rows absorbed.
    n_rounds_ : int
        Rounds done.
    n_iter_ : int
        Rounds done by the last ``fit``; 0 if there was none.
    summary_ : Gram
        What the rows left behind.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if X had them.

    Notes
    -----
    All of this is about rows that count alike. In a stream that changes, `coef_` follows its recent rows instead (see
    `follow_drift`), of which none counts for more than the average one, whatever its weight.

    Least squares on the support takes every coefficient at face value, also that of a rare level which a single row
    has, and of a feature that was kept because noise made it look larger. With `prudent`, rows in which nothing happens
    are added along each feature, :math:`(G + D) \theta = h` instead of :math:`G \theta = h`, where D is diagonal with
    :math:`4 / (\max(m, \min(t^2, m^2)) + (t / 10)^2)` of what a feature has of its own beside the other kept ones,
    :math:`1 / (G^{-1})_{jj}`. Here t is the coefficient in standard errors and
    :math:`m = \sum_i x_{ij}^2 / \max_i x_{ij}^2`, about the mean if there is an intercept, is the number of rows that
    carry the feature; rows count by their weights. So a level that one row has keeps a fifth to a third of its
    coefficient, a normal column nearly all, and without noise everything is exact. `overall_coef_` is without.

    ``partial_fit`` gives bit-identical coefficients however the rows are cut into calls. ``fit`` depends on the
    rows but not on their order, to rounding, and ``partial_fit`` may go on from there.

    With a number for `sparsity`, ``fit_intercept=False``, ``standardize=False`` and a float `step_size`, the
    coefficients after each row are the iterates of Algorithm 1 to rounding.

    References
    ----------
    S. Yang and Q. Sun (2026). Online Generalized Sparse Regression: How Does Overparametrization Help?

    T. Blumensath and M. E. Davies (2010). Normalized Iterative Hard Thresholding: Guaranteed Stability and
    Performance. IEEE Journal of Selected Topics in Signal Processing 4(2), 298-309.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> model = SparseRegressor()
    >>> for _ in range(20):
    ...     X = rng.standard_normal((50, 30))
    ...     y = 3.0 * X[:, 4] - 2.0 * X[:, 7] + 1.0 + 0.1 * rng.standard_normal(50)
    ...     model = model.partial_fit(X, y)
    >>> model.support_
    array([4, 7])
    >>> model.coef_[model.support_].round(1), round(model.intercept_, 1)
    (array([ 3., -2.]), 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Growing._parameter_constraints,
        "sparsity": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "selection": [StrOptions(set(METHODS)), Method],
        "rule": [StrOptions({"auto", *RULES})],
        "n_steps": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "fit_intercept": ["boolean"],
        "standardize": ["boolean"],
        "follow_drift": ["boolean"],
        "prudent": ["boolean", StrOptions({"auto"})],
        "groups": ["array-like", None],
        "dtype": [StrOptions({"float64", "float32"}), Options(type, {np.float64, np.float32})],
    }
    _summary_type = Gram
    # Models in files from before there was the parameter do not have it.
    follow_drift: bool = True
    prudent: bool | str = "auto"

    def __init__(
        self,
        sparsity: int | str = "auto",
        *,
        selection: str | Method = "ebic",
        rule: str = "auto",
        n_steps: int | str = 5,
        step_size: StepSize = "auto",
        n_warmup: int = 0,
        round_size: int = 1,
        fit_intercept: bool = True,
        standardize: bool = True,
        follow_drift: bool = True,
        prudent: bool | str = "auto",
        groups: ArrayLike | None = None,
        dtype: str = "float64",
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.sparsity = sparsity
        self.selection = selection
        self.rule = rule
        self.n_steps = n_steps
        self.step_size = step_size
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.follow_drift = follow_drift
        self.prudent = prudent
        self.groups = groups
        self.dtype = dtype
        self.tol = tol
        self.max_iter = max_iter

    # -- fitting ---------------------------------------------------------------------------------------

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, Floats, Floats | None]:
        dtype = self.summary_.dtype if hasattr(self, "summary_") and not reset else np.dtype(self.dtype)
        return self._check_rows(X, y, sample_weight, reset, dtype)

    def _new_summary(self, rows: Any, responses: Any) -> Gram:
        return Gram(rows.shape[1], self.dtype)

    def _summarise(self, rows: Any, responses: Any, weights: Any) -> Gram:
        summary: Gram = super()._summarise(rows, responses, weights)
        if isinstance(self.sparsity, str):  # cross-validation has to see the rows, too
            self._chooser_of_fit = self._method().chooser(0)
            self._chooser_of_fit.absorb(summary, rows, responses, weights)
        return summary

    def _method(self) -> Method:
        return METHODS[self.selection] if isinstance(self.selection, str) else self.selection

    def _problem(self) -> Any:
        d, groups, limit = self.summary_.n_features, None, "columns"
        if self.groups is not None:
            if self.groups is not getattr(self, "_labels", None):
                try:
                    self._labels, self._groups = self.groups, Groups(self.groups, 1)
                except ValueError as error:
                    raise ValueError(f"groups: {error}") from error
            if self.summary_.dtype != np.float64:
                raise ValueError("groups need co-moments in float64; use dtype='float64'.")
            groups, limit = self._groups, "groups"
            if len(groups.index) != d:
                raise ValueError(f"groups has {len(groups.index)} labels and X has {d} columns; give one per column.")
            if self.rule not in ("auto", "hard"):
                raise ValueError(f"groups move by hard thresholding, not by rule={self.rule!r}; use rule='hard'.")
            if self.n_steps == "auto":
                raise ValueError("groups take a fixed number of steps; give n_steps a number.")
            d = groups.n_groups
        size, method = None, None
        if isinstance(self.sparsity, str):
            method = self._method()
        else:
            size = int(min(self.sparsity, d))
            if self.sparsity > d and not self._growing and self.sparsity != getattr(self, "_warned_of", None):
                self._warned_of = self.sparsity
                warn_caller(f"sparsity={self.sparsity} exceeds the number of {limit}; using {d}.", UserWarning)
        rule = self.rule if self.rule != "auto" else "pursuit" if isinstance(self.step_size, str) else "hard"
        least_squares = rule == "pursuit" and groups is None
        prudent = size is None if isinstance(self.prudent, str) else bool(self.prudent)
        return _Problem(
            size=size,
            method=method,
            centred=bool(self.fit_intercept),
            standardized=bool(self.standardize),
            groups=groups,
            rule=rule,
            patient=self.n_steps == "auto",
            follow=bool(self.follow_drift) and least_squares,
            prudent=prudent and least_squares,
        )

    def _new_rounds(self) -> SelectingRounds:
        problem = self._solved
        family: Family
        if problem.groups is None:
            family = Features(
                problem.centred, problem.standardized, problem.rule, problem.patient, problem.follow, problem.prudent
            )
        else:
            family = GroupedFeatures(problem.groups, problem.centred, problem.standardized)
        chooser = None
        if problem.method is not None:
            chooser = self.__dict__.pop("_chooser_of_fit", None) or problem.method.chooser(self.n_warmup)
        return SelectingRounds(self.summary_, family, problem.size or 0, chooser)

    def _publish_estimate(self) -> None:
        rounds = self._rounds.inner
        if self._solved.follow or self._solved.prudent:
            self.coef_, intercept = rounds.current()
            self.drifts_ = rounds.follows
        else:
            self.coef_, intercept = rounds.coef.flatten(), rounds.intercept if self.fit_intercept else 0.0
            self.drifts_ = False
        self.intercept_ = float(intercept[0] if isinstance(intercept, np.ndarray) else intercept)
        self.sparsity_ = self._rounds.size
        passed, shown = self._rounds.milestones, self.__dict__.get("milestones_")
        if shown is None or len(passed) != len(shown) or passed[-1:] != shown[-1:]:
            self.milestones_ = list(passed)
        self.__dict__.pop("selection_", None)
        if self._rounds.selection is not None:
            self.selection_ = self._rounds.selection

    def _safe_step(self) -> float:
        moment = self.summary_.comoment() if self.fit_intercept else self.summary_.second_moment()
        moment /= self.summary_.weight
        scale = self.summary_.variance(self.fit_intercept) if self.standardize else np.ones(len(moment))
        kept = self.sparsity_
        if self._solved.groups is not None:
            kept *= int(np.bincount(self._solved.groups.index).max())
        return safe_step(moment, np.sqrt(scale), kept)

    # -- using the model -------------------------------------------------------------------------------

    @property
    def selected_groups_(self) -> NDArray[Any]:
        """Labels of the groups that are kept, in the order in which they first appear."""
        check_is_fitted(self, "coef_")
        groups = self._solved.groups
        if groups is None:
            raise AttributeError("selected_groups_ is there only with groups.")
        names: NDArray[Any] = groups.names[groups.norms(self.coef_) > 0.0]
        return names
