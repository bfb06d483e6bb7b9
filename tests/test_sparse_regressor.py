import copy
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from oracles import algorithm_1, last, shown
from thresher import Gram, SparseRegressor
from thresher.streams.synthetic import SparseLinearStream


@parametrize_with_checks(
    [
        SparseRegressor(),
        SparseRegressor(3, step_size=0.1, n_steps=2, round_size=4, n_warmup=5, dtype="float32"),
        SparseRegressor(4, fit_intercept=False, standardize=False, n_steps=9),
    ]
)
@pytest.mark.filterwarnings("ignore:sparsity=:UserWarning")  # scikit-learn's data often have two columns
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def problem(rng, n=600, d=40, active=4):
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    coef = np.zeros(d)
    coef[rng.choice(d, active, replace=False)] = rng.choice([-2.0, -1.0, 1.0, 2.0], active)
    return X, X @ coef + 3.0 + rng.standard_normal(n), coef


STEP_RULES = ["auto", 0.05, lambda t, k: 0.1 / (1 + k + 0.01 * t)]


@pytest.mark.parametrize("step_size", STEP_RULES)
@pytest.mark.parametrize("round_size", [1, 7])
@pytest.mark.parametrize("plain", [False, True])
def test_any_cut_gives_bit_identical_coefficients(rng, step_size, round_size, plain):
    X, y, _ = problem(rng)
    w = rng.uniform(0.5, 2.0, len(X))
    parameters = {"sparsity": 6, "step_size": step_size, "round_size": round_size, "n_warmup": 11}
    if plain:
        parameters |= {"fit_intercept": False, "standardize": False}
    whole = SparseRegressor(**parameters).partial_fit(X, y, w)
    for sizes in ([1] * 600, [64, 1, 63, 128, 300, 44], [7] * 80 + [40], [5, 595]):
        edges = np.cumsum([0, *sizes])
        pieces = SparseRegressor(**parameters)
        for a, b in pairwise(edges):
            pieces.partial_fit(X[a:b], y[a:b], w[a:b])
        np.testing.assert_array_equal(pieces.coef_, whole.coef_)
        assert pieces.intercept_ == whole.intercept_
        assert pieces.n_rounds_ == whole.n_rounds_ == (600 - 11) // round_size
        assert pieces.n_samples_seen_ == 600


def test_partial_fit_gives_the_iterates_of_algorithm_1(rng):
    X, y, _ = problem(rng)
    model = SparseRegressor(8, n_steps=3, step_size=0.02, n_warmup=40, fit_intercept=False, standardize=False)
    expected = last(algorithm_1(X, y, 8, 3, 0.02, 40))
    np.testing.assert_allclose(model.partial_fit(X, y).coef_, expected, rtol=0, atol=1e-9 * abs(expected).max())
    assert model.step_size_ == 0.02


def test_fit_is_least_squares_on_the_support_it_finds(rng):
    X, y, coef = problem(rng)
    w = rng.uniform(0.1, 2.0, len(X))
    model = SparseRegressor(4).fit(X, y, w)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))
    oracle = LinearRegression().fit(X[:, model.support_], y, w)
    np.testing.assert_allclose(model.coef_[model.support_], oracle.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, oracle.intercept_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), oracle.predict(X[:, model.support_]), rtol=1e-9)
    no_intercept = SparseRegressor(4, fit_intercept=False, standardize=False).fit(X, y, w)
    S = no_intercept.support_
    oracle = LinearRegression(fit_intercept=False).fit(X[:, S], y, w)
    np.testing.assert_allclose(no_intercept.coef_[S], oracle.coef_, rtol=1e-9)
    assert no_intercept.intercept_ == 0.0


def test_fit_ignores_row_order_and_equals_fit_summary(rng):
    X, y, _ = problem(rng)
    model = SparseRegressor(6).fit(X, y)
    order = rng.permutation(len(X))
    np.testing.assert_allclose(SparseRegressor(6).fit(X[order], y[order]).coef_, model.coef_, rtol=1e-9)
    halves = Gram(40).absorb(X[:200], y[:200]).merge(Gram(40).absorb(X[200:], y[200:]))
    np.testing.assert_allclose(SparseRegressor(6).fit_summary(halves).coef_, model.coef_, rtol=1e-9)
    assert halves.n_samples == 600
    assert model.n_iter_ == model.n_rounds_ >= 1


