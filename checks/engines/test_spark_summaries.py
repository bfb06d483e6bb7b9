"""Summaries that Spark makes are those of the rows, to the same bits each time, and bad rows are named."""

from dataclasses import replace

import numpy as np
import pytest

import thresher
from conftest import NAMES, D, N, assert_summary
from thresher import MatrixCompleter, SparseRegressor
from thresher.integrations._partials import merged
from thresher.integrations.spark import _chunks, summarize, summarize_entries
from thresher.integrations.spark import summarizing as module
from thresher.io.encoding import encode


@pytest.fixture(scope="module")
def frame(spark, table):
    return spark.createDataFrame(table.to_pandas()).repartition(6).cache()


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_summary_is_that_of_the_rows(frame, rows, levels, monkeypatch):
    monkeypatch.setattr(module, "FAN_IN", 2)
    X, y, w, _ = rows
    assert_summary(summarize(frame, NAMES, "y", levels=levels), X, y)
    assert_summary(summarize(frame, NAMES, "y", "w", levels=levels), X, y, w)


def test_all_other_numbers_are_features_by_default(frame, rows):
    X, y, w, _ = rows
    with pytest.warns(UserWarning, match=r"column 'colour' is left out of the features.*features=\['size'") as told:
        summary = summarize(frame, None, "y")
    assert sum("is left out" in str(warning.message) for warning in told) == 1  # Spark has warnings of its own
    assert_summary(summary, np.column_stack([X, w]), y)


def test_the_same_partitions_give_the_same_bits(spark, files):
    def read():
        return encode(summarize(spark.read.parquet(str(files)), NAMES, "y", "w"))

    assert read() == read()


def test_vectors_and_arrays(spark, frame, rows):
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import functions as sql

    X, y, w, _ = rows
    vectors = VectorAssembler(inputCols=NAMES, outputCol="v").transform(frame)
    assert_summary(summarize(vectors, "v", "y", "w"), X, y, w)
    both, named = summarize(vectors, "v", ["y", "w"]), summarize(vectors, NAMES, ["y", "w"])
    assert encode(both) == encode(named)
    arrays = frame.withColumn("a", sql.array(*NAMES))
    assert encode(summarize(arrays, "a", "y")) == encode(summarize(vectors, "v", "y"))
    ragged = arrays.withColumn("a", sql.when(sql.rand(3) < 0.5, sql.slice("a", 1, 2)).otherwise(sql.col("a")))
    with pytest.raises(ValueError, match=r"Partition \d+, row \d+: column 'a' has a vector of length"):
        summarize(ragged, "a", "y")


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0], [1.0, 3.0], [1.0, None]], r"^Partition 0, row 3: f\[1\] is null"),
        ([[1.0, 2.0], [1.0, 3.0], [1.0, float("nan")]], r"^Partition 0, row 3: column 'f\[1\]' has nan"),
        ([[1.0, 2.0], None], "^Partition 0, row 2: column 'f' is null"),
    ],
)
def test_a_bad_vector_is_named_with_its_row(spark, vectors, message):
    frame = spark.createDataFrame([(vector, 1.0) for vector in vectors], "f array<double>, y double").coalesce(1)
    with pytest.raises(ValueError, match=message):
        summarize(frame, "f", "y")


def test_vectors_that_differ_between_partitions_are_refused(spark):
    frame = spark.range(0, 8, 1, 2).selectExpr("if(id < 4, array(1D, 2D), array(1D)) AS f", "id AS y")
    with pytest.raises(ValueError, match=r"^Partition 1 does not fit partition 0: .*n_features: 2 and 1"):
        summarize(frame, "f", "y")


def test_levels_of_a_column_of_texts_and_names_with_dots(frame, rows):
    X, y, _, colour = rows
    renamed = frame.withColumnRenamed("x0", "x.0")
    gram = summarize(renamed, ["x.0", "colour=red"], "y")
    assert_summary(gram, np.column_stack([X[:, 0], colour == "red"]), y)


