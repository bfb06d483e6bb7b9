"""Choosing a size by an information criterion."""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from thresher.selection.criteria import Criterion, misfit
from thresher.selection.path import Path

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ebic(Criterion):
    r"""Minimise the extended Bayesian information criterion over the path.

    .. math:: n \log(\mathrm{RSS}_k / n) + \mathrm{df}_k \log n + 2 \gamma \log \tbinom dk

    The last term pays for having searched among all models of k features; with :math:`\gamma = 0` it is the BIC.
    Rows count by their weights, a weight of two twice. For ranks there is nothing to search, df is r (d1 + d2 - r), and
    the last term is zero. Memory is nothing beyond the summary.

    Parameters
    ----------
    gamma : float, default=0.5

    References
    ----------
    J. Chen and Z. Chen (2008). Extended Bayesian information criteria for model selection with large model spaces.
    Biometrika 95(3), 759-771.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import Ebic, SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 30))
    >>> y = X[:, 3] - X[:, 5] + rng.standard_normal(200)
    >>> SparseRegressor(selection=Ebic(gamma=1.0)).fit(X, y).support_
    array([3, 5])
    """

    gamma: float = 0.5
    name: ClassVar[str] = "ebic"

    def __post_init__(self) -> None:
        if not (isinstance(self.gamma, Real) and 0.0 <= self.gamma < np.inf):
            raise ValueError(f"gamma must be a number, at least 0, got {self.gamma!r}")

    def criterion(self, path: Path) -> Floats:
        """The criterion of every candidate."""
        result: Floats = (
            misfit(path) + path.freedom * np.log(max(path.weight, 1.0)) + 2.0 * self.gamma * path.log_models
        )
        return result
