"""What the benchmarks share."""

import os
import platform
import subprocess
import sys
import time

import numpy as np
from scipy.linalg.blas import dsyrk


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def fold_with_dsyrk(X):
    """The floor of any exact method: second moments of the rows, and nothing else."""
    gram = np.zeros((X.shape[1], X.shape[1]), order="F")
    for start in range(0, len(X), 256):
        dsyrk(1.0, X[start : start + 256].T, beta=1.0, c=gram, overwrite_c=1)


def run_python(code, **environment):
    """What a program in a process of its own prints, as a number."""
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return float(result.stdout)


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def machine():
    return {
        "processor": platform.machine(),
        "cores": cores(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
