"""How fast rows are learned from on this machine, compared with the least that any exact method has to do."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from thresher.estimators.online_hard_thresholding import OnlineHardThresholding
from thresher.estimators.sparse_regressor import SparseRegressor
from thresher.io.sources.synthetic import SparseLinearStream

# Features that hard thresholding keeps, if there are as many columns.
SPARSITY = 50


@dataclass(frozen=True)
class Speed:
    """Rows per second, and the time compared with that of folding the rows into a Gram matrix by BLAS."""

    use: str
    n_features: int
    rows_per_second: float
    ratio: float


def fold_with_dsyrk(X: NDArray[np.float64]) -> None:
    """The floor: second moments of the rows, and nothing else."""
    gram = np.zeros((X.shape[1], X.shape[1]), order="F")
    for start in range(0, len(X), 256):
        dsyrk(1.0, X[start : start + 256].T, beta=1.0, c=gram, overwrite_c=1)


def measure(n_features: int, n_rows: int = 10_000, repeats: int = 5) -> Iterator[Speed]:
    """Medians over repeats that alternate, because machines are noisy."""
    X, y = SparseLinearStream(n_features, min(15, n_features), seed=0).draw(n_rows)

    def learn(new: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: new().partial_fit(X, y)

    kept = min(SPARSITY, n_features)
    uses: dict[str, Callable[[], Any]] = {
        "SparseRegressor()": SparseRegressor,
        f"OnlineHardThresholding({kept}, step_size=0.001)": partial(OnlineHardThresholding, kept, step_size=0.001),
    }
    calls = {"floor": lambda: fold_with_dsyrk(X)} | {use: learn(new) for use, new in uses.items()}
    for call in calls.values():  # compile, and wake up
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    for use in uses:
        ratio = statistics.median(a / b for a, b in zip(times[use], times["floor"], strict=True))
        yield Speed(use, n_features, n_rows / statistics.median(times[use]), ratio)
