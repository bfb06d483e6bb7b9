"""thresher.integrations.river against the core estimators on a matrix with zeros where dictionaries have no entry."""

import copy
import doctest
import pickle
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import checks, compose, datasets, evaluate, feature_extraction, linear_model, metrics, preprocessing

import thresher
from thresher import CrossValidation
from thresher.integrations.river import OnlineHardThresholding, SparseRegressor

CORE = {SparseRegressor: thresher.SparseRegressor, OnlineHardThresholding: thresher.OnlineHardThresholding}
SCALED = {"fit_intercept": True, "standardize": True}
SETTINGS = {
    "default": (SparseRegressor, {}),
    "three": (SparseRegressor, {"sparsity": 3}),
    "no intercept": (SparseRegressor, {"sparsity": 6, "fit_intercept": False}),
    "cv": (SparseRegressor, {"selection": CrossValidation(n_folds=3, n_samples=150)}),
    "float32": (SparseRegressor, {"dtype": "float32", "sparsity": 4}),
    "hard, long rounds": (OnlineHardThresholding, {"sparsity": 3, "round_size": 4, "n_warmup": 10, **SCALED}),
    "pursuit": (OnlineHardThresholding, {"sparsity": 5, "rule": "pursuit", **SCALED}),
    "reciprocal, no intercept": (OnlineHardThresholding, {"sparsity": 6, "rule": "reciprocal", "n_steps": 3}),
    "paper": (OnlineHardThresholding, {"sparsity": 5, "step_size": 0.02}),
    "hard, chosen size": (OnlineHardThresholding, {"n_warmup": 120, **SCALED}),
    "hard, float32": (OnlineHardThresholding, {"dtype": "float32", "sparsity": 4, **SCALED}),
}
FIXED = [name for name, (_, parameters) in SETTINGS.items() if "sparsity" in parameters]
both = pytest.mark.parametrize("kind", [SparseRegressor, OnlineHardThresholding])


def new(name):
    kind, parameters = SETTINGS[name]
    return kind(**parameters)


def new_core(name):
    kind, parameters = SETTINGS[name]
    return CORE[kind](**parameters)


def dictionaries(rng, n, d, share=1.0):
    """Rows as dictionaries with some entries left out, and as a matrix with zeros there; responses."""
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 3.0, d)
    X[rng.random((n, d)) >= share] = 0.0
    names = [f"x{j:03d}" for j in range(d)]
    y = X @ np.where(np.arange(d) % 7 == 3, 2.0, 0.0) + rng.standard_normal(n) + 3.0
    return [{names[j]: float(x[j]) for j in np.flatnonzero(x)} for x in X], X, y, names


def learn(truth, features, rows, y, w=None):
    """Let a core estimator learn one row at a time, with all features of the river model from the first row on."""
    matrix = np.array([[x.get(name, 0.0) for name in features] for x in rows])
    for i in range(len(matrix)):
        truth.partial_fit(matrix[i : i + 1], y[i : i + 1], None if w is None else w[i : i + 1])
    return matrix


def assert_agree(model, truth, tol=1e-9):
    assert set(model.weights) == {model.features[j] for j in truth.support_}
    np.testing.assert_allclose(model.model.coef_, truth.coef_, rtol=tol, atol=tol)
    assert model.intercept == pytest.approx(truth.intercept_, rel=tol, abs=tol)
    assert model.model.n_samples_seen_ == truth.n_samples_seen_


# -- river's own checks -----------------------------------------------------------------------------------


def names_of_checks():
    return [
        pytest.param(kind, parameters, check, id=f"{kind.__name__}-{i}-{check.__name__}")
        for kind in CORE
        for i, parameters in enumerate(kind._unit_test_params())
        for check in checks.yield_checks(kind(**parameters))
    ]


@pytest.mark.parametrize(("kind", "parameters", "check"), names_of_checks())
def test_rivers_checks(kind, parameters, check):
    check(kind(**parameters))


@both
def test_rivers_runner_skips_nothing(kind):
    model = kind()
    assert model._unit_test_skips() == set()
    assert len(list(checks.yield_checks(model))) >= 27
    checks.check_estimator(model)


