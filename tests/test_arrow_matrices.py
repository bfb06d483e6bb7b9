"""Matrix models from anything that speaks Arrow: several responses, and observed entries, by the names of columns."""

from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import thresher
from thresher import Entries, Gram, MatrixCompleter, MultiResponse, OnlineHardThresholding, ReducedRankRegressor
from thresher import SparseRegressor as Sparse
from thresher.io.encoding import encode

N, P, Q = 700, 5, 3
FEATURES, RESPONSES = [f"x{j}" for j in range(P)], [f"y{k}" for k in range(Q)]
KINDS = [lambda t: t, lambda t: t.to_reader(97), pl.from_arrow, lambda t: t.to_pandas()]
EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=["table", "reader", "polars", "pandas"])


@pytest.fixture
def data(rng):
    X = rng.standard_normal((N, P)) + 3.0
    Y = X @ rng.standard_normal((P, 1)) @ rng.standard_normal((1, Q)) + 0.1 * rng.standard_normal((N, Q))
    return X, Y, rng.uniform(0.5, 2.0, N)


def arrow(X, Y, w):
    return pa.table(dict(zip(FEATURES, X.T, strict=True)) | dict(zip(RESPONSES, Y.T, strict=True)) | {"w": w})


# -- several responses ---------------------------------------------------------------------------------------------


@EACH_KIND
@pytest.mark.parametrize("weight", [None, "w"])
def test_many_responses_give_the_bits_of_arrays(data, kind, weight):
    X, Y, w = data
    weights = None if weight is None else w
    names = None if weight else FEATURES  # otherwise the weights would be a feature
    table = kind(arrow(X, Y, w))
    model = ReducedRankRegressor().fit(table, RESPONSES, weight, features=names)
    expected = ReducedRankRegressor().fit(X, Y, weights)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert list(model.feature_names_in_) == FEATURES
    streamed = ReducedRankRegressor().partial_fit(kind(arrow(X, Y, w)), RESPONSES, weight, features=names)
    np.testing.assert_array_equal(streamed.coef_, expected.coef_)
    summary = MultiResponse(P, Q).absorb(kind(arrow(X, Y, w)), RESPONSES, weight, features=names)
    expected_moments = MultiResponse(P, Q).absorb(X, Y, weights).joint_moments()
    np.testing.assert_array_equal(summary.joint_moments(), expected_moments)
    np.testing.assert_array_equal(model.predict(kind(arrow(X, Y, w))), expected.predict(X))


def test_full_rank_is_least_squares_of_the_named_columns(data):
    X, Y, w = data
    order, responses = ["x3", "x0", "x4"], ["y2", "y0"]
    model = ReducedRankRegressor(2).fit(arrow(X, Y, w), responses, "w", features=order)
    expected = LinearRegression().fit(X[:, [3, 0, 4]], Y[:, [2, 0]], w)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    shuffled = arrow(X, Y, w).select(["x0", "y0", "x3", "x4"])
    np.testing.assert_allclose(model.predict(shuffled), expected.predict(X[:, [3, 0, 4]]), rtol=1e-9)
    alone = ReducedRankRegressor(1).fit(arrow(X, Y, w), "y1", features=order)
    assert alone.coef_.shape == (3,)
    np.testing.assert_allclose(alone.coef_, LinearRegression().fit(X[:, [3, 0, 4]], Y[:, 1]).coef_, rtol=1e-9)


def test_cross_validation_of_a_rank_sees_the_rows_of_a_stream(data):
    X, Y, w = data
    model = ReducedRankRegressor(selection="cv").fit(arrow(X, Y, w).to_reader(50), RESPONSES, "w")
    expected = ReducedRankRegressor(selection="cv").fit(X, Y, w)
    np.testing.assert_array_equal(model.selection_.criterion, expected.selection_.criterion)
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_a_stream_goes_on_by_name_and_is_saved(data, tmp_path):
    X, Y, w = data
    model = ReducedRankRegressor().partial_fit(arrow(X[:300], Y[:300], w[:300]), RESPONSES, "w")
    model.save(tmp_path / "m")
    again = thresher.load(tmp_path / "m")
    again.partial_fit(arrow(X[300:], Y[300:], w[300:]).select(["w", *RESPONSES, *FEATURES[::-1]]), RESPONSES, "w")
    expected = ReducedRankRegressor().partial_fit(X, Y, w)
    np.testing.assert_array_equal(again.coef_, expected.coef_)
    with pytest.raises(ValueError, match="before it had 3 responses"):
        again.partial_fit(arrow(X, Y, w), RESPONSES[:2], "w")
    with pytest.raises(ValueError, match="before it had 3 responses"):
        again.partial_fit(arrow(X, Y, w), "y1", "w")


