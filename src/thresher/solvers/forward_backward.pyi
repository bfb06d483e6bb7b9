from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Support = tuple[int, ...]

class Swap(NamedTuple):
    place: int
    unit: int
    gain: float

class Penalty(NamedTuple):
    per_parameter: float
    by_size: NDArray[np.float64]

class Basis:
    order: list[int]
    residual: float
    def add_best(self) -> bool: ...
    def freedom(self, units: Support | None = None) -> int: ...
    def best_swap(self) -> Swap | None: ...
    def eliminated(self) -> Iterator[tuple[Support, float]]: ...
    def coefficients(self) -> NDArray[np.float64]: ...
    def truncated(self, size: int) -> Self: ...
    def restarted(self, units: Support) -> Self: ...

class Found:
    size: int
    freedom: int
    residual: float
    criterion: float
    @property
    def units(self) -> Support: ...

class Search:
    found: list[Found]
    def __init__(
        self, basis: Basis, weight: float, penalty: Penalty, n_most: int, exhaustive: bool = False
    ) -> None: ...
    def run(self) -> Basis: ...
    def measures(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

def best_subset(basis: Basis, size: int, n_most: int) -> Basis: ...
