"""Algorithm 1 of the paper with any set of coefficients, as a scikit-learn estimator."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods

from thresher._utils.arrays import ArrayLike
from thresher._utils.memory import require_bytes
from thresher.estimators._matrix_rows import MatrixRows
from thresher.estimators._online import OnlineRows
from thresher.io.schema import Array, Count, Either, Flag, Is, Labels, Maybe, Number, Of, Schema, Tuple
from thresher.online.dense import DenseRounds
from thresher.online.projected import ProjectedRounds
from thresher.online.samples import Rows, Samples
from thresher.online.sparse import SparseRounds
from thresher.online.step_size import StepCount, StepSize
from thresher.selection.family import RoundsSource
from thresher.selection.selecting import SelectingRounds
from thresher.sparsity.cardinality import Cardinality
from thresher.sparsity.groups import Groups
from thresher.sparsity.rank import Rank
from thresher.summaries.gram import Gram


class Everything:
    """No constraint: every array is its own projection."""

    _schema = Schema()

    def project(self, theta: Any) -> Any:
        """Theta itself."""
        return theta


@dataclass(frozen=True, eq=False)
class ConstrainedRounds(RoundsSource):
    """Rounds onto a set. Two are equal if they are for the same object: sets need not be comparable."""

    _schema = Schema(projection=Of(Cardinality, Groups, Rank, Everything), shape=Tuple(each=Count(1)), centred=Flag())
    projection: Any
    shape: tuple[int, ...]
    centred: bool
    memorable = False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ConstrainedRounds)
            and self.projection is other.projection
            and (self.shape, self.centred) == (other.shape, other.centred)
        )

    __hash__ = None  # type: ignore[assignment]

    def fits(self, rounds: Any, size: int) -> bool:
        """Whether these are rounds onto this set."""
        made = self.new_rounds(Gram(rounds.summary.n_features), size)
        return type(rounds) is type(made) and (rounds.centred, rounds.standardized) == (self.centred, False)

    def new_rounds(self, summary: Gram, size: int) -> SparseRounds | DenseRounds | ProjectedRounds:
        """Compiled rounds where there are some; the size is that of the set."""
        own = self.projection
        if type(own) is Cardinality:
            return SparseRounds(summary, min(own.s, summary.n_features), self.centred, False)
        if type(own) is Rank:
            if len(self.shape) != 2:
                raise ValueError("Rank is a set of matrices; pass X of shape (n, d1, d2), or set shape=(d1, d2).")
            if own.shape not in (None, self.shape):
                raise ValueError(f"projection is for matrices of shape {own.shape}, and X has shape {self.shape}.")
            return DenseRounds(summary, Rank(min(own.r, *self.shape), self.shape), self.centred, False)
        if type(own) is Groups and len(own.index) != self.shape[0]:
            raise ValueError(f"projection has {len(own.index)} labels for {self.shape[0]} rows of coefficients.")
        if type(own) is Groups and len(self.shape) == 1:
            return DenseRounds(summary, own, self.centred, False)
        return ProjectedRounds(summary, own, self.shape, self.centred)


class ConstrainedRegressor(MatrixRows, OnlineRows):
    r"""Linear regression with coefficients in a set of your own, by K projected gradient steps after every row.

    After every row it takes K steps towards

    .. math:: \min_{\Theta, b} \; \frac{1}{2 n} \sum_{i \le n} (y_i - b - \langle x_i, \Theta \rangle)^2
              \quad \text{subject to} \quad \Theta \in C

    over *all* rows so far, from summary statistics alone: Algorithm 1 of Yang and Sun (2026) for generalised sparsity.
    The set C is known by its projection. ``fit`` is projected gradient descent, run until it settles.

    A row costs d^2 flops in blocks of BLAS-3, and each step one product with a d x d matrix and one call of the
    projection; d is the number of coefficients. Memory is 8 d^2 bytes and does not grow. `Cardinality`, `Groups` and
    `Rank` have compiled rounds, which cost far less.

    Parameters
    ----------
    projection : object, optional
        The set. ``projection.project(theta)`` returns the point of the set that is closest to theta, an array of the
        same shape. It may have more:

        - ``measure(theta)``, the generalised sparsity of theta, together with an attribute `s`: then every projection
          must measure at most s;
        - ``restrict(direction, theta)``, the part of a direction along which theta can move within the set, from which
          certified steps start; without it they start from the whole direction;
        - ``concavity(s_star)``, the relative concavity of the projection, for your own use of ``thresher.theory``.

        By default there is no constraint.
    shape : tuple of int, optional
        Shape (d1, d2) of the coefficients, if the matrices X are given as rows of d1 d2 numbers.
    n_steps : int or callable, default=5
        Steps per round, K; or a callable that is called with the round t (from one) and returns K_t.
    step_size : float, callable or "auto", default="auto"
        Step size eta. ``"auto"`` finds, at each step, one after which the loss is not higher. A callable is called with
        the round t (from one) and the step k (from zero).
    n_warmup : int, default=0
        Rows absorbed before the first round, t0.
    round_size : int, default=1
        Rows per round. Rows short of a full round wait for the next call, or for ``finish``.
    start : array-like or a fitted model, optional
        Theta_0: where the first round, or ``fit``, starts; of a model, its `coef_`. Zero by default. A start that is
        not in the set is projected onto it.
    fit_intercept : bool, default=False
        Whether the model has an intercept: the best one for all rows so far, at every round.
    tol : float, default=1e-8
        ``fit`` stops when a round moves the coefficients less than this, relatively.
    max_iter : int, default=1000
        ``fit`` stops after this many rounds at the latest.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (d1, d2)
        Coefficients.
    intercept_ : float
        Intercept; 0.0 if ``fit_intercept=False``.
    step_size_ : float
        The last step taken.
    n_samples_seen_, n_rounds_ : int
        Rows absorbed and rounds done.
    n_iter_ : int
        Rounds done by the last ``fit``; 0 if there was none.
    summary_ : Gram
        The summary of all rows so far.
    n_features_in_ : int
        Number of coefficients.
    feature_names_in_ : ndarray of str
        Column names, if X had them.

    Notes
    -----
    ``partial_fit`` gives bit-identical coefficients however the rows are cut into calls, if the projection depends on
    nothing but its argument. If the projection raises, or returns something else than a point of its set, the model
    stays as it was before the call.

    ``save`` writes data and no code, so a model with a set of your own cannot be saved by it. Use pickle or joblib.

    References
    ----------
    S. Yang and Q. Sun (2026). Online Generalized Sparse Regression: How Does Overparametrization Help?

    Examples
    --------
    At most two coefficients different from zero, none of them negative:

    >>> import numpy as np
    >>> from thresher import Cardinality, ConstrainedRegressor
    >>> class NonNegative:
    ...     def __init__(self, s):
    ...         self.s = s
    ...     def project(self, theta):
    ...         return Cardinality(self.s).project(np.maximum(theta, 0.0))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 6))
    >>> y = X @ [2.0, 0.0, -1.0, 0.5, 0.0, 0.0]
    >>> ConstrainedRegressor(NonNegative(2)).partial_fit(X, y).coef_.round(1) + 0.0
    array([2. , 0. , 0. , 0.5, 0. , 0. ])
    """

    _schema = Schema(
        lambda model: int(np.prod(model._shape)) == model.n_features_in_ == model.summary_.n_features,
        lambda model: model.coef_.shape == model._shape and model._rounds.family == model._solved,
        lambda model: np.array_equal(model.coef_.reshape(-1), model._rounds.inner.coef.reshape(-1)),
        n_features_in_=Count(1),
        feature_names_in_=Maybe(Labels("n_features_in_")),
        summary_=Is(Gram, shared=True),
        _shape=Tuple(each=Count(1)),
        _solved=Is(ConstrainedRounds, shared=True),
        coef_=Either(Array("d"), Array("d1", "d2")),
        intercept_=Number(),
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineRows._parameter_constraints,
        "projection": [HasMethods("project"), None],
        "shape": [tuple, list, None],
        "fit_intercept": ["boolean"],
    }
    _summary_type = Gram
    summary_: Gram
    n_features_in_: int

    def __init__(
        self,
        projection: Any = None,
        *,
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
        self.projection = projection
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

    def _partial_fit(self, *samples: Any, times: Any = None) -> Self:
        if hasattr(self, "summary_"):
            return super()._partial_fit(*samples, times=times)
        with self._unchanged_by_failure(Exception):  # an interrupt leaves what was learned before it
            return super()._partial_fit(*samples, times=times)

    def finish(self) -> Self:
        """Close the current round: run one now if anything was absorbed since the last."""
        with self._taken_back_by_errors(0):
            return super().finish()

    def _as_rows(self, X: Any, known: Any) -> tuple[Any, Any]:
        """X as rows, and the shape of the coefficients; an empty one if they are a vector of unknown length."""
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        if len(known) == 1 if known else self.shape is None and len(X.shape) != 3:
            if len(X.shape) == 3:
                raise ValueError(f"X has shape {X.shape}; before, it had rows of {known[0]} numbers.")
            return X, known or ()
        return super()._as_rows(X, known)

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Rows:
        rows = self._check_rows(self._take_matrices(X, reset), y, sample_weight, reset, np.dtype(np.float64))
        if not self._shape:
            self._shape = (rows.X.shape[1],)
        return rows

    def _new_summary(self, rows: Rows) -> Gram:
        d = rows.X.shape[1]
        require_bytes(16 * d * d, f"Second moments of {d:,} numbers, and a copy of them,", "Use fewer coefficients.")
        return Gram(d, hold_rows=type(self.projection) is Rank)

    def _take_summary(self, summary: Gram) -> None:
        if self.shape is None:
            self._shape = (summary.n_features,)
            self._forget_features(summary.n_features)
        else:
            self._take_shape_for(summary)

    def _problem(self) -> ConstrainedRounds:
        self._check_shape_asked()
        own = Everything() if self.projection is None else self.projection
        solved = getattr(self, "_solved", None)
        if self.projection is None and solved is not None and isinstance(solved.projection, Everything):
            own = solved.projection
        return ConstrainedRounds(own, self._shape, bool(self.fit_intercept))

    def _new_rounds(self) -> SelectingRounds:
        return SelectingRounds(self.summary_, self._solved, 0, None, self.n_warmup)

    def _coef_shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self._shape
        return shape

    def _publish_estimate(self) -> None:
        self.coef_ = self._rounds.inner.coef.reshape(self._shape).copy()
        self.intercept_ = self._rounds.inner.intercept if self.fit_intercept else 0.0

    def _absorb(self, samples: Samples, plan: Any) -> None:
        with self._taken_back_by_errors(len(samples)):
            super()._absorb(samples, plan)

    @contextmanager
    def _taken_back_by_errors(self, n_rows: int) -> Iterator[None]:
        """Leave the model as it was if a projection fails; an interrupt is none of its errors."""
        rounds = getattr(self, "_rounds", None)
        if rounds is None or not isinstance(rounds.inner, ProjectedRounds):
            yield
            return
        kept = copy(rounds)
        kept.inner, kept.history = rounds.inner.copied(), list(rounds.history)
        take_back = self.summary_.undoing(n_rows)
        try:
            with self._unchanged_by_failure(Exception):
                yield
        except Exception:
            take_back()
            self._rounds = kept
            raise
