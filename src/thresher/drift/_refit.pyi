import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats

def refit(
    moments: Floats,
    squares: Floats,
    largest: Floats,
    ridge: Floats,
    overall: NDArray[np.uint8],
    centred: bool,
    coef: Floats,
    n_rows: Floats,
    time: int,
) -> None: ...
