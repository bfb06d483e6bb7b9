"""What every baseline must do, whatever it computes."""

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

from baseline_contract import check_cuts, check_interrupt, check_saving, check_size
from thresher import baselines
from thresher.baselines._gradient_steps import GradientSteps
from thresher.baselines._lasso_stream import LassoStream
from thresher.io.schema import CheckpointError, check
from thresher.online._running import RunningSums

# Settings that are not the defaults, for few rows of few columns.
VECTOR_BASELINES = [
    # one row at a time
    baselines.DualAveraging(0.1, gamma=9.0, rho=0.01),
    baselines.AdaGradL1(0.02, step_size=0.3),
    baselines.IncrementalProximal(0.1, power=0.6, average=True),
    baselines.FTRLProximal(2.0, 0.1, alpha=0.2, beta=0.5),
    baselines.StreamingSparseRegression(1.5, strong_convexity=0.4),
    # lassos from summaries
    baselines.OnlineLasso(0.7, n_warmup=3, round_size=2, fit_intercept=True),
    baselines.OnlineLinearizedLasso(1.2, n_warmup=20, n_wait=5, n_steps=2),
    baselines.OSLasso(30, n_steps=3, step_size=0.05, cv=3),
    baselines.OSLasso(25, step_size=0.01, update="samples", average=True, cv=2),
    baselines.AdaptiveDantzig(5, n_observed=12, penalty=0.1, noise=0.5, n_warmup=10, random_state=3),
    # thresholding
    baselines.IHT(4, step_size=0.3, fit_intercept=True),
    baselines.NIHT(4, c=0.2, shrink=1.5, standardize=True, tol=1e-6),
    # intervals
    baselines.DebiasedSGD([0.3, 0.05], features=[0], batch_size=3, step_size=0.1, power=0.6),
    baselines.OnlineDebiasedLasso([0.4, 1.2], features=[0], batch_size=28),
]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_baseline = pytest.mark.parametrize("baseline", VECTOR_BASELINES, ids=lambda baseline: type(baseline).__name__)


def test_every_baseline_is_listed_and_loads():
    listed = {type(baseline).__name__ for baseline in VECTOR_BASELINES}
    assert listed <= set(baselines.__all__)
    for name in baselines.__all__:
        assert getattr(baselines, name).__doc__


LASSO, STEPS = LassoStream(7, centred=True), GradientSteps(np.ones(2), np.array([1, 4]), 3, 7)


@pytest.mark.parametrize(
    ("kernel", "change"),
    [
        (LASSO, {"sums": None}),
        (LASSO, {"sums": RunningSums(8)}),
        (LASSO, {"coef": np.zeros(8)}),
        (LASSO, {"columns": np.zeros((7, 6))}),
        (LASSO, {"columns": np.zeros((6, 7))}),
        (LASSO, {"columns": np.zeros((8, 7)), "features": np.arange(8)}),
        (LASSO, {"columns": None}),
        (LASSO, {"n_kept": -1}),
        (LASSO, {"n_kept": 8, "features": np.arange(7)}),
        (LASSO, {"n_kept": 2, "features": np.array([3, 3, 0, 0, 0, 0, 0])}),
        (LASSO, {"n_kept": 1, "features": np.full(7, 7)}),
        (LASSO, {"n_kept": 1, "features": np.full(7, -1)}),
        (STEPS, {"index": np.array([1, 7])}),
        (STEPS, {"index": np.array([-1, 1])}),
        (STEPS, {"index": np.array([1])}),
        (STEPS, {"grid": np.ones(3)}),
        (STEPS, {"chosen": 2}),
        (STEPS, {"chosen": -1}),
        (STEPS, {"n_waiting": 3}),
        (STEPS, {"n_waiting": -1}),
        (STEPS, {"waiting": np.zeros((3, 8))}),
        (STEPS, {"waiting": np.zeros((4, 7))}),
        (STEPS, {"iterates": np.zeros((4, 8))}),
        (STEPS, {"iterates": np.zeros((3, 7))}),
        (STEPS, {"averages": np.zeros((2, 7))}),
        (STEPS, {"averages": np.zeros((3, 6))}),
        (STEPS, {"scales": None}),
    ],
)
def test_kernels_refuse_a_state_in_which_they_would_read_outside_an_array(kernel, change):
    state = kernel.__getstate__()
    check(type(kernel), state, None, lambda value: True)
    with pytest.raises(CheckpointError):
        check(type(kernel), state | change, None, lambda value: True)