def test_partial_fit_goes_on_from_fit_and_from_a_summary(rng):
    X, y, coef = problem(rng)
    model = SparseRegressor(4).fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    assert model.n_samples_seen_ == 600
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))
    np.testing.assert_allclose(model.coef_, SparseRegressor(4).fit(X, y).coef_, atol=1e-3)
    summary = Gram(40).absorb(X[:300], y[:300])
    resumed = SparseRegressor(4).fit_summary(summary).partial_fit(X[300:], y[300:])
    np.testing.assert_allclose(resumed.coef_, model.coef_, rtol=1e-9)
    assert summary.n_samples == 300


def test_streaming_intercept_is_exact_over_all_rows(rng):
    X, y, _ = problem(rng)
    model = SparseRegressor(4).partial_fit(X + 1e6, y)
    np.testing.assert_allclose(model.intercept_, y.mean() - (X + 1e6).mean(axis=0) @ model.coef_, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e4, 1e-4])
def test_default_settings_ignore_the_units_of_a_column(rng, factor):
    X, y, coef = problem(rng)
    scaled = X.copy()
    column = np.flatnonzero(coef)[0]
    scaled[:, column] *= factor
    for fit in ("fit", "partial_fit"):
        a = getattr(SparseRegressor(4), fit)(X, y)
        b = getattr(SparseRegressor(4), fit)(scaled, y)
        np.testing.assert_array_equal(a.support_, b.support_)
        np.testing.assert_allclose(a.predict(X), b.predict(scaled), rtol=1e-6, atol=1e-6)


def test_extreme_scales_give_finite_and_right_models(rng):
    X, y, coef = problem(rng, d=12)
    X[:, np.flatnonzero(coef)] *= 10.0 ** np.array([-150.0, 150.0, -100.0, 100.0])
    for fit in ("fit", "partial_fit"):
        model = getattr(SparseRegressor(4), fit)(X, y)
        np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))
        assert np.isfinite(model.coef_).all()
        assert model.score(X, y) > 0.8


def test_constant_and_duplicated_columns_are_harmless(rng):
    X, y, coef = problem(rng)
    j = np.flatnonzero(coef)[0]
    X = np.column_stack([X, np.full(len(X), 7.0), np.zeros(len(X)), X[:, j]])
    for parameters in ({}, {"fit_intercept": False}, {"standardize": False}):
        for fit in ("fit", "partial_fit"):
            model = getattr(SparseRegressor(6, **parameters), fit)(X, y)
            assert np.isfinite(model.coef_).all()
            assert model.coef_[41] == 0.0
            assert model.score(X, y) > 0.5
    only_constants = SparseRegressor(2).partial_fit(np.ones((30, 3)), np.arange(30.0))
    assert not only_constants.coef_.any()
    np.testing.assert_allclose(only_constants.intercept_, 14.5)


def test_rows_short_of_a_round_wait_and_finish_closes_it(rng):
    X, y, _ = problem(rng)
    model = SparseRegressor(4, round_size=100).partial_fit(X[:100], y[:100])
    before = model.coef_, model.intercept_
    model.partial_fit(X[100:150], y[100:150])
    np.testing.assert_array_equal(model.coef_, before[0])
    assert model.intercept_ == before[1]
    assert (model.n_samples_seen_, model.n_rounds_) == (150, 1)
    model.finish()
    assert model.n_rounds_ == 2
    assert (model.coef_ != before[0]).any()
    closed = model.coef_
    np.testing.assert_array_equal(model.finish().coef_, closed)
    assert model.n_rounds_ == 2
    model.partial_fit(X[150:250], y[150:250])  # a full round counts from the last one closed
    assert model.n_rounds_ == 3


def test_warmup_predicts_the_mean_then_the_rounds_begin(rng):
    X, y, _ = problem(rng)
    model = SparseRegressor(4, n_warmup=100).partial_fit(X[:100], y[:100])
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict(X[:3]), y[:100].mean())
    assert model.n_rounds_ == 0
    model.partial_fit(X[100:103], y[100:103])
    assert model.n_rounds_ == 3
    assert len(model.support_) == 4


def test_parameters_may_change_between_calls(rng):
    X, y, coef = problem(rng)
    model = SparseRegressor(12).partial_fit(X[:400], y[:400])
    model.set_params(sparsity=4).partial_fit(X[400:], y[400:])
    assert model.sparsity_ == 4
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))
    assert model.n_rounds_ == 600


