"""Summaries that Dask makes: those of the rows, the same bits each time, with workers that are lost."""

import os
import signal
import threading
import time

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import thresher
from conftest import NAMES, D, assert_summary
from thresher import OnlineHardThresholding, SparseRegressor
from thresher.integrations import dask as module
from thresher.integrations.dask import fit, summarize
from thresher.io.encoding import encode


def two_processes():
    return LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=":0")


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


def test_levels_of_a_category(frame, rows):
    X, y, _, colour = rows
    gram = summarize(frame, "y", features=["x0", "colour=red"])
    assert_summary(gram, np.column_stack([X[:, 0], colour == "red"]), y)


def test_bad_input_is_named(frame, table, monkeypatch):
    with pytest.raises(ValueError, match="no column 'z'"):
        summarize(frame, "z")
    with pytest.raises(ValueError, match="no column 'z'"):
        summarize(frame, "y", features=["z"])
    with pytest.raises(ValueError, match="'colour' has values of type"):
        summarize(frame, "y", features=["colour"])
    with pytest.raises(TypeError, match="X is a ndarray"):
        summarize(np.zeros((3, 2)), "y")
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
