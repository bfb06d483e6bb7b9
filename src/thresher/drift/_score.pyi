from thresher._utils.arrays import Floats, Integers

def standardised(
    buffer: Floats,
    root: Floats,
    responses: Floats,
    shift: Floats,
    shift_y: float,
    features: Integers,
    origin: Floats,
    scale: Floats,
    origin_y: float,
    scale_y: float,
    start: int,
    stop: int,
) -> Floats: ...
def score(rows: Floats, earlier: Floats, weights: Floats, losses: Floats, errors: Floats) -> tuple[float, float]: ...
def count(rows: Floats, moments: Floats, squares: Floats, half_lives: Floats, largest: Floats) -> None: ...
def is_finite(moments: Floats, coef: Floats, weights: Floats, losses: Floats) -> bool: ...
