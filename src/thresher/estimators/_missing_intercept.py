"""Whether a model without an intercept should have one."""

import math

from thresher.inference.diagnostics import Finding
from thresher.summaries.gram import Gram


def missing_intercept(summary: Gram, centred: bool) -> Finding | None:
    """A warning if a model has no intercept and the mean of the response exceeds its standard deviation, or None."""
    if centred or summary.weight == 0.0:
        return None
    mean, deviation = summary.mean_y, math.sqrt(summary.response_variance())
    if abs(mean) <= deviation:
        return None
    sentence = (
        f"The model has none, and the mean of the response, {mean:.4g}, is far from zero (standard deviation "
        f"{deviation:.4g}). Use fit_intercept=True, or --fit-intercept on the command line."
    )
    return Finding("intercept", "warning", sentence, {"mean": mean, "deviation": deviation})