# -- the same as the core ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_known_features_give_the_core_estimator_to_the_last_bit(name):
    rng = np.random.default_rng(0)
    rows, X, y, names = dictionaries(rng, 300, 20)
    w = rng.uniform(0.1, 3.0, 300) if name in ("three", "hard, long rounds") else np.ones(300)
    model = new(name)
    for x, target, weight in zip(rows, y, w, strict=True):
        model.learn_one(x, target, w=weight)
    truth = new_core(name).partial_fit(X, y, w)
    assert model.features == names
    np.testing.assert_array_equal(model.model.coef_, truth.coef_)
    assert model.intercept == truth.intercept_
    assert model.weights == {names[j]: truth.coef_[j] for j in truth.support_}
    np.testing.assert_array_equal(model.model.summary_.comoment(), truth.summary_.comoment())


@pytest.mark.parametrize("name", FIXED)
def test_features_that_appear_were_zero_before(name):
    rng = np.random.default_rng(1)
    rows, _, y, _ = dictionaries(rng, 400, 60, share=0.05)  # some features are first seen after 50 rows and more
    w = rng.uniform(0.2, 2.0, len(rows))
    model, truth = new(name), new_core(name)
    for i, x in enumerate(rows):
        model.learn_one(x, y[i], w=w[i])
    matrix = learn(truth, model.features, rows, y, w)
    tol = 1e-4 if "float32" in name else 1e-8
    assert_agree(model, truth, tol)
    predicted = [model.predict_one(x) for x in rows[:50]]
    np.testing.assert_allclose(predicted, truth.predict(matrix[:50]), rtol=tol, atol=tol)


@pytest.mark.parametrize("selection", ["ebic", "cv", CrossValidation(n_folds=4, n_samples=600)])
def test_a_chosen_size_is_the_same_once_all_features_are_known(selection):
    rng = np.random.default_rng(2)
    rows, _, y, _ = dictionaries(rng, 1200, 40, share=0.3)  # all are seen within some thirty rows
    model, truth, n_known = SparseRegressor(selection=selection), thresher.SparseRegressor(selection=selection), 0
    for i, (x, target) in enumerate(zip(rows, y, strict=True)):
        model.learn_one(x, target)
        n_known = i + 1 if len(model.features) < 40 else n_known
    assert 10 < n_known < 100
    learn(truth, model.features, rows, y)
    assert_agree(model, truth)
    assert model.model.sparsity_ == truth.sparsity_
    if selection == "ebic":  # which looks at the summary alone, so that earlier choices leave no trace
        records = zip(model.model.selection_history_, truth.selection_history_, strict=True)
        later = [(one, other) for one, other in records if one.n_samples > n_known]
        assert len(later) > 20
        for one, other in later:
            assert (one.n_samples, one.size) == (other.n_samples, other.size)
            np.testing.assert_array_equal(one.support, other.support)


def test_the_criterion_counts_the_features_known_at_the_time():
    # Here d is 2 at first: a column that is not there yet cannot be paid for, nor chosen.
    rng = np.random.default_rng(4)
    model = SparseRegressor()
    for _ in range(100):
        a, b = rng.standard_normal(2)
        model.learn_one({"a": a, "b": b}, a + 0.1 * rng.standard_normal())
    assert set(model.weights) == {"a"}
    assert model.model.path(2).coef.shape == (3, 2)
    for _ in range(300):
        x = dict(zip("abc", rng.standard_normal(3).tolist(), strict=True))
        model.learn_one(x, x["a"] + 2.0 * x["c"] + 0.1 * rng.standard_normal())
    assert set(model.weights) == {"a", "c"}
    assert model.model.path(3).coef.shape == (4, 3)


