"""What all baselines must do, whether they estimate vectors or matrices."""

import copy
import pickle
import signal
import tempfile
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from thresher import load
from thresher.io.encoding import encode


def check_cuts(baseline, X, y, *cuts):
    """However rows are cut into calls, the result is the same to the last bit. Returns it."""
    whole = clone(baseline).partial_fit(X, y)
    for sizes in cuts:
        pieces = clone(baseline)
        for a, b in pairwise(np.cumsum([0, *sizes])):
            pieces.partial_fit(X[a:b], y[a:b])
        np.testing.assert_array_equal(pieces.coef_, whole.coef_)
        assert pieces.intercept_ == whole.intercept_
        assert pieces.n_samples_seen_ == len(y)
    return whole


def through_a_file(model):
    """What comes back from a file."""
    with tempfile.TemporaryDirectory() as directory:
        model.save(f"{directory}/m")
        return load(f"{directory}/m")


def check_saving(baseline, X, y):
    """Saving in the middle, to a file or not, changes nothing, nor are rows changed. Returns the result."""
    X_before, y_before = X.copy(), y.copy()
    whole = clone(baseline).partial_fit(X, y)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)
    half = clone(baseline).partial_fit(X[:170], y[:170])
    for again in (through_a_file(half), pickle.loads(pickle.dumps(half)), copy.copy(half), copy.deepcopy(half)):
        assert type(again) is type(half)
        assert encode(again) == encode(half)
        np.testing.assert_array_equal(again.partial_fit(X[170:], y[170:]).coef_, whole.coef_)
    assert clone(baseline).fit(X, y).n_samples_seen_ == len(y)
    return whole


def check_size(baseline, X, y):
    """The state does not grow."""
    model = clone(baseline).partial_fit(X[:600], y[:600])
    early = len(pickle.dumps(model))
    assert len(pickle.dumps(model.partial_fit(X[600:], y[600:]))) <= 1.02 * early + 400


def check_interrupt(baseline, X, y):
    """An interrupt in the middle of learning waits for the end of its block, and the stream can go on from there."""
    model = clone(baseline).partial_fit(X[:1], y[:1])
    learn, calls = model._learn, []

    def interrupted(rows, responses):
        calls.append(len(responses))
        if sum(calls) > 300:
            signal.raise_signal(signal.SIGINT)
        result = learn(rows, responses)
        if sum(calls) > 300:
            signal.raise_signal(signal.SIGINT)
        return result

    model._learn = interrupted
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[1:], y[1:])
    del model._learn
    seen = model.n_samples_seen_
    assert 300 < seen < len(y)
    assert seen == 1 + sum(calls)
    np.testing.assert_array_equal(model.coef_, clone(baseline).partial_fit(X[:seen], y[:seen]).coef_)
    model.partial_fit(X[seen:], y[seen:])
    np.testing.assert_array_equal(model.coef_, clone(baseline).partial_fit(X, y).coef_)
