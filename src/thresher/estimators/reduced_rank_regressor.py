"""Regression of many responses at once, as a scikit-learn estimator."""

import sys
from collections.abc import Iterable, Sequence
from copy import copy
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher._utils.arrays import Floats
from thresher._utils.checks import refuse_masked
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.locks import locked
from thresher.estimators._base import FEWEST_TO_WARN
from thresher.estimators._candidates import Candidates
from thresher.estimators._exporting import LinearExport
from thresher.estimators._ranked import Ranked
from thresher.estimators._tables import TableRows
from thresher.estimators._with_memory import WithMemory
from thresher.io.schema import Count, Either, Flag, Is, Labels, Maybe, Nothing, Of, Schema, described
from thresher.online.samples import Rows, Samples
from thresher.selection.criteria import Chooser, Criterion, Method, Selection
from thresher.selection.cross_validation import CrossValidationChooser
from thresher.selection.response_ranks import ResponseRanks
from thresher.solvers.rank_path import RankPath
from thresher.solvers.reduced_rank import ReducedRankPath
from thresher.sparsity.rank import Rank
from thresher.summaries.multiresponse import MultiResponse


@described(
    lambda problem: (problem.rank is None) != (problem.method is None),
    rank=Count(1) | None,
    method=Of(Method) | None,
    centred=Flag(),
)
class _Problem(NamedTuple):
    """What is solved."""

    rank: int | None  # None if it is chosen
    method: Method | None
    centred: bool


class _Estimate(NamedTuple):
    """What is read from the outside, all of one moment."""

    n_samples: int
    problem: _Problem
    rank: int
    selection: Selection | None
    coef: Floats  # q x p
    intercept: Floats


