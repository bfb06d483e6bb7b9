"""Summaries that Dask makes: those of the rows, the same bits each time, with workers that are lost."""

import doctest
import os
import signal
import threading
import time
from datetime import timedelta

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.linear_model import LinearRegression

import thresher
from conftest import NAMES, D, assert_summary
from thresher import CrossValidation, MatrixCompleter, OnlineHardThresholding, ReducedRankRegressor, SparseRegressor
from thresher.integrations import dask as module
from thresher.integrations.dask import fit, summarize, summarize_entries
from thresher.io.encoding import encode


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as one,
    ):
        yield one


@pytest.fixture(scope="module")
def frame(client, table):
    return dd.from_pandas(table.to_pandas(), npartitions=9)


@pytest.mark.parametrize("fan_in", [2, 3, 8])
def test_a_summary_is_that_of_the_rows(frame, rows, fan_in):
    X, y, w, _ = rows
    assert_summary(summarize(frame, "y", features=NAMES, fan_in=fan_in), X, y)
    assert_summary(summarize(frame, "y", "w", fan_in=fan_in), X, y, w)


def test_the_same_partitions_give_the_same_bits(frame):
    assert encode(summarize(frame, "y", "w")) == encode(summarize(frame, "y", "w"))


def test_arrays_in_blocks_of_rows_and_columns(client, rows):
    X, y, w, _ = rows
    whole = da.from_array(X, chunks=(700, D)), da.from_array(y, chunks=700), da.from_array(w, chunks=700)
    assert_summary(summarize(*whole), X, y, w)
    cut = da.from_array(X, chunks=(700, 3))
    assert encode(summarize(cut, whole[1])) == encode(summarize(whole[0], whole[1]))
    with pytest.raises(ValueError, match=r"y is in other blocks of rows than X; use y.rechunk"):
        summarize(whole[0], da.from_array(y, chunks=600))
    with pytest.raises(TypeError, match="y must be a Dask array"):
        summarize(whole[0], y)


def test_a_worker_that_is_killed_changes_nothing(table):
    """One of two processes dies while partitions are being read; what it had is computed again."""

    def slow(part):
        time.sleep(0.3)
        return part

    with (
        LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as one,
    ):
        frame = dd.from_pandas(table.to_pandas(), npartitions=12)
        expected = encode(summarize(frame, "y", "w"))
        slowly = frame.map_partitions(slow, meta=frame._meta)
        victims = list(one.run(os.getpid).values())
        killer = threading.Timer(0.7, os.kill, (victims[0], signal.SIGKILL))
        killer.start()
        found = encode(summarize(slowly, "y", "w"))
        killer.join()
        assert victims[0] not in one.run(os.getpid).values()
        assert found == expected


def test_models_equal_those_in_memory(frame, rows):
    X, y, w, _ = rows
    model = fit(SparseRegressor(), frame, "y", "w")
    expected = SparseRegressor().fit(X, y, w)
    np.testing.assert_array_equal(model.support_, expected.support_)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10, atol=1e-12)
    assert list(model.feature_names_in_) == NAMES
    np.testing.assert_allclose(model.predict(frame.compute()), X @ model.coef_ + model.intercept_, rtol=1e-9)
    online = fit(OnlineHardThresholding(2, fit_intercept=True, standardize=True), frame, "y", features=NAMES)
    np.testing.assert_array_equal(online.support_, expected.support_)


def test_folds_and_many_responses(frame, rows):
    X, y, w, _ = rows
    folds = summarize(frame, "y", features=NAMES, n_folds=5)
    total = folds[0]
    for fold in folds[1:]:
        total = total.merge(fold)
    assert_summary(total, X, y)
    chosen = SparseRegressor(selection="cv").fit_summary(total, folds)
    np.testing.assert_array_equal(chosen.support_, SparseRegressor(selection="cv").fit(X, y).support_)
    both = summarize(frame, ["y", "w"], features=NAMES)
    expected = np.cov(np.column_stack([X, y, w]), rowvar=False) * (len(y) - 1)
    scale = np.sqrt(np.diag(expected))
    assert np.abs((both.joint_moments() - expected) / np.outer(scale, scale)).max() < 1e-12