def test_rows_without_any_feature():
    y = np.array([4.0, 6.0, 1.0, 3.0])
    model = SparseRegressor(2)
    model.learn_one({}, y[0])
    model.learn_one({}, y[1])
    assert (model.predict_one({}), model.features, model.weights) == (5.0, [], {})
    model.learn_one({"a": 2.0, "b": 0.0}, y[2])
    model.learn_one({}, y[3])
    assert model.features == ["a", "b"]
    truth = thresher.SparseRegressor(2)
    truth.partial_fit(np.array([[0.0, 0.0], [0.0, 0.0], [2.0, 0.0], [0.0, 0.0]]), y)
    assert_agree(model, truth)


def test_the_history_begins_with_the_first_round():
    model = OnlineHardThresholding(2, round_size=5)
    model.learn_one({"a": 1.0}, 1.0)
    assert model.model.selection_history_ == []
    for i in range(4):
        model.learn_one({"a": float(i)}, 1.0)
    assert [record.n_samples for record in model.model.selection_history_] == [5]


@both
def test_no_warning_that_more_features_are_asked_for_than_have_come(kind, recwarn):
    model = kind(5)
    for i in range(10):
        model.learn_one({f"x{i}": 1.0 + i}, float(i))
    assert not recwarn.list
    assert model.model.sparsity_ == 5


# -- many rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_many_rows_are_rows_one_by_one(name, frame):
    rng = np.random.default_rng(5)
    _, X, y, names = dictionaries(rng, 260, 12)
    w = rng.uniform(0.0, 2.0, 260)
    one, many = new(name), new(name)
    start = 0
    # Features come, go and come back in other orders, and batches are shorter and longer than a block.
    for n, columns in ((1, [3, 1]), (9, [1, 3, 7]), (140, list(range(11, -1, -1))), (60, [0]), (50, [11, 4, 5])):
        part, targets, weights = X[start : start + n, columns], y[start : start + n], w[start : start + n]
        keys = [names[j] for j in columns]
        for x, target, weight in zip(part.tolist(), targets.tolist(), weights.tolist(), strict=True):
            one.learn_one(dict(zip(keys, x, strict=True)), target, w=weight)
        series = pd.Series if frame is pd.DataFrame else pl.Series
        many.learn_many(frame(dict(zip(keys, part.T, strict=True))), series(targets), w=series(weights))
        start += n
    assert one.features == many.features
    np.testing.assert_array_equal(one.model.coef_, many.model.coef_)
    assert one.intercept == many.intercept
    assert one.weights == many.weights


def test_predictions_of_many_rows():
    rng = np.random.default_rng(6)
    rows, X, y, names = dictionaries(rng, 200, 15)
    model = SparseRegressor()
    target = pd.Series(y, name="price", index=np.arange(200) * 3)
    model.learn_many(pd.DataFrame(X, columns=names, index=target.index), target)
    assert len(model.weights) >= 2
    query = (
        pd.DataFrame(X, columns=names)[[*names[10:], *names[:9]]].assign(unknown=7.0).iloc[::2]
    )  # names[9] is missing
    predicted = model.predict_many(query)
    assert isinstance(predicted, pd.Series)
    assert predicted.name == "price"
    assert list(predicted.index) == list(query.index)
    expected = [model.predict_one({k: v for k, v in x.items() if k != names[9]}) for x in rows[::2]]
    np.testing.assert_array_equal(predicted.to_numpy(), expected)
    assert isinstance(model.predict_many(pl.from_pandas(query)), pl.Series)
    # What has no coefficient may be anything; what has one is checked.
    kept = next(iter(model.weights))
    np.testing.assert_array_equal(model.predict_many(query.assign(unknown="text")), predicted)
    for value, message in (("text", "is 'text', which is not a number"), (np.nan, "contains NaN")):
        with pytest.raises(ValueError, match=f"Feature {kept!r} {message}"):
            model.predict_many(query.assign(**{kept: value}))
    assert model.predict_many(pd.DataFrame({"unknown": ["a", "b"]})).tolist() == [model.intercept] * 2


def test_many_rows_before_learning_and_no_rows():
    model = SparseRegressor()
    assert model.predict_many(pd.DataFrame({"a": [1.0, 2.0]})).tolist() == [0.0, 0.0]
    model.learn_many(pd.DataFrame({"a": pd.Series([], dtype=float)}), pd.Series([], dtype=float))
    assert model.features == []
    model.learn_many(pd.DataFrame({"a": [1.0, 2.0], 7: [True, False]}), [1.0, 2.0], w=2)
    assert model.features == [7, "a"]
    assert model.model.summary_.weight == pytest.approx(4.0, rel=1e-15)


