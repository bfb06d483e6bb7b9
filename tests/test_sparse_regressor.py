"""The default: against the reference on the rows, against brute force, and as scikit-learn and users expect."""

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
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from oracles import design, shown
from thresher import CrossValidation, Ebic, Gram, SparseRegressor
from thresher.estimators.sparse_regressor import next_selection
from thresher.io.sources.synthetic import SparseLinearStream
from thresher.solvers import reference


@parametrize_with_checks(
    [
        SparseRegressor(),
        SparseRegressor(3, dtype="float32"),
        SparseRegressor(4, fit_intercept=False),
        SparseRegressor(selection=Ebic(1.0)),
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


# -- what it computes --------------------------------------------------------------------------------------

KINDS = ["independent", "correlated", "duplicated", "scaled", "constant"]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 400),
    d=st.integers(1, 12),
    centred=st.booleans(),
    noise=st.sampled_from([0.01, 1.0]),
)
def test_a_stream_equals_the_reference_on_its_rows(seed, kind, n, d, centred, noise):
    rng = np.random.default_rng(seed)
    X = design(rng, kind, n, d) + rng.integers(0, 2) * rng.standard_normal(d)
    y = X[:, :3] @ rng.standard_normal(min(d, 3)) + noise * rng.standard_normal(n) + 1.0
    model = SparseRegressor(selection="ebic", fit_intercept=centred).partial_fit(X, y)
    coef, intercept = reference.estimate(X, y, centred)
    fitted = X @ coef + intercept
    # Equal columns are told apart by rounding alone, and so are constant ones without an intercept.
    if kind != "duplicated" and (centred or kind != "constant"):
        np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))
    np.testing.assert_allclose(model.predict(X), fitted, rtol=0, atol=1e-7 * np.abs(y).max())


def test_choices_fall_at_the_counts_of_the_reference():
    X, y = SparseLinearStream(20, 3, seed=1).draw(9000)
    model = SparseRegressor().partial_fit(X, y)
    counts = [record.n_samples for record in model.selection_history_]
    assert counts == list(reference.selection_counts(9000, 128))
    gaps = [(after - before) / before for before, after in pairwise(counts) if before > 40]
    assert min(gap for gap, n in zip(gaps, counts[-len(gaps) :], strict=True) if n > 2560) >= 0.05
    assert max(gaps) <= 0.25


