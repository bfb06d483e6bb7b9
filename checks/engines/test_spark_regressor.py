"""The estimator of pyspark.ml: equal to the one in memory, in pipelines, cross-validation and files."""

import numpy as np
import pytest

from conftest import NAMES
from thresher import SparseRegressor
from thresher.integrations.spark import SparkSparseRegressor, SparkSparseRegressorModel


@pytest.fixture(scope="module")
def frame(spark, table):
    return spark.createDataFrame(table.to_pandas()).repartition(3).cache()


@pytest.fixture(scope="module")
def model(frame):
    return SparkSparseRegressor(inputCols=NAMES, labelCol="y", weightCol="w").fit(frame)


def column(frame, *names):
    return np.column_stack([frame.toArrow().column(name).to_numpy() for name in names])


def test_equal_to_the_estimator_in_memory(model, rows):
    X, y, w, _ = rows
    expected = SparseRegressor().fit(X, y, w)
    np.testing.assert_array_equal(model.support, expected.support_)
    np.testing.assert_allclose(model.coefficients, expected.coef_, rtol=1e-10, atol=1e-12)
    assert model.intercept == pytest.approx(expected.intercept_, rel=1e-8)
    assert list(model.estimator.feature_names_in_) == NAMES
    assert model.numFeatures == len(NAMES)


def test_predictions_are_a_column(model, frame):
    found = column(model.transform(frame), "prediction", *NAMES)
    expected = found[:, 1:] @ model.coefficients + model.intercept
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)
    from pyspark.sql import functions as sql

    gaps = frame.withColumn("x1", sql.lit(None).cast("double"))
    with pytest.raises(Exception, match="column 'x1' is null"):
        model.transform(gaps).collect()


def test_in_a_pipeline_with_vectors_saved_and_loaded(frame, model, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.feature import VectorAssembler

    assembler = VectorAssembler(inputCols=NAMES, outputCol="features")
    stages = [assembler, SparkSparseRegressor(labelCol="y", weightCol="w", sparsity=2)]
    fitted = Pipeline(stages=stages).fit(frame)
    np.testing.assert_allclose(fitted.stages[1].coefficients, model.coefficients, rtol=1e-9, atol=1e-12)
    fitted.save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline"))
    np.testing.assert_array_equal(again.stages[1].coefficients, fitted.stages[1].coefficients)
    found = column(again.transform(frame), "prediction", *NAMES)
    np.testing.assert_allclose(found[:, 0], found[:, 1:] @ model.coefficients + model.intercept, rtol=1e-9)


def test_models_and_estimators_are_saved(model, tmp_path):
    model.write().overwrite().save(str(tmp_path / "model"))
    again = SparkSparseRegressorModel.load(str(tmp_path / "model"))
    np.testing.assert_array_equal(again.coefficients, model.coefficients)
    assert again.getInputCols() == NAMES
    assert again.uid == model.uid
    estimator = SparkSparseRegressor(inputCols=NAMES, labelCol="y", sparsity=3, fitIntercept=False)
    estimator.save(str(tmp_path / "estimator"))
    loaded = SparkSparseRegressor.load(str(tmp_path / "estimator"))
    assert loaded.extractParamMap().keys() == estimator.extractParamMap().keys()
    assert loaded.getOrDefault("sparsity") == 3
    assert loaded.getOrDefault("fitIntercept") is False


def test_in_a_cross_validator(frame):
    from pyspark.ml.evaluation import RegressionEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    estimator = SparkSparseRegressor(inputCols=NAMES, labelCol="y")
    grid = ParamGridBuilder().addGrid(estimator.getParam("sparsity"), [1, 2]).build()
    search = CrossValidator(
        estimator=estimator, estimatorParamMaps=grid, evaluator=RegressionEvaluator(labelCol="y"), numFolds=2, seed=1
    )
    found = search.fit(frame)
    assert found.avgMetrics[1] < 0.5 * found.avgMetrics[0]  # two features matter
    np.testing.assert_array_equal(found.bestModel.support, [1, 4])


def test_parameters_reach_the_estimator(frame, rows):
    X, y, _, _ = rows
    groups = ["a", "a", "b", "b", "c", "c", "d", "d"]
    grouped = SparkSparseRegressor(inputCols=NAMES, labelCol="y", groups=groups, sparsity=1, fitIntercept=False)
    expected = SparseRegressor(1, groups=groups, fit_intercept=False).fit(X, y)
    np.testing.assert_array_equal(grouped.fit(frame).support, expected.support_)
    folded = SparkSparseRegressor(inputCols=NAMES, labelCol="y", selection="cv").fit(frame)
    assert folded.estimator.selection_.method == "cv"
    np.testing.assert_array_equal(folded.support, SparseRegressor(selection="cv").fit(X, y).support_)
    with pytest.raises(ValueError, match="'sparsity' parameter"):
        SparkSparseRegressor(inputCols=NAMES, labelCol="y", sparsity=0).fit(frame)
