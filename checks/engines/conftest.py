"""A real Spark with two threads, a real Dask cluster with two processes, and rows that all of them summarise."""

import os
import sys

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

import numpy as np
import pyarrow as pa
import pytest

N, D = 3000, 8
NAMES = [f"x{j}" for j in range(D)]


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def rows():
    """X, y, weights and a category, with means far from zero."""
    rng = np.random.default_rng(27)
    X = rng.standard_normal((N, D)) + 100.0 * rng.standard_normal(D)
    y = 2.0 * X[:, 1] - X[:, 4] + 0.1 * rng.standard_normal(N)
    return X, y, rng.uniform(0.5, 2.0, N), rng.choice(["red", "blue"], N)


@pytest.fixture(scope="session")
def table(rows):
    X, y, w, colour = rows
    return pa.table(dict(zip(NAMES, X.T, strict=True)) | {"y": y, "w": w, "colour": colour})


@pytest.fixture(scope="session")
def files(table, tmp_path_factory):
    """A directory of Parquet files, one of which has no rows."""
    import pyarrow.parquet as pq

    directory = tmp_path_factory.mktemp("files")
    for number in range(7):
        part = table.slice(number * 500, 500)
        pq.write_table(part, directory / f"part-{number}.parquet")
    return directory


def moments(X, y, w=None):
    """Weight, means and co-moments of the joined rows (x, y), by NumPy in extended precision."""
    joined = np.column_stack([X, y]).astype(np.longdouble)
    w = np.ones(len(y)) if w is None else w
    mean = (w[:, None] * joined).sum(axis=0) / w.sum()
    centred = joined - mean
    return float(w.sum()), mean.astype(float), ((w[:, None] * centred).T @ centred).astype(float)


def assert_summary(gram, X, y, w=None, rtol=1e-12):
    """A Gram is that of these rows, compared with the scales of the columns."""
    weight, mean, comoment = moments(X, y, w)
    scale = np.sqrt(np.diag(comoment))
    assert gram.n_samples == len(y)
    assert gram.weight == pytest.approx(weight, rel=1e-13)
    np.testing.assert_allclose(gram.mean_x, mean[:-1], rtol=rtol)
    relative = (gram.comoment() - comoment[:-1, :-1]) / np.outer(scale[:-1], scale[:-1])
    assert np.abs(relative).max() < rtol
    assert np.abs((gram.cross_comoment() - comoment[:-1, -1]) / (scale[:-1] * scale[-1])).max() < rtol
