import os
import signal

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # or scikit-learn skips one of its checks

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("thresher", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("thresher")

# A shell that starts this in the background has Ctrl-C ignored, and tests that wait for it would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng():
    return np.random.default_rng(20260815)
