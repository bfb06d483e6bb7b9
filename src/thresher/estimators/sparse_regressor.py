"""Sparse linear regression from a summary, as a scikit-learn estimator."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import ArrayLike, Floats, Integers
from thresher._utils.checks import check_summary
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.locks import lock_of, locked
from thresher.estimators._drifting import Drifting
from thresher.estimators._with_memory import WithMemory
from thresher.io.schema import Array, Count, Either, Flag, Is, List, Maybe, Nothing, Of, Schema, described
from thresher.online.prequential import Prequential
from thresher.online.samples import Rows, Samples
from thresher.selection.criteria import Chooser, Criterion, Method, Selection
from thresher.selection.cross_validation import CrossValidation, CrossValidationChooser
from thresher.selection.ebic import Ebic
from thresher.selection.history import History, Record, follows, note
from thresher.selection.noise_edge import NoiseEdge
from thresher.selection.short_list import PosteriorSelection, ShortList
from thresher.selection.subset_family import SubsetFamily
from thresher.solvers.least_squares import LinearFit, least_squares
from thresher.solvers.posterior import Posterior, posterior
from thresher.solvers.subsets import SubsetPath
from thresher.sparsity.groups import Groups
from thresher.summaries.gram import Gram

# How to choose a size, by name.
METHODS: dict[str, Method] = {"posterior": PosteriorSelection(), "ebic": Ebic(), "cv": CrossValidation()}

# The estimate before the first row that counts.
NOTHING = LinearFit(np.zeros(0, np.intp), np.zeros(0), 0.0)

# Choose again at the first fold with 1 / AT_FOLD more rows, at the latest with 1 / AT_LATEST more; in the first block,
# where a support is hardly known, with 1 / AT_FIRST more.
AT_FOLD, AT_LATEST, AT_FIRST = 20, 10, 5
# While rows stream in, the posterior is sampled at the first fold with so many rows, then at the first with half as
# many more, with fewer draws than at the end of the rows. Columns of a Gram with buffered rows take longer to read.
FIRST_POSTERIOR = 128
WHILE_STREAMING: dict[str, Any] = {"tolerance": 0.1, "burn_in": 10}


@described(
    lambda problem: (problem.size is None) != (problem.method is None),
    size=Count(1) | None,
    method=Of(Method) | None,
    centred=Flag(),
    groups=Is(Groups, shared=True) | None,
)
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
    known = summary.horizon
    behind = max(-(-known // AT_FOLD) - until_fold, 0)  # what the next fold lacks
    fold = n + until_fold + -(-behind // summary.block_size) * summary.block_size
    return min(fold, n + 1 + known // (AT_FIRST if n < summary.block_size else AT_LATEST))


class SparseRegressor(WithMemory, Drifting):
    r"""Linear regression with few nonzero coefficients, from rows that stream in.

    It solves

    .. math:: \min_{\theta, b} \; \frac{1}{2 n} \sum_{i \le n} (y_i - b - x_i^\top \theta)^2
              \quad \text{subject to} \quad \|\theta\|_0 \le s

    over *all* rows so far, from summary statistics alone, and chooses s: there is nothing to tune. For a given s,
    ``fit`` is best-subset selection as ``abess.LinearRegression().fit(X, y)``, by forward selection, backward
    elimination and pairwise swaps. By default it averages over models (``thresher.posterior``) and keeps the shortest
    list of features that predicts as well as the average, up to its error. ``partial_fit`` chooses the support at fixed
    row counts. Between them the estimate is that of all rows so far on that support, computed when it is read.
    ``OnlineHardThresholding`` is the algorithm of the paper for the same problem.

    A row costs d^2 flops in blocks of BLAS-3; a choice of s features O(d s^2), after O(log n) of n rows. The posterior
    takes a millisecond for 200 features and some for 1000, whenever there are half as many more rows. Memory is 8 d^2
    bytes, a buffer of at most 256 rows and O(s^2), and does not grow but for O(s) at each choice.

    Parameters
    ----------
    sparsity : int or "auto", default="auto"
        How many features to keep, s; more than there are columns means all. With `groups` it counts groups.
        ``"auto"`` chooses it from the data.
    selection : {"posterior", "ebic", "cv"} or PosteriorSelection, Ebic or CrossValidation, default="posterior"
        How ``"auto"`` chooses: the shortest list that predicts like the posterior mean, the extended BIC, or
        cross-validation in the early rows. With `groups`, ``"posterior"`` is the extended BIC.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    groups : array-like of shape (n_features,), optional
        The group of each column, as integers or strings. Columns of a group (one-hot levels, lags of one signal)
        are kept or dropped together.
    dtype : {"float64", "float32"}, default="float64"
        Storage of the d x d co-moments; float32 halves the memory.
    estimate : {"sparse", "posterior_mean"}, default="sparse"
        What ``coef_`` is: zero outside the support, or the posterior mean of all rows so far, which is not sparse and
        predicts better while rows are few. It is computed when it is read. ``support_`` is the same for both.
    random_state : int, default=0
        Seed of the posterior.
    half_life : float or timedelta, optional
        Rows of age u count 2^(-u / half_life). A number counts rows, or seconds if ``partial_fit`` and ``fit`` are
        given ``times``; a timedelta needs them. It costs no memory and next to no time. By default all rows count
        equally.
    window : int, float or timedelta, optional
        How many of the last rows count, or seconds if there are ``times``. Up to a tenth more rows count, since rows
        leave in blocks. Not together with `half_life`. Memory is 112 d^2 bytes, and a row costs two
        to four times as much.
    exact_window : bool, default=False
        Let each row leave on its own. The rows in the window are kept, 8 (d + 3) bytes for each, or up to three times
        that with ``times``, and the matrix is not formed: choosing s features costs O(d s) for each row in the window.
    drift : {"auto", "full", None}, default="auto"
        What to do if the stream changes. ``"auto"``: once recent rows predict better than all rows, `coef_`,
        `intercept_` and ``predict`` follow recent rows (see Notes). ``"full"``: also choose features from recent rows,
        for streams in which other features begin to matter; it keeps 1024 rows instead of 128, 8 (d + 3) bytes each.
        None: all rows count equally. With `half_life` or `window`, ``"auto"`` has no effect and ``"full"`` is an error.
    horizon : int, default=32
        How many rows ahead predictions are for, rounded up to a multiple of 32. Recent rows must predict better at that
        distance.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients: zero outside the support. On it they are least squares, shrunk as the posterior asks for with
        ``selection="posterior"``; if drift was detected, those that follow recent rows. Read-only.
    intercept_ : float
        Intercept; 0.0 if ``fit_intercept=False``.
    support_ : ndarray of int
        Sorted indices of the features that were chosen; if drift was detected, also of others that matter in recent
        rows.
    drift_detected_ : bool
        Whether recent rows predict better than all rows, so that `coef_` follows them.
    effective_rows_ : float
        How many rows `coef_` effectively rests on; all, unless drift was detected.
    drift_history_ : DriftHistory
        Both, and the coefficients, at up to 256 moments. A list that prints as a table, with ``to_frame()``.
    inclusion_probabilities_ : ndarray of shape (n_features,)
        Probability that each feature matters, with ``selection="posterior"``, by the posterior from which the support
        comes. While rows stream in, that may not know the last third of them.
    sparsity_ : int
        The s in use: the one chosen, or `sparsity`, or the number of columns (or groups) if there are fewer.
    selection_ : Selection
        The last choice of s and its criterion for every s, with ``sparsity="auto"``.
    selection_history_ : History
        What was chosen when: rows, s, support and coefficients. A list that prints as a table, with ``to_frame()``.
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
    ``fit_summary`` and ``finish`` choose on all rows. The posterior is sampled at the first fold with 128 rows, at the
    first with half as many more, and so on, and by ``fit``, ``fit_summary`` and ``finish``. Between, features that the
    extended BIC chooses join its list, and those that it drops leave. Coefficients are ridge regression with the
    penalties that the last posterior implies. Reading an attribute never changes what comes later.

    With `half_life` or `window`, everything that depends on the number of rows, the criterion, the posterior, the noise
    and the intervals, takes the effective one, (sum w)^2 / sum w^2, about 2.9 half-lives; and the support is chosen
    again when 5 to 10 % of these have come in. ``times`` must not go back: late rows are refused, and nothing changes.

    With ``drift="auto"``, ``partial_fit`` also fits the kept features to rows that count 2^(-age / h), for half-lives h
    of 60, 250, 1000 and 4000 rows. Each fit differs from that of the next longer half-life by the most likely change:
    none, one of the intercept, of single coefficients, of all. One more fit, with a half-life of 15 rows, changes the
    intercept alone. A mixture weighs them by how well each predicted `horizon` rows ahead. It replaces the estimate of
    all rows when it has predicted better by two standard errors, and until it has stopped being better. Meanwhile the
    last 128 rows are kept. Features that forward selection finds in them are followed as well, unless `sparsity` or
    `groups` are given.

    Weights are updated every 32 rows; coefficients that are read include every row. It takes O(s^2) memory besides the
    rows kept, 8 (d + 3) bytes each, and O(s^2 + d) time per row. ``fit`` and ``fit_summary`` count all rows equally;
    rows that come later may be followed. ``summary`` shows the coefficients in use. Intervals and ``posterior`` are
    about all rows.

    With ``drift="full"``, the last 1024 rows are kept. Where the mean squared error has doubled, it asks whether other
    coefficients explain the last 16 to 192 rows, of which there must be two for each coefficient. If so, the fits above
    go on from these rows alone, and take over at once. Once drift was detected, other features are found every 32 rows.
    This takes O(1024 d) time per 32 rows; before, a row takes O(d).

    ``partial_fit`` gives bit-identical coefficients however the rows are cut into calls. Results do not depend on the
    scales of the columns, to rounding.

    References
    ----------
    M. Herbster and M. K. Warmuth (1998). Tracking the best expert. Machine Learning 32, 151-178: the mixture.

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
        "estimate": [StrOptions({"sparse", "posterior_mean"})],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        **WithMemory._parameter_constraints,
        **Drifting._parameter_constraints,
    }
    _schema = Schema(
        lambda model: follows(model._history, model.summary_.n_samples, model.n_features_in_),
        lambda model: model._next <= model.summary_.n_samples * (1 + 1 / AT_FIRST) + 1,
        lambda model: model._size <= model.n_features_in_,
        lambda model: not hasattr(model, "selection_") or model.selection_.n_samples <= model.summary_.n_samples,
        lambda model: (model._chooser is None) == (model._solved.method is None),
        lambda model: model._chooser is None or model._chooser.fits(model.summary_),
        lambda model: model._prequential.fits(model.summary_),
        lambda model: all(one is None or one.fits(model.n_features_in_) for one in (model._listed, model._scheduled)),
        _history=List(Is(Record)),
        _prequential=Is(Prequential),
        _support=Array("support", dtype="i8", least=0, below="n_features_in_", ascending=True, shared=True),
        _next=Count(1),
        _solved=Is(_Problem),
        _size=Count(),
        _chooser=Either(Is(CrossValidationChooser), Of(Criterion), Nothing()),
        selection_=Maybe(Is(Selection, shared=True)),
        _ridge=Array("support", least=0.0, shared=True) | None,
        _listed=Is(ShortList, shared=True) | None,
        _scheduled=Is(ShortList, shared=True) | None,
        _next_posterior=Count(1),
    )
    _chooser: Chooser | None
    _size: int
    _next: int
    _ridge: Floats | None
    _listed: ShortList | None  # the last list of a posterior, which the support is, or has followed from
    _scheduled: ShortList | None  # the same of the stream, whatever `finish` has done
    _next_posterior: int
    _estimated: _Estimate | None
    # Computed when it is read, so not part of what is saved.
    _transient: ClassVar[tuple[str, ...]] = (*Drifting._transient, "_estimated")

    def __init__(
        self,
        sparsity: int | str = "auto",
        *,
        selection: str | Method = "posterior",
        fit_intercept: bool = True,
        groups: ArrayLike | None = None,
        dtype: str = "float64",
        estimate: str = "sparse",
        random_state: int = 0,
        half_life: float | timedelta | None = None,
        window: float | timedelta | None = None,
        exact_window: bool = False,
        drift: str | None = "auto",
        horizon: int = 32,
    ) -> None:
        self.sparsity = sparsity
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.groups = groups
        self.dtype = dtype
        self.estimate = estimate
        self.random_state = random_state
        self.half_life = half_life
        self.window = window
        self.exact_window = exact_window
        self.drift = drift
        self.horizon = horizon

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
            self._start(self._own(summary))
            if not isinstance(self._chooser, CrossValidationChooser):
                raise ValueError("folds go with sparsity='auto' and selection='cv'.")
            self._chooser.take(summary, folds)
            return self._settle()

    @locked
    def finish(self) -> Self:
        """Choose the support on all rows so far: the place where a stream ends, or pauses."""
        check_is_fitted(self, "summary_")
        with InterruptsDeferred(whole=True):  # an interrupt falls after the choice
            with self._unchanged_by_failure():
                self._check_parameters()
                self._adopt_parameters()
            due, scheduled, due_posterior = self._next, self._scheduled, self._next_posterior
            if self._chooser is not None:
                self._chooser.force()
            self._select(final=True)
            if self.summary_.n_samples < due:  # what comes later does not depend on this
                self._next, self._scheduled, self._next_posterior = due, scheduled, due_posterior
            self._estimate()
        return self

    def _settle(self, samples: Samples | None = None) -> Self:
        if samples is not None and self._chooser is not None:
            self._chooser.absorb(self.summary_, samples)
        self.finish()
        self._follow_support()
        return self

    def _widen(self, n_features: int) -> None:
        self.summary_ = self.summary_.grown(n_features)
        self._chooser = None if self._chooser is None else self._chooser.widened(n_features)
        self._follower = None if self._follower is None else self._follower.widened(self.summary_)
        self._forget_features(n_features)
        self._estimated, self._solved = None, self._problem()
        self._size = self._size if self._solved.size is None else self._solved.size

    def _start(self, summary: Gram) -> None:
        self.summary_ = summary
        self.__dict__.pop("selection_", None)
        self.__dict__.pop("_warned_of", None)
        self.__dict__.pop("_warned_of_vanishing", None)
        self._history: list[Record] = []
        self._prequential = Prequential()
        self._support: Integers = np.zeros(0, np.intp)
        self._ridge = self._estimated = self._sampled = self._follower = None
        self._next = 1
        self._forget_posterior()
        self._solved = self._problem()
        self._adopted = self._parameters()
        self._size = self._solved.size or 0
        self._chooser = None if self._solved.method is None else self._solved.method.chooser(0)

    def _new_summary(self, rows: Rows) -> Gram:
        return Gram(rows.X.shape[1], self.dtype, **self._memory())

    def _forget_posterior(self) -> None:
        self._listed = self._scheduled = None
        self._next_posterior = FIRST_POSTERIOR

    def _problem(self) -> _Problem:
        groups = self._checked_groups(self.summary_.n_features)
        size, method = self._given_size(groups), None
        if size is None:
            method = METHODS[self.selection] if isinstance(self.selection, str) else self.selection
            if isinstance(method, NoiseEdge):
                raise ValueError("selection=NoiseEdge() chooses ranks; use selection='ebic' for features.")
            if isinstance(method, PosteriorSelection):  # which knows no groups
                method = replace(method, random_state=int(self.random_state)) if groups is None else METHODS["ebic"]
        self._check_memory(self.summary_, method)
        self._check_drift(self.summary_)
        if groups is not None and self.estimate == "posterior_mean":
            raise ValueError("The posterior mean does not know groups; use estimate='sparse' with groups.")
        return _Problem(size, method, bool(self.fit_intercept), groups)

    def _adopt_parameters(self) -> None:
        """Let parameters that were set since the last call take effect: the support is then chosen again."""
        if self._as_adopted():
            return
        problem, before = self._problem(), self._solved
        self._adopted = self._parameters()
        self._adopt_drift(problem == before)
        if problem == before:
            return
        if problem.method != before.method or problem.groups is not before.groups:
            self._chooser = None if problem.method is None else problem.method.chooser(0)
            if self._chooser is not None:
                self._chooser.check(self.summary_)
            self.__dict__.pop("selection_", None)
            self._forget_posterior()
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
                if self._follower is not None:
                    end = min(end, start + self._follower.rows_until_look(summary))
                if summary.window is not None:
                    end = start + self._rows_until_close(rows.cut(start, end))
                piece = rows.cut(start, end)
                with lock_of(summary):
                    summary.put(piece.dense(), piece.y, piece.weights, piece.times)
                    full = summary.rows_until_fold == 0
                    if self._follower is not None:
                        self._follower.absorb(summary)
                    if full:
                        self._prequential.score(summary, self._followed_errors())
                        summary.fold_if_full()
                        self._follow_fold()
                if chooser is not None and chooser.needs_rows:
                    with InterruptsDeferred(whole=True):
                        chooser.absorb(summary, piece)
                if summary.n_samples == self._next:
                    self._select()
                if full:
                    self._follow()
                start = end
                interrupts.check()

    def _follow(self) -> None:
        """Let the estimate predict the rows to come, if there are enough more rows than when the last one began."""
        if self.summary_.n_samples >= self._prequential.due:
            now = self._estimate()
            self._prequential.follow(now.coef, now.intercept, self.summary_, self._solved.centred)

    def _rows_until_close(self, rows: Rows) -> int:
        """How many of these rows come before some leave a window; if none do, let those leave first."""
        summary = self.summary_
        count = summary.rows_until_close(len(rows), rows.times)
        if count:
            return count
        self._prequential.score(summary)
        self._follow()
        with lock_of(summary):
            summary.close(rows.times)
        return summary.rows_until_close(len(rows), rows.times)

    def _select(self, final: bool = False) -> None:
        """Choose the support on the summary as it stands; `final` says whether rows may end here."""
        summary, family, values = self.summary_, self._family, np.zeros(0)
        self._ridge = self._listed = None
        if not summary.weight > 0.0:  # nothing counts any more
            self._support = np.zeros(0, np.intp)
        else:
            self._warn_of_vanishing(summary.sums())
            choice = None if self._chooser is None else self._chooser.choose(family, summary)
            path = None
            if choice is not None:
                path, self.selection_ = choice
                self._size = self.selection_.chosen
            if isinstance(self._solved.method, Criterion) and isinstance(path, SubsetPath):
                self._support, values, _ = path.best
            else:
                self._support, values = family.best(summary, self._size)
            if isinstance(self._solved.method, PosteriorSelection):
                values = self._shorten(self._solved.method, values, final)
        self._estimated = None
        self._next = next_selection(summary)
        self._support.setflags(write=False)  # records share it
        note(self._history, summary, self._size, self._support, values)
        if not final:
            self._follow_support()

    def _shorten(self, method: PosteriorSelection, values: Floats, final: bool) -> Floats:
        """Turn the support of the criterion, with these coefficients, into the list of the posterior with its own."""
        summary, centred = self.summary_, self._solved.centred
        n, folded = summary.n_samples, summary.n_folded == summary.n_samples or summary.forgets
        due = final or (folded and n >= self._next_posterior)
        if due:
            seed = method.random_state
            now = (
                self._sample()
                if final
                else posterior(summary, fit_intercept=centred, random_state=seed, **WHILE_STREAMING)
            )
            self._scheduled = method.short_list(summary, now, self._support, centred)
            self._next_posterior = n + max(summary.horizon // 2, 1)
            self.selection_ = self._scheduled.selection
        self._listed = self._scheduled
        if self._listed is None:
            return values
        chosen = self._support
        self._support, ridge = (self._listed.support, self._listed.ridge) if due else self._listed.followed(chosen)
        self._size = len(self._support)
        if not ridge.any() and np.array_equal(chosen, self._support):
            return values
        self._ridge = ridge
        return least_squares(summary, self._support, centred, ridge).values

    # -- the estimate ----------------------------------------------------------------------------------

    @property
    def _family(self) -> SubsetFamily:
        return SubsetFamily(self._solved.centred, self._solved.groups)

    @locked
    def _estimate(self) -> _Estimate:
        """Least squares on the support, shrunk as the posterior asks for, computed once for all rows so far."""
        if "summary_" not in self.__dict__:
            check_is_fitted(self, "summary_")
        now, summary, support = self.__dict__.get("_estimated"), self.summary_, self._support
        n = summary.n_samples
        if now is None or now.n_samples != n or now.support is not support:
            known = summary.weight > 0.0
            fit = least_squares(summary, support, self._solved.centred, self._ridge) if known else NOTHING
            coef = fit.coef(summary.n_features)
            coef.setflags(write=False)
            now = self._estimated = _Estimate(n, support, coef, float(fit.intercept))
        return now

    def posterior(self) -> Posterior:
        """The posterior of all rows so far: mean, inclusion probabilities, credible intervals, noise and risk.

        As ``thresher.posterior(model.summary_)``; computed once, until there are more rows. It does not know groups.
        """
        check_is_fitted(self, "summary_")
        check_summary(self.summary_, Gram)
        return self._sample()

    @property
    @locked
    def inclusion_probabilities_(self) -> Floats:
        """Probability that each feature matters, from the last posterior that the support comes from."""
        check_is_fitted(self, "summary_")
        if self._listed is None:
            raise AttributeError(
                f"inclusion_probabilities_ needs selection='posterior' without groups, and {FIRST_POSTERIOR} rows or a "
                "call of finish(); model.posterior() has those of all rows so far."
            )
        known = self._listed.inclusion_probabilities
        result = np.zeros(self.n_features_in_)  # columns that came later are not known
        result[: len(known)] = known
        return result

    @property
    @locked
    def support_(self) -> Integers:
        """Sorted indices of the features that were chosen; of the nonzero coefficients, if they are sparse."""
        return np.flatnonzero(self._followed()[0] if self.drift_detected_ else self._sparse_coef)

    @property
    def _sparse_coef(self) -> Floats:
        return self._estimate().coef

    @property
    def _sparse_intercept(self) -> float:
        return self._estimate().intercept

    @property
    def _chosen_by(self) -> str | None:
        return super()._chosen_by if self._listed is None else "posterior"

    @property
    def _scored(self) -> Prequential:
        return self._prequential

    @property
    @locked
    def coef_(self) -> Floats:  # type: ignore[override]
        """Coefficients; zero outside the support, unless they are the posterior mean."""
        if self.drift_detected_:
            return self._followed()[0]
        return self._mean().coef if self.estimate == "posterior_mean" else self._estimate().coef

    @property
    @locked
    def intercept_(self) -> float:  # type: ignore[override]
        """The intercept; zero if there is none."""
        if self.drift_detected_:
            return self._followed()[1]
        return self._mean().intercept if self.estimate == "posterior_mean" else self._estimate().intercept

    def _mean(self) -> Posterior | _Estimate:
        """The posterior mean, once there are rows that count."""
        now = self._estimate()
        return self._sample() if self.summary_.weight > 0.0 else now

    @property
    @locked
    def sparsity_(self) -> int:
        """The size in use."""
        check_is_fitted(self, "summary_")
        return self._size

    @property
    def selection_history_(self) -> History:
        """What was chosen when, while rows came in."""
        check_is_fitted(self, "summary_")
        return History(self._history, getattr(self, "feature_names_in_", None))
