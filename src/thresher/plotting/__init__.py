"""Pictures and pages of fitted models."""

from thresher.plotting.displays import CriterionDisplay, InclusionDisplay, IntervalsDisplay, PathDisplay
from thresher.plotting.drift_display import DriftDisplay
from thresher.plotting.history_displays import CoefficientsDisplay, PrequentialDisplay, SupportDisplay

__all__ = [
    "CoefficientsDisplay",
    "CriterionDisplay",
    "DriftDisplay",
    "InclusionDisplay",
    "IntervalsDisplay",
    "PathDisplay",
    "PrequentialDisplay",
    "SupportDisplay",
]