# -- names and order --------------------------------------------------------------------------------------


def test_the_order_within_dictionaries_does_not_matter():
    rng = np.random.default_rng(7)
    rows, _, y, _ = dictionaries(rng, 200, 30, share=0.2)
    one, other = SparseRegressor(), SparseRegressor()
    for x, target in zip(rows, y, strict=True):
        keys = rng.permutation(list(x)).tolist()
        assert one.predict_one(x) == other.predict_one({key: x[key] for key in keys})
        one.learn_one(x, target)
        other.learn_one({key: x[key] for key in keys}, target)
    assert one.features == other.features
    np.testing.assert_array_equal(one.model.coef_, other.model.coef_)


def test_names_of_any_kind():
    rng = np.random.default_rng(8)
    keys = [3, "a", ("bi", "gram"), 2.5, None, 1, frozenset({1})]
    one, other = SparseRegressor(2), SparseRegressor(2)
    for _ in range(50):
        x = dict(zip(keys, rng.standard_normal(len(keys)).tolist(), strict=True))
        y = 2.0 * x["bi", "gram"] - x[3]
        one.learn_one(x, y)
        other.learn_one(dict(reversed(x.items())), y)
    assert set(one.weights) == {3, ("bi", "gram")}
    assert one.features == other.features
    assert not hasattr(one.model, "feature_names_in_")  # scikit-learn has names only where all are texts
    numbers = SparseRegressor()
    numbers.learn_one({10: 1.0, 9: 2.0, 2: 3.0}, 1.0)
    assert numbers.features == [2, 9, 10]


def test_the_model_within_knows_the_names():
    rng = np.random.default_rng(9)
    rows, X, y, names = dictionaries(rng, 400, 10)
    model = SparseRegressor()
    for x, target in zip(rows, y, strict=True):
        model.learn_one(x, target)
    assert list(model.model.feature_names_in_) == names
    assert set(model.model.confidence_intervals().names) == set(model.weights)
    np.testing.assert_allclose(
        model.model.predict(pd.DataFrame(X, columns=names)), model.predict_many(pd.DataFrame(X, columns=names))
    )
    model.learn_one({"new": 1.0}, 1.0)
    assert list(model.model.feature_names_in_) == [*names, "new"]
    assert model.model.support_stability().shape == (11,)


def test_numbers_of_any_kind():
    model = SparseRegressor()
    model.learn_one({"a": True, "b": np.float32(0.5), "c": np.int64(3), "d": np.bool_(False), "e": 2}, np.float64(1.5))
    model.learn_one(Counter("eeab"), 2)
    assert model.model.n_samples_seen_ == 2
    np.testing.assert_array_equal(model.model.summary_.mean_x, [1.0, 0.75, 1.5, 0.0, 2.0])


# -- what is rejected -------------------------------------------------------------------------------------


def fitted(n=40, kind=SparseRegressor):
    rng = np.random.default_rng(10)
    model = kind(2)
    for _ in range(n):
        x = dict(zip("abc", rng.standard_normal(3).tolist(), strict=True))
        model.learn_one(x, x["a"] - x["b"])
    return model


BAD = [
    ({"a": "red"}, "Feature 'a' is 'red', which is not a number; encode it .*OneHotEncoder"),
    ({"a": "1.5"}, "Feature 'a' is '1.5', which is not a number"),
    ({"a": b"1"}, "not a number"),
    ({"b": None}, "Feature 'b' is None; leave a feature that is missing out"),
    ({"new": None}, "Feature 'new' is None"),
    ({"a": 1.0, "new": float("nan")}, "Feature 'new' is nan; leave such a row out or fill"),
    ({"c": float("-inf")}, "Feature 'c' is -inf"),
    ({"c": 1e200}, "Feature 'c' is 1e\\+200, whose square overflows; rescale"),
    ({"c": 10**400}, "Feature 'c' is 1000"),
    ({"new": [1.0]}, r"Feature 'new' is \[1.0\], which is not a number"),
    ({"new": 1j}, "Feature 'new' is 1j, which is not a number"),
    ({"a": np.ones(2)}, "Feature 'a' is .*not a number"),
]


