"""What every rival must do, whatever it computes."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import thresher.rivals
from rival_contract import check_cuts, check_interrupt, check_saving, check_size
from thresher import rivals

# Settings that are not the defaults, for few rows of few columns.
VECTOR_RIVALS = [
    # one row at a time
    rivals.DualAveraging(0.1, gamma=9.0, rho=0.01),
    rivals.AdaGradL1(0.02, step_size=0.3),
    rivals.IncrementalProximal(0.1, power=0.6, average=True),
    rivals.TruncatedGradient(0.1, period=7, ceiling=3.0),
    rivals.FTRLProximal(2.0, 0.1, alpha=0.2, beta=0.5),
    rivals.StreamingSparseRegression(1.5, strong_convexity=0.4),
    # lassos from summaries
    rivals.OnlineLasso(0.7, n_warmup=3, round_size=2, fit_intercept=True),
    rivals.OnlineLinearizedLasso(1.2, n_warmup=20, n_wait=5, n_steps=2),
    rivals.OSLasso(30, n_steps=3, step_size=0.05, cv=3),
    rivals.OSLasso(25, step_size=0.01, update="samples", average=True, cv=2),
    rivals.AdaptiveDantzig(5, n_observed=12, penalty=0.1, noise=0.5, n_warmup=10, random_state=3),
    # thresholding
    rivals.CoSaMP(3, fit_intercept=True, standardize=True, max_iter=50),
    rivals.HTP(4, step_size=0.4, fit_intercept=True),
    rivals.IHT(4, step_size=0.3, fit_intercept=True),
    rivals.JainIHT(2, condition=0.3, standardize=True, tol=1e-7),
    rivals.NIHT(4, c=0.2, shrink=1.5, standardize=True, tol=1e-6),
    # intervals
    rivals.DebiasedSGD([0.3, 0.05], features=[0], batch_size=3, step_size=0.1, power=0.6),
    rivals.DebiasedSGD([0.05, 0.2], features=[0], batch_size=2, update="radar", radius=2.0),
    rivals.OnlineDebiasedLasso([0.4, 1.2], features=[0], batch_size=28),
]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_rival = pytest.mark.parametrize("rival", VECTOR_RIVALS, ids=lambda rival: type(rival).__name__)


def test_every_rival_is_listed_and_loads():
    listed = {type(rival).__name__ for rival in VECTOR_RIVALS}
    assert listed <= set(thresher.rivals.__all__) == set(dir(thresher.rivals))
    for name in thresher.rivals.__all__:
        assert getattr(thresher.rivals, name).__doc__
    with pytest.raises(AttributeError, match="NoSuch"):
        _ = thresher.rivals.NoSuch


@parametrize_with_checks(VECTOR_RIVALS)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def problem(rng, n=330, d=20):
    X = rng.standard_normal((n, d))
    return X, X[:, 3] - 2.0 * X[:, 7] + 0.5 * rng.standard_normal(n)


def state(model):
    return pickle.dumps(vars(model))


@every_rival
def test_any_cut_gives_bit_identical_coefficients(rng, rival):
    whole = check_cuts(rival, *problem(rng), [1] * 330, [64, 1, 65, 130, 70], [5, 325])
    assert np.isfinite(whole.coef_).all()
    assert whole.coef_.any()


@every_rival
def test_saving_in_the_middle_and_kinds_of_input_change_nothing(rng, rival):
    X, y = problem(rng)
    X[np.abs(X) < 0.7] = 0.0
    whole = check_saving(rival, X, y)
    names = [f"x{j}" for j in range(20)]
    for frame in (
        scipy.sparse.csr_array(X),
        pd.DataFrame(X, columns=names),
        pl.DataFrame(X, schema=names),
        np.asfortranarray(X),
    ):
        other = clone(rival).partial_fit(frame, y)
        np.testing.assert_array_equal(other.coef_, whole.coef_)
        np.testing.assert_allclose(other.predict(frame), whole.predict(X), rtol=1e-12)
    np.testing.assert_allclose(whole.predict(X), X @ whole.coef_ + whole.intercept_, rtol=1e-12)
    np.testing.assert_array_equal(whole.support_, np.flatnonzero(whole.coef_))


@every_rival
def test_rejected_input_changes_nothing(rng, rival):
    X, y = problem(rng)
    model = clone(rival).partial_fit(X[:200], y[:200])
    before = state(model)
    bad = X[200:].copy()
    bad[3, 4] = np.nan
    for rows, responses, message in (
        (bad, y[200:], "NaN"),
        (X[200:, :5], y[200:], "5 features"),
        (X[200:], y[200:300], "inconsistent"),
        (1e200 * X[200:], y[200:], "rescale"),
        (np.full((2, 20), "a"), y[:2], "string"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(rows, responses)
        if rows.shape[1] == 20:  # fit may take another number of columns
            with pytest.raises(ValueError, match=message):
                model.fit(rows, responses)
    for name in model.get_params():
        setattr(broken := copy.deepcopy(model), name, object())
        with pytest.raises((ValueError, TypeError), match=name):
            broken.partial_fit(X[200:], y[200:])
        assert set(vars(broken)) == set(vars(model))
        np.testing.assert_array_equal(broken.coef_, model.coef_)
    assert state(model) == before
    with pytest.raises(NotFittedError):
        clone(rival).predict(X)


@every_rival
def test_the_state_does_not_grow(rng, rival):
    check_size(rival, *problem(rng, n=4200))


@every_rival
def test_an_interrupt_falls_between_blocks(rng, rival):
    check_interrupt(rival, *problem(rng, n=1024))


@every_rival
def test_huge_and_tiny_data_leave_finite_coefficients(rng, rival):
    X, y = problem(rng, n=200)
    for scale_x, scale_y in ((1e100, 1.0), (1.0, 1e120), (1e-100, 1.0), (1e60, 1e-60), (0.0, 1.0), (1.0, 0.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = clone(rival).partial_fit(scale_x * X, scale_y * y)
            assert np.isfinite(model.coef_).all()
            assert model.n_samples_seen_ == 200
            if scale_x == 0.0 or scale_y == 0.0:
                assert not model.coef_.any()
