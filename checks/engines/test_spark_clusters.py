"""Spark with executors that are killed and tasks that fail or are slow, and Spark Connect; each in its own process."""

import subprocess
import sys

ROWS = """
import os, sys, time
from pyspark.sql import SparkSession, functions as F
from thresher import load
from thresher.integrations.spark import SparkSparseRegressor, foreach_batch, summarize
from thresher.io.encoding import encode

builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
def rows(spark):
    numbers = [F.sin(F.col("id") * (j + 1)).alias(f"x{j}") for j in range(5)]
    df = spark.range(0, 2000, 1, 6).select(*numbers, (0.1 * F.sin(F.col("id") * 77)).alias("noise"))
    return df.withColumn("y", 2 * F.col("x1") - F.col("x3") + F.col("noise")).drop("noise")
"""

CLUSTER = (
    ROWS
    + """
place = sys.argv[1]
spark = (builder.master("local-cluster[2,1,1024]").config("spark.executor.memory", "512m")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.maxResultSize", "1m")
    .config("spark.speculation", "true").config("spark.speculation.multiplier", "1.1")
    .config("spark.speculation.quantile", "0.1").config("spark.speculation.interval", "50ms").getOrCreate())
spark.sparkContext.setLogLevel("OFF")

def disturbed(batches):
    from pyspark import TaskContext
    number = TaskContext.get().partitionId()
    marker = os.path.join(place, f"{number}")
    first = not os.path.exists(marker)
    open(marker, "a").close()
    for batch in batches:
        yield batch
        if first and number == 1:
            raise RuntimeError("this task fails once")
        if first and number == 2:
            time.sleep(20)  # until a speculative copy of it is done
        if first and number == 4:
            daemon = os.getppid()
            with open(f"/proc/{daemon}/stat") as file:
                executor = int(file.read().rpartition(")")[2].split()[1])
            os.kill(executor, 9)
            time.sleep(60)

df = rows(spark)
columns = [f"x{j}" for j in range(5)]
calm = encode(summarize(df, columns, "y"))
assert encode(summarize(df, columns, "y")) == calm
assert encode(summarize(df.mapInArrow(disturbed, df.schema), columns, "y")) == calm
assert sorted(os.listdir(place)) == list("012345")
print("same bits")

many = [F.sin(F.col("id") * j).alias(f"x{j}") for j in range(400)]
wide = spark.range(0, 50, 1, 2).select(F.col("id").alias("y"), *many)
try:
    summarize(wide, None, "y")
except ValueError as error:
    assert "spark.driver.maxResultSize" in str(error), error
else:
    raise AssertionError("more than the driver accepts was returned")
print("too large")
"""
)

CONNECT = (
    ROWS
    + """
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import VectorAssembler

spark = builder.remote("local[2]").getOrCreate()
assert "connect" in type(spark).__module__
df = rows(spark)
columns = [f"x{j}" for j in range(5)]
gram = summarize(df, columns, "y")
assert gram.n_samples == 2000
model = SparkSparseRegressor(inputCols=columns, labelCol="y").fit(df)
assert list(model.support) == [1, 3], model.support
expected = sum(float(model.coefficients[j]) * F.col(f"x{j}") for j in (1, 3)) + float(model.intercept)
worst = model.transform(df).select(F.max(F.abs(expected - F.col("prediction")))).first()[0]
assert worst < 1e-12, worst
try:
    summarize(df.withColumn("x0", F.lit(None).cast("double")), columns, "y")
except ValueError as error:
    assert "column 'x0' is null" in str(error) and str(error).startswith("Partition"), error
else:
    raise AssertionError("a null was taken")
print("connected")

place = sys.argv[1]
stages = [VectorAssembler(inputCols=columns, outputCol="features"), SparkSparseRegressor(labelCol="y")]
Pipeline(stages=stages).fit(df).save(place + "/pipeline")
again = PipelineModel.load(place + "/pipeline")
assert abs(again.stages[1].coefficients - model.coefficients).max() < 1e-12
assert again.transform(df).select("prediction").count() == 2000
print("saved")

df.write.parquet(place + "/in")
stream = spark.readStream.schema(df.schema).option("maxFilesPerTrigger", 2).parquet(place + "/in")
writer = stream.writeStream.foreachBatch(foreach_batch(place + "/m", None, "y")).trigger(availableNow=True)

def started(checkpoint, attempts=5):
    try:
        return writer.option("checkpointLocation", place + checkpoint).start()
    except Exception as error:  # Spark gives its Python worker ten seconds, which is short on a busy machine
        if attempts == 1 or "connect back" not in str(error):
            raise
    return started(checkpoint, attempts - 1)

for count in (2000, 4000):
    started("/c").awaitTermination()
    model = load(place + "/m")
    assert model.n_samples_seen_ == count, model.n_samples_seen_
    assert list(model.support_) == [1, 3], model.coef_
    df.write.mode("append").parquet(place + "/in")
try:
    started("/other").awaitTermination()
except Exception as error:
    assert "the stream is at 0" in str(error), error
else:
    raise AssertionError("the rows of another stream were taken")
assert load(place + "/m").n_samples_seen_ == 4000
print("streamed")
"""
)


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_lost_executors_failed_and_slow_tasks_change_no_bit_and_large_results_are_explained(tmp_path):
    told = run(CLUSTER, tmp_path)
    assert "same bits" in told
    assert "too large" in told


def test_spark_connect_fits_and_streams(tmp_path):
    told = run(CONNECT, tmp_path)
    for done in ("connected", "saved", "streamed"):
        assert done in told