def test_a_bad_value_late_in_a_stream_leaves_many_responses_as_they_were(data, monkeypatch):
    monkeypatch.setattr("thresher._utils.arrow.MOST_ROWS", 256)
    X, Y, w = data
    model, summary = ReducedRankRegressor().fit(X, Y), MultiResponse(P, Q).absorb(X, Y)
    before, moments = model.coef_.copy(), summary.joint_moments()
    Y = Y.copy()
    Y[650, 1] = np.nan
    bad = arrow(X, Y, w)
    fresh = ReducedRankRegressor()
    for call in (model.fit, model.partial_fit, summary.absorb, fresh.fit, fresh.partial_fit):
        with pytest.raises(ValueError, match="Row 651: column 'y1' has nan"):
            call(bad.to_reader(100), RESPONSES, features=FEATURES)
    np.testing.assert_array_equal(model.coef_, before)
    np.testing.assert_array_equal(summary.joint_moments(), moments)
    assert vars(fresh).keys() <= {*fresh.get_params(), "_lock"}


MEMORIES = [
    {"half_life": 30.0},
    {"half_life": timedelta(seconds=30)},
    {"window": 100.0},
    {"window": 100.0, "exact_window": True},
]


@pytest.mark.parametrize("memory", MEMORIES, ids=["half-life", "timedelta", "window", "exact window"])
def test_times_are_a_column(data, rng, memory, monkeypatch):
    """The bits of arrays, in several blocks; and for a half-life the weights 2^(-age / half-life) of NumPy."""
    monkeypatch.setattr("thresher._utils.arrow.MOST_ROWS", 256)
    X, Y, w = data
    times = np.cumsum(rng.uniform(0.0, 2.0, N))
    table = arrow(X, Y, w).append_column("at", pa.array((times * 1e6).astype(np.int64), pa.timestamp("us", "UTC")))
    times = (times * 1e6).astype(np.int64) / 1e6
    for call in ("fit", "partial_fit"):
        for model, names, responses in (
            (ReducedRankRegressor(2, **memory), RESPONSES, Y),
            (Sparse(2, **memory), "y1", Y[:, 1]),
        ):
            expected = getattr(clone(model), call)(X, responses, w, times=times)
            getattr(model, call)(table.to_reader(97), names, "w", FEATURES, "at")
            np.testing.assert_array_equal(model.coef_, expected.coef_)
    summary = MultiResponse(P, Q, **memory).absorb(table.to_reader(97), RESPONSES, "w", features=FEATURES, times="at")
    found = summary.joint_moments()
    np.testing.assert_array_equal(found, MultiResponse(P, Q, **memory).absorb(X, Y, w, times=times).joint_moments())
    if "half_life" in memory:
        aged = w * 2.0 ** ((times - times[-1]) / 30.0)
        joined = np.column_stack([X, Y])
        centred = joined - np.average(joined, axis=0, weights=aged)
        moments = (aged[:, None] * centred).T @ centred / aged.sum()
        np.testing.assert_allclose(found / summary.weight, moments, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [
        (600, 3.0, "Row 601: column 'at' goes back, from 599 to 3 seconds; sort the rows"),
        (512, 3.0, "Row 513: column 'at' goes back, from 511 to 3 seconds"),  # the first of a block
        (300, np.nan, "Row 301: column 'at' has nan"),
        (300, None, "Row 301: column 'at' is null"),
    ],
)
@pytest.mark.parametrize("memory", MEMORIES[1:], ids=["half-life", "window", "exact window"])
def test_a_bad_time_late_in_a_stream_is_named_and_changes_nothing(data, row, value, message, memory, monkeypatch):
    monkeypatch.setattr("thresher._utils.arrow.MOST_ROWS", 256)
    X, Y, w = data
    times = [float(k) for k in range(N)]
    times[row] = value
    bad = arrow(X, Y, w).append_column("at", pa.array(times))
    before = np.arange(-N, 0.0)
    sums = MultiResponse(P, Q, **memory).absorb(X, Y, times=before), Gram(P, **memory).absorb(X, Y[:, 0], times=before)
    models = ReducedRankRegressor(1, **memory), Sparse(2, **memory)
    models[0].fit(X, Y, times=before)
    models[1].fit(X, Y[:, 0], times=before)
    kept = [encode(one) for one in (*sums, *models)]
    calls = [sums[0].absorb, sums[1].absorb, models[0].partial_fit, models[1].partial_fit, models[0].fit, models[1].fit]
    for place, call in enumerate(calls):
        with pytest.raises(ValueError, match=message):
            call(bad, RESPONSES if place % 2 == 0 else "y0", features=FEATURES, times="at")
    assert [encode(one) for one in (*sums, *models)] == kept


