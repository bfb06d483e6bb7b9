"""What methods with debiased estimates share: the sums behind them, and intervals."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import Floats, Integers
from thresher._utils.checks import as_real, check_features
from thresher._utils.locks import locked
from thresher.baselines._baseline import Baseline
from thresher.inference.intervals import Intervals, check_level, make_intervals
from thresher.io.schema import Array, Count, Number, part


class Debiasing(Baseline):
    """A baseline that works in batches and debiases some coefficients of a sparse estimate.

    For an inferred column r, let z be what other columns leave of it in each row, in the opinion of that moment. With
    sums over all rows in complete batches, the debiased coefficient and its standard error are

        coef_r + (sum z y - (sum z x)' coef) / sum z x_r    and    sigma sqrt(sum z^2) / |sum z x_r|.

    A subclass adds to the sums, which are d + 3 numbers for each inferred column, and shows the rest in `_chosen`,
    `_n_batches` and `_noise_variance`, which is None until there are sums. Its parameters hold from `_start` to the
    next one.
    """

    features: ArrayLike | None
    penalties: ArrayLike
    batch_size: int
    debiased_: Floats
    noise_variance_: float | None
    penalty_: float | None
    n_batches_: int
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "penalties": ["array-like"],
        "features": ["array-like", None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
    }

    _schema = part(
        lambda model: len(model._grid) >= 1 and model._chosen < len(model._grid),
        lambda model: model.n_batches_ == model._n_batches,
        _grid=Array("grid", least=0.0),
        _index=Array("inferred", dtype="i8", least=0, below="n_features_in_"),
        _batch_size=Count(1),
        _zx=Array("inferred"),
        _zy=Array("inferred"),
        _zz=Array("inferred", least=0.0),
        _products=Array("inferred", "n_features_in_"),
        _chosen=Count(),
        _n_batches=Count(),
        _noise_variance=Number(least=0.0) | None,
        debiased_=Array("inferred"),
        n_batches_=Count(),
        noise_variance_=Number(least=0.0) | None,
        penalty_=Number(least=0.0) | None,
    )

    @locked
    def confidence_intervals(self, level: float = 0.95) -> Intervals:
        """Intervals for the coefficients of `features`, one at a time, from the rows in complete batches.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage of each interval.

        Returns
        -------
        Intervals
            With normal quantiles. A column that was zero in every row gets an infinite interval.
        """
        check_is_fitted(self, "coef_")
        check_level(level)
        if not len(self._index):
            raise ValueError(
                "Nothing was kept for intervals: name the columns they are wanted for in `features`, then start over "
                "with fit."
            )
        if self.diverged_at_ is not None:
            raise ValueError(f"The estimate diverged at row {self.diverged_at_}. {self._remedy} Then call fit.")
        if self._noise_variance is None:
            raise ValueError(
                f"Intervals need {self._batch_size} rows, and there are {self.n_samples_seen_}: pass more "
                "rows, or use a smaller batch_size and start over with fit."
            )
        own = np.abs(self._zx)
        known = own > 0.0
        error = np.full(len(own), np.inf)
        error[known] = np.sqrt(self._noise_variance) * (np.sqrt(self._zz[known]) / own[known])
        names = getattr(self, "feature_names_in_", None)
        labels = None if names is None else [str(name) for name in names[self._index]]
        return make_intervals(self._index, labels, self.debiased_.copy(), error, level, "debiased", np.inf)

    # -- for subclasses ----------------------------------------------------------------------------------

    def _start(self, n_features: int) -> None:
        self._grid, self._index = self._check_grid(), self._check_index(n_features)
        self._batch_size = int(self.batch_size)
        self._zx, self._zy, self._zz = (np.zeros(len(self._index)) for _ in range(3))  # sums of z x_r, z y and z^2
        self._products = np.zeros((len(self._index), n_features))  # sum z x
        self._chosen, self._n_batches = 0, 0
        self._noise_variance: float | None = None

    def _check_against_features(self, n_features: int) -> None:
        self._check_grid()
        self._check_index(n_features)

    def _check_grid(self) -> Floats:
        grid = as_real(self.penalties, "penalties").astype(np.float64)
        if grid.ndim != 1 or not grid.size or not (np.isfinite(grid) & (grid > 0.0)).all():
            raise ValueError(f"penalties must be one or more positive numbers in one dimension, got {self.penalties!r}")
        return grid

    def _check_index(self, n_features: int) -> Integers:
        return check_features(np.empty(0, np.intp) if self.features is None else self.features, n_features)

    def _publish(self) -> None:
        super()._publish()
        self.debiased_ = self.coef_[self._index]
        if self.diverged_at_ is None:
            known = self._zx != 0.0
            left_over = self._zy[known] - self._products[known] @ self.coef_
            self.debiased_[known] += left_over / self._zx[known]
        self.n_batches_ = self._n_batches
        self.noise_variance_ = self._noise_variance
        self.penalty_ = float(self._grid[self._chosen]) if self._n_batches else None
