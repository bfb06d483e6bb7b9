"""Structured Streaming: every micro-batch is learned exactly once, whatever is killed."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import thresher
from conftest import NAMES, assert_summary
from thresher.integrations.spark import foreach_batch
from thresher.io.checkpoint import CheckpointError, load_with_note

STREAM = """
import sys, time
from pyspark.sql import SparkSession
from thresher.integrations.spark import foreach_batch
files, model, checkpoint, pause = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
         .config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2").getOrCreate())
schema = spark.read.parquet(files).schema
stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(files)
learn = foreach_batch(model, [f"x{j}" for j in range(8)], "y", "w")
def learn_and_wait(df, number):
    learn(df, number)
    print("learned", number, flush=True)
    time.sleep(float(pause))  # the file is written and Spark has not been told: the moment to be killed
query = (stream.writeStream.foreachBatch(learn_and_wait).option("checkpointLocation", checkpoint)
         .trigger(availableNow=True).start())
query.awaitTermination()
print("done", flush=True)
"""


def start(files, directory, pause):
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        STREAM,
        str(files),
        str(directory / "m"),
        str(directory / "c"),
        pause,
    ]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )


def test_killed_twice_equals_one_pass(files, rows, tmp_path):
    X, y, w, _ = rows
    for _ in range(2):
        process = start(files, tmp_path, "60")
        for line in process.stdout:
            if line.startswith("learned"):
                break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    process = start(files, tmp_path, "0")
    said = process.communicate(timeout=300)[0].split("\n")
    assert "done" in said
    model, note = load_with_note(tmp_path / "m")
    assert note["batch"] == 6  # seven files, one per micro-batch
    assert_summary(model.summary_, X, y, w)
    expected = thresher.SparseRegressor().fit(X, y, w)
    np.testing.assert_array_equal(model.support_, expected.support_)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10, atol=1e-12)


def test_a_batch_counts_once_and_foreign_files_are_refused(spark, table, rows, tmp_path):
    X, y, _, _ = rows
    frame = spark.createDataFrame(table.slice(0, 1000).to_pandas()).coalesce(2)
    learn = foreach_batch(tmp_path / "m", NAMES, "y")
    learn(frame.limit(0), 0)
    learn(frame, 1)
    before = (tmp_path / "m").read_bytes()
    learn(frame, 1)
    assert (tmp_path / "m").read_bytes() == before
    learn(frame.limit(0), 2)
    assert load_with_note(tmp_path / "m")[1]["batch"] == 2
    assert_summary(thresher.load(tmp_path / "m").summary_, X[:1000], y[:1000])
    for other in (1, 4):  # another stream, or a file of some time ago
        with pytest.raises(CheckpointError, match=f"up to 2 and the stream is at {other}"):
            learn(frame, other)
    thresher.SparseRegressor().fit(X, y).save(tmp_path / "other")
    with pytest.raises(CheckpointError, match="not made by foreach_batch"):
        foreach_batch(tmp_path / "other", NAMES, "y")(frame, 3)
    with pytest.raises(TypeError, match="must be a SparseRegressor"):
        foreach_batch(tmp_path / "m", NAMES, "y", estimator=thresher.MatrixCompleter())
    for memory in ({"half_life": 100.0}, {"window": 50}):
        with pytest.raises(ValueError, match=r"(half_life=100.0|window=50) needs rows in order.*file for each period"):
            foreach_batch(tmp_path / "m", NAMES, "y", estimator=thresher.SparseRegressor(**memory))
    for estimator in (thresher.SparseRegressor(selection="cv"), thresher.OnlineHardThresholding()):
        with pytest.raises(ValueError, match="choose its sparsity by cross-validation"):
            foreach_batch(tmp_path / "m", NAMES, "y", estimator=estimator)
