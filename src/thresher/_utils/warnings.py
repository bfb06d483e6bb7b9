"""Warnings that point at the line of the user, however deep they are raised."""

import sys
import warnings


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the first frame outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("thresher."):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