def test_pandas_and_polars_keep_names(rng):
    X, y, coef = problem(rng, d=5, active=2)
    names = list("abcde")
    array = SparseRegressor(2).partial_fit(X, y)
    for frame, series in (
        (pd.DataFrame(X, columns=names), pd.Series(y)),
        (pl.DataFrame(X, schema=names), pl.Series(y)),
    ):
        model = SparseRegressor(2).partial_fit(frame, series)
        np.testing.assert_array_equal(model.coef_, array.coef_)
        assert list(model.feature_names_in_) == names
        np.testing.assert_array_equal(model.predict(frame), array.predict(X))
        assert list(model.get_feature_names_out()) == [names[j] for j in np.flatnonzero(coef)]
        reordered = frame[list("bacde")]
        before = model.coef_
        with pytest.raises(ValueError, match="eature names"):
            model.partial_fit(reordered, series)
        np.testing.assert_array_equal(model.coef_, before)
    frame = (
        SparseRegressor(2)
        .set_output(transform="pandas")
        .fit(pd.DataFrame(X, columns=names), y)
        .transform(pd.DataFrame(X, columns=names))
    )
    assert list(frame.columns) == [names[j] for j in np.flatnonzero(coef)]


def test_csr_equals_dense(rng):
    X = scipy.sparse.random(500, 60, density=0.2, format="csr", random_state=1)
    y = X[:, [3]].toarray().ravel() * 4 + 0.1 * rng.standard_normal(500)
    dense, sparse = SparseRegressor(3).partial_fit(X.toarray(), y), SparseRegressor(3).partial_fit(X, y)
    np.testing.assert_array_equal(dense.coef_, sparse.coef_)
    np.testing.assert_allclose(sparse.predict(X), dense.predict(X.toarray()), rtol=1e-12)
    assert sparse.transform(X).shape == (500, len(sparse.support_))


def test_float32_storage_finds_the_same_support(rng):
    X, y, coef = problem(rng)
    single, double = SparseRegressor(4, dtype="float32").partial_fit(X, y), SparseRegressor(4).partial_fit(X, y)
    assert single.summary_.dtype == np.float32
    np.testing.assert_array_equal(single.support_, np.flatnonzero(coef))
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-5)


def test_works_in_a_pipeline_and_shows_itself(rng):
    X, y, _ = problem(rng)
    pipeline = make_pipeline(StandardScaler(), SparseRegressor(4), LinearRegression()).fit(X, y)
    assert pipeline.score(X, y) > 0.8
    assert "SparseRegressor" in SparseRegressor(4)._repr_html_()
    assert clone(SparseRegressor(4, n_steps=9)).n_steps == 9


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_made_mid_stream_ends_bit_identical(rng, twin):
    X, y, _ = problem(rng)
    for cut in (5, 130, 400):
        model = SparseRegressor(6).partial_fit(X[:cut], y[:cut])
        other = twin(model)
        np.testing.assert_array_equal(
            other.partial_fit(X[cut:], y[cut:]).coef_, model.partial_fit(X[cut:], y[cut:]).coef_
        )


def test_inputs_are_left_alone(rng):
    X, y, _ = problem(rng)
    w = np.ones(len(X))
    kept = X.copy(), y.copy(), w.copy()
    for array in (X, y, w):
        array.flags.writeable = False
    SparseRegressor(4).partial_fit(X, y, w).fit(X, y, w).predict(X)
    for mine, theirs in zip((X, y, w), kept, strict=True):
        np.testing.assert_array_equal(mine, theirs)


# -- bad input ---------------------------------------------------------------------------------------------


def spoiled(array, value):
    array = array.copy()
    array[3] = value
    return array