def test_a_column_of_times_has_no_other_part(data):
    X, Y, w = data
    table = arrow(X, Y, w).append_column("at", pa.array(np.arange(float(N))))
    assert list(Sparse(half_life=50.0).fit(table, "y0", "w", times="at").feature_names_in_) == [*FEATURES, "y1", "y2"]
    for names in (("at", None), ("y0", "at")):
        with pytest.raises(ValueError, match="'at' has the times and cannot be a response or a weight"):
            Sparse(half_life=50.0).fit(table, *names, FEATURES, "at")
    with pytest.raises(ValueError, match="'name' has values of type string; times are"):
        Sparse(half_life=50.0).fit(table.append_column("name", pa.array(["x"] * N)), "y0", None, FEATURES, "name")
    with pytest.raises(ValueError, match="times go with half_life or window"):
        OnlineHardThresholding(2).fit(table, "y0", None, FEATURES, "at")


def test_names_that_do_not_fit_are_refused(data):
    X, Y, w = data
    table = arrow(X, Y, w)
    for model in (Sparse(), OnlineHardThresholding(2), Gram(P)):
        call = model.absorb if isinstance(model, Gram) else model.fit
        with pytest.raises(ValueError, match=r"y names 3 columns; .* one response.*(MultiResponse|ReducedRankReg)"):
            call(table, RESPONSES, features=FEATURES)
    for call in (ReducedRankRegressor().fit, ReducedRankRegressor().partial_fit, MultiResponse(P, Q).absorb):
        with pytest.raises(ValueError, match="'y0' is named twice"):
            call(table, ["y0", "y1", "y0"])
        with pytest.raises(ValueError, match="no column 'z'"):
            call(table, ["y0", "y1", "z"])
        with pytest.raises(ValueError, match="'y2' cannot be a feature"):
            call(table, RESPONSES, features=[*FEATURES, "y2"])
        with pytest.raises(TypeError, match="X is a ndarray"):
            call(X, RESPONSES)
        with pytest.raises(ValueError, match="must be the name of a column"):
            call(table, RESPONSES, w)
    with pytest.raises(ValueError, match="Y names 2 columns; the summary has 3 responses"):
        MultiResponse(P, Q).absorb(table, RESPONSES[:2])
    fresh = ReducedRankRegressor(4)
    with pytest.raises(ValueError, match="rank=4 exceeds"):
        fresh.partial_fit(table, RESPONSES)
    assert not hasattr(fresh, "n_features_in_")


# -- observed entries ----------------------------------------------------------------------------------------------


@pytest.fixture
def ratings(rng):
    n, d1, d2 = 3000, 12, 9
    users, items = rng.integers(0, d1, n), rng.integers(0, d2, n)
    values = (rng.standard_normal(d1)[:, None] * rng.standard_normal(d2))[users, items]
    return users, items, values + 0.1 * rng.standard_normal(n), rng.uniform(0.5, 2.0, n)


def as_table(users, items, values, w):
    names = np.array([f"user {user}" for user in users])
    return pa.table({"user": users, "item": items, "rating": values, "w": w, "name": names})


@EACH_KIND
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("row", ["user", "name", "category"])
def test_entries_give_the_bits_of_arrays(ratings, kind, weight, row, monkeypatch):
    monkeypatch.setattr("thresher._utils.entry_table.MOST_ENTRIES", 700)
    users, items, values, w = ratings
    table = as_table(*ratings)
    table = table.append_column("category", table["name"].dictionary_encode())
    weights, places = None if weight is None else w, users if row == "user" else table["name"].to_pylist()
    for learn in ("fit", "partial_fit"):
        model = getattr(MatrixCompleter(rank=1), learn)(row, "item", "rating", weight, data=kind(table))
        expected = getattr(MatrixCompleter(rank=1), learn)(places, items, values, weights)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_array_equal(model.predict(row, "item", data=kind(table)), expected.predict(places, items))
        if row != "user":
            assert model.row_ids_ == expected.row_ids_