class ReducedRankRegressor(
    LinearExport,
    WithMemory,
    MultiOutputMixin,  # type: ignore[misc]
    RegressorMixin,  # type: ignore[misc]
    Ranked,
    TableRows,
):
    r"""Linear regression of q responses on p features through few directions, from rows that stream in.

    It solves

    .. math:: \min_{B, b} \; \frac{1}{2 n} \sum_{i \le n} \|y_i - b - B^\top x_i\|^2
              \quad \text{subject to} \quad \operatorname{rank}(B) \le r

    over *all* rows so far, from summary statistics alone and in closed form (Izenman, 1975), and chooses r: there is
    nothing to tune. At full rank it is ``sklearn.linear_model.LinearRegression().fit(X, Y)``. While there are fewer
    than ten rows for each feature, a ridge is added whose strength is chosen by generalised cross-validation.

    A row costs (p + q)^2 flops in blocks of BLAS-3. The estimate is computed when it is read, in O(p^3 + p q^2).
    Memory is 8 (p + q)^2 bytes and does not grow.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Rank of the coefficients, r. ``"auto"`` chooses it from the data.
    selection : {"noise_edge", "ebic", "cv"} or a NoiseEdge, Ebic or CrossValidation, default="noise_edge"
        How ``"auto"`` chooses: a further rank must explain more than it could make of noise; by the BIC, which wants
        more; or by cross-validation on all rows, which keeps a summary for each fold.
    fit_intercept : bool, default=True
        Whether the model has intercepts.
    half_life : float or timedelta, optional
        Rows of age u count 2^(-u / half_life). A number counts rows, or seconds if ``partial_fit`` and ``fit`` are
        given ``times``; a timedelta needs them.
    window : int, float or timedelta, optional
        Only the last so many rows count, or those of the last so many seconds if there are ``times``, and up to a tenth
        more. Not together with `half_life`. Memory is 112 (p + q)^2 bytes.
    exact_window : bool, default=False
        Let each row leave on its own. The rows in the window are kept, 8 (p + q + 3) bytes for each.

    Attributes
    ----------
    coef_ : ndarray of shape (q, p), or (p,) if y has one dimension
        Coefficients, as in scikit-learn: the transpose of B. Read-only.
    factors_ : tuple of ndarray
        U (p, r), singular values (r,) and V' (r, q) of B.
    intercept_ : ndarray of shape (q,), or float
        Intercepts; zero if ``fit_intercept=False``.
    rank_ : int
        The r in use: the one chosen, or `rank`.
    selection_ : Selection
        The choice of r and its criterion for every r, with ``rank="auto"``.
    n_samples_seen_ : int
        Rows absorbed.
    summary_ : MultiResponse
        The summary of all rows so far.
    n_features_in_ : int
        p.
    feature_names_in_ : ndarray of str
        Column names, if X had them.

    Notes
    -----
    What is read is a function of the summary, and of the parameters at the last call of a method that fits. It is
    bit-identical however the rows are cut into calls. ``partial_fit``, ``fit`` and ``fit_summary`` give the same.

    Rows count by their weights. Features that are collinear count once: with p' independent ones, there is a ridge
    while the weights add up to less than 10 p'. Its penalty is on the coefficients of features with standard deviation
    one, so the estimate does not depend on their scales; each rank has its own strength. Where least squares is not
    unique, its solution is the shortest one for such features. Responses are weighed as they are: scale them first if
    their units differ.

    `n_samples` of a ``CrossValidation`` is not used, since all rows are.

    References
    ----------
    A. J. Izenman (1975). Reduced-rank regression for the multivariate linear model. Journal of Multivariate
    Analysis 5(2), 248-264.

    A. Mukherjee and J. Zhu (2011). Reduced rank ridge regression and its kernel extensions. Statistical Analysis and
    Data Mining 4(6), 612-622.

    G. H. Golub, M. Heath and G. Wahba (1979). Generalized cross-validation as a method for choosing a good ridge
    parameter. Technometrics 21(2), 215-223.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import ReducedRankRegressor
    >>> rng = np.random.default_rng(0)
    >>> B = np.outer([1.0, 2.0, 0.0], [1.0, -1.0])
    >>> X = rng.standard_normal((500, 3))
    >>> Y = X @ B + 3.0 + 0.1 * rng.standard_normal((500, 2))
    >>> model = ReducedRankRegressor().partial_fit(X, Y)
    >>> model.rank_
    1
    >>> model.coef_.round(1) + 0.0
    array([[ 1.,  2.,  0.],
           [-1., -2.,  0.]])
    >>> model.intercept_.round(1)
    array([3., 3.])
    """

    _schema = Schema(
        lambda model: model.n_features_in_ == model.summary_.n_features,
        lambda model: not model._one_response or model.summary_.n_responses == 1,
        lambda model: (model._chooser is None) == (model._solved.method is None),
        lambda model: model._chooser is None or model._chooser.fits(model.summary_),
        n_features_in_=Count(1),
        feature_names_in_=Maybe(Labels("n_features_in_")),
        _columns_by_name=Maybe(Flag()),
        summary_=Is(MultiResponse, shared=True),
        _one_response=Flag(),
        _solved=Is(_Problem),
        _chooser=Either(Is(CrossValidationChooser), Of(Criterion), Nothing()),
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Ranked._parameter_constraints,
        "fit_intercept": ["boolean"],
        **WithMemory._parameter_constraints,
    }
    _summary_type = MultiResponse
    summary_: MultiResponse
    _one_response: bool
    _solved: _Problem
    _chooser: Chooser | None
    _estimated: _Estimate | None
    # Computed when it is read, so not part of what is saved.
    _transient: ClassVar[tuple[str, ...]] = (*Ranked._transient, "_estimated")

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        selection: str | Method = "noise_edge",
        fit_intercept: bool = True,
        half_life: float | timedelta | None = None,
        window: float | timedelta | None = None,
        exact_window: bool = False,
    ) -> None:
        self.rank = rank
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.half_life = half_life
        self.window = window
        self.exact_window = exact_window

    # -- fitting ---------------------------------------------------------------------------------------

    @locked
    def finish(self) -> Self:
        """Compute the estimate now, with the parameters as they are."""
        check_is_fitted(self, "summary_")
        with self._unchanged_by_failure():
            self._check_parameters()
            self._adopt_parameters()
            self._estimate()
        return self

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, features: Sequence[str] | None = None, times: Any = None
    ) -> Self:
        """Learn from more rows.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n, p), or Arrow table
            An Arrow table is any object with ``__arrow_c_stream__``; see ``SparseRegressor.partial_fit``.
        y : array-like of shape (n, q) or (n,), or list of str, or str
            Responses; the names of their columns if X is an Arrow table.
        sample_weight : array-like of shape (n,), or str, optional
            Non-negative; a weight of two counts a row twice. The name of the column if X is an Arrow table.
        features : list of str, optional
            Columns of an Arrow table. By default those of the last call; in the first one, all other columns of
            numbers, and all levels of columns with an Arrow dictionary.
        times : array-like of shape (n,), or str, optional
            When each row was, with `half_life` or `window`: numbers of seconds, or dates and times. They must not go
            back. The name of the column if X is an Arrow table.

        Returns
        -------
        self
        """
        return super().partial_fit(X, y, sample_weight, features, times)

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Rows:
        rows = self._check_rows(X, y, sample_weight, reset, self._storage(), multi_output=True)
        return self._with_responses(rows, reset)

    def _with_responses(self, rows: Rows, reset: bool) -> Rows:
        responses = rows.y
        if not reset:
            q = self.summary_.n_responses
            if responses.shape[1:] != (() if self._one_response else (q,)):
                before = "one dimension" if self._one_response else f"{q} responses per row"
                raise ValueError(f"y has shape {responses.shape}; before it had {before}.")
        self._one_response = responses.ndim == 1
        return Rows(rows.X, np.ascontiguousarray(responses.reshape(len(responses), -1)), rows.weights, rows.times)

    def _learn(self, rows: Rows, names: Any = None) -> None:
        with self._unchanged_by_failure():
            if not hasattr(self, "summary_"):
                self._start(self._new_summary(rows))
            self._adopt_parameters()
            rows = self._timed(rows, rows.times)
        self._absorb(rows, None)
        if rows.weights is not None:
            self._warn_of_weights(rows.weights, FEWEST_TO_WARN)

    def _storage(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    def _new_summary(self, rows: Rows) -> MultiResponse:
        return MultiResponse(rows.X.shape[1], rows.y.shape[1], **self._memory())

    def _take_summary(self, summary: MultiResponse) -> None:
        self._one_response = False
        super()._take_summary(summary)

    def _start(self, summary: MultiResponse) -> None:
        self.summary_ = summary
        self._estimated = None
        self._solved = self._problem()
        self._adopted = self._parameters()
        self._chooser = self._new_chooser()

    def _problem(self) -> _Problem:
        rank, method = self._asked(min(self.summary_.n_features, self.summary_.n_responses))
        self._check_memory(self.summary_, method)
        return _Problem(rank, method, bool(self.fit_intercept))

    def _new_chooser(self) -> Chooser | None:
        method = self._solved.method
        return None if method is None else method.chooser(sys.maxsize)  # no choice is final

    def _adopt_parameters(self) -> None:
        """Let parameters that were set since the last call take effect."""
        if self._as_adopted():
            return
        problem, before = self._problem(), self._solved
        self._adopted = self._parameters()
        if problem == before:
            return
        self._solved = problem
        if problem.method != before.method:
            self._chooser = self._new_chooser()
            if self._chooser is not None:
                self._chooser.check(self.summary_)

    def _settle(self, samples: Samples | None = None) -> Self:
        if samples is not None and self._chooser is not None and self._chooser.needs_rows:
            self._chooser.absorb(self.summary_, samples)
        self._estimate()
        return self

    def _absorb(self, rows: Rows, plan: None) -> None:
        chooser = self._chooser
        watched = chooser is not None and chooser.needs_rows
        with InterruptsDeferred(whole=watched):  # otherwise an interrupt falls between blocks
            self.summary_.absorb_checked(rows.X, rows.y, rows.weights, rows.times)
            if chooser is not None and watched:
                chooser.absorb(self.summary_, rows)

    # -- the estimate ----------------------------------------------------------------------------------

    def _family(self) -> ResponseRanks:
        return ResponseRanks(self._solved.centred)

    def _show_path(self, path: RankPath, criterion: Floats) -> Candidates:
        coefs = [path.coef(rank).T for rank in path.sizes]
        loss = path.loss * self.summary_.n_responses
        return Candidates(path.sizes, loss, criterion, [coef[0] for coef in coefs] if self._one_response else coefs)

    @locked
    def _estimate(self) -> _Estimate:
        """The estimate for all rows so far, computed once."""
        check_is_fitted(self, "summary_")
        now, n, problem = self.__dict__.get("_estimated"), self.summary_.n_samples, self._solved
        if now is None or now.n_samples != n or now.problem is not problem:
            now = self._estimated = self._computed(n, problem)
        return now

    def _computed(self, n: int, problem: _Problem) -> _Estimate:
        p, q = self.summary_.n_features, self.summary_.n_responses
        if self.summary_.weight == 0.0:
            return _Estimate(n, problem, problem.rank or 1, None, np.zeros((q, p)), np.zeros(q))
        if problem.rank is not None:
            path, selection, rank = self._family().path(self.summary_, problem.rank), None, problem.rank
        else:
            chooser = copy(self._chooser)  # what is read must not change what comes later
            assert chooser is not None
            chooser.force()
            choice = chooser.choose(self._family(), self.summary_)
            assert choice is not None
            assert isinstance(choice[0], ReducedRankPath)
            path, selection, rank = choice[0], choice[1], choice[1].chosen
        coef = path.coef(min(rank, int(path.sizes[-1])))
        intercept = path.intercept(coef)
        coef.setflags(write=False)
        return _Estimate(n, problem, rank, selection, coef.T, intercept)

    @property
    def coef_(self) -> Floats:
        """Coefficients, one row per response."""
        coef = self._estimate().coef
        return coef[0] if self._one_response else coef

    @property
    def intercept_(self) -> Floats | float:
        """Intercepts, one per response; zero if there are none."""
        intercept = self._estimate().intercept
        return float(intercept[0]) if self._one_response else intercept

    @property
    def rank_(self) -> int:
        """The rank in use."""
        return self._estimate().rank

    @property
    def selection_(self) -> Selection:
        """The choice of the rank."""
        selection = self._estimate().selection
        if selection is None:
            raise AttributeError("selection_ is known with rank='auto', once there are rows.")
        return selection

    @property
    def factors_(self) -> tuple[Floats, Floats, Floats]:
        """U, singular values and V' of B; the largest entry of each column of U is positive."""
        now = self._estimate()
        return Rank(now.rank).factors(now.coef.T)

    def predict(self, X: Any) -> Floats:
        """Predicted responses.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n, p), or Arrow table
            Columns of an Arrow table are found by name; others are ignored. A frame of pandas or polars is such a
            table if the model was fitted to one.

        Returns
        -------
        ndarray of shape (n, q), or (n,) if y had one dimension
        """
        now = self._estimate()
        if self._predicted_by_name(X):
            blocks: Iterable[Any] = self._table_to_predict(X)
        else:
            refuse_masked(X=X)
            blocks = [validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])]
        result: Floats = np.concatenate(
            [safe_sparse_dot(rows, now.coef.T, dense_output=True) + now.intercept for rows in blocks]
        )
        return result[:, 0] if self._one_response else result

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
