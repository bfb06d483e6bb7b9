"""How large sigma_x is: the noise constant of the bounds, from the noise and the columns."""

import math

from thresher._utils.checks import check_positive_integer
from thresher.theory._checks import check_numbers


def noise_constant(d: int | tuple[int, int], *, sigma: float, scale: float, gaussian: bool = False) -> float:
    """What is sigma_x? A bound on sqrt(E max_j (sum_i eps_i X_ij)^2 / n), the same for all n.

    For d columns that are sub-Gaussian, E exp(a X_ij) <= exp(a^2 scale^2 / 2) for all a, and noise with
    E eps^2 <= sigma^2: scale sigma sqrt(2 (log(2 d) + 1)). This is Proposition (prop:subW) with a constant, which the
    paper leaves open. Rows are independent and have mean zero, columns may depend on each other, and the noise may have
    any distribution. But the noise must be independent of X, which the proof uses and the proposition does not say; and
    C sigma^2 scale^2 log d, as it is printed, is zero for d = 1.

    For matrices, d = (d1, d2) with independent entries, it bounds the spectral norm of Assumption
    (assumption:noise_lowrank): scale sigma sqrt(8 ((d1 + d2) log 9 + log 2 + 1)), by nets of the two spheres.
    With `gaussian`, X is normal with standard deviations up to `scale`, and the bounds are those of normal tails:
    scale sigma sqrt(2 (log d + 1)) and scale sigma sqrt((sqrt(d1) + sqrt(d2))^2 + 1).

    >>> round(noise_constant(1000, sigma=1.0, scale=1.0), 2), round(noise_constant((50, 50), sigma=1.0, scale=1.0), 1)
    (4.15, 42.1)
    >>> round(noise_constant((50, 50), sigma=1.0, scale=1.0, gaussian=True), 1)
    14.2
    """
    check_numbers(zero_allowed=True, sigma=sigma, scale=scale)
    if isinstance(d, tuple):
        rows, columns = (check_positive_integer(side, "d") for side in d)
        if gaussian:
            squared = (math.sqrt(rows) + math.sqrt(columns)) ** 2 + 1.0
        else:
            squared = 8.0 * ((rows + columns) * math.log(9.0) + math.log(2.0) + 1.0)
    else:
        n = check_positive_integer(d, "d")
        squared = 2.0 * (math.log(n if gaussian else 2.0 * n) + 1.0)
    return scale * sigma * math.sqrt(squared)
