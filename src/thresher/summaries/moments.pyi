from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.summaries._shifted import State

class Moments:
    weight: float
    total: float
    squares: NDArray[np.float64]
    products: NDArray[np.float64]
    dtype: np.dtype[Any]
    def __init__(self, state: State, centred: bool) -> None: ...
    @property
    def n_features(self) -> int: ...
    def column(self, j: int) -> NDArray[np.float64]: ...
    def toward(self, coef: NDArray[np.float64]) -> Moments: ...
