"""How many steps a round has, and how long they are: numbers, schedules, or certified steps."""

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Literal

import numpy as np

from thresher._utils.arrays import Alias, Floats

if TYPE_CHECKING:
    StepSize = float | Callable[[int, int], float] | Literal["auto"]
    StepCount = int | Callable[[int], int]
else:
    StepSize, StepCount = Alias("StepSize"), Alias("StepCount")

# What the kernels take for "find a step that certainly does not raise the loss".
CERTIFIED = 0.0


def _check_value(value: float, name: str) -> None:
    if not (np.isfinite(value) and value > 0.0):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")


def _count(n_steps: Callable[[int], int], t: int) -> int:
    """K_t, checked."""
    value = n_steps(t)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"n_steps({t}) must be an integer of at least 1, got {value!r}")
    return int(value)


def step_table(step_size: StepSize, first_round: int, n_rounds: int, n_steps: StepCount) -> Floats:
    """Step sizes as a (rounds, K) table; a single row if all rounds have the same.

    A callable is asked for eta_{t,k} of rounds t = first_round, ... (counted from one) and steps k = 0, ..., K - 1.
    Where rounds have different numbers of steps, the rows of the shorter ones end with NaN.
    """
    rounds = range(first_round, first_round + n_rounds)
    counts = [_count(n_steps, t) for t in rounds] if callable(n_steps) else [n_steps] * n_rounds
    if not callable(step_size) and not callable(n_steps):
        rounds, counts = range(1), [n_steps]
    table = np.full((max(len(counts), 1), max(counts, default=1)), np.nan)
    for row, t, count in zip(table, rounds, counts, strict=False):
        if callable(step_size):
            for k in range(count):
                row[k] = value = float(step_size(t, k))
                _check_value(value, f"step_size({t}, {k})")
        else:
            row[:count] = CERTIFIED if isinstance(step_size, str) else float(step_size)
    return table


def safe_step(second_moment: Floats, scale: Floats, sparsity: int) -> float:
    """A step that cannot raise the loss between any two s-sparse points: 1 / L on 2s-sparse vectors.

    L is bounded by the largest row sum of the 2s largest |G_jk| / (scale_j scale_k): Gershgorin, on every 2s x 2s
    submatrix at once. Columns of scale zero cannot move and do not count.
    """
    d = len(second_moment)
    width, bound = min(2 * max(sparsity, 1), d), 0.0
    unit = np.divide(1.0, scale, out=np.zeros(d), where=scale > 0.0)
    for start in range(0, d, 64):
        rows = np.abs(second_moment[start : start + 64] * unit) * unit[start : start + 64, None]
        bound = max(bound, float(np.partition(rows, d - width, axis=1)[:, d - width :].sum(axis=1).max()))
    return 1.0 / bound if bound > 0.0 else np.inf
