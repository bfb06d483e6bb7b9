from numpy.random import Generator

from thresher._utils.arrays import Floats, Integers
from thresher.summaries.moments import Moments

class Columns:
    weight: float
    products: Floats
    def __init__(self, moments: Moments, scale: Floats, scale_y: float) -> None: ...
    def residual(self, coef: Floats, least: float) -> float: ...

class Chain:
    coef: Floats
    left: Floats
    origin: Integers
    variance: float
    n_draws: int
    mean: Floats
    square: Floats
    inclusion: Floats
    drawn: Floats
    drawn_left: Floats
    explained: float
    noise: float
    level: float
    swing: float
    def __init__(
        self,
        columns: Columns,
        shares: Floats,
        concentration: Floats,
        freedom: float,
        least: float,
        start: Floats,
        generator: Generator,
        direction: Floats | None = None,
    ) -> None: ...
    def run(self, n_sweeps: int, n_moves: int, count: bool) -> None: ...