@pytest.mark.parametrize("block", [128, 256])
def test_after_a_merge_choices_fall_at_folds_of_the_merged_summary(block):
    d = 8 * block
    summary = Gram(d)
    summary.state.n_samples = 5000
    assert next_selection(summary) == 5000 + -(-250 // block) * block


SELECTIONS = {
    "ebic": {},
    "gamma": {"selection": Ebic(0.5), "fit_intercept": False},
    "cv": {"selection": CrossValidation(3, n_samples=300)},
    "fixed": {"sparsity": 6},
    "float32": {"dtype": "float32"},
    "groups": {"groups": np.arange(40) // 4},
    "groups of any size": {"groups": np.arange(40) % 7 * (np.arange(40) % 3), "sparsity": 2},
}


@pytest.mark.parametrize("parameters", SELECTIONS.values(), ids=SELECTIONS)
@pytest.mark.parametrize("weighted", [False, True])
def test_any_cut_gives_bit_identical_coefficients(rng, parameters, weighted):
    X, y, _ = problem(rng, 400)
    w = rng.uniform(0.0, 2.0, len(X)) if weighted else None
    whole = SparseRegressor(**parameters).partial_fit(X, y, w)
    for sizes in ([1] * 400, [64, 1, 63, 128, 100, 44], [7] * 57 + [1], [5, 395]):
        model, start = SparseRegressor(**parameters), 0
        for size in sizes:
            part = slice(start, start + size)
            model.partial_fit(X[part], y[part], None if w is None else w[part])
            model.coef_, model.intercept_  # reading must not change what comes later  # noqa: B018
            start += size
        assert start == 400
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        assert model.intercept_ == whole.intercept_
        assert len(model.selection_history_) == len(whole.selection_history_)


@pytest.mark.parametrize("centred", [False, True])
def test_the_estimate_is_least_squares_of_all_rows_on_the_support(rng, centred):
    """Also between two choices, where the support is older than the last rows."""
    X, y, _ = problem(rng)
    model = SparseRegressor(selection="ebic", fit_intercept=centred)
    for start in range(0, 600, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
        n, support = start + 50, model.support_
        last = model.selection_history_[-1]
        np.testing.assert_array_equal(support, last.support)
        expected = LinearRegression(fit_intercept=centred).fit(X[:n, support], y[:n])
        np.testing.assert_allclose(model.coef_[support], expected.coef_, rtol=1e-9)
        np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-8, atol=1e-10)
    then = LinearRegression(fit_intercept=centred).fit(X[: last.n_samples, last.support], y[: last.n_samples])
    np.testing.assert_allclose(last.values, then.coef_, rtol=1e-9)


def test_fit_finish_and_fit_summary_choose_on_all_rows(rng):
    X, y, _ = problem(rng)
    fitted = SparseRegressor().fit(X, y)
    streamed = SparseRegressor().partial_fit(X, y)
    assert streamed.selection_.n_samples < 600 == fitted.selection_.n_samples
    streamed.finish()
    merged = SparseRegressor().fit_summary(Gram(40).absorb(X[:250], y[:250]).merge(Gram(40).absorb(X[250:], y[250:])))
    shuffled = rng.permutation(600)
    other = SparseRegressor().fit(X[shuffled], y[shuffled])
    for model in (streamed, merged, other):
        assert model.selection_.n_samples == 600
        np.testing.assert_array_equal(model.support_, fitted.support_)
        np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-9)
    support = reference.select(X, y, True)
    np.testing.assert_array_equal(fitted.support_, sorted(support))


def test_finishing_on_the_way_does_not_change_what_comes_later(rng):
    X, y, _ = problem(rng)
    plain = SparseRegressor().partial_fit(X, y)
    paused = SparseRegressor().partial_fit(X[:333], y[:333]).finish().partial_fit(X[333:], y[333:])
    np.testing.assert_array_equal(paused.coef_, plain.coef_)


def test_partial_fit_goes_on_from_fit_and_from_a_summary(rng):
    X, y, _ = problem(rng)
    whole = SparseRegressor().fit(X, y)
    for start in (
        SparseRegressor().fit(X[:300], y[:300]),
        SparseRegressor().fit_summary(Gram(40).absorb(X[:300], y[:300])),
    ):
        model = start.partial_fit(X[300:], y[300:]).finish()
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
        assert model.n_samples_seen_ == 600


def test_weights_are_repeats(rng):
    X, y, _ = problem(rng, n=300)
    w = rng.integers(0, 4, 300)
    for parameters in ({}, {"sparsity": 3}, {"groups": np.arange(40) // 2}):
        weighted = SparseRegressor(**parameters).fit(X, y, w)
        repeated = SparseRegressor(**parameters).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
        np.testing.assert_array_equal(weighted.support_, repeated.support_)
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-6, 1e5])
def test_units_do_not_matter(rng, factor):
    X, y, _ = problem(rng)
    scale = np.where(np.arange(40) % 3 == 0, factor, 1.0)
    for parameters in ({}, {"sparsity": 5}, {"groups": np.arange(40) // 4}):
        plain = SparseRegressor(**parameters).partial_fit(X, y)
        other = SparseRegressor(**parameters).partial_fit(X * scale, y)
        np.testing.assert_array_equal(other.support_, plain.support_)
        np.testing.assert_allclose(other.coef_ * scale, plain.coef_, rtol=1e-6, atol=1e-9)
        large = SparseRegressor(**parameters).partial_fit(X, factor * y)
        np.testing.assert_allclose(large.coef_, factor * plain.coef_, rtol=1e-6, atol=1e-9 * factor)


def test_means_far_from_zero_cost_no_accuracy(rng):
    """Means of 10^8 standard deviations. The oracle subtracts them first."""
    X = np.round(rng.standard_normal((900, 12)) * 2**20) / 2**20  # so that adding the mean is exact
    y = np.round((X[:, 2] - 2.0 * X[:, 5]) * 2**20 + rng.standard_normal(900) * 2**18) / 2**20
    model = SparseRegressor().partial_fit(X + 2.0**27, y - 2.0**27)
    plain = SparseRegressor().partial_fit(X, y)
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-7)


def test_noise_alone_selects_nothing_and_no_noise_selects_exactly():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2000, 30))
    assert len(SparseRegressor().fit(X, rng.standard_normal(2000)).support_) == 0
    exact = SparseRegressor().partial_fit(X, X[:, 3] - 0.001 * X[:, 7] + 2.0)
    np.testing.assert_array_equal(exact.support_, [3, 7])
    np.testing.assert_allclose(exact.coef_[[3, 7]], [1.0, -0.001], rtol=1e-9)
    constant = SparseRegressor().partial_fit(X, np.full(2000, 7.0))
    assert len(constant.support_) == 0
    assert constant.intercept_ == 7.0


