"""The online debiased lasso: intervals from second moments and one look at each batch."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from thresher._utils.arrays import Floats, Integers
from thresher._utils.threads import one_blas_thread
from thresher.baselines._batch import Batch
from thresher.baselines._debiasing import Debiasing
from thresher.baselines._lasso import solve
from thresher.io.schema import Array, Flag, Is, Schema
from thresher.summaries.gram import Gram

N_FOLDS = 5
# Moves below this share of the response end a descent. The limit ends it where descent crawls; the debiased
# estimate then starts from a point near the minimiser, which is as good.
TOLERANCE = 1e-9
MOST_SWEEPS = 2000
# The noise level of the first batch is settled when it falls by less than this.
SETTLED = 0.99


class OnlineDebiasedLasso(Debiasing):
    r"""The lasso kept current batch by batch, with confidence intervals for chosen coefficients.

    Batch m, with rows :math:`X_m, y_m` that bring the count to N and the second moments to
    :math:`A = \sum x x^\top` and :math:`b = \sum x y`, goes through four steps.

    1. The penalty :math:`\lambda` is the one of a grid whose lasso, *before* it saw this batch, predicts it best. (The
       first batch: the best of 5-fold cross-validation.)
    2. The lasso at every penalty of the grid, warm-started, with :math:`\hat\beta` the one of the chosen:

       .. math:: \hat\beta(\lambda) = \operatorname*{argmin}_\beta \;
                 \frac{\beta^\top A \beta}{2 N} - \frac{b^\top \beta}{N} + \lambda \|\beta\|_1.

    3. For each inferred column r, the lasso :math:`\hat\gamma_r` of column r on the others, from A as well; the batch
       adds to four sums with what is left of its column, :math:`z = x_r - X_{-r} \hat\gamma_r`:
       :math:`z^\top x_r`, :math:`z^\top y`, :math:`X^\top z` and :math:`z^\top z`.
    4. The noise: :math:`\hat\sigma^2` is the mean over all batches of
       :math:`(y_i - x_i^\top \hat\beta^{(m)})^2`, each row with the lasso that its batch led to.

    The debiased estimate and its standard error are

    .. math:: \hat\beta_r + \frac{\sum z y - (\sum z x)^\top \hat\beta}{\sum z x_r}, \qquad
              \hat\sigma \, \frac{\sqrt{\sum z^2}}{|\sum z x_r|}.

    The state is d^2 numbers, a batch of rows, d for each penalty and 2 d for each inferred column. A row costs O(d^2)
    in BLAS-3; a batch O(d s) for each sweep of each lasso, s nonzero coefficients, and O(d^2) once.

    Parameters
    ----------
    penalties : array-like of float, default=(0.5, 1.0, 1.5, 2.0)
        The grid. See `decay`.
    features : array-like of int, optional
        Columns for whose coefficients intervals are kept. By default none.
    batch_size : int, default=100
        Rows in a batch, at least 5. Rows short of a batch wait: they count in ``n_samples_seen_`` and in nothing else.
    decay : bool, default=True
        Whether penalties fall as rows come: c in `penalties` stands for c sigma s_j sqrt(log(d) / N) on coefficient j,
        s_j the root mean square of its column. sigma is the noise level so far, after the first batch the root of
        ``noise_variance_``; for column r explained by others it is s_r. Otherwise `penalties` are lambda as it
        is, in units of x times y for the lasso and of x times x for the columns, as the authors' examples have it.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The lasso at the chosen penalty; zero before the first batch is complete.
    debiased_ : ndarray of shape (n_inferred,)
        Debiased estimates for `features`.
    penalty_ : float or None
        The entry of `penalties` chosen at the last batch.
    noise_variance_ : float or None
        The variance of the noise.
    n_batches_ : int
        Complete batches.
    intercept_ : float
        0.0; centre the columns and the response if they need it.
    support_ : ndarray of int
        Sorted indices of the nonzero coefficients.
    n_samples_seen_ : int
        Rows seen.
    diverged_at_ : None
        Descent does not diverge.

    Notes
    -----
    *Guarantee*: intervals cover at their nominal level as N grows, one at a time, for noise of one variance and a true
    model with s log d = o(sqrt(N)) nonzero coefficients, if the design is well conditioned on sparse directions,
    each inferred column is explained by few others, and there are not so many batches that the first ones, whose
    z are made from few rows, dominate. A batch is part of the lasso that is judged by it, so the noise is
    estimated slightly too low while N is not much larger than d, and 95 % intervals then cover 92 to 95 %.

    *Tuning*: with ``decay=True`` theory asks for an entry near sqrt(2); a grid from 0.5 to 2 rarely needs a change.
    Larger batches make the choice of the penalty surer. Changed parameters hold from the next ``fit``.

    *Departures*: ``decay``, by which penalties follow the rate that the theory asks for and data in other units give
    the same intervals. In the first batch sigma starts at the root mean square of y and becomes that of the
    cross-validated errors until it settles; folds are every fifth row. Coordinate descent in place of proximal
    gradient steps: the same minimisers. The linear model only.

    References
    ----------
    R. Han, L. Luo, Y. Lin and J. Huang (2021). Online debiased lasso for streaming data. arXiv:2106.05925. L. Luo,
    R. Han, Y. Lin and J. Huang (2021). Statistical inference in high-dimensional generalized linear models with
    streaming data. arXiv:2108.04437.

    Examples
    --------
    >>> from thresher.baselines import OnlineDebiasedLasso
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> X, y = SparseLinearStream(n_features=50, n_active=3, signal=1.0, seed=1).draw(1000)
    >>> model = OnlineDebiasedLasso(features=[0, 10]).partial_fit(X, y)
    >>> model.confidence_intervals()
    95 % intervals, debiased, inf degrees of freedom
    feature  estimate  std. error     lower    upper
          0   -0.6537     0.03094   -0.7143   -0.593
         10  -0.01559     0.03231  -0.07892  0.04773
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Debiasing._parameter_constraints,
        "batch_size": [Interval(Integral, N_FOLDS, None, closed="left")],
        "decay": ["boolean"],
    }

    _schema = Schema(
        lambda model: model._summary.n_features == model.n_features_in_ and model._summary.dtype == np.float64,
        lambda model: model._batch._X.shape == (model._batch_size, model.n_features_in_),
        lambda model: model._n_batches * model._batch_size + model._batch._n == model._n_learned,
        _summary=Is(Gram),
        _decays=Flag(),
        _path=Array("grid", "n_features_in_"),
        _nodewise=Array("inferred", "n_features_in_"),
        _batch=Is(Batch),
    )

    def __init__(
        self,
        penalties: ArrayLike = (0.5, 1.0, 1.5, 2.0),
        *,
        features: ArrayLike | None = None,
        batch_size: int = 100,
        decay: bool = True,
    ) -> None:
        self.penalties = penalties
        self.features = features
        self.batch_size = batch_size
        self.decay = decay

    def _start(self, n_features: int) -> None:
        super()._start(n_features)
        self._summary = Gram(n_features)
        self._decays = bool(self.decay)
        self._path = np.zeros((len(self._grid), n_features))
        self._nodewise = np.zeros((len(self._index), n_features))
        self._batch = Batch(int(self.batch_size), n_features)

    def _rows_until_event(self) -> int:
        return self._batch.n_missing

    def _learn(self, X: Floats, y: Floats) -> int:
        with np.errstate(over="ignore", invalid="ignore"):
            self._batch.add(X, y, self._learn_batch)
        return len(y)

    def _estimate(self) -> Floats:
        coef: Floats = self._path[self._chosen]
        return coef

    @one_blas_thread()
    def _learn_batch(self, X: Floats, y: Floats) -> None:
        """Learn from a whole batch; what is learned is put in place at the end, all of it or nothing."""
        if self._noise_variance is None:
            chosen, noise = self._cross_validate(X, y)
        else:
            chosen, noise = int(np.argmin(_mean_squares(X, y, self._path))), self._noise_variance
        summary = self._summary.copy().absorb(X, y)
        n = summary.weight
        matrix, target = summary.second_moment(), summary.cross_moment()
        scale = self._standardise(matrix, target, n)
        rate, spread = self._rate(n), float(np.sqrt(summary.response_variance(centred=False)))
        path = self._path * scale
        _lassos(matrix, target, self._grid * (rate * np.sqrt(noise) if self._decays else 1.0), path, spread)
        path /= scale
        residual = y - X @ path[chosen]
        before = (self._noise_variance or 0.0) * (1.0 - len(y) / n)
        units = scale / scale[self._index, None]
        nodewise = self._nodewise * units
        _nodewise_lassos(matrix, self._index, self._grid[chosen] * rate, nodewise)
        nodewise /= units
        own = X[:, self._index]
        left = own - X @ nodewise.T
        self._zx += np.einsum("ij,ij->j", left, own)
        self._zy += y @ left
        self._zz += np.einsum("ij,ij->j", left, left)
        self._products += left.T @ X
        self._noise_variance = before + float(residual @ residual) / n
        self._summary, self._path, self._nodewise, self._chosen = summary, path, nodewise, chosen
        self._n_batches += 1

    def _rate(self, n: float) -> float:
        """What multiplies the penalties, apart from scales."""
        return float(np.sqrt(np.log(max(self.n_features_in_, 2)) / n)) if self._decays else 1.0

    def _standardise(self, matrix: Floats, target: Floats, n: float) -> Floats:
        """Turn sums over n rows into means, of columns divided by their scale if penalties decay. Returns the scale."""
        matrix /= n
        target /= n
        scale = np.sqrt(np.diagonal(matrix)) if self._decays else np.ones(len(target))
        scale[scale == 0.0] = 1.0
        matrix /= scale
        matrix /= scale[:, None]
        target /= scale
        return scale

    def _cross_validate(self, X: Floats, y: Floats) -> tuple[int, float]:
        """The place of the best penalty for the first batch, and the mean square of its errors out of fold.

        Penalties that decay are in units of the noise, which is not known yet: the errors of one round are the
        noise level of the next.
        """
        noise = float(y @ y) / len(y)
        while True:
            errors = np.zeros(len(self._grid))
            for fold in range(N_FOLDS):
                out = np.arange(len(y)) % N_FOLDS == fold
                inside, responses = X[~out], y[~out]
                n = len(responses)
                matrix, target = inside.T @ inside, inside.T @ responses
                scale = self._standardise(matrix, target, n)
                path = np.zeros_like(self._path)
                level = self._rate(n) * (np.sqrt(noise) if self._decays else 1.0)
                spread = float(np.sqrt(responses @ responses / n))
                _lassos(matrix, target, self._grid * level, path, spread)
                errors += _mean_squares(X[out], y[out], path / scale) * out.sum() / len(y)
            best = int(np.argmin(errors))
            if not (self._decays and errors[best] < SETTLED**2 * noise):  # also if it is not a number
                return best, noise
            noise = float(errors[best])


def _mean_squares(X: Floats, y: Floats, path: Floats) -> Floats:
    """Mean squared error of each row of coefficients."""
    errors = X @ path.T - y[:, None]
    result: Floats = np.einsum("ij,ij->j", errors, errors) / len(y)
    return result


def _lassos(matrix: Floats, target: Floats, penalties: Floats, path: Floats, spread: float) -> None:
    """The lasso from second moments at each penalty, in the rows of `path` and from what is there."""
    for penalty, coef in zip(penalties, path, strict=True):
        solve(matrix, target, penalty, coef, TOLERANCE * spread, MOST_SWEEPS)


def _nodewise_lassos(matrix: Floats, index: Integers, penalty: float, path: Floats) -> None:
    """Each column of `index` explained by all others."""
    for r, coef in zip(index, path, strict=True):
        target, curvature = matrix[r].copy(), matrix[r, r]
        matrix[r, r] = 0.0  # descent leaves coordinates without curvature where they are, here at zero
        solve(matrix, target, penalty, coef, TOLERANCE * np.sqrt(curvature), MOST_SWEEPS)
        matrix[r, r] = curvature
