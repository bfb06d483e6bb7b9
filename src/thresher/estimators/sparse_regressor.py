"""Streaming sparse linear regression as a scikit-learn estimator."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher._checks import check_range, check_weights
from thresher._warnings import warn_caller
from thresher.estimators._plain import is_plain
from thresher.rounds.sparse import SparseRounds
from thresher.rounds.step_size import StepSize, safe_step
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]

DEFAULT_SPARSITY = 10


class SparseRegressor(SelectorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Linear regression with at most s nonzero coefficients, kept current while rows stream in.

    After every row it takes a few hard-thresholding steps towards

    .. math:: \min_{\theta, b} \; \frac{1}{2 n} \sum_{i \le n} (y_i - b - x_i^\top \theta)^2
              \quad \text{subject to} \quad \|\theta\|_0 \le s

    over *all* rows so far, from summary statistics alone: Algorithm 1 of Yang and Sun (2026), with nothing to tune
    but s. ``fit`` on rows in memory is best-subset selection by iterative hard thresholding, like
    ``skscope`` or ``abess`` at a fixed support size; ``partial_fit`` reaches the same estimate in one pass.

    A row costs d^2 flops in blocks of BLAS-3 plus O(d + K s^2). Memory is 8 d^2 bytes and does not grow.

    Parameters
    ----------
    sparsity : int, default=10
        How many features to keep, s. Over-specify it a little; more than there are columns means all.
    n_steps : int, default=5
        Hard-thresholding steps per round, K.
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
    dtype : {"float64", "float32"}, default="float64"
        Storage of the d x d co-moments; float32 halves the memory.
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
        The s in use: `sparsity`, or the number of columns if there are fewer.
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
    ``partial_fit`` gives bit-identical coefficients however the rows are cut into calls. ``fit`` depends on the
    rows but not on their order, to rounding, and ``partial_fit`` may go on from there.

    With ``fit_intercept=False``, ``standardize=False`` and a float `step_size`, the coefficients after each
    row are the iterates of Algorithm 1 to rounding.

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
    >>> model = SparseRegressor(sparsity=2)
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
        "sparsity": [Interval(Integral, 1, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "step_size": [Interval(Real, 0, None, closed="neither"), callable, StrOptions({"auto"})],
        "n_warmup": [Interval(Integral, 0, None, closed="left")],
        "round_size": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "standardize": ["boolean"],
        "dtype": [StrOptions({"float64", "float32"}), Options(type, {np.float64, np.float32})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        sparsity: int = DEFAULT_SPARSITY,
        *,
        n_steps: int = 5,
        step_size: StepSize = "auto",
        n_warmup: int = 0,
        round_size: int = 1,
        fit_intercept: bool = True,
        standardize: bool = True,
        dtype: str = "float64",
        tol: float = 1e-8,
        max_iter: int = 1000,
    ) -> None:
        self.sparsity = sparsity
        self.n_steps = n_steps
        self.step_size = step_size
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.dtype = dtype
        self.tol = tol
        self.max_iter = max_iter

    # -- fitting ---------------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Absorb rows, with a round after every `round_size` of them.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Non-negative.

        Returns
        -------
        self
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            first = not hasattr(self, "summary_")
            rows, responses, weights = self._check(X, y, sample_weight, reset=first)
            if first:
                self._start(Gram(rows.shape[1], self.dtype))
            self._adopt_parameters()
            steps = self._rounds.steps_for(rows.shape[0], self.step_size, self.n_steps, self.n_warmup, self.round_size)
        try:
            self._rounds.absorb(rows, responses, weights, steps, self.n_warmup, self.round_size)
        finally:  # an interrupt falls between blocks, and finished blocks count
            self._publish()
        self._warn_of_rises()
        return self

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, absorb all rows, then run rounds on their summary until it settles.

        Parameters and return value are those of ``partial_fit``.
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            rows, responses, weights = self._check(X, y, sample_weight, reset=True)
            if weights is not None and not weights.any():
                raise ValueError("All sample weights are zero; at least one row must count.")
            summary = Gram(rows.shape[1], self.dtype)
            summary.absorb(rows, responses, weights)
            return self._settle(summary)

    def fit_summary(self, summary: Gram) -> Self:
        """Fit from cross-products alone: as ``fit`` on the rows that the summary has seen.

        The summary is copied, in its own dtype; ``partial_fit`` may go on from it.
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            if not isinstance(summary, Gram):
                raise TypeError(f"summary must be a thresher.Gram, got {type(summary).__name__}")
            if summary.weight == 0.0:
                raise ValueError("The summary is empty: absorb rows with positive weight first.")
            self._forget_features(summary.n_features)
            return self._settle(summary.copy())

    def finish(self) -> Self:
        """Close the current round: run one now if rows were absorbed since the last."""
        check_is_fitted(self, "summary_")
        with self._unchanged_by_failure():
            self._check_parameters()
            self._adopt_parameters()
            if not self._rounds.up_to_date:
                self._rounds.run_round(self.step_size, self.n_steps)
            self._publish()
        self._warn_of_rises()
        return self

    @contextmanager
    def _unchanged_by_failure(self) -> Iterator[None]:
        """Leave the model exactly as it was if the block fails.

        Attributes are restored, not what they refer to: the block replaces the rounds or does not touch them.
        """
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _forget_features(self, n_features: int) -> None:
        """Take columns by number, as scikit-learn does for arrays."""
        self.n_features_in_ = n_features
        self.__dict__.pop("feature_names_in_", None)

    def _check_parameters(self) -> None:
        """Validate the parameters, unless they are the very objects that were validated before."""
        values = [getattr(self, name) for name in self._parameter_constraints]
        checked = getattr(self, "_checked_parameters", [])
        if len(checked) != len(values) or any(a is not b for a, b in zip(values, checked, strict=True)):
            self._validate_params()
            self._checked_parameters = values

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Any, Floats, Floats | None]:
        """Checked rows, responses and weights. Sets or checks the features seen."""
        dtype = self.summary_.dtype if hasattr(self, "summary_") and not reset else np.dtype(self.dtype)
        known = reset or not hasattr(self, "feature_names_in_")
        plain = known and is_plain(X, y, None if reset else self.n_features_in_, dtype)
        if plain:
            rows, responses = X, y
            if reset:
                self._forget_features(X.shape[1])
        else:
            if isinstance(X, list | tuple | np.ndarray) and np.asarray(X).dtype.kind in "US":
                raise ValueError("X holds strings; pass numbers.")
            rows, responses = validate_data(
                self,
                X,
                y,
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                y_numeric=True,
            )
        responses = np.ascontiguousarray(responses, np.float64)
        weights = check_weights(sample_weight, rows.shape[0])
        if not plain or weights is not None:
            check_range(rows.data if issparse(rows) else rows, responses, weights, dtype)
        return rows, responses, weights

    def _start(self, summary: Gram) -> None:
        """Begin with a summary and no estimate."""
        self.summary_ = summary
        self.sparsity_ = self._clipped_sparsity(warn=True)
        self.n_iter_ = 0
        self._warned = False
        self._asked_sparsity = self.sparsity
        self._rounds = SparseRounds(summary, self.sparsity_, self.fit_intercept, self.standardize)

    def _settle(self, summary: Gram) -> Self:
        self._start(summary)
        settled = self._rounds.settle(self.step_size, self.n_steps, self.tol, self.max_iter)
        self.n_iter_ = self._rounds.n_rounds
        self._publish()
        self._warn_of_rises()
        if not settled and not self._warned:
            warn_caller(
                f"fit did not settle within max_iter={self.max_iter} rounds; the last one moved the coefficients "
                f"by more than tol={self.tol:g}. Increase max_iter or tol.",
                ConvergenceWarning,
            )
        return self

    def _clipped_sparsity(self, warn: bool) -> int:
        d = self.summary_.n_features
        if warn and self.sparsity > d and self.sparsity != DEFAULT_SPARSITY:
            warn_caller(f"sparsity={self.sparsity} exceeds the number of columns; using {d}.", UserWarning)
        return int(min(self.sparsity, d))

    def _adopt_parameters(self) -> None:
        """Let parameters that were set since the last call take effect, on the same summary and estimate."""
        asked_anew, self._asked_sparsity = self.sparsity != self._asked_sparsity, self.sparsity
        problem = self._rounds.problem._replace(
            sparsity=self._clipped_sparsity(warn=asked_anew),
            centred=self.fit_intercept,
            standardized=self.standardize,
        )
        if problem != self._rounds.problem:
            self._rounds = self._rounds.changed_to(problem)
            self.sparsity_ = problem.sparsity

    def _publish(self) -> None:
        """Copy the state of the rounds into the fitted attributes."""
        self.coef_ = self._rounds.coef.copy()
        self.intercept_ = self._rounds.intercept if self.fit_intercept else 0.0
        self.step_size_ = self._rounds.last_step
        self.n_rounds_ = self._rounds.n_rounds
        self.n_samples_seen_ = self.summary_.n_samples

    def _warn_of_rises(self) -> None:
        """Tell once that a step size of the user's choice raises the loss, and which would not."""
        tallies = self._rounds.tallies
        if self._warned or not (tallies["rises"] or tallies["overflows"]):
            return
        self._warned = True
        overflow = "; steps that overflow were not taken" if tallies["overflows"] else ""
        warn_caller(
            f"step_size={self.step_size!r} raised the loss in {tallies['rises']} of {tallies['steps']} steps"
            f"{overflow}. On the rows so far, a step of {self._safe_step():.3g} is safe; "
            "step_size='auto' finds safe steps by itself.",
            ConvergenceWarning,
        )

    def _safe_step(self) -> float:
        moment = self.summary_.comoment() if self.fit_intercept else self.summary_.second_moment()
        moment /= self.summary_.weight
        scale = self.summary_.variance(self.fit_intercept) if self.standardize else np.ones(len(moment))
        return safe_step(moment, np.sqrt(scale), self.sparsity_)

    # -- using the model -------------------------------------------------------------------------------

    @property
    def support_(self) -> NDArray[np.intp]:
        """Sorted indices of the nonzero coefficients."""
        check_is_fitted(self, "coef_")
        return np.flatnonzero(self.coef_)

    def predict(self, X: Any) -> Floats:
        """Predicted responses.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "coef_")
        rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        result: Floats = safe_sparse_dot(rows, self.coef_) + self.intercept_
        return result

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "coef_")
        mask: NDArray[np.bool_] = self.coef_ != 0.0
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