RNG = np.random.default_rng(0)
X0, Y0, _ = problem(RNG, n=50, d=5)
BAD_CALLS = {
    "NaN in X": (spoiled(X0, np.nan), Y0, None, "NaN"),
    "inf in X": (spoiled(X0, np.inf), Y0, None, "inf"),
    "NaN in y": (X0, spoiled(Y0, np.nan), None, "NaN"),
    "NaN in weights": (X0, Y0, spoiled(np.ones(50), np.nan), "sample_weight contains NaN"),
    "inf in weights": (X0, Y0, spoiled(np.ones(50), np.inf), "sample_weight contains infinity"),
    "negative weights": (X0, Y0, spoiled(np.ones(50), -1.0), "sample_weight is negative"),
    "too many columns": (np.ones((50, 6)), Y0, None, "6 features"),
    "different lengths": (X0, Y0[:-1], None, "inconsistent"),
    "weights of another length": (X0, Y0, np.ones(49), "sample_weight has shape"),
    "complex": (X0 * 1j, Y0, None, "[Cc]omplex"),
    "strings": (X0.astype(str).astype(object) + "a", Y0, None, "could not convert"),
    "two responses": (X0, np.column_stack([Y0, Y0]), None, "y should be a 1d array"),
    "empty": (X0[:0], Y0[:0], None, "0 sample"),
    "one dimension": (X0[0], Y0[:1], None, "2D array"),
}


