"""Online sparse regression that sees only some features of each row, by a Dantzig selector now and then."""

from math import log, sqrt
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from thresher._utils.arrays import Floats
from thresher._utils.tolerances import TINY
from thresher._utils.warnings import warn_caller
from thresher.baselines._baseline import Baseline
from thresher.io.schema import Array, Count, Is, Number, Of, Schema, Text
from thresher.sparsity.cardinality import Cardinality
from thresher.summaries.gram import Gram

# Failures of the linear program, in words.
FAULTS = {2: "infeasible", 3: "unbounded"}


class AdaptiveDantzig(Baseline):
    r"""Sparse least squares where only k0 random features of each row are seen, by Dantzig selectors at powers of two.

    With :math:`z_r` row r and zeros where it was not seen, the second moments of x and those of x with y are
    estimated without bias by

    .. math:: \hat A_{ij} = \frac{1}{t q_{ij}} \sum_{r \le t} z_{ri} z_{rj}, \quad
              \hat b_j = \frac{1}{t q} \sum_{r \le t} z_{rj} y_r, \quad
              q_{jj} = q = \frac{k_0}{d}, \quad q_{ij} = \frac{k_0 (k_0 - 1)}{d (d - 1)}.

    After t = 2^m rows, m = 0, 1, ..., once t is at least t0, the estimate becomes the k largest entries of

    .. math:: \operatorname*{argmin}_w \|w\|_1 \quad \text{subject to} \quad \|\hat b - \hat A w\|_\infty \le \lambda_t,
              \qquad \lambda_t = C \sqrt{\frac{d \log(t d / \delta)}{t k_0}} \Big(\sigma + \frac{d}{k_0}\Big),

    and stays until there are twice as many rows; before t0 it is zero.

    A row costs O(d), and d^2 flops when its block is folded; a linear program with 2 d variables and d two-sided
    constraints is solved log2(T) times in T rows: about a second at d = 1000 where the solution is sparse, a minute
    where it is dense because `penalty` is far too small. The state is 8 d^2 bytes and a buffer of at most 256 rows.

    Parameters
    ----------
    sparsity : int
        k, how many coefficients to keep; more than there are columns means all.
    n_observed : int, optional
        k0, at least two: how many features of each row are seen, drawn for each row. None, or more than there are
        columns, means all. Read when the stream begins.
    penalty : float, default=0.5
        C.
    noise : float, default=1.0
        sigma, the standard deviation of the noise in y.
    n_warmup : int, default=64
        t0.
    delta : float, default=0.05
        The probability with which the guarantee may fail.
    random_state : int, RandomState instance or None, default=None
        Draws the features to see. Read when the stream begins; None gives other features every time.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        0.0; centre the columns and the response if they need it.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    n_samples_seen_ : int
        Rows seen.
    n_solved_ : int
        Linear programs solved, those with zero for a solution included.
    penalty_ : float
        lambda_t of the last one; NaN before.
    diverged_at_ : int or None
        The row, counted from zero, at which coefficients overflowed; the estimate before it is kept.

    Notes
    -----
    *Guarantee*: for bounded features, coefficients of length at most one, a linear model with Gaussian noise and a
    restricted isometry (constant below 1/5), regret of order k^2 (d/k0)^3 log(d/delta) log(T) against the true
    coefficients, with probability 1 - delta, by predictions that see only the features of the support.

    *Tuning*: lambda_t is for columns with mean square one; its constant C is left open by the theory. The first
    term is noise. The second is what not seeing costs, for coefficients of length one, and it stays where all is seen
    and nothing is paid: with ``n_observed=None``, C = sqrt(2) sigma / (1 + sigma) gives the usual level of a
    Dantzig selector, sigma sqrt(2 log(t d / delta) / t); the default is a little below it for sigma = 1. With few
    features seen, moments are poor until rows are many times (d/k0)^2, and C from 0.1 to 1 is worth a try. Coefficients
    are shrunk by about lambda_t each.

    *Departures*: the authors scale moments for features that are seen independently of each other. Here exactly k0 are
    seen, and q_ij corrects for it. They keep the rows they solve for; sums over them are enough. A program that
    fails leaves the estimate as it was, with a ConvergenceWarning for the first.

    References
    ----------
    S. Kale, Z. Karnin, T. Liang and D. Pál (2017). Adaptive feature selection: computationally efficient online sparse
    linear regression under RIP. International Conference on Machine Learning, PMLR 70, 1780-1788: the realizable case.

    E. Candes and T. Tao (2007). The Dantzig selector: statistical estimation when p is much larger than n. Annals of
    Statistics 35(6), 2313-2351.

    Examples
    --------
    >>> from thresher.baselines import AdaptiveDantzig
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(2048)
    >>> AdaptiveDantzig(3).partial_fit(X, y).support_
    array([0, 1, 2])
    >>> AdaptiveDantzig(3, n_observed=25, random_state=0).partial_fit(X, y).support_
    array([0, 1, 2])
    """

    _remedy = "Rescale the columns and the response."
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sparsity": [Interval(Integral, 1, None, closed="left")],
        "n_observed": [Interval(Integral, 2, None, closed="left"), None],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="left")],
        "n_warmup": [Interval(Integral, 1, None, closed="left")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    _schema = Schema(
        lambda model: model._gram.n_features == model.n_features_in_ and model._gram.dtype == np.float64,
        lambda model: model._n_seen >= min(2, model.n_features_in_),
        _n_seen=Count(1, "n_features_in_"),
        _rng=Of(np.random.Generator),
        _gram=Is(Gram),
        _coef=Array("n_features_in_"),
        _fault=Text(),
        n_solved_=Count(),
        penalty_=Number(least=0.0, nan=True),
    )

    def __init__(
        self,
        sparsity: int,
        *,
        n_observed: int | None = None,
        penalty: float = 0.5,
        noise: float = 1.0,
        n_warmup: int = 64,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.sparsity = sparsity
        self.n_observed = n_observed
        self.penalty = penalty
        self.noise = noise
        self.n_warmup = n_warmup
        self.delta = delta
        self.random_state = random_state

    def _start(self, n_features: int) -> None:
        d = n_features
        self._n_seen = d if self.n_observed is None else min(int(self.n_observed), d)  # k0
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        self._rng = np.random.default_rng(seed)
        self._gram = Gram(d)  # of rows with zeros for what is not seen
        self._coef = np.zeros(d)
        self._fault = ""  # of the first linear program that failed
        self.n_solved_, self.penalty_ = 0, np.nan

    def _take(self, X: Any, y: Any, reset: bool) -> Self:
        known = "" if reset else self._fault
        super()._take(X, y, reset)
        if self._fault and not known:
            warn_caller(f"{self._fault} AdaptiveDantzig keeps what it had; use a larger penalty.", ConvergenceWarning)
        return self

    def _rows_until_event(self) -> int:
        t = self._gram.n_samples
        return self._next_solve(t) - t

    def _next_solve(self, t: int) -> int:
        """The first power of two above t that is not within the warm-up."""
        return int(1 << max(t, int(self.n_warmup) - 1).bit_length())

    def _learn(self, X: Floats, y: Floats) -> int:
        last = self._next_solve(self._gram.n_samples)
        self._gram.absorb_checked(self._seen(X), y, None)
        if self._gram.n_samples == last and not self._solve():
            return len(y) - 1
        return len(y)

    def _estimate(self) -> Floats:
        return self._coef

    def _seen(self, X: Floats) -> Floats:
        """The rows with zeros for what is not seen. Random numbers are drawn row by row, however rows are cut."""
        n_hidden = X.shape[1] - self._n_seen
        if n_hidden == 0:
            return X
        ranks = self._rng.random(X.shape)
        hidden = np.argpartition(ranks, n_hidden - 1, axis=1)[:, :n_hidden]
        rows = X.copy()
        np.put_along_axis(rows, hidden, 0.0, axis=1)
        return rows

    def _solve(self) -> bool:
        """Solve for the rows so far; False, and the estimate stays, if coefficients overflow."""
        gram, d, k0 = self._gram, self._gram.n_features, self._n_seen
        t = gram.n_samples
        self.n_solved_ += 1
        log_odds = log(t * d) - log(self.delta)
        self.penalty_ = self.penalty * sqrt(d * log_odds / (t * k0)) * (self.noise + d / k0)
        # One unit for all columns and one for the response: the same program, of order one.
        largest, mean_square_y = float(gram.variance(centred=False).max()), gram.response_variance(centred=False)
        if not (largest >= TINY and mean_square_y > 0.0):
            self._coef = np.zeros(d)
            return True
        unit_x, unit_y = sqrt(largest), sqrt(mean_square_y)
        moments, cross = unbiased(gram.second_moment() / largest / t, gram.cross_moment() / unit_x / unit_y / t, k0)
        level = self.penalty_ / unit_x / unit_y
        w, fault = dantzig(moments, cross, level)
        if fault:
            self._fault = self._fault or f"The linear program at {t} rows is {fault}."
            return True
        with np.errstate(over="ignore"):
            coef = unit_y / unit_x * Cardinality(int(self.sparsity)).project(w)
        if not np.isfinite(coef).all():
            return False
        self._coef = coef
        return True


def unbiased(moments: Floats, cross: Floats, n_seen: int) -> tuple[Floats, Floats]:
    """Moments of whole rows from those with zeros in all but `n_seen` random places, unbiased. May overwrite them."""
    d = len(cross)
    if n_seen < d:
        diagonal = moments.diagonal() * (d / n_seen)
        moments *= d * (d - 1) / (n_seen * (n_seen - 1))
        np.fill_diagonal(moments, diagonal)
        cross = cross * (d / n_seen)
    return moments, cross


def dantzig(moments: Floats, cross: Floats, level: float) -> tuple[Floats, str]:
    """The w of least l1 norm with |cross - moments w| <= level everywhere, or what is wrong with the program."""
    d = len(cross)
    if np.max(np.abs(cross)) <= level:
        return np.zeros(d), ""
    # w = u - v with u, v >= 0. Solved by HiGHS; of SciPy's ways to it, this one takes two-sided constraints as such.
    within = LinearConstraint(np.hstack([moments, -moments]), cross - level, cross + level)
    result = milp(np.ones(2 * d), constraints=within, bounds=Bounds(0.0, np.inf))
    if result.status != 0:
        return np.zeros(d), FAULTS.get(result.status, "unsolved")
    w: Floats = result.x[:d] - result.x[d:]
    return w, ""
