"""Rows of queries: the models of the same rows in memory, and runs of the command that are killed and resumed."""

import os
import subprocess
import sys
import time

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import thresher
from conftest import NAMES, assert_summary
from thresher import Gram, SparseRegressor
from thresher.cli import main
from thresher.io.ingest import Ingest
from thresher.io.sources.source_error import SourceError
from thresher.io.sources.sql import is_ordered


@pytest.fixture
def run(capfd, monkeypatch):
    """A function that runs the command in this process: its status, what it printed, and what it complained of."""

    def call(*arguments, check=True):
        capfd.readouterr()
        status = main([*map(str, arguments)])
        out, err = capfd.readouterr()
        assert not check or status == 0, err
        return status, out, err

    monkeypatch.setattr("warnings.showwarning", None)  # the command sets its own
    return call


def test_a_query_feeds_models_and_summaries(files, rows):
    X, y, w, _ = rows
    query = f"SELECT x1, x0 * 2 AS twice, y, w FROM '{files}/*.parquet' WHERE x2 > -1e9"
    gram = Gram(2).absorb(thresher.read_sql(query), "y", "w")
    assert_summary(gram, np.column_stack([X[:, 1], 2.0 * X[:, 0]]), y, w)
    columns = ", ".join(NAMES)
    query = f"SELECT {columns}, y FROM '{files}/*.parquet'"
    model = SparseRegressor().fit(thresher.read_sql(query, batch_rows=999), "y")
    np.testing.assert_array_equal(model.support_, [1, 4])
    np.testing.assert_array_equal(model.coef_, SparseRegressor().fit(X, y).coef_)
    relation = duckdb.sql(f"SELECT * FROM '{files}/*.parquet'")
    np.testing.assert_allclose(model.predict(relation), X @ model.coef_ + model.intercept_, rtol=1e-10)


def test_databases_joins_and_categories(files, rows, tmp_path):
    X, y, _, colour = rows
    with duckdb.connect(tmp_path / "d.duckdb") as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM '{files}/*.parquet'")
        connection.execute("CREATE TABLE costs AS FROM (VALUES ('red', 3.0), ('blue', 5.0)) AS v(colour, cost)")
        query = "SELECT t.x0, cost, y FROM t JOIN costs USING (colour)"
        expected = np.column_stack([X[:, 0], np.where(colour == "red", 3.0, 5.0)])
        assert_summary(Gram(2).absorb(thresher.read_sql(query, connection), "y"), expected, y)
    assert_summary(Gram(2).absorb(thresher.read_sql(query, tmp_path / "d.duckdb"), "y"), expected, y)
    levels = thresher.read_sql("SELECT x0, colour::ENUM('red', 'blue') AS colour, y FROM t", tmp_path / "d.duckdb")
    model = SparseRegressor(3).fit(levels, "y")
    assert list(model.feature_names_in_) == ["x0", "colour=blue", "colour=red"]