def test_estimators_of_other_kinds(frame, rows):
    X, y, w, _ = rows
    chosen = fit(SparseRegressor(selection=CrossValidation(n_folds=4)), frame, "y", features=NAMES)
    expected = SparseRegressor(selection=CrossValidation(n_folds=4)).fit(X, y)
    np.testing.assert_allclose(chosen.selection_.criterion, expected.selection_.criterion, rtol=1e-8)
    assert chosen.selection_.method == "cv"
    both = fit(ReducedRankRegressor(2), frame, ["y", "w"], features=NAMES)
    expected = LinearRegression().fit(X, np.column_stack([y, w]))
    np.testing.assert_allclose(both.predict(frame.compute()), expected.predict(X), rtol=1e-8)
    with pytest.raises(ValueError, match="ReducedRankRegressor takes a list of at least two columns"):
        fit(ReducedRankRegressor(), frame, "y")
    with pytest.raises(ValueError, match="SparseRegressor takes one response"):
        fit(SparseRegressor(), frame, ["y", "w"])
    with pytest.raises(TypeError, match="got MatrixCompleter"):
        fit(MatrixCompleter(), frame, "y")


def test_rows_have_no_order_so_weights_take_the_place_of_a_half_life(frame, rows):
    """What cannot be is refused before anything is read; what the message advises is what a half-life does."""
    X, y, _, _ = rows
    unread = frame.map_partitions(lambda part: 1 / 0, meta=frame._meta)
    for memory in ({"half_life": 100.0}, {"half_life": timedelta(days=1)}, {"window": 500}):
        for estimator, names in ((SparseRegressor(**memory), "y"), (ReducedRankRegressor(**memory), ["y", "w"])):
            with pytest.raises(ValueError, match=r"(half_life|window)=.* rows in order.*2\^\(-age / half_life\)"):
                fit(estimator, unread, names, features=NAMES)
    for estimator, size in ((OnlineHardThresholding(), "sparsity"), (ReducedRankRegressor(selection="cv"), "rank")):
        with pytest.raises(ValueError, match=f"choose its {size} by cross-validation.*give {size} as a number"):
            fit(estimator, unread, ["y", "w"] if size == "rank" else "y", features=NAMES)
    age = np.arange(len(y))[::-1] / 10.0
    aged = 2.0 ** (-age / 30.0)
    aged *= aged.sum() / (aged**2).sum()  # so that they sum to the effective number of rows
    recent = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y, aged=aged), npartitions=5)
    model = fit(SparseRegressor(selection="ebic"), recent, "y", "aged")
    expected = SparseRegressor(half_life=30.0, selection="ebic").fit(X, y, times=-age)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    assert model.summary_.weight == pytest.approx(expected.summary_.weight, rel=1e-12)


def test_entries_of_a_matrix(client):
    rng = np.random.default_rng(1)
    users, items, values = rng.integers(0, 20, 2000), rng.integers(0, 15, 2000), rng.standard_normal(2000)
    frame = pd.DataFrame({"user": users, "item": items, "rating": values, "w": np.abs(values)})
    entries = summarize_entries(dd.from_pandas(frame, npartitions=5), "user", "item", "rating", "w", fan_in=2)
    counts, sums = np.zeros((20, 15)), np.zeros((20, 15))
    np.add.at(counts, (users, items), np.abs(values))
    np.add.at(sums, (users, items), np.abs(values) * values)
    np.testing.assert_allclose(entries.counts, counts, rtol=1e-12)
    np.testing.assert_allclose(entries.sums, sums, rtol=1e-10, atol=1e-12)
    frame.loc[1234, "item"] = -1
    with pytest.raises(ValueError, match="Partition 3, row 35: column 'item' has -1; indices are whole numbers"):
        summarize_entries(dd.from_pandas(frame, npartitions=5), "user", "item", "rating")


def test_partitions_with_different_schemas_are_refused(client, table):
    """Dask believes what it is told of the columns; the partitions differ."""
    pandas = table.to_pandas()
    parts = [pandas[:1000], pandas[1000:].drop(columns="x3")]
    frame = dd.from_map(lambda number: parts[number], [0, 1], meta=pandas)
    with pytest.raises(ValueError, match=r"A partition lacks columns of the data frame: \['x3'\]"):
        summarize(frame, "y", features=NAMES)


