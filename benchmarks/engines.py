"""One data set summarised by Spark, Dask, DuckDB and in memory: equal, how long it takes, and how much memory.

    make bench-engines                                          # half an hour on two cores, 2 GB of temporary files
    .venv-engines/bin/python benchmarks/engines.py --rows 20000 --partitions 8     # a few minutes; nothing is saved

10^6 rows of 200 columns in 64 Parquet files. In each engine, in turns: the mean of every column, which reads all of
them; the summary; the fit. Then the engine's own linear regression (Spark ML's exact solver, dask-ml's ADMM). Every
engine is a process of its own with two workers. Last, 16 and 256 partitions of the same rows, for the memory, and 6,000
columns, where Spark ML's exact solver refuses. A full run writes benchmarks/results/engines.json.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

import thresher
from harness import machine
from thresher import Gram, SparseRegressor
from thresher.io.encoding import encode

os.environ["PYSPARK_PYTHON"] = sys.executable
D, ACTIVE, ROWS, PARTITIONS, REPEATS = 200, 10, 1_000_000, 64, 3
NAMES = [f"x{j}" for j in range(D)]
RESULTS = Path(__file__).parent / "results" / "engines.json"
WIDE = 6000


def coefficients():
    coef = np.zeros(D)
    coef[:: D // ACTIVE] = np.linspace(0.1, 1.0, ACTIVE)
    return coef


def write(directory, n_rows, n_partitions):
    """The same rows in any number of files."""
    directory.mkdir()
    rng, coef, file, left = np.random.default_rng(0), coefficients(), 0, 0
    writer, share = None, n_rows / n_partitions
    for start in range(0, n_rows, 2500):
        X = rng.standard_normal((min(2500, n_rows - start), D)) + 5.0
        y = X @ coef + rng.standard_normal(len(X))
        batch = pa.table(dict(zip(NAMES, X.T, strict=True)) | {"y": y})
        while batch.num_rows:
            if writer is None:
                left = round(share * (file + 1)) - round(share * file)
                writer = pq.ParquetWriter(directory / f"part-{file:04}.parquet", batch.schema, compression="none")
            part = batch.slice(0, left)
            writer.write_table(part)
            batch, left = batch.slice(part.num_rows), left - part.num_rows
            if left == 0:
                writer.close()
                writer, file = None, file + 1


class Peak:
    """The largest resident memory of the processes below this one, by what they are, in MB."""

    def __enter__(self):
        self.peaks, self._stop = {}, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _watch(self):
        own = psutil.Process()
        while not self._stop.wait(0.2):
            for process in [own, *own.children(recursive=True)]:
                try:
                    kind = "driver" if process == own else "java" if process.name() == "java" else "worker"
                    self.peaks[kind] = max(self.peaks.get(kind, 0), round(process.memory_info().rss / 1e6))
                except psutil.NoSuchProcess:
                    pass


def timed(calls, repeats=REPEATS):
    """Median seconds of each call, in turns after one warming up, and what each returned last."""
    times, values = {name: [] for name in calls}, {}
    for repeat in range(repeats + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            values[name] = call()
            if repeat:
                times[name].append(time.perf_counter() - start)
    return {name: round(statistics.median(spent), 2) for name, spent in times.items()}, values


def error_of(coef):
    return float(((np.asarray(coef) - coefficients()) ** 2).sum())


def report(summary, fitted, peak, seconds, **more):
    return {
        "seconds": seconds,
        "peak_mb": peak.peaks,
        "features": len(fitted.support_),
        "squared_error": error_of(fitted.coef_),
        "ratio_to_aggregate": round(seconds["summary"] / seconds["aggregate"], 2) if "aggregate" in seconds else None,
        **more,
    }


def once(call):
    start = time.perf_counter()
    value = call()
    return round(time.perf_counter() - start, 2), value


# -- engines ---------------------------------------------------------------------------------------------------------


def memory(directory, rivals):
    def summary():
        gram = Gram(D)
        for file in sorted(directory.iterdir()):
            gram.absorb(pq.read_table(file), "y")
        return gram

    def aggregate():
        return [pa.compute.mean(column) for f in sorted(directory.iterdir()) for column in pq.read_table(f).columns]

    with Peak() as peak:
        seconds, values = timed({"aggregate": aggregate, "summary": summary})
    return values["summary"], report(values["summary"], SparseRegressor().fit_summary(values["summary"]), peak, seconds)


def spark_session():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(name, "127.0.0.1")
    builder = builder.config("spark.driver.memory", "5g").config("spark.sql.files.maxPartitionBytes", "1g")
    # One task per file.
    session = builder.config("spark.sql.files.openCostInBytes", "1g").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def spark(directory, rivals):
    from pyspark.sql import functions as sql

    from thresher.integrations.spark import summarize

    df = spark_session().read.parquet(str(directory))
    with Peak() as peak:
        calls = {
            "aggregate": lambda: df.agg(*[sql.avg(name) for name in [*NAMES, "y"]]).collect(),
            "mapInArrow that counts": lambda: df.mapInArrow(count_rows, "n long").agg(sql.sum("n")).collect(),
            "summary": lambda: summarize(df, NAMES, "y"),
        }
        seconds, values = timed(calls, REPEATS if rivals else 1)
    gram = values["summary"]
    bits = encode(gram) == encode(summarize(df, NAMES, "y"))
    more = {"partitions": df.rdd.getNumPartitions(), "same_bits_twice": bits}
    if rivals:
        from pyspark.ml.feature import VectorAssembler
        from pyspark.ml.regression import LinearRegression

        vectors = VectorAssembler(inputCols=NAMES, outputCol="features").transform(df)
        spent, model = once(lambda: LinearRegression(labelCol="y", solver="normal").fit(vectors))
        more["rival"] = {
            "name": "Spark ML LinearRegression(solver='normal')",
            "seconds": spent,
            "features": int(np.count_nonzero(model.coefficients.toArray())),
            "squared_error": error_of(model.coefficients.toArray()),
        }
    return gram, report(gram, SparseRegressor().fit_summary(gram), peak, seconds, **more)


def count_rows(batches):
    yield pa.record_batch({"n": [sum(batch.num_rows for batch in batches)]})


def dask(directory, rivals):
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from thresher.integrations.dask import summarize

    with LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster), Peak() as peak:
        frame = dd.read_parquet(str(directory), split_row_groups=False, aggregate_files=False)
        calls = {"aggregate": lambda: frame.mean().compute(), "summary": lambda: summarize(frame, "y")}
        seconds, values = timed(calls, REPEATS if rivals else 1)
        gram = values["summary"]
        more = {"partitions": frame.npartitions, "same_bits_twice": encode(gram) == encode(summarize(frame, "y"))}
        peaks = dict(peak.peaks)
        if rivals:
            from dask_ml.linear_model import LinearRegression

            both = frame.to_dask_array(lengths=True)
            X, y = both[:, :D], both[:, D]
            try:
                spent, model = once(lambda: LinearRegression(solver="admm", max_iter=20).fit(X, y))
                more["rival"] = {
                    "name": "dask-ml LinearRegression(solver='admm', max_iter=20)",
                    "seconds": spent,
                    "features": int(np.count_nonzero(model.coef_)),
                    "squared_error": error_of(model.coef_),
                }
            except Exception as error:
                more["rival"] = {"name": "dask-ml LinearRegression", "failed": f"{type(error).__name__}: {error}"[:200]}
        peak.peaks = peaks
    return gram, report(gram, SparseRegressor().fit_summary(gram), peak, seconds, **more)


def duckdb(directory, rivals):
    import duckdb as engine

    engine.execute("SET threads = 2; SET enable_progress_bar = false")
    files = f"'{directory}/*.parquet'"
    means = ", ".join(f"avg({name})" for name in [*NAMES, "y"])
    with Peak() as peak:
        calls = {
            "aggregate": lambda: engine.sql(f"SELECT {means} FROM {files}").fetchall(),
            "summary": lambda: Gram(D).absorb(thresher.read_sql(f"SELECT * FROM {files}"), "y"),
        }
        seconds, values = timed(calls)
    gram = values["summary"]
    return gram, report(gram, SparseRegressor().fit_summary(gram), peak, seconds)


def wide(directory, rivals):
    """6,000 columns as vectors: too many for Spark ML's exact solver."""
    from pyspark.ml.functions import array_to_vector
    from pyspark.ml.regression import LinearRegression
    from pyspark.sql import functions as sql

    from thresher.integrations.spark import SparkSparseRegressor

    session = spark_session()
    df = session.range(0, 4000, 1, 4).mapInArrow(wide_rows, "features array<double>, label double")
    with Peak() as peak:
        spent, model = once(lambda: SparkSparseRegressor(featuresCol="features").fit(df))
    try:
        vectors = df.withColumn("features", array_to_vector(sql.col("features")))
        LinearRegression(solver="normal").fit(vectors)
        told = "fitted"
    except Exception as error:
        told = (re.findall(r"java\.lang\.\w+: [^\n]*", str(error)) or [str(error)])[0][:200]
    return model.estimator.summary_, {
        "columns": WIDE,
        "rows": 4000,
        "seconds": spent,
        "support": model.support.tolist(),
        "peak_mb": peak.peaks,
        "spark_ml": told,
    }


