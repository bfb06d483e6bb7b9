import os
import signal

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # or scikit-learn skips one of its checks

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from thresher import Gram

settings.register_profile("thresher", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("thresher")

# A shell that starts this in the background has Ctrl-C ignored, and tests that wait for it would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def interrupt_at_fold(monkeypatch):
    """A function that lets Ctrl-C fall while a Gram folds its rows for the n-th time from now on."""

    def interrupt(n):
        fold, n_folds = Gram._fold, iter(range(1, 1_000_000))

        def fold_and_interrupt(gram):
            if next(n_folds) == n:
                signal.raise_signal(signal.SIGINT)
            return fold(gram)

        monkeypatch.setattr(Gram, "_fold", fold_and_interrupt)

    return interrupt


@pytest.fixture
def rng():
    return np.random.default_rng(20260815)
