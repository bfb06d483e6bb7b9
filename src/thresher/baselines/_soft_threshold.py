"""Soft thresholding: the proximal map of the l1 norm."""

from thresher._utils.compile import compiled


@compiled
def soft(value: float, threshold: float) -> float:
    """Sign(value) max(|value| - threshold, 0)."""
    if value > threshold:
        return value - threshold
    if value < -threshold:
        return value + threshold
    return 0.0