def wide_rows(batches):
    for batch in batches:
        for start in range(0, batch.num_rows, 200):
            ids = batch.column("id").slice(start, 200).to_numpy()
            X = np.random.default_rng(int(ids[0])).standard_normal((len(ids), WIDE))
            y = 3.0 * X[:, 7] - 2.0 * X[:, 5000] + 0.1 * X[:, 1]
            vectors = pa.ListArray.from_arrays(np.arange(len(ids) + 1, dtype=np.int32) * WIDE, X.ravel())
            yield pa.RecordBatch.from_arrays([vectors, pa.array(y)], names=["features", "label"])


ENGINES = {"memory": memory, "spark": spark, "dask": dask, "duckdb": duckdb, "wide": wide}


# -- the run ---------------------------------------------------------------------------------------------------------


def run_engine(name, directory, rivals):
    """The summary and the report of an engine, which is a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-W", "ignore", __file__, "--engine", name, "--data", str(directory), "--out", place]
        subprocess.run(command + ["--rivals"] * rivals, check=True)
        return thresher.load(Path(place, "summary")), json.loads(Path(place, "report.json").read_text())


def compare(gram, expected):
    """The largest difference of two summaries, relative to the scales of the columns, and of their fits."""
    scale = np.sqrt(np.diag(expected.comoment()))
    moments = np.abs((gram.comoment() - expected.comoment()) / np.outer(scale, scale)).max()
    ours, theirs = (SparseRegressor().fit_summary(one) for one in (gram, expected))
    return {
        "rows": gram.n_samples,
        "comoments_differ_by": float(moments),
        "same_support": bool(np.array_equal(ours.support_, theirs.support_)),
        "coefficients_differ_by": float(np.abs(ours.coef_ - theirs.coef_).max()),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--engine", choices=list(ENGINES))
    parser.add_argument("--only", nargs="*", default=["spark", "dask", "duckdb", "partitions", "wide"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rivals", action="store_true")
    options = parser.parse_args()
    if options.engine:
        gram, found = ENGINES[options.engine](options.data, options.rivals)
        gram.save(options.out / "summary")
        (options.out / "report.json").write_text(json.dumps(found))
        os._exit(0)  # without waiting for the engine to end
    results = {"machine": machine(), "rows": options.rows, "columns": D, "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as place:
        data = Path(place, "rows")
        write(data, options.rows, options.partitions)
        expected, results["memory"] = run_engine("memory", data, False)
        print("memory", results["memory"], flush=True)
        for name in [name for name in ("spark", "dask", "duckdb") if name in options.only]:
            gram, results[name] = run_engine(name, data, True)
            results[name] |= compare(gram, expected)
            print(name, results[name], flush=True)
        for count in (16, 256) if "partitions" in options.only else ():
            other = Path(place, f"rows-{count}")
            write(other, min(options.rows, 200_000), count)
            for name in ("spark", "dask"):
                found = run_engine(name, other, False)[1]
                results[f"{name}, {count} partitions, 200,000 rows"] = {k: found[k] for k in ("seconds", "peak_mb")}
                print(name, count, found, flush=True)
        if "wide" in options.only:
            results["wide"] = run_engine("wide", data, False)[1]
            print("wide", results["wide"], flush=True)
    if options.rows == ROWS:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
