"""Choosing a rank by what noise alone could gain."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from thresher._utils.arrays import Floats
from thresher.io.schema import Count, Either, Number, Schema
from thresher.selection.criteria import Criterion, misfit


@dataclass(frozen=True)
class NoiseEdge(Criterion):
    r"""Keep a further rank only if it explains much more than the best matrix of rank one makes of pure noise.

    Noise of variance :math:`\sigma^2` in a d1 x d2 matrix has singular values up to the edge
    :math:`\sigma (\sqrt{d_1} + \sqrt{d_2})`, so a rank that is not there lowers the residual sum of squares by up to
    :math:`\sigma^2 \lambda` with :math:`\lambda = (\sqrt{d_1} + \sqrt{d_2})^2`. Each rank must lower it by `factor`
    times that, with :math:`\sigma^2` estimated beside it, :math:`\mathrm{RSS}_k / (n - \mathrm{df}_k)`. Added up over
    the ranks this is the criterion

    .. math:: n \log(\mathrm{RSS}_r / n) + n \sum_{k \le r}
              \log\Bigl(1 + \frac{\text{factor} \, \lambda}{n - \mathrm{df}_k}\Bigr).

    The price of a rank is 2 to 4 times (d1 + d2) and does not grow with n, other than that of the BIC,
    (d1 + d2) log n, which loses directions that are worth having: a direction pays for the error of estimating it
    from about (d1 + d2) on. Where samples are few for each parameter, the price rises.

    Parameters
    ----------
    factor : float, default=2.0
        Above 1. More is safer where noise is heavy-tailed or uneven, and loses more weak directions.

    References
    ----------
    F. Bunea, Y. She and M. H. Wegkamp (2011). Optimal selection of reduced rank estimators of high-dimensional
    matrices. Annals of Statistics 39(2), 1282-1309: the price 2 (sqrt(d1) + sqrt(d2))^2, for a known variance.

    X. Bing and M. H. Wegkamp (2019). Adaptive estimation of the rank of the coefficient matrix in high-dimensional
    multivariate response regression models. Annals of Statistics 47(6), 3157-3184: without one.

    Examples
    --------
    >>> from thresher import NoiseEdge, LowRankRegressor
    >>> from thresher.io.sources.synthetic import LowRankStream
    >>> model = LowRankRegressor(selection=NoiseEdge(factor=1.5)).fit(*LowRankStream((6, 5), 2, 1.0, seed=1).draw(300))
    >>> model.rank_
    2
    """

    _schema = Schema(lambda method: method.factor > 1.0, factor=Either(Number(), Count()))
    factor: float = 2.0
    name: ClassVar[str] = "noise_edge"

    def __post_init__(self) -> None:
        if not (isinstance(self.factor, Real) and 1.0 < self.factor < np.inf):
            raise ValueError(f"factor must be a number above 1, got {self.factor!r}")

    def penalty(self, weight: float, freedom: Floats, log_models: Floats) -> Floats:
        """An error: what a rank costs depends on the shape of the matrix."""
        raise ValueError("NoiseEdge chooses ranks; use selection='ebic' for features.")

    def criterion(self, path: Any) -> Floats:
        """The criterion of every candidate."""
        result: Floats = misfit(path) + np.cumsum(self.prices(path.weight, path.freedom, path.noise))
        return result

    def prices(self, weight: float, freedom: Floats, noise: Floats) -> Floats:
        """What each rank must lower n log(RSS) by."""
        result: Floats = weight * np.log1p(self.factor * noise / np.maximum(weight - freedom, 1.0))
        return result