def test_the_first_rows_are_no_trouble(rng):
    X, y, _ = problem(rng, n=40, d=6)
    for parameters in ({}, {"sparsity": 2}, {"selection": "cv"}, {"groups": [0, 0, 1, 1, 2, 2]}):
        model = SparseRegressor(**parameters)
        for n in range(1, 41):
            model.partial_fit(X[n - 1 : n], y[n - 1 : n])
            assert np.isfinite(model.predict(X)).all()
            if n == 1:
                assert model.predict(X[:1])[0] == pytest.approx(y[0])
    waiting = SparseRegressor().partial_fit(X, y, np.zeros(40))
    assert not waiting.coef_.any()
    assert waiting.intercept_ == 0.0
    np.testing.assert_array_equal(
        waiting.partial_fit(X, y).coef_, SparseRegressor().partial_fit(X, y).coef_ * 0 + waiting.coef_
    )


def test_constant_duplicated_and_dependent_columns_are_harmless(rng):
    X, y, _ = problem(rng, d=20)
    X[:, 0] = 5.0
    X[:, 1] = X[:, 2] + X[:, 3]
    copies = np.column_stack([X, X])
    model = SparseRegressor().partial_fit(copies, copies[:, 6] - copies[:, 8] + rng.standard_normal(600))
    np.testing.assert_array_equal(model.support_ % 20, [6, 8])
    every = SparseRegressor(40).partial_fit(copies, y)
    assert np.isfinite(every.coef_).all()
    assert every.coef_[0] == every.coef_[20] == 0.0
    assert np.linalg.matrix_rank(copies[:, every.support_]) == len(every.support_) <= 19