@pytest.mark.parametrize("baseline", VECTOR_BASELINES[:5], ids=lambda baseline: type(baseline).__name__)
def test_methods_for_single_rows_refuse_arrays_of_another_length(baseline, rng):
    model = clone(baseline).partial_fit(rng.standard_normal((40, 5)), rng.standard_normal(40))
    arrays = [name for name, value in vars(model).items() if name[0] == "_" and isinstance(value, np.ndarray)]
    for name in ("_coef", "_totals", *arrays):
        damaged = copy.deepcopy(model)
        setattr(damaged, name, None if name == "_totals" else np.zeros(4))
        with pytest.raises(ValueError, match="do not fit together"):
            damaged.partial_fit(np.ones((1, 5)), [1.0])


@parametrize_with_checks(VECTOR_BASELINES)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def problem(rng, n=330, d=20):
    X = rng.standard_normal((n, d))
    return X, X[:, 3] - 2.0 * X[:, 7] + 0.5 * rng.standard_normal(n)


def state(model):
    return pickle.dumps({name: value for name, value in vars(model).items() if name != "_lock"})


@every_baseline
def test_any_cut_gives_bit_identical_coefficients(rng, baseline):
    whole = check_cuts(baseline, *problem(rng), [1] * 330, [64, 1, 65, 130, 70], [5, 325])
    assert np.isfinite(whole.coef_).all()
    assert whole.coef_.any()


@every_baseline
def test_saving_in_the_middle_and_kinds_of_input_change_nothing(rng, baseline):
    X, y = problem(rng)
    X[np.abs(X) < 0.7] = 0.0
    whole = check_saving(baseline, X, y)
    names = [f"x{j}" for j in range(20)]
    for frame in (
        scipy.sparse.csr_array(X),
        pd.DataFrame(X, columns=names),
        pl.DataFrame(X, schema=names),
        np.asfortranarray(X),
    ):
        other = clone(baseline).partial_fit(frame, y)
        np.testing.assert_array_equal(other.coef_, whole.coef_)
        np.testing.assert_allclose(other.predict(frame), whole.predict(X), rtol=1e-12)
    np.testing.assert_allclose(whole.predict(X), X @ whole.coef_ + whole.intercept_, rtol=1e-12)
    np.testing.assert_array_equal(whole.support_, np.flatnonzero(whole.coef_))


@every_baseline
def test_rejected_input_changes_nothing(rng, baseline):
    X, y = problem(rng)
    model = clone(baseline).partial_fit(X[:200], y[:200])
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
        assert set(vars(broken)) | {"_checked_parameters"} == set(vars(model))
        np.testing.assert_array_equal(broken.coef_, model.coef_)
    assert state(model) == before
    with pytest.raises(NotFittedError):
        clone(baseline).predict(X)


@every_baseline
def test_the_state_does_not_grow(rng, baseline):
    check_size(baseline, *problem(rng, n=4200))


@every_baseline
def test_an_interrupt_falls_between_blocks(rng, baseline):
    check_interrupt(baseline, *problem(rng, n=1024))


# Whose parameters are without units, so that ordinary units do not matter.
UNITLESS = [
    baselines.OnlineLasso(0.7, fit_intercept=True),
    baselines.OnlineLinearizedLasso(1.2, n_warmup=60, n_wait=5),
    baselines.OnlineDebiasedLasso([0.4, 1.2], batch_size=28),
    baselines.OSLasso(330),
    baselines.IHT(3),
    baselines.NIHT(3),
]


@pytest.mark.parametrize("baseline", UNITLESS, ids=lambda baseline: type(baseline).__name__)
@pytest.mark.parametrize(("unit_x", "unit_y"), [(1e6, 1e-6), (1e-6, 1e6), (1e6, 1e6), (1e-6, 1e-6)])
def test_ordinary_units_do_not_matter(rng, baseline, unit_x, unit_y):
    X, y = problem(rng)
    expected = clone(baseline).partial_fit(X, y).coef_
    scaled = clone(baseline).partial_fit(unit_x * X, unit_y * y).coef_
    np.testing.assert_allclose(scaled * unit_x / unit_y, expected, atol=1e-6)
    assert {3, 7} <= set(np.flatnonzero(expected))


@every_baseline
def test_huge_and_tiny_data_leave_finite_coefficients(rng, baseline):
    X, y = problem(rng, n=200)
    for scale_x, scale_y in ((1e100, 1.0), (1.0, 1e120), (1e-100, 1.0), (1e60, 1e-60), (0.0, 1.0), (1.0, 0.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = clone(baseline).partial_fit(scale_x * X, scale_y * y)
            assert np.isfinite(model.coef_).all()
            assert model.n_samples_seen_ == 200
            if scale_x == 0.0 or scale_y == 0.0:
                assert not model.coef_.any()