MEMORY = """
import resource, sys
from thresher import Gram, read_sql
query = f"SELECT random() AS a, random() AS b, range AS y FROM range({sys.argv[1]})"
assert Gram(2).absorb(read_sql(query), "y").n_samples == int(sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_does_not_grow_with_the_rows():
    few, many = (
        int(subprocess.run([sys.executable, "-c", MEMORY, n], capture_output=True, text=True, check=True).stdout)
        for n in ("100000", "10000000")
    )
    assert many < few + 100_000  # kB; the rows have 240 MB


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELEC 1", "the query cannot be used: syntax error"),
        ("SELECT nothing FROM range(3)", "the query failed: .*nothing"),
        ("SELECT 1; SELECT 2", "has 2 statements; give one SELECT"),
        ("CREATE TABLE t (x INT)", "Only SELECT"),
    ],
)
def test_bad_queries_are_refused(query, message):
    with pytest.raises(SourceError, match=message):
        thresher.read_sql(query)


def test_bad_rows_are_named(run, tmp_path):
    query = "SELECT CASE WHEN range = 4 THEN NULL ELSE range END AS x, range AS y FROM range(9)"
    with pytest.raises(ValueError, match="Row 5: column 'x' is null"):
        Gram(1).absorb(thresher.read_sql(query), "y")
    status, _, err = run("fit", "--sql", query, "-t", "y", check=False)
    assert status == 3
    assert "the query, row 5: column 'x' has no value" in err
    with pytest.raises(SourceError, match="does not exist"):
        thresher.read_sql("SELECT 1", tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT 1 AS a ORDER BY a", True),
        ("SELECT * FROM (SELECT 1 AS a ORDER BY a)", False),
        ("SELECT 'ORDER BY'", False),
        ("WITH t AS (SELECT 1 AS a) SELECT * FROM t ORDER BY a LIMIT 3", True),
    ],
)
def test_the_order_of_the_outermost_select_counts(query, ordered):
    assert is_ordered(query) == ordered


def test_the_command_fits_a_query(run, files, rows, tmp_path):
    X, y, w, _ = rows
    parquet = f"read_parquet('{files}/*.parquet', filename=true, file_row_number=true)"
    order = "filename, file_row_number"
    query = f"SELECT * EXCLUDE (colour, {order}) FROM {parquet} ORDER BY {order}"
    run("fit", "--sql", query, "-t", "y", "--weight", "w", "-m", tmp_path / "m", "-q")
    model = thresher.load(tmp_path / "m")
    np.testing.assert_allclose(model.coef_, SparseRegressor().fit(X, y, w).coef_, rtol=1e-10, atol=1e-12)
    run("accumulate", "--sql", query, "-t", "y", "--weight", "w", "-o", tmp_path / "s", "-q")
    assert_summary(thresher.load(tmp_path / "s"), X, y, w)


def test_options_that_do_not_go_together(run, files, tmp_path):
    query = f"SELECT x0, y FROM '{files}/*.parquet'"
    status, _, err = run("fit", "--sql", query, "-t", "y", "-m", tmp_path / "m", "--resume", check=False)
    assert status == 2
    assert "end the query with ORDER BY" in err
    assert "note: The query has no ORDER BY" in run("fit", "--sql", query, "-t", "y", "-m", tmp_path / "m", "-q")[2]
    assert run("fit", files, "--sql", query, "-t", "y", check=False)[0] == 2
    assert run("fit", "-t", "y", check=False)[0] == 2
    assert run("fit", files, "--database", "d", "-t", "y", check=False)[0] == 2


def test_killed_and_resumed_gives_the_same_bytes(run, tmp_path):
    query = "SELECT range % 7 + sin(range) AS a, cos(range) AS b, sin(range) + 0.1 * cos(3 * range) AS y, range AS id "
    query += "FROM range(200000) ORDER BY id"
    common = ["--sql", query, "-t", "y", "--drop", "id", "--checkpoint-every", "4096", "-q"]
    run("fit", *common, "-m", tmp_path / "whole")
    resumed = tmp_path / "resumed"
    for _ in range(2):
        command = [sys.executable, "-m", "thresher", "fit", *common, "-m", str(resumed), "--resume"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = rows_in(resumed)
        while rows_in(resumed) < before + 20_000:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.01)
        process.kill()
        process.wait()
    assert 0 < rows_in(resumed) < 200_000
    run("fit", *common, "-m", resumed, "--resume")
    assert resumed.read_bytes() == (tmp_path / "whole").read_bytes()


def rows_in(path):
    return Ingest.load(path).place.n_rows if os.path.exists(path) else 0


def test_rows_that_changed_are_noticed(run, table, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet")
    with duckdb.connect() as connection:
        query = f"SELECT x0, x1, y FROM '{tmp_path}/t.parquet' ORDER BY x0"
        run("fit", "--sql", query, "-t", "y", "-m", tmp_path / "m", "-q")
        path = f"'{tmp_path}/t.parquet'"
        connection.execute(f"COPY (SELECT * REPLACE (y + 1 AS y) FROM {path}) TO {path}")
    status, _, err = run("fit", "--sql", query, "-t", "y", "-m", tmp_path / "m", "-q", "--resume", check=False)
    assert status == 3
    assert "has changed" in err