def test_an_empty_partition_changes_nothing(spark, frame, rows):
    from pyspark.sql import functions as sql

    X, y, _, _ = rows
    chosen = X[:, 0] > np.median(X[:, 0])
    part = frame.where(sql.col("x0") > float(np.median(X[:, 0]))).union(frame.limit(0)).repartition(4)
    assert_summary(summarize(part, NAMES, "y"), X[chosen], y[chosen])
    with pytest.raises(ValueError, match="no rows"):
        summarize(frame.limit(0), NAMES, "y")


@pytest.mark.parametrize(("value", "fault"), [("null", "is null"), ("'NaN'", "has nan"), ("1e200", "1e\\+200")])
def test_a_bad_row_is_named_with_its_partition(spark, files, value, fault):
    from pyspark.sql import functions as sql

    frame = spark.range(0, 100, 1, 4).select(
        sql.expr(f"if(id = 60, cast({value} as double), cast(id as double))").alias("x"), sql.col("id").alias("y")
    )
    with pytest.raises(ValueError, match=rf"^Partition 2, row 11: column 'x' .*{fault}"):
        summarize(frame, ["x"], "y")


def test_files_with_different_schemas_are_refused(spark, table, tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.drop_columns(["x3"]), tmp_path / "b.parquet")
    frame = spark.read.schema(spark.read.parquet(str(tmp_path / "a.parquet")).schema).parquet(str(tmp_path))
    with pytest.raises(ValueError, match=r"Partition \d+, row 1: column 'x3' is null"):
        summarize(frame, NAMES, "y")


def test_columns_that_do_not_fit_are_refused_before_anything_runs(frame):
    with pytest.raises(ValueError, match="no column 'z'"):
        summarize(frame, ["z"], "y")
    with pytest.raises(ValueError, match="no column 'z'"):
        summarize(frame, NAMES, "z")
    with pytest.raises(ValueError, match="'colour' has the type string"):
        summarize(frame, ["colour"], "y")
    with pytest.raises(ValueError, match="'colour' has the type string"):
        summarize(frame, NAMES, "colour")
    with pytest.raises(ValueError, match="'y' is named twice"):
        summarize(frame, [*NAMES, "y"], "y")
    with pytest.raises(ValueError, match="'x0' has no levels"):
        summarize(frame, ["x0=1"], "y")
    with pytest.raises(ValueError, match="levels must be a positive integer"):
        summarize(frame, NAMES, "y", levels=0)
    for kind in ("array('a')", "array(array(1D))"):
        with pytest.raises(ValueError, match=r"Column 'v' has the type array<.*>, not vectors or numbers"):
            summarize(frame.selectExpr("y", f"{kind} AS v"), "v", "y")
    with pytest.raises(TypeError, match=r"df is a pandas\..*DataFrame; pass a Spark data frame"):
        summarize(frame.limit(2).toPandas(), NAMES, "y")


def test_another_version_on_the_workers_is_told(frame):
    plan = replace(module.plan_for(NAMES, "y", None, "float64", 0), version="0.0.1")
    with pytest.raises(ValueError, match=rf"driver runs thresher 0.0.1 and this worker runs {thresher.__version__}"):
        module._collected(*module.selected(frame, module.Columns(frame), plan), plan, 1)


def test_folds_choose_as_the_rows_do(frame, rows):
    X, y, _, _ = rows
    folds = summarize(frame, NAMES, "y", n_folds=5)
    total = folds[0]
    for fold in folds[1:]:
        total = total.merge(fold)
    assert_summary(total, X, y)
    model = SparseRegressor(selection="cv").fit_summary(total, folds)
    expected = SparseRegressor(selection="cv").fit(X, y)
    np.testing.assert_array_equal(model.support_, expected.support_)
    np.testing.assert_allclose(model.selection_.criterion, expected.selection_.criterion, rtol=1e-8)


