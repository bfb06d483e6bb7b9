"""Choosing a size by an information criterion."""

from dataclasses import dataclass
from math import log
from numbers import Real
from typing import ClassVar

import numpy as np

from thresher._utils.arrays import Floats
from thresher.io.schema import Count, Either, Number, Schema, Text
from thresher.selection.criteria import Criterion

# How far above the bound for consistency gamma is; see docs/choosing.md for what it makes of finite samples.
BEYOND = 0.2


@dataclass(frozen=True)
class Ebic(Criterion):
    r"""Minimise the extended BIC.

    .. math:: n \log(\mathrm{RSS}_k / n) + \mathrm{df}_k \log n + 2 \gamma \log \tbinom dk

    The last term pays for having searched among all models of k features; with :math:`\gamma = 0` it is the BIC.
    Rows count by their weights, a weight of two twice. For ranks there is nothing to search, df is r (d1 + d2 - r), and
    the last term is zero. Memory is nothing beyond the summary.

    Parameters
    ----------
    gamma : float or "auto", default="auto"
        What the search costs. The least criterion is a consistent choice, for d growing as a power of n, if
        :math:`\gamma > 1 - \log n / (2 \log d)`; ``"auto"`` is 0.2 more than that, and at least 0.2. So the search
        costs much where rows are few for d features, and less when there are many.

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

    _schema = Schema(gamma=Either(Number(least=0.0), Count(), Text("auto")))
    gamma: float | str = "auto"
    name: ClassVar[str] = "ebic"

    def __post_init__(self) -> None:
        number = isinstance(self.gamma, Real) and 0.0 <= self.gamma < np.inf
        if not number and self.gamma != "auto":
            raise ValueError(f"gamma must be a number, at least 0, or 'auto', got {self.gamma!r}")

    def penalty(self, weight: float, freedom: Floats, log_models: Floats) -> Floats:
        """What each candidate costs in n log(RSS / n)."""
        log_n = log(max(weight, 1.0))
        gamma = float(self.gamma) if isinstance(self.gamma, Real) else _beyond_consistency(log_n, log_models)
        result: Floats = freedom * log_n + 2.0 * gamma * log_models
        return result


def _beyond_consistency(log_n: float, log_models: Floats) -> float:
    """The least gamma for which the criterion is consistent (Chen and Chen, theorem 1), and some more."""
    log_d = float(log_models[1]) if len(log_models) > 1 else 0.0  # there are d models of one feature
    return BEYOND + (max(1.0 - log_n / (2.0 * log_d), 0.0) if log_d > 0.0 else 0.0)