@pytest.mark.parametrize(("x", "message"), BAD)
@pytest.mark.parametrize("n", [0, 40])
@both
def test_what_is_not_a_number_is_named_and_changes_nothing(kind, x, message, n):
    model = fitted(n, kind)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.learn_one(x, 1.0)
    assert pickle.dumps(model) == before
    # What comes after is learned as if nothing had happened.
    untouched = fitted(n, kind)
    for one in (model, untouched):
        one.learn_one({"a": 1.0, "z": 2.0}, 0.5)
    assert model.features == untouched.features
    np.testing.assert_array_equal(model.model.coef_, untouched.model.coef_)


@pytest.mark.parametrize("y", ["1.0", None, float("nan"), float("inf"), 1e200, [1.0, 2.0]])
@both
def test_responses_are_checked(kind, y):
    model = fitted(kind=kind)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"y is .*; pass a finite number"):
        model.learn_one({"new": 1.0}, y)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("w", [-1.0, float("nan"), float("inf"), "2", None])
@both
def test_weights_are_checked(kind, w):
    model = fitted(kind=kind)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="sample_weight"):
        model.learn_one({"new": 1.0}, 1.0, w=w)
    assert pickle.dumps(model) == before
    model.learn_one({"a": 5.0}, 100.0, w=0.0)  # does not count
    np.testing.assert_array_equal(model.model.summary_.comoment(), fitted(kind=kind).model.summary_.comoment())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0, np.nan]}, "Feature 'a' contains NaN"),
        ({"new": [np.inf, 1.0]}, "Feature 'new' contains infinity"),
        ({"a": [1.0, 2.0], "kind": ["x", "y"]}, "Feature 'kind' is 'x', which is not a number"),
        ({"a": ["1", "2"]}, "Feature 'a' is '1', which is not a number"),
        ({"a": [1.0, None]}, "Feature 'a'"),
        ({"c": [1.0, -1e200]}, r"Feature 'c' is -1e\+200, whose square overflows"),
    ],
)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_are_checked(columns, message, frame):
    model = fitted()
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.learn_many(frame(columns), pd.Series([1.0, 2.0]))
    with pytest.raises(ValueError, match="y"):
        model.learn_many(frame({"a": [1.0, 2.0]}), pd.Series([1.0, np.nan]))
    with pytest.raises(ValueError, match="rows"):
        model.learn_many(frame({"a": [1.0, 2.0]}), pd.Series([1.0]))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (SparseRegressor, {"sparsity": 0}, "sparsity"),
        (SparseRegressor, {"dtype": "int8"}, "dtype"),
        (SparseRegressor, {"selection": "prequential"}, "selection"),
        (OnlineHardThresholding, {"sparsity": 0}, "sparsity"),
        (OnlineHardThresholding, {"step_size": lambda t, k: -1.0}, "step_size"),
    ],
)
def test_wrong_parameters_are_told_at_the_first_row(kind, parameters, message):
    model = kind(**parameters)
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            model.learn_one({"a": 1.0}, 1.0)
        assert (model.features, model.weights, model.predict_one({"a": 1.0})) == ([], {}, 0.0)


def test_a_step_size_that_fails_later_leaves_names_and_columns_together():
    model = OnlineHardThresholding(1, step_size=lambda t, k: 0.1 if t != 5 else -1.0)
    for i in range(4):
        model.learn_one({"a": float(i)}, 1.0)
    with pytest.raises(ValueError, match="step_size"):
        model.learn_one({"a": 1.0, "b": 1.0}, 1.0)
    assert (model.features, model.model.n_features_in_, model.model.n_samples_seen_) == (["a"], 1, 4)