def test_many_responses(frame, rows):
    X, y, w, _ = rows
    summary = summarize(frame, NAMES, ["y", "w"])
    joined = np.column_stack([X, y, w])
    expected = np.cov(joined, rowvar=False) * (N - 1)
    scale = np.sqrt(np.diag(expected))
    assert np.abs((summary.joint_moments() - expected) / np.outer(scale, scale)).max() < 1e-12
    assert summary.n_responses == 2


def test_entries_of_a_matrix(spark):
    rng = np.random.default_rng(1)
    users, items = rng.integers(0, 20, 2000), rng.integers(0, 15, 2000)
    left, right = rng.standard_normal(20), rng.standard_normal(15)
    values = left[users] * right[items]
    frame = spark.createDataFrame(
        [(int(i), int(j), float(v)) for i, j, v in zip(users, items, values, strict=True)],
        "user int, item int, rating double",
    ).repartition(5)
    entries = summarize_entries(frame, "user", "item", "rating")
    counts = np.zeros((20, 15))
    np.add.at(counts, (users, items), 1.0)
    np.testing.assert_array_equal(entries.counts, counts)
    model = MatrixCompleter(rank=1, shrink=False).fit_summary(entries)
    np.testing.assert_allclose(model.coef_, np.outer(left, right), atol=1e-3)
    with pytest.raises(ValueError, match="'rating' is named twice"):
        summarize_entries(frame, "rating", "item", "rating")
    with pytest.raises(ValueError, match=r"Partition \d+, row \d+: column 'user' has 1\d; .* from zero below 10"):
        summarize_entries(frame, "user", "item", "rating", shape=(10, 15))
    with pytest.raises(ValueError, match=r"Partition \d+, row \d+: column 'rating' has -?\d+.\d+; indices are whole"):
        summarize_entries(frame.withColumn("z", frame.item), "rating", "item", "z")


def test_names_of_entries_are_numbered_by_spark(spark):
    from pyspark.ml.feature import StringIndexer

    values = {("ann", "tea"): 1.0, ("ann", "milk"): 2.0, ("bob", "tea"): 2.0, ("bob", "milk"): 4.0}
    rows = [(*place, value) for place, value in values.items()]
    frame = spark.createDataFrame(rows, "user string, item string, r double")
    with pytest.raises(ValueError, match="'user' has names; number them with a StringIndexer"):
        summarize_entries(frame, "user", "item", "r")
    indexer = StringIndexer(inputCols=["user", "item"], outputCols=["i", "j"]).fit(frame)
    entries = summarize_entries(indexer.transform(frame), "i", "j", "r")
    users, items = indexer.labelsArray
    expected = [[values[user, item] for item in items] for user in users]
    np.testing.assert_array_equal(entries.sums, expected)


def test_chunks_that_are_lost_or_out_of_order_are_noticed(rows):
    X, y, _, _ = rows
    gram = thresher.Gram(D).absorb(X, y)
    batches = list(_chunks.to_batches(3, gram, chunk=1000))
    assert len(batches) > 5
    ((partition, again),) = _chunks.summaries(batches)
    assert partition == 3
    assert encode(again) == encode(gram)
    with pytest.raises(ValueError, match="partition 3 lacks chunks"):
        list(_chunks.summaries(batches[:-1]))
    with pytest.raises(ValueError, match="Chunk 2 of partition 3 is out of order; 1 was expected"):
        list(_chunks.summaries(batches[:1] + batches[2:]))


def test_merging_in_place_gives_the_bits_of_merge(rows):
    X, y, w, _ = rows
    parts = [(X[:1000], y[:1000], w[:1000]), (X[1000:], y[1000:], w[1000:])]
    for first, second in (parts, parts[::-1]):
        grams = [thresher.Gram(D).absorb(*first), thresher.Gram(D).absorb(*second)]
        expected = encode(grams[0].merge(grams[1]))
        assert encode(merged(*grams)) == expected
