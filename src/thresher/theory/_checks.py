"""What the numbers of the theory have to satisfy."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A bound this close to an integer counts as that integer: rounding must not turn "equal" into "strictly above".
ROUNDING = 1e-12


def check_numbers(*, zero_allowed: bool = False, **values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and (value > 0.0 or (zero_allowed and value == 0.0))):
            kind = "a finite number, zero or more" if zero_allowed else "a positive finite number"
            raise ValueError(f"{name} must be {kind}, got {value!r}")


def check_delta(delta: float) -> None:
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}; `contraction` gives it, and more steps K lower it.")


def as_rounds(t: ArrayLike, name: str = "t") -> NDArray[np.int64]:
    rounds = np.asarray(t)
    if rounds.dtype.kind not in "iu" or (rounds < 0).any():
        raise ValueError(f"{name} must hold integers, zero or more, got {t!r}")
    return rounds.astype(np.int64)


def check_step(eta: float, smoothness: float) -> None:
    check_numbers(eta=eta, smoothness=smoothness)
    if eta * smoothness > 1.0 + ROUNDING:
        raise ValueError(f"eta = {eta:.6g} exceeds 1/L = {1.0 / smoothness:.6g}; take eta <= 1/L.")


def curvature_seen(eta: float, alpha: float, smoothness: float) -> float:
    """Eta times alpha, after the checks on both."""
    check_step(eta, smoothness)
    check_numbers(alpha=alpha)
    if alpha > smoothness * (1.0 + ROUNDING):
        raise ValueError(f"alpha = {alpha:.6g} exceeds L = {smoothness:.6g}; alpha is the smaller curvature.")
    return min(1.0, eta * alpha)