def test_predictions_check_what_they_use():
    model = fitted()
    assert set(model.weights) == {"a", "b"}
    for value, message in (
        ("red", "Feature 'a' is 'red'"),
        (None, "Feature 'a' is None"),
        (np.nan, "Feature 'a' is nan"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict_one({"a": value})
    assert model.predict_one({"unknown": "text", "c": None}) == model.intercept
    assert model.predict_one({}) == model.intercept
    assert SparseRegressor().predict_one({"a": "anything"}) == 0.0


# -- copies, memory, interrupts ---------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("name", ["default", "cv", "pursuit", "hard, chosen size"])
def test_copies_go_on_to_the_same_bits(duplicate, name):
    rng = np.random.default_rng(11)
    rows, _, y, _ = dictionaries(rng, 400, 50, share=0.05)
    model = new(name)
    for i in range(40):
        model.learn_one(rows[i], y[i])
    again = duplicate(model)
    assert again.weights == model.weights
    for i in range(40, 400):
        again.learn_one(rows[i], y[i])
    before = model.model.coef_.copy()
    assert len(again.features) > len(model.features)
    np.testing.assert_array_equal(model.model.coef_, before)
    for i in range(40, 400):
        model.learn_one(rows[i], y[i])
    np.testing.assert_array_equal(model.model.coef_, again.model.coef_)
    assert model.features == again.features


@both
def test_clones_start_from_nothing(kind):
    model = fitted(kind=kind)
    assert model.clone().features == []
    assert model.clone({"sparsity": 3}).sparsity == 3
    kept = model.clone(include_attributes=True)
    assert kept.weights == model.weights


@both
def test_the_model_within_may_be_saved_and_loaded(tmp_path, kind):
    model = fitted(kind=kind)
    model.learn_one({"late": 1.0}, 1.0)
    model.model.save(tmp_path / "m.thresher")
    again = thresher.load(tmp_path / "m.thresher")
    np.testing.assert_array_equal(again.coef_, model.model.coef_)
    rows = pd.DataFrame([[1.0, 2.0, 3.0, 4.0]], columns=model.features)
    again.partial_fit(rows, [1.0])
    model.learn_many(rows, [1.0])
    np.testing.assert_array_equal(again.coef_, model.model.coef_)


@both
def test_memory_does_not_grow_with_rows(kind):
    rng = np.random.default_rng(12)
    model, sizes = kind(5), []
    for n in (2000, 2000, 4000):
        X = rng.standard_normal((n, 40))
        model.learn_many(pd.DataFrame(X, columns=[f"x{j}" for j in range(40)]), X[:, 3] + rng.standard_normal(n))
        sizes.append(len(pickle.dumps(model)))
    assert sizes[2] < 1.3 * sizes[0]


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        (SparseRegressor, "_widen"),
        (SparseRegressor, "_absorb"),
        (SparseRegressor, "_select"),
        (OnlineHardThresholding, "_widen"),
        (OnlineHardThresholding, "_publish"),
        (OnlineHardThresholding, "_absorb"),
    ],
)
@pytest.mark.parametrize("raised", ["at once", "by a signal"])
def test_an_interrupted_row_counts_whole_or_not_at_all(monkeypatch, kind, place, raised):
    model = fitted(kind=kind)
    model.model._next = 41  # a selection falls on the next row
    method = getattr(type(model.model), place)

    def interrupted(self, *arguments):
        method(self, *arguments)
        if raised == "at once":
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(type(model.model), place, interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn_one({"late": 1.0}, 1.0)
    n = model.model.n_samples_seen_
    assert len(model.features) == model.model.n_features_in_ == len(model.model.coef_)
    assert n in (40, 41)
    # From there on all is as if the row had been learned, or had never come.
    whole = fitted(kind=kind)
    whole.model._next = 41
    for _ in range(n - 40):
        whole.learn_one({"late": 1.0}, 1.0)
    for one in (model, whole):
        one.learn_one({"late": 1.0, "a": 2.0}, 1.0)
    assert model.features == whole.features
    np.testing.assert_allclose(model.model.coef_, whole.model.coef_, rtol=1e-9, atol=1e-12)


# -- with the rest of river -------------------------------------------------------------------------------


def test_progressive_validation_without_a_scaler():
    model = SparseRegressor()
    score = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    rows, y = zip(*datasets.TrumpApproval(), strict=True)
    matrix = np.array([[x[name] for name in model.features] for x in rows], float)
    truth, errors = thresher.SparseRegressor(), []
    for i in range(len(matrix)):
        predicted = truth.predict(matrix[i : i + 1])[0] if i else 0.0
        errors.append(abs(predicted - y[i]))
        truth.partial_fit(matrix[i : i + 1], np.array([y[i]]))
    assert score.get() == pytest.approx(np.mean(errors), rel=1e-9)
    scaled = preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)
    assert score.get() < evaluate.progressive_val_score(datasets.TrumpApproval(), scaled, metrics.MAE()).get()