def test_single_precision_does_not_split_hairs():
    """In float32, rounding must not tell a feature from the sum of two others."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((900, 8))
    X[:, 2] = X[:, 0] + X[:, 1]
    y = 3.0 * X[:, 0] - 2.0 * X[:, 1] + rng.standard_normal(900)
    for sparsity in (8, "auto"):
        model = SparseRegressor(sparsity, dtype="float32").partial_fit(X, y)
        assert np.count_nonzero(model.coef_[:3]) == 2
        assert np.abs(model.coef_).max() < 6.0


def test_extreme_scales_give_finite_and_right_models(rng):
    X, y, _ = problem(rng)
    plain = SparseRegressor().partial_fit(X, y)
    for scale in (1e-130, 1e120):
        model = SparseRegressor().partial_fit(X * scale, y * scale)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    tiny = X.copy()
    tiny[:, 0] *= 1e-200  # too small to square
    assert np.isfinite(SparseRegressor().partial_fit(tiny, y).coef_).all()


# -- as an estimator ---------------------------------------------------------------------------------------


def test_parameters_may_change_between_calls(rng):
    X, y, coef = problem(rng)
    model = SparseRegressor(2).partial_fit(X[:300], y[:300])
    assert len(model.support_) == 2
    model.set_params(sparsity="auto").partial_fit(X[300:], y[300:]).finish()
    np.testing.assert_array_equal(model.support_, SparseRegressor().fit(X, y).support_)
    assert set(np.flatnonzero(coef)) <= set(model.support_)
    model.set_params(fit_intercept=False).finish()
    np.testing.assert_allclose(model.coef_, SparseRegressor(fit_intercept=False).fit(X, y).coef_, rtol=1e-8)
    assert model.intercept_ == 0.0
    model.set_params(fit_intercept=True, groups=np.arange(40) // 2).finish()
    np.testing.assert_array_equal(
        model.selected_groups_, SparseRegressor(groups=np.arange(40) // 2).fit(X, y).selected_groups_
    )
    before = model.coef_
    with pytest.raises(ValueError, match="39 labels"):
        model.set_params(groups=np.arange(39)).partial_fit(X, y)
    model.set_params(groups=None)
    np.testing.assert_array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="Cross-validation needs the rows"):
        model.set_params(selection="cv").partial_fit(X, y)
    assert model.n_samples_seen_ == 600


def test_the_history_is_bounded_and_a_copy(rng):
    X, y = SparseLinearStream(40, 10, seed=16).draw(3_000)
    model = SparseRegressor(20).partial_fit(X, y)
    history = model.selection_history_
    assert sum(record.part is not None for record in history) <= 13
    assert len(history) < 100
    for record in history:
        if record.part is not None:
            assert record.part.n_samples == record.n_samples
    n = len(history)
    model.partial_fit(X, y)
    assert len(history) == n < len(model.selection_history_)


def test_coefficients_cannot_be_written_to(rng):
    X, y, _ = problem(rng)
    model = SparseRegressor().fit(X, y)
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0] = 1.0
    assert model.coef_ is model.coef_


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
    assert clone(SparseRegressor(4, selection=Ebic(0.3))).selection.gamma == 0.3


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
        assert {name: value for name, value in vars(fresh).items() if name != "_lock"} == vars(SparseRegressor(2))


BAD_PARAMETERS = [
    {"sparsity": 0},
    {"sparsity": 2.5},
    {"selection": "prequential"},
    {"selection": None},
    {"fit_intercept": "yes"},
    {"groups": [0, 1]},
    {"groups": [[0, 1]]},
    {"dtype": "int8"},
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
    good = {"sparsity": 2}
    for fitted in (True, False) if call != "finish" else (True,):
        model = SparseRegressor(**good)
        if fitted:
            model.partial_fit(X0[:, :5] + 1.0, Y0)
        before = dict(vars(model))
        state = pickle.dumps(model)
        with pytest.raises((ValueError, TypeError), match=name):
            CALLS[call](model.set_params(**parameters))
        model.set_params(**{key: before[key] for key in parameters})
        assert vars(model).keys() - {"_lock"} == before.keys() - {"_lock"}
        assert pickle.dumps(model) == state


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


# -- a long run --------------------------------------------------------------------------------------------


def test_interrupt_falls_between_blocks_and_loses_nothing(interrupt_at_fold):
    stream = SparseLinearStream(300, 5, seed=4)
    X, y = stream.draw(3_000)
    model = SparseRegressor(5).partial_fit(X[:1], y[:1])
    interrupt_at_fold(5)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[1:], y[1:])
    seen = model.n_samples_seen_
    assert 1 < seen < 3_000
    model.partial_fit(X[seen:], y[seen:])
    np.testing.assert_array_equal(model.coef_, SparseRegressor(5).partial_fit(X, y).coef_)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_ones_own_sees_the_interrupt(interrupt_at_fold):
    X, y = SparseLinearStream(300, 5, seed=4).draw(3_000)
    model, seen = SparseRegressor(5).partial_fit(X[:1], y[:1]), []
    previous = signal.signal(signal.SIGINT, lambda signum, frame: seen.append(model.summary_.n_samples))
    try:
        interrupt_at_fold(5)
        model.partial_fit(X[1:], y[1:])
    finally:
        signal.signal(signal.SIGINT, previous)
    assert model.n_samples_seen_ == 3_000
    assert len(seen) == 1
    # Between blocks of 128 rows, or at a choice.
    assert seen[0] % 128 in (0, 3_000 % 128) or seen[0] in {r.n_samples for r in model.selection_history_}


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
from thresher.io.sources.synthetic import SparseLinearStream

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
    code = "import sys, thresher; print([m for m in ('sklearn', 'scipy', 'numpy') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


WITHOUT_A_COMPILER = """
import sys
import numpy as np
from thresher import (
    LowRankRegressor, MatrixCompleter, OnlineHardThresholding, ReducedRankRegressor, SparseRegressor, baselines
)

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 6))
y = X[:, 3] + rng.standard_normal(200)
for model in (SparseRegressor(), OnlineHardThresholding(2), ReducedRankRegressor(), baselines.FTRLProximal()):
    model.partial_fit(X, y).predict(X)