def test_levels_of_a_category(frame, rows):
    X, y, _, colour = rows
    gram = summarize(frame, "y", features=["x0", "colour=red"])
    assert_summary(gram, np.column_stack([X[:, 0], colour == "red"]), y)


def test_columns_left_out_are_named_once(frame, recwarn):
    fit(SparseRegressor(), frame, "y")
    told = [str(warning.message) for warning in recwarn if "left out" in str(warning.message)]
    assert len(told) == 1
    assert "column 'colour' is left out of the features" in told[0]
    recwarn.clear()
    fit(SparseRegressor(), frame, "y", features=NAMES)
    assert not [warning for warning in recwarn if "left out" in str(warning.message)]


def test_bad_input_is_named(frame, table, monkeypatch):
    with pytest.raises(ValueError, match="no column 'z'"):
        summarize(frame, "z")
    with pytest.raises(ValueError, match="no column 'z'"):
        summarize(frame, "y", features=["z"])
    with pytest.raises(ValueError, match="'colour' has values of type"):
        summarize(frame, "y", features=["colour"])
    with pytest.raises(TypeError, match="X is a ndarray"):
        summarize(np.zeros((3, 2)), "y")
    with pytest.raises(TypeError, match="features must be a list of names, got the text 'x1'"):
        summarize(frame, "y", features="x1")
    with pytest.raises(ValueError, match="more than one column 'x0'; rename"):
        summarize(dd.from_pandas(table.to_pandas().rename(columns={"x1": "x0"}), npartitions=2), "y")
    with pytest.raises(ValueError, match="dtype must be 'float64' or 'float32', got 'half'"):
        summarize(frame, "y", dtype="half")
    for X in (np.zeros((3, 2)), da.ones((3, 2))):
        with pytest.raises(TypeError, match=r"X is a .*, which has no columns to name"):
            fit(SparseRegressor(), X, "y")
    for shape in (5, (5, 5, 5)):
        with pytest.raises(ValueError, match="shape must be two numbers, rows and columns"):
            summarize_entries(frame, "x0", "x1", "y", shape=shape)
    with pytest.raises(ValueError, match="fan_in must be at least 2"):
        summarize(frame, "y", fan_in=1)
    bad = table.to_pandas()
    bad.loc[1234, "x3"] = np.nan
    with pytest.raises(ValueError, match=r"^Partition 3, row 235: column 'x3' (has nan|is null)"):
        summarize(dd.from_pandas(bad, npartitions=9).repartition(divisions=[0, 333, 666, 1000, 2000, 2999]), "y")
    with pytest.raises(ValueError, match="no rows"):
        summarize(frame[frame.x0 > 1e9], "y")
    monkeypatch.setattr(module, "__version__", "0.0.1")
    X = da.ones((10, 2), chunks=(5, 2))
    with pytest.raises(ValueError, match=f"runs thresher 0.0.1 and this worker runs {thresher.__version__}"):
        summarize(X, X[:, 0])


def test_partitions_without_rows_change_nothing(frame, rows):
    X, y, _, _ = rows
    some = X[:, 0] > np.sort(X[:, 0])[-20]
    gram = summarize(frame[frame.x0 > float(np.sort(X[:, 0])[-20])], "y", features=NAMES)
    assert_summary(gram, X[some], y[some])


def test_a_data_frame_with_an_index_of_its_own(client, rows):
    X, y, _, _ = rows
    pandas = pd.DataFrame(X, columns=NAMES, index=pd.RangeIndex(10, 10 + len(y))).assign(y=y)
    assert_summary(summarize(dd.from_pandas(pandas, npartitions=3), "y"), X, y)


def test_examples_of_docstrings_run(client):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert not found.failed


def test_columns_that_are_numbered(client, rows):
    X, y, _, _ = rows
    numbered = pd.DataFrame(X).assign(y=y)
    model = fit(SparseRegressor(), dd.from_pandas(numbered, npartitions=3), "y")
    assert list(model.feature_names_in_) == [str(j) for j in range(D)]
    np.testing.assert_allclose(model.coef_, SparseRegressor().fit(X, y).coef_, rtol=1e-9, atol=1e-12)
