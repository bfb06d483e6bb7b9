"""Sparse linear regression from a summary, as a scikit-learn estimator."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import Floats, Integers
from thresher._utils.checks import check_summary
from thresher._utils.interrupts import InterruptsDeferred
from thresher.estimators._linear import SummaryLinear
from thresher.online.samples import Rows, Samples
from thresher.selection.criteria import Chooser, Criterion, Method
from thresher.selection.cross_validation import CrossValidation, CrossValidationChooser
from thresher.selection.ebic import Ebic
from thresher.selection.history import Record, note
from thresher.selection.noise_edge import NoiseEdge
from thresher.selection.subset_family import SubsetFamily
from thresher.solvers.least_squares import LinearFit, least_squares
from thresher.solvers.subsets import SubsetPath
from thresher.sparsity.groups import Groups
from thresher.summaries.gram import Gram

# How to choose a size, by name.
METHODS: dict[str, Method] = {"ebic": Ebic(), "cv": CrossValidation()}

# The estimate before the first row that counts.
NOTHING = LinearFit(np.zeros(0, np.intp), np.zeros(0), 0.0)

# Choose again at the first fold with 1 / AT_FOLD more rows, at the latest with 1 / AT_LATEST more; in the first block,
# where a support is hardly known, with 1 / AT_FIRST more.
AT_FOLD, AT_LATEST, AT_FIRST = 20, 10, 5


class _Problem(NamedTuple):
    """What is solved; if it changes, the support is chosen again."""

    size: int | None  # None if it is chosen
    method: Method | None
    centred: bool
    groups: Groups | None


class _Estimate(NamedTuple):
    """What is read from the outside, all of one moment."""

    n_samples: int
    support: Integers
    coef: Floats
    intercept: float


def next_selection(summary: Gram) -> int:
    """The row count at which to choose again: counts alone decide, so it does not matter how rows come in."""
    n, until_fold = summary.n_samples, summary.rows_until_fold
    behind = max(-(-n // AT_FOLD) - until_fold, 0)  # what the next fold lacks
    fold = n + until_fold + -(-behind // summary.block_size) * summary.block_size
    return min(fold, n + 1 + n // (AT_FIRST if n < summary.block_size else AT_LATEST))


class SparseRegressor(SummaryLinear):
    r"""Linear regression with few nonzero coefficients, from rows that stream in.

    It solves

    .. math:: \min_{\theta, b} \; \frac{1}{2 n} \sum_{i \le n} (y_i - b - x_i^\top \theta)^2
              \quad \text{subject to} \quad \|\theta\|_0 \le s

    over *all* rows so far, from summary statistics alone, and chooses s: there is nothing to tune. ``fit`` is
    best-subset selection as ``abess.LinearRegression().fit(X, y)``, by forward selection, backward elimination and
    pairwise swaps. ``partial_fit`` chooses the support at fixed row counts. Between them the estimate is least squares
    of all rows so far on that support, computed when it is read. ``OnlineHardThresholding`` is the algorithm of the
    paper for the same problem.

    A row costs d^2 flops in blocks of BLAS-3; a choice of s features O(d s^2), after O(log n) of n rows. Memory is
    8 d^2 bytes, a buffer of at most 256 rows and O(s^2), and does not grow but for O(s) at each choice.

    Parameters
    ----------
    sparsity : int or "auto", default="auto"
        How many features to keep, s; more than there are columns means all. With `groups` it counts groups.
        ``"auto"`` chooses it from the data.
    selection : {"ebic", "cv"} or an instance of Ebic or CrossValidation, default="ebic"
        How ``"auto"`` chooses: by the extended BIC, or by cross-validation in the early rows.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    groups : array-like of shape (n_features,), optional
        The group of each column, as integers or strings. Columns of a group (one-hot levels, lags of one signal)
        are kept or dropped together.
    dtype : {"float64", "float32"}, default="float64"
        Storage of the d x d co-moments; float32 halves the memory.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        Coefficients: least squares on the support, zero elsewhere. Read-only.
    intercept_ : float
        Intercept; 0.0 if ``fit_intercept=False``.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    sparsity_ : int
        The s in use: the one chosen, or `sparsity`, or the number of columns (or groups) if there are fewer.
    selection_ : Selection
        The last choice of s and its criterion for every s, with ``sparsity="auto"``.
    selection_history_ : list of Record
        What was chosen when: rows, s, support and coefficients.
    selected_groups_ : ndarray
        Labels of the groups that are kept, if there are `groups`.
    n_samples_seen_ : int
        Rows absorbed.
    summary_ : Gram
        The summary of all rows so far.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Column names, if X had them.

    Notes
    -----
    Rows are folded into the co-moments in blocks of 128 to 256. The support is chosen again at the first fold at which
    there are at least 5 % more rows, and at the latest when there are 10 % more (20 % in the first block). ``fit``,
    ``fit_summary`` and ``finish`` choose on all rows. Reading an attribute never changes what comes later.

    ``partial_fit`` gives bit-identical coefficients however the rows are cut into calls. Results do not depend on the
    scales of the columns, to rounding.

    References
    ----------
    A. Miller (2002). Subset Selection in Regression. Chapman and Hall.

    J. Chen and Z. Chen (2008). Extended Bayesian information criteria for model selection with large model spaces.
    Biometrika 95(3), 759-771.

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
        "sparsity": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "selection": [StrOptions(set(METHODS)), Method],
        "fit_intercept": ["boolean"],
        "groups": ["array-like", None],
        "dtype": [StrOptions({"float64", "float32"}), Options(type, {np.float64, np.float32})],
    }
    _chooser: Chooser | None
    _size: int
    _next: int
    _estimated: _Estimate | None
    # Computed when it is read, so not part of what is saved.
    _transient: ClassVar[tuple[str, ...]] = ("_estimated",)

    def __init__(
        self,
        sparsity: int | str = "auto",
        *,
        selection: str | Method = "ebic",
        fit_intercept: bool = True,
        groups: ArrayLike | None = None,
        dtype: str = "float64",
    ) -> None:
        self.sparsity = sparsity
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.groups = groups
        self.dtype = dtype

    # -- fitting ---------------------------------------------------------------------------------------

    def fit_summary(self, summary: Any, folds: Sequence[Gram] | None = None) -> Self:
        """Fit from cross-products alone: as ``fit`` on the rows that the summary has seen.

        The summary is copied; ``partial_fit`` may go on from it.

        Parameters
        ----------
        summary : Gram
        folds : sequence of Gram, optional
            Summaries of disjoint parts of the same rows, one for each fold, which cross-validation needs.
        """
        if folds is None:
            return super().fit_summary(summary)
        with self._unchanged_by_failure():
            self._check_parameters()
            for one in (summary, *folds):
                check_summary(one, Gram)
            self._take_summary(summary)
            self._start(summary.copy())
            if not isinstance(self._chooser, CrossValidationChooser):
                raise ValueError("folds go with sparsity='auto' and selection='cv'.")
            self._chooser.take(summary, folds)
            return self._settle()

    def finish(self) -> Self:
        """Choose the support on all rows so far: the place where a stream ends, or pauses."""
        check_is_fitted(self, "summary_")
        with InterruptsDeferred(whole=True):  # an interrupt falls after the choice
            with self._unchanged_by_failure():
                self._check_parameters()
                self._adopt_parameters()
            due = self._next
            if self._chooser is not None:
                self._chooser.force()
            self._select()
            if self.summary_.n_samples < due:  # what comes later does not depend on this
                self._next = due
            self._estimate()
        return self

    def _settle(self, samples: Samples | None = None) -> Self:
        if samples is not None and self._chooser is not None:
            self._chooser.absorb(self.summary_, samples)
        return self.finish()

    def _widen(self, n_features: int) -> None:
        self.summary_ = self.summary_.grown(n_features)
        self._chooser = None if self._chooser is None else self._chooser.widened(n_features)
        self._forget_features(n_features)
        self._estimated, self._solved = None, self._problem()
        self._size = self._size if self._solved.size is None else self._solved.size

    def _start(self, summary: Gram) -> None:
        self.summary_ = summary
        self.__dict__.pop("selection_", None)
        self.__dict__.pop("_warned_of", None)
        self._history: list[Record] = []
        self._support: Integers = np.zeros(0, np.intp)
        self._estimated = None
        self._next = 1
        self._solved = self._problem()
        self._adopted = self._parameters()
        self._size = self._solved.size or 0
        self._chooser = None if self._solved.method is None else self._solved.method.chooser(0)

    def _get_chooser(self) -> Chooser | None:
        return self._chooser

    def _set_chooser(self, chooser: Chooser | None) -> None:
        self._chooser = chooser

    def _problem(self) -> _Problem:
        groups = self._checked_groups(self.summary_.n_features)
        size, method = self._given_size(groups), None
        if size is None:
            method = METHODS[self.selection] if isinstance(self.selection, str) else self.selection
            if isinstance(method, NoiseEdge):
                raise ValueError("selection=NoiseEdge() chooses ranks; use selection='ebic' for features.")
        return _Problem(size, method, bool(self.fit_intercept), groups)

    def _adopt_parameters(self) -> None:
        """Let parameters that were set since the last call take effect: the support is then chosen again."""
        if self._as_adopted():
            return
        problem, before = self._problem(), self._solved
        self._adopted = self._parameters()
        if problem == before:
            return
        if problem.method != before.method or problem.groups is not before.groups:
            self._chooser = None if problem.method is None else problem.method.chooser(0)
            if self._chooser is not None:
                self._chooser.check(self.summary_)
            self.__dict__.pop("selection_", None)
        self._solved, self._next = problem, 1
        self._size = self._size if problem.size is None else problem.size

    def _absorb(self, rows: Rows, plan: None) -> None:
        start, stop, summary, chooser = 0, len(rows), self.summary_, self._chooser
        with InterruptsDeferred() as interrupts:
            while start < stop:
                n = summary.n_samples
                if n >= self._next:  # other parameters were set
                    self._select()
                end = min(stop, start + self._next - n, start + summary.rows_until_fold)
                piece = rows.cut(start, end)
                summary.absorb_block(piece.dense(), piece.y, piece.weights)
                if chooser is not None and chooser.needs_rows:
                    with InterruptsDeferred(whole=True):
                        chooser.absorb(summary, piece)
                if summary.n_samples == self._next:
                    self._select()
                start = end
                interrupts.check()

    def _select(self) -> None:
        """Choose the support on the summary as it stands."""
        summary, family, values = self.summary_, self._family, np.zeros(0)
        if summary.weight > 0.0:
            choice = None if self._chooser is None else self._chooser.choose(family, summary)
            path = None
            if choice is not None:
                path, self.selection_ = choice
                self._size = self.selection_.chosen
            if isinstance(self._solved.method, Criterion) and isinstance(path, SubsetPath):
                self._support, values, _ = path.best
            else:
                self._support, values = family.best(summary, self._size)
        self._estimated = None
        self._next = next_selection(summary)
        self._support.setflags(write=False)  # records share it
        note(self._history, summary, self._size, self._support, values)

    # -- the estimate ----------------------------------------------------------------------------------

    @property
    def _family(self) -> SubsetFamily:
        return SubsetFamily(self._solved.centred, self._solved.groups)

    def _estimate(self) -> _Estimate:
        """Least squares on the support, computed once for all rows so far."""
        if "summary_" not in self.__dict__:
            check_is_fitted(self, "summary_")
        now, summary, support = self.__dict__.get("_estimated"), self.summary_, self._support
        n = summary.n_samples
        if now is None or now.n_samples != n or now.support is not support:
            fit = least_squares(summary, support, self._solved.centred) if summary.weight > 0.0 else NOTHING
            coef = fit.coef(summary.n_features)
            coef.setflags(write=False)
            now = self._estimated = _Estimate(n, support, coef, float(fit.intercept))
        return now

    @property
    def coef_(self) -> Floats:  # type: ignore[override]
        """Coefficients; zero outside the support."""
        return self._estimate().coef

    @property
    def intercept_(self) -> float:  # type: ignore[override]
        """The intercept; zero if there is none."""
        return self._estimate().intercept

    @property
    def sparsity_(self) -> int:
        """The size in use."""
        check_is_fitted(self, "summary_")
        return self._size

    @property
    def selection_history_(self) -> list[Record]:
        """What was chosen when, while rows came in."""
        check_is_fitted(self, "summary_")
        return list(self._history)