LowRankRegressor(1).partial_fit(X.reshape(-1, 2, 3), y)
MatrixCompleter(1).partial_fit([0, 1, 1], [1, 0, 1], [1.0, 2.0, 3.0])
print([name for name in ("cffi", "llvmlite", "numba") if name in sys.modules])
"""


def test_nothing_is_compiled_when_it_is_used():
    code = "import thresher.baselines\n" + WITHOUT_A_COMPILER
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


# -- weights that sum to one, and values whose squares vanish ------------------------------------------------


def test_normalised_weights_are_told_once(rng):
    X = rng.standard_normal((200, 5))
    y = X[:, 1] + 0.1 * rng.standard_normal(200)
    with pytest.warns(UserWarning, match="Multiply the weights by 200"):
        SparseRegressor().fit(X, y, np.full(200, 1 / 200))
    model, told = SparseRegressor(), []
    for i in range(200):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.partial_fit(X[i : i + 1], y[i : i + 1], [1 / 200])
        told += [(i, str(one.message)) for one in caught]
    ((at, message),) = told
    assert at == 19
    assert "Multiply the weights by 200" in message


@pytest.mark.parametrize("weights", [np.ones(100), np.repeat([0.0, 3.0], [80, 20]), np.full(100, 0.6), None])
def test_weights_that_may_be_repeats_are_not_told_of(rng, weights):
    X = rng.standard_normal((100, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseRegressor().fit(X, X[:, 0] + 0.1 * rng.standard_normal(100), weights)


@pytest.mark.parametrize(("x", "y"), [(1e-200, 1.0), (1.0, 1e-160), (5e-324, 1.0)])
@pytest.mark.parametrize("fit", [SparseRegressor().fit, SparseRegressor().partial_fit, Gram(5).absorb])
def test_rows_whose_squares_vanish_are_refused(rng, fit, x, y):
    X = rng.standard_normal((50, 5))
    with pytest.raises(ValueError, match="vanish; rescale"):
        fit(x * X, y * X[:, 1])
    assert getattr(fit.__self__, "n_samples", 0) == 0
    assert not hasattr(fit.__self__, "summary_")


def test_zeros_and_a_few_tiny_values_are_fine(rng):
    X = rng.standard_normal((50, 5))
    X[:, 2], X[7, 3], y = 0.0, 1e-300, X[:, 1].copy()
    y[3] = 1e-200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 1 in SparseRegressor().fit(X, y).support_
        SparseRegressor().partial_fit(np.zeros((3, 2)), np.zeros(3))


def test_a_column_whose_squares_vanish_among_others_is_told_of(rng):
    X = rng.standard_normal((50, 5)) * [1.0, 1e-200, 1.0, 1.0, 1.0]
    with pytest.warns(UserWarning, match="Column x1 varies by less than"):
        SparseRegressor().fit(X, X[:, 0] + rng.standard_normal(50))
    model = SparseRegressor().partial_fit(X[:1], [1e-170])  # row by row, none can be refused
    with pytest.warns(UserWarning, match="The response varies by less than"):
        model.partial_fit(X[1:2], [2e-170])


def test_text_in_a_frame_is_named_with_the_remedy():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "city": ["Bern", "Oslo", "Rome"]})
    with pytest.raises(ValueError, match=r"holds text: could not convert string to float: 'Bern'.*OneHotEncoder"):
        SparseRegressor().fit(frame, [1.0, 2.0, 3.0])