def test_a_summary_of_entries_counts_every_one(ratings, monkeypatch):
    monkeypatch.setattr("thresher._utils.entry_table.MOST_ENTRIES", 700)
    users, items, values, w = ratings
    entries = Entries((12, 9)).absorb("user", "item", "rating", "w", data=as_table(*ratings))
    counts, sums = np.zeros((12, 9)), np.zeros((12, 9))
    np.add.at(counts, (users, items), w)
    np.add.at(sums, (users, items), w * values)
    np.testing.assert_allclose(entries.counts, counts, rtol=1e-13)
    np.testing.assert_allclose(entries.sums, sums, rtol=1e-10, atol=1e-12)
    assert entries.n_samples == len(values)
    doubles = pd.DataFrame({"user": users.astype(float), "item": items.astype(np.int16), "rating": values})
    entries = Entries((12, 9)).absorb("user", "item", "rating", data=doubles)
    np.testing.assert_array_equal(entries.counts, np.histogram2d(users, items, (range(13), range(10)))[0])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("user", -1, "Row 2901: column 'user' has -1; indices are whole numbers from zero"),
        ("user", 2.5, "Row 2901: column 'user' has 2.5; indices are whole"),
        ("item", 9, "Row 2901: column 'item' has 9; .* below 9"),
        ("item", None, "Row 2901: column 'item' is null"),
        ("name", None, "Row 2901: column 'name' is null"),
        ("rating", np.nan, "Row 2901: column 'rating' has nan"),
        ("rating", None, "Row 2901: column 'rating' is null"),
        ("w", -1.0, "Row 2901: the weight in 'w' is negative"),
    ],
)
def test_a_bad_entry_is_named_and_leaves_everything_as_it_was(ratings, column, value, message, monkeypatch):
    monkeypatch.setattr("thresher._utils.entry_table.MOST_ENTRIES", 700)
    table = as_table(*ratings)
    values = table.column(column).to_pylist()
    values[2900] = value
    bad = table.set_column(table.schema.get_field_index(column), column, pa.array(values))
    row = "name" if column == "name" else "user"
    model = MatrixCompleter(rank=1, shape=(12, 9)).fit(row, "item", "rating", "w", data=table)
    before = model.coef_.copy()
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            call(row, "item", "rating", "w", data=bad)
    np.testing.assert_array_equal(model.coef_, before)
    assert model.n_samples_seen_ == 3000
    if row == "user":
        entries = Entries((12, 9)).absorb("user", "item", "rating", "w", data=table)
        counts = entries.counts.copy()
        with pytest.raises(ValueError, match=message):
            entries.absorb("user", "item", "rating", "w", data=bad)
        np.testing.assert_array_equal(entries.counts, counts)


def test_tables_of_entries_that_do_not_fit_are_refused(ratings):
    table = as_table(*ratings)
    fresh = MatrixCompleter()
    for call in (fresh.fit, fresh.partial_fit, Entries((12, 9)).absorb):
        with pytest.raises(ValueError, match="no column 'film'; it has 'user'"):
            call("user", "film", "rating", data=table)
        with pytest.raises(ValueError, match="'user' is named twice"):
            call("user", "user", "rating", data=table)
        with pytest.raises(ValueError, match="'name' has values of type string"):
            call("user", "item", "name", data=table)
        with pytest.raises(ValueError, match="rows must be the name of a column, got a ndarray"):
            call(ratings[0], "item", "rating", data=table)
        with pytest.raises(TypeError, match="data is a list"):
            call("user", "item", "rating", data=[1])
        with pytest.raises(ValueError, match="no rows"):
            call("user", "item", "rating", data=table.slice(0, 0))
        with pytest.raises(ValueError, match="'user' is the name of a column; give the table"):
            call("user", "item", "rating")
    with pytest.raises(ValueError, match="'name' has names, and indices from zero are needed"):
        Entries((12, 9)).absorb("name", "item", "rating", data=table)
    with pytest.raises(ValueError, match="more than 5 different rows"):
        MatrixCompleter(shape=(5, 9)).fit("name", "item", "rating", data=table)
    zero = table.set_column(3, "w", pa.array(np.zeros(3000)))
    with pytest.raises(ValueError, match="weights are zero"):
        fresh.fit("user", "item", "rating", "w", data=zero)
    assert not hasattr(fresh, "summary_")