@pytest.mark.parametrize(("X", "y", "w", "message"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_rows_are_named_and_leave_the_model_as_it_was(X, y, w, message):
    fitted = SparseRegressor(2).partial_fit(X0, Y0)
    before = pickle.dumps(fitted)
    with pytest.raises(ValueError, match=message):
        fitted.partial_fit(X, y, w)
    assert pickle.dumps(fitted) == before
    if message != "6 features":
        with pytest.raises(ValueError, match=message):
            fitted.fit(X, y, w)
        assert pickle.dumps(fitted) == before
        fresh = SparseRegressor(2)
        with pytest.raises(ValueError, match=message):
            fresh.partial_fit(X, y, w)
        assert vars(fresh) == vars(SparseRegressor(2))


BAD_PARAMETERS = [
    {"sparsity": 0},
    {"sparsity": 2.5},
    {"n_steps": 0},
    {"step_size": 0.0},
    {"step_size": -1.0},
    {"step_size": np.nan},
    {"step_size": np.inf},
    {"step_size": "large"},
    {"round_size": 0},
    {"n_warmup": -1},
    {"tol": -1.0},
    {"max_iter": 0},
    {"dtype": "int8"},
    {"step_size": lambda t, k: -1.0},
    {"step_size": lambda t, k: np.nan if t > 1 else 0.1},
]


CALLS = {
    "partial_fit": lambda m: m.partial_fit(X0, Y0),
    "fit": lambda m: m.fit(X0, Y0),
    "fit_summary": lambda m: m.fit_summary(Gram(5).absorb(X0, Y0)),
    "finish": lambda m: m.finish(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("parameters", BAD_PARAMETERS, ids=shown)
def test_bad_parameters_are_named_and_change_nothing(parameters, call):
    name = next(iter(parameters))
    if call in ("fit", "fit_summary", "finish") and name == "step_size" and callable(parameters[name]):
        parameters = {name: lambda t, k: -1.0}
    good = {"sparsity": 2, "round_size": 20}
    for fitted in (True, False) if call != "finish" else (True,):
        model = SparseRegressor(**good)
        if fitted:
            model.partial_fit(X0[:, :5] + 1.0, Y0)
        before = dict(vars(model))
        state = pickle.dumps(model)
        with pytest.raises((ValueError, TypeError), match=name):
            CALLS[call](model.set_params(**parameters))
        model.set_params(**{key: before[key] for key in parameters})
        assert vars(model).keys() == before.keys()
        assert pickle.dumps(model) == state


def test_a_smaller_round_size_closes_the_overdue_round_first(rng):
    X, y, _ = problem(rng)
    model = SparseRegressor(4, round_size=7).partial_fit(X[:5], y[:5])
    model.set_params(round_size=3, step_size=lambda t, k: 0.1).partial_fit(X[5:15], y[5:15])
    assert model.n_rounds_ == 1 + (10 - 1) // 3


def test_finish_sees_rows_of_the_warm_up(rng):
    X, y, _ = problem(rng)
    model = SparseRegressor(4, n_warmup=500).partial_fit(X[:50], y[:50]).finish()
    first = model.coef_
    assert model.n_rounds_ == 1
    model.partial_fit(X[50:80], y[50:80]).finish()
    assert model.n_rounds_ == 2
    assert (model.coef_ != first).any()


def test_intercept_always_belongs_to_the_coefficients(rng):
    X, y, _ = problem(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for rounds in range(1, 6):
            model = SparseRegressor(4, max_iter=rounds, n_steps=1).fit(X, y)
            np.testing.assert_allclose(model.intercept_, y.mean() - X.mean(axis=0) @ model.coef_, rtol=1e-9)
    model = SparseRegressor(4, n_warmup=5000).fit(X[:400], y[:400]).set_params(sparsity=3)
    model.partial_fit(X[400:401], y[400:401])
    assert len(model.support_) == 3
    np.testing.assert_allclose(model.intercept_, y[:400].mean() - X[:400].mean(axis=0) @ model.coef_, rtol=1e-9)


def test_a_smaller_sparsity_keeps_what_matters_not_what_has_large_numbers(rng):
    X = rng.standard_normal((300, 6))
    y = 2.0 * X[:, 0] - 1.0 * X[:, 1] + 0.05 * X[:, 3] + 0.01 * rng.standard_normal(300)
    X[:, 0] *= 1e4
    model = SparseRegressor(3).partial_fit(X, y).set_params(sparsity=1)
    model.partial_fit(X[:1], y[:1])
    assert list(model.support_) == [0]
    with pytest.warns(UserWarning, match="sparsity=9 exceeds"):
        model.set_params(sparsity=9).partial_fit(X[:1], y[:1])


def test_working_set_is_no_larger_than_the_gram():
    model = SparseRegressor(200).fit(np.random.default_rng(0).standard_normal((400, 200)), np.arange(400.0))
    assert model._rounds._work.local.nbytes <= 8 * 200**2


def test_values_and_weights_that_would_overflow_are_refused(rng):
    X, y, _ = problem(rng, d=5, active=2)
    huge = X.copy()
    huge[3, 2] = 1e155
    for arguments in ((huge, y), (X, y * 1e155), (X, y, np.full(600, 1e307)), (X * 1e100, y, np.full(600, 1e150))):
        for model in (SparseRegressor(2), SparseRegressor(2).partial_fit(X, y)):
            before = pickle.dumps(model)
            with pytest.raises(ValueError, match="rescale"):
                model.partial_fit(*arguments)
            assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="overflow float32"):
        SparseRegressor(2, dtype="float32").partial_fit(X * 1e10, y, np.full(600, 1e20))
    weights = np.r_[0.0, np.ones(599)]
    huge = X.copy()
    huge[0] = 1e150
    np.testing.assert_allclose(
        SparseRegressor(2).fit(huge, y, weights).coef_, SparseRegressor(2).fit(X[1:], y[1:]).coef_, rtol=1e-9
    )


def test_numeric_strings_are_refused(rng):
    for strings in (X0.astype(str), X0.astype(str).tolist()):
        with pytest.raises(ValueError, match="strings"):
            SparseRegressor(2).partial_fit(strings, Y0)


def test_a_column_too_small_to_square_is_harmless(rng):
    X, y, _ = problem(rng, d=4, active=2)
    X[:, 1] *= 1e-170
    for standardize in (True, False):
        model = SparseRegressor(4, standardize=standardize).fit(X, y)
        assert np.isfinite(model.coef_).all()


def test_a_failing_schedule_leaves_a_fitted_model_as_it_was():
    model = SparseRegressor(2, step_size=0.1).partial_fit(X0, Y0)
    before = pickle.dumps(model)
    model.set_params(step_size=lambda t, k: 0.1 if t < 70 else -1.0)
    with pytest.raises(ValueError, match=r"step_size\(70, 0\) must be positive"):
        model.partial_fit(X0, Y0)
    assert pickle.dumps(model.set_params(step_size=0.1)) == before


def test_not_fitted_is_said():
    for call in (lambda m: m.predict(X0), lambda m: m.finish(), lambda m: m.support_, lambda m: m.transform(X0)):
        with pytest.raises((NotFittedError, AttributeError)):
            call(SparseRegressor())
    with pytest.raises(ValueError, match="empty"):
        SparseRegressor().fit_summary(Gram(3))
    with pytest.raises(TypeError, match=r"thresher\.Gram"):
        SparseRegressor().fit_summary(np.eye(3))


def test_sparsity_above_d_is_clipped(rng):
    X, y, _ = problem(rng, d=5, active=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SparseRegressor().partial_fit(X, y).sparsity_ == 2
    with pytest.warns(UserWarning, match="sparsity=8 exceeds the number of columns; using 5"):
        model = SparseRegressor(8).partial_fit(X, y)
    assert model.sparsity_ == 5
    np.testing.assert_allclose(SparseRegressor(5).fit(X, y).coef_, LinearRegression().fit(X, y).coef_, rtol=1e-8)


def test_a_step_that_raises_the_loss_warns_once_with_a_safe_value(rng):
    X, y, _ = problem(rng)
    model = SparseRegressor(4, step_size=2.5)
    with pytest.warns(ConvergenceWarning, match="raised the loss") as caught:
        model.partial_fit(X[:300], y[:300])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    safe = float(str(caught[0].message).split("a step of ")[1].split()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X[300:], y[300:])
    assert np.isfinite(model.coef_).all()
    # The safe value is below 1/L on every 2s-sparse subspace, and using it on these rows is quiet.
    Z = (X[:300] - X[:300].mean(axis=0)) / X[:300].std(axis=0)
    G = Z.T @ Z / 300
    subsets = [rng.choice(40, 8, replace=False) for _ in range(300)]
    assert safe <= 1.0 / max(np.linalg.eigvalsh(G[np.ix_(s, s)])[-1] for s in subsets)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        SparseRegressor(4, step_size=safe, max_iter=10_000).fit(X[:300], y[:300])


def test_fit_that_does_not_settle_says_so(rng):
    X, y, _ = problem(rng)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        SparseRegressor(4, max_iter=1, n_steps=1).fit(X, y)


# -- a long run --------------------------------------------------------------------------------------------


def test_interrupt_falls_between_blocks_and_loses_nothing():
    stream = SparseLinearStream(300, 5, seed=4)
    X, y = stream.draw(60_000)
    model = SparseRegressor(5).partial_fit(X[:1], y[:1])
    timer = threading.Timer(0.15, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[1:], y[1:])
    timer.join()
    seen = model.n_samples_seen_
    assert 1 < seen < 60_000
    model.partial_fit(X[seen:], y[seen:])
    np.testing.assert_array_equal(model.coef_, SparseRegressor(5).partial_fit(X, y).coef_)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_ones_own_sees_the_interrupt():
    X, y = SparseLinearStream(300, 5, seed=4).draw(60_000)
    model, seen = SparseRegressor(5).partial_fit(X[:1], y[:1]), []
    previous = signal.signal(signal.SIGINT, lambda signum, frame: seen.append(model.summary_.n_samples))
    try:
        timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
        timer.start()
        model.partial_fit(X[1:], y[1:])
        timer.join()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert model.n_samples_seen_ == 60_000
    assert len(seen) == 1
    # Between blocks of 64 rows at d = 300, or at a milestone.
    assert seen[0] % 64 in (0, 60_000 % 64) or seen[0] in {m.n_samples for m in model.milestones_}


def test_works_outside_the_main_thread(rng):
    X, y, _ = problem(rng)
    model = SparseRegressor(4)
    thread = threading.Thread(target=model.partial_fit, args=(X, y))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(model.coef_, SparseRegressor(4).partial_fit(X, y).coef_)


GROWTH = """
import resource
from thresher import SparseRegressor
from thresher.streams.synthetic import SparseLinearStream

stream, model, at = SparseLinearStream(300, 10, seed=1), SparseRegressor(20), {}
while model.summary_.n_samples < 100_000 if hasattr(model, "summary_") else True:
    model.partial_fit(*stream.draw(100))
    if model.n_samples_seen_ in (10_000, 100_000):
        at[model.n_samples_seen_] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(at[100_000] - at[10_000])
"""


def test_memory_does_not_grow():
    result = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 1_000_000


def test_import_is_light():
    code = "import sys, thresher; print([m for m in ('numba', 'sklearn', 'scipy', 'numpy') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_error_decays_like_one_over_t():
    """Statistics with a fixed seed: log error against log t has slope -1, within the noise of ten streams."""
    errors = []
    for seed in range(10):
        stream = SparseLinearStream(100, 5, signal=1.0, seed=seed)
        stream.coef[:5] += np.sign(stream.coef[:5])
        model, row = SparseRegressor(5), []
        for n in (500, 2000, 8000):
            model.partial_fit(*stream.draw(n - (model.n_samples_seen_ if row else 0)))
            row.append(((model.coef_ - stream.coef) ** 2).sum())
        errors.append(row)
    slopes = np.diff(np.log(np.mean(errors, axis=0))) / np.log(4)
    assert np.all(np.abs(slopes + 1.0) < 0.35)