def test_units_do_not_matter():
    model = SparseRegressor()
    rescaled = compose.FuncTransformer(lambda x: {k: 1e6 * v if k == "ipsos" else v for k, v in x.items()}) | model
    one = evaluate.progressive_val_score(datasets.TrumpApproval(), SparseRegressor(), metrics.MAE())
    other = evaluate.progressive_val_score(datasets.TrumpApproval(), rescaled, metrics.MAE())
    assert other.get() == pytest.approx(one.get(), rel=1e-6)


def test_pipelines_of_transformers():
    # Words appear all the time; 'good' and 'bad' decide.
    rng = np.random.default_rng(13)
    words = np.array(["good", "bad", *(f"word{j}" for j in range(200))])
    pipeline = compose.Pipeline(feature_extraction.BagOfWords(lowercase=False), SparseRegressor())
    for _ in range(600):
        text = rng.choice(words, 8, p=[0.1, 0.1, *np.full(200, 0.8 / 200)])
        rating = 3.0 + np.sum(text == "good") - np.sum(text == "bad") + 0.1 * rng.standard_normal()
        pipeline.predict_one(" ".join(text))
        pipeline.learn_one(" ".join(text), rating)
    model = pipeline["SparseRegressor"]
    assert set(model.weights) == {"good", "bad"}
    assert model.weights["good"] == pytest.approx(1.0, abs=0.05)
    assert len(model.features) > 150


def test_one_hot_levels_and_many_rows_in_a_pipeline():
    rng = np.random.default_rng(14)
    encode = compose.SelectType(str) | preprocessing.OneHotEncoder()
    pipeline = (encode + compose.SelectType(float, int)) | SparseRegressor()
    for i in range(500):
        colour = ["red", "green", "blue", "black"][rng.integers(2 + (i > 100) + (i > 200))]
        x = {"colour": colour, "size": float(rng.standard_normal())}
        pipeline.learn_one(x, 2.0 * (colour == "blue") + x["size"] + 0.1 * rng.standard_normal())
    assert set(pipeline["SparseRegressor"].weights) == {"colour_blue", "size"}
    X = pd.DataFrame(rng.standard_normal((300, 4)), columns=list("abcd"))
    chained = preprocessing.StandardScaler() | SparseRegressor(1)
    chained.learn_many(X, X["b"] * 2.0)
    assert set(chained["SparseRegressor"].weights) == {"b"}
    assert chained.predict_many(X).shape == (300,)


def test_the_guide_prints_what_it_says():
    guide = Path(__file__).parents[1] / "docs" / "river.md"
    failed, tried = doctest.testfile(str(guide), module_relative=False)
    assert tried > 10
    assert failed == 0


def test_without_river_the_error_says_what_to_install():
    code = "import sys; sys.modules['river'] = None; import thresher; import thresher.integrations.river"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (
        "ImportError: thresher.integrations.river needs river; install it with: pip install 'thresher[river]'"
        in result.stderr
    )


@both
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_model_without_features_survives_any_pickle(kind, protocol):
    model = pickle.loads(pickle.dumps(kind(), protocol=protocol))
    model.learn_one({"a": 1.0, "b": 2.0}, 3.0)
    assert np.isfinite(model.predict_one({"a": 1.0}))
