"""Online hard thresholding as a river regressor."""

from collections.abc import Iterator
from typing import Any

from thresher.estimators import online_hard_thresholding
from thresher.integrations.river.regressor import RiverRegressor
from thresher.online.step_size import StepSize


class OnlineHardThresholding(RiverRegressor):
    r"""Algorithm 1 of Yang and Sun (2026) for river: rows are dictionaries, and features may come and go.

    After every row, the coefficients are those of ``thresher.OnlineHardThresholding``. A feature that a row does not
    have is zero in it; a feature that was never seen before gets a new column, in which all earlier rows are zero. With
    a number for `sparsity`, the result is that of a model that knew all features from the first row on.

    A row costs O(d^2) in blocks of BLAS-3 and O(d + K s^2), a prediction O(s). Memory is 8 d^2 bytes, a quarter more
    while features appear.

    Parameters
    ----------
    sparsity : int or "auto", default="auto"
        Features that are kept, s.
    n_steps : int, default=5
        Steps per round, K.
    step_size : float, callable or "auto", default="auto"
        Step size eta; ``"auto"`` is certified.
    n_warmup : int, default=0
        Rows before the first round, t0.
    round_size : int, default=1
        Rows per round.
    rule : {"hard", "pursuit", "reciprocal"}, default="hard"
        How the estimate moves.
    fit_intercept, standardize : bool, default=False
        Whether there is an intercept, and whether steps are taken in units of the column scales.
    dtype : {"float64", "float32"}, default="float64"
        Storage of the co-moments.

    All mean what they mean in ``thresher.OnlineHardThresholding``.

    Attributes
    ----------
    weights : dict
        The nonzero coefficients by feature.
    intercept : float
    features : list
        All features seen so far; the columns of `model`, in order.
    model : thresher.OnlineHardThresholding
        The estimator within.

    Examples
    --------
    >>> from river import datasets
    >>> from thresher.integrations.river import OnlineHardThresholding
    >>> model = OnlineHardThresholding(3, fit_intercept=True, standardize=True)
    >>> for x, y in datasets.TrumpApproval().take(200):
    ...     model.learn_one(x, y)
    >>> len(model.weights)
    3
    """

    def __init__(
        self,
        sparsity: int | str = "auto",
        n_steps: int = 5,
        step_size: StepSize = "auto",
        n_warmup: int = 0,
        round_size: int = 1,
        rule: str = "hard",
        fit_intercept: bool = False,
        standardize: bool = False,
        dtype: str = "float64",
    ) -> None:
        self.sparsity = sparsity
        self.n_steps = n_steps
        self.step_size = step_size
        self.n_warmup = n_warmup
        self.round_size = round_size
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.dtype = dtype
        self._wrap(online_hard_thresholding.OnlineHardThresholding)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"sparsity": 3, "fit_intercept": True, "standardize": True}
        yield {"sparsity": 3, "rule": "pursuit", "round_size": 4, "fit_intercept": True, "standardize": True}
