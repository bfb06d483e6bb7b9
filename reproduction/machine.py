"""The machine and the software that compute results."""

import os
import platform
from functools import cache
from importlib.metadata import version

from thresher import __version__


@cache
def machine() -> str:
    """The processor and the system, without a name."""
    return f"{_processor()}, {os.cpu_count()} processors, {platform.system()}"


@cache
def software() -> str:
    """Versions of the packages that do the computing."""
    others = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"thresher {__version__}, Python {platform.python_version()}, {others}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
