"""Streaming regression of many responses at once."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher._utils.warnings import warn_caller
from thresher.estimators._online import OnlineRows
from thresher.estimators._ranked import Candidates, Ranked
from thresher.online.samples import Rows
from thresher.online.step_size import StepSize
from thresher.selection.criteria import Method
from thresher.selection.response_ranks import ResponseRanks, ResponseRows
from thresher.selection.selecting import SelectingRounds
from thresher.solvers.rank_path import RankPath
from thresher.sparsity.rank import Rank
from thresher.summaries.multiresponse import MultiResponse

Floats = NDArray[np.float64]


class ReducedRankRegressor(MultiOutputMixin, RegressorMixin, Ranked, OnlineRows):  # type: ignore[misc]
    r"""Linear regression of q responses on p features through few directions, kept current while rows stream in.

    After every row its coefficients are the minimum, over *all* rows so far, of

    .. math:: \min_{B, b} \; \frac{1}{2 n} \sum_{i \le n} \|y_i - b - B^\top x_i\|^2
              \quad \text{subject to} \quad \operatorname{rank}(B) \le r

    which is reduced-rank regression in closed form (Izenman, 1975), and at full rank
    ``sklearn.linear_model.LinearRegression``. Until there are twice as many rows as features, where least squares is
    all variance, and where features are collinear, it takes a few projected gradient steps towards the minimum instead.
    With `row_sparsity` the constraint is that at most s features have coefficients, the same ones for all responses,
    and there are gradient steps only.

    A row costs O(p^2 + p q), every 128 rows or more O(p^3) and a call O(p q^2 + q^3) besides; a gradient step costs
    p^2 q. Memory is 8 (p + q)^2 bytes, and 8 p^2 more for the minimum; it does not grow.

    Parameters
    ----------
    rank : int or "auto", default="auto"
        Rank of the coefficients, r. ``"auto"`` chooses it from the data, again whenever there are a tenth more rows.
    selection : {"noise_edge", "ebic", "cv"} or a NoiseEdge, Ebic or CrossValidation, default="noise_edge"
        How ``"auto"`` chooses: a further rank must explain more than it could make of noise; by the BIC, which wants
        more; or by cross-validation on the initial batch or in the early rounds, which keeps more summaries.
    row_sparsity : int, optional
        Keep this many features for all responses together, instead of a low rank; more than there are means all.
    n_steps : int, default=5
        Projected steps per round, K, where there are any.
    step_size : float, callable or "auto", default="auto"
        Step size eta. With ``"auto"``, rounds end at the minimum where that is known in closed form, and elsewhere
        find, at each step, a size for which the loss provably does not rise. With a number there are only steps of this
        size. A callable is called with the round t (from one) and the step k (from zero).
    n_warmup : int, default=0
        Rows absorbed before the first round, t0.
    round_size : int, default=1
        Rows per round. Rows short of a full round wait for the next call, or for ``finish``.
    fit_intercept : bool, default=True
        Whether the model has intercepts: the best ones for all rows so far, at every round.
    standardize : bool, default=True
        Whether steps and projections are made in units of each feature's standard deviation over all rows so far
        (root mean square without an intercept). Coefficients are always in the units of the data.
    tol : float, default=1e-8
        ``fit`` stops when a round moves the coefficients less than this, relatively.
    max_iter : int, default=1000
        ``fit`` stops after this many rounds at the latest.

    Attributes
    ----------
    coef_ : ndarray of shape (q, p), or (p,) if y has one dimension
        Coefficients, as in scikit-learn: the transpose of B.
    factors_ : tuple of ndarray
        U (p, r), singular values (r,) and V' (r, q) of B.
    intercept_ : ndarray of shape (q,), or float
        Intercepts; zero if ``fit_intercept=False``.
    rank_ : int
        The r in use: the one chosen, or `rank`; the smaller of p and q with `row_sparsity`.
    selection_ : Selection
        The last choice of r and its criterion for every r, with ``rank="auto"``.
    selection_history_ : list of Record
        Rows and r whenever there were a tenth more rows.
    support_ : ndarray of int
        Sorted indices of the features with coefficients.
    step_size_ : float
        The last step taken.
    n_samples_seen_, n_rounds_ : int
        Rows absorbed and rounds done.
    n_iter_ : int
        Rounds done by the last ``fit``; 0 if there was none.
    summary_ : MultiResponse
        What the rows left behind.
    n_features_in_ : int
        p.
    feature_names_in_ : ndarray of str
        Column names, if X had them.

    Notes
    -----
    Rows count by their weights. The minimum is kept from the first choice of a rank on, or from the first fold of the
    summary (every 128 rows or more), at which there are rows enough. Features count as collinear if one keeps less than
    1e-4 of its standard deviation beside the others. `standardize` and `n_steps` have no say in the minimum.

    ``partial_fit`` gives bit-identical coefficients however the rows are cut into calls. With ``fit_intercept=False``,
    ``standardize=False`` and a float `step_size` they are the iterates of Algorithm 1 to rounding. Responses are
    weighed as they are: scale them first if their units differ.

    References
    ----------
    S. Yang and Q. Sun (2026). Online Generalized Sparse Regression: How Does Overparametrization Help?

    A. J. Izenman (1975). Reduced-rank regression for the multivariate linear model. Journal of Multivariate
    Analysis 5(2), 248-264.

    R. L. Plackett (1950). Some theorems in least squares. Biometrika 37, 149-157.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Ranked._parameter_constraints,
        "row_sparsity": [Interval(Integral, 1, None, closed="left"), None],
        "fit_intercept": ["boolean"],
        "standardize": ["boolean"],
    }
    _summary_type = MultiResponse
    _one_response: bool
    _parts = 10  # a path is in closed form

    def __init__(
        self,
        rank: int | str = "auto",
        *,
        selection: str | Method = "noise_edge",
        row_sparsity: int | None = None,
        n_steps: int = 5,
        step_size: StepSize = "auto",
        n_warmup: int = 0,
        round_size: int = 1,
        fit_intercept: bool = True,
        standardize: bool = True,
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.rank = rank
        self.selection = selection
        self.row_sparsity = row_sparsity
        self.n_steps = n_steps
        self.step_size = step_size
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter

    # -- fitting ---------------------------------------------------------------------------------------

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Rows:
        rows = self._check_rows(X, y, sample_weight, reset, np.dtype(np.float64), multi_output=True)
        responses = rows.y
        if not reset:
            q = self.summary_.n_responses
            if responses.shape[1:] != (() if self._one_response else (q,)):
                before = "one dimension" if self._one_response else f"{q} responses per row"
                raise ValueError(f"y has shape {responses.shape}; before it had {before}.")
        self._one_response = responses.ndim == 1
        return Rows(rows.X, np.ascontiguousarray(responses.reshape(len(responses), -1)), rows.weights)

    def _new_summary(self, rows: Rows) -> MultiResponse:
        return MultiResponse(rows.X.shape[1], rows.y.shape[1])

    def _take_summary(self, summary: MultiResponse) -> None:
        self._one_response = False
        self._forget_features(summary.n_features)

    def _problem(self) -> Any:
        p, q = self.summary_.n_features, self.summary_.n_responses
        by_rows, size, method = self.row_sparsity is not None, None, None
        if self.row_sparsity is None:
            size, method = self._asked(min(p, q))
        else:
            size = min(self.row_sparsity, p)
            if self.row_sparsity not in (size, getattr(self, "_warned_of", None)):
                self._warned_of = self.row_sparsity
                warn_caller(f"row_sparsity={self.row_sparsity} exceeds the number of columns; using {p}.", UserWarning)
        return size, method, by_rows, bool(self.fit_intercept), bool(self.standardize)

    def _family(self) -> ResponseRanks:
        _, _, by_rows, centred, standardized = self._solved
        return (ResponseRows if by_rows else ResponseRanks)(centred, standardized)

    def _new_rounds(self) -> SelectingRounds:
        return self._selecting(*self._solved[:2])

    def _show_path(self, path: RankPath, criterion: Floats) -> Candidates:
        coefs = [path.coef(rank).T for rank in path.sizes]
        loss = path.loss * self.summary_.n_responses
        return Candidates(path.sizes, loss, criterion, [coef[0] for coef in coefs] if self._one_response else coefs)

    def _publish_estimate(self) -> None:
        side = min(self.summary_.n_features, self.summary_.n_responses)
        self.rank_ = side if self._solved[2] else min(self._rounds.size, side)
        coef, intercept = self._rounds.inner.coef.T.copy(), self._rounds.inner.intercept.copy()
        if not self.fit_intercept:
            intercept[:] = 0.0
        self.coef_ = coef[0] if self._one_response else coef
        self.intercept_ = float(intercept[0]) if self._one_response else intercept

    # -- using the model -------------------------------------------------------------------------------

    @property
    def factors_(self) -> tuple[Floats, Floats, Floats]:
        """U, singular values and V' of B; the largest entry of each column of U is positive."""
        check_is_fitted(self, "coef_")
        return Rank(self.rank_).factors(np.atleast_2d(self.coef_).T)

    @property
    def support_(self) -> NDArray[np.intp]:
        """Sorted indices of the features with coefficients."""
        check_is_fitted(self, "coef_")
        return np.flatnonzero(np.atleast_2d(self.coef_).any(axis=0))

    def predict(self, X: Any) -> Floats:
        """Predicted responses.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n, p)

        Returns
        -------
        ndarray of shape (n, q), or (n,) if y had one dimension
        """
        check_is_fitted(self, "coef_")
        rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        result: Floats = safe_sparse_dot(rows, self.coef_.T, dense_output=True) + self.intercept_
        return result

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
