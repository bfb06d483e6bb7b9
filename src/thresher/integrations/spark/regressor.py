"""Sparse linear regression as an estimator of pyspark.ml."""

import os
from typing import Any

import numpy as np
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasInputCols,
    HasLabelCol,
    HasPredictionCol,
    HasWeightCol,
)
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import functions as sql

from thresher._utils.arrays import Floats, Integers
from thresher.estimators.sparse_regressor import SparseRegressor
from thresher.integrations._fitting import fitted
from thresher.integrations.spark import _chunks
from thresher.integrations.spark.predicting import predicted
from thresher.integrations.spark.summarizing import summarize


class _Settings(HasFeaturesCol, HasInputCols, HasLabelCol, HasWeightCol, HasPredictionCol):  # type: ignore[misc]
    """Which columns are what and how to fit, for the estimator and for its model."""

    sparsity = Param(Params._dummy(), "sparsity", "how many features to keep, or 'auto'")
    selection = Param(Params._dummy(), "selection", "how 'auto' chooses the features", TypeConverters.toString)
    fitIntercept = Param(Params._dummy(), "fitIntercept", "whether there is an intercept", TypeConverters.toBoolean)  # noqa: N815
    groups = Param(Params._dummy(), "groups", "the group of each feature", TypeConverters.toList)
    dtype = Param(Params._dummy(), "dtype", "storage of co-moments: 'float64' or 'float32'", TypeConverters.toString)
    levels = Param(Params._dummy(), "levels", "levels of the tree of merges", TypeConverters.toInt)

    def _given(self, name: str) -> Any:
        return self.getOrDefault(name) if self.isDefined(name) else None

    @property
    def _features(self) -> Any:
        """Names of columns, or the name of a column of vectors."""
        return self.getInputCols() if self.isSet("inputCols") else self.getFeaturesCol()


class SparkSparseRegressor(Estimator, _Settings, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """Linear regression with few nonzero coefficients, from a Spark data frame.

    What ``thresher.SparseRegressor().fit`` computes, from a summary that Spark makes in one pass: see ``summarize``.
    Equal to fitting all rows on one machine, to rounding. It works in a ``Pipeline`` and in a ``CrossValidator``, and
    can be saved and loaded.

    Parameters
    ----------
    inputCols : list of str, optional
        Columns of numbers, or levels of a column of texts such as ``"colour=red"``.
    featuresCol : str, default="features"
        One column of vectors or arrays, if there are no `inputCols`.
    labelCol : str, default="label"
    weightCol : str, optional
    predictionCol : str, default="prediction"
    sparsity : int or "auto", default="auto"
        How many features to keep; ``"auto"`` chooses.
    selection : {"posterior", "ebic", "cv"}, default="posterior"
        How ``"auto"`` chooses. ``"cv"`` needs five times the memory and traffic.
    fitIntercept : bool, default=True
    groups : list of str or int, optional
        The group of each feature; groups are kept or dropped together.
    dtype : {"float64", "float32"}, default="float64"
        How co-moments are stored.
    levels : int, default=2
        Levels of the tree in which summaries are merged.
    """

    @keyword_only  # type: ignore[untyped-decorator]
    def __init__(
        self,
        *,
        inputCols: list[str] | None = None,
        featuresCol: str = "features",
        labelCol: str = "label",
        weightCol: str | None = None,
        predictionCol: str = "prediction",
        sparsity: int | str = "auto",
        selection: str = "posterior",
        fitIntercept: bool = True,
        groups: list[Any] | None = None,
        dtype: str = "float64",
        levels: int = 2,
    ) -> None:
        super().__init__()
        self._setDefault(sparsity="auto", selection="posterior", fitIntercept=True, dtype="float64", levels=2)
        self._set(**{name: value for name, value in self._input_kwargs.items() if value is not None})

    @keyword_only  # type: ignore[untyped-decorator]
    def setParams(self, **params: Any) -> "SparkSparseRegressor":  # noqa: N802
        """Set parameters, by the names of the constructor."""
        return self._set(**self._input_kwargs)  # type: ignore[no-any-return]

    def _fit(self, dataset: Any) -> "SparkSparseRegressorModel":
        names = ("sparsity", "selection", "groups", "dtype")
        given = {name: self._given(name) for name in names if self._given(name) is not None}
        estimator = SparseRegressor(fit_intercept=self.getOrDefault("fitIntercept"), **given)
        estimator._check_parameters()  # before anything runs
        features = self._features

        def summarized(n_folds: int) -> Any:
            columns = (dataset, features, self.getLabelCol(), self._given("weightCol"))
            return summarize(*columns, dtype=given["dtype"], n_folds=n_folds, levels=self.getOrDefault("levels"))

        fitted(estimator, summarized)
        if not isinstance(features, str):
            estimator.feature_names_in_ = np.array(features, object)
        return self._copyValues(SparkSparseRegressorModel(estimator))  # type: ignore[no-any-return]


class SparkSparseRegressorModel(Model, _Settings, MLReadable, MLWritable):  # type: ignore[misc]
    """The model of a ``SparkSparseRegressor``.

    Attributes
    ----------
    estimator : thresher.SparseRegressor
        The estimator within, for intervals, diagnoses, the path and files.
    """

    def __init__(self, estimator: SparseRegressor | None = None) -> None:
        super().__init__()
        self.estimator = estimator

    @property
    def coefficients(self) -> Floats:
        """Coefficients of all features; zero outside the support."""
        return self._fitted.coef_

    @property
    def intercept(self) -> float:
        """The intercept."""
        return self._fitted.intercept_

    @property
    def support(self) -> Integers:
        """Sorted indices of the features that are kept."""
        return self._fitted.support_

    @property
    def numFeatures(self) -> int:  # noqa: N802
        """Number of features."""
        return self._fitted.n_features_in_

    @property
    def _fitted(self) -> SparseRegressor:
        if self.estimator is None:
            raise ValueError("This model is empty; load one, or fit a SparkSparseRegressor.")
        return self.estimator

    def _transform(self, dataset: Any) -> Any:
        column = predicted(dataset, self._features, self.coefficients, self.intercept)
        return dataset.withColumn(self.getPredictionCol(), column)

    def write(self) -> MLWriter:
        """What saves it."""
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader:
        """What loads it."""
        return _ModelReader()


class _ModelWriter(MLWriter):  # type: ignore[misc]
    """Parameters as Spark keeps them, and the bytes of the estimator beside them."""

    def __init__(self, instance: SparkSparseRegressorModel) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:  # noqa: N802
        DefaultParamsWriter.saveMetadata(self.instance, path, self.sparkSession)
        rows = [
            tuple(column[0].as_py() for column in batch.columns)
            for batch in _chunks.to_batches(0, self.instance._fitted)
        ]
        frame = self.sparkSession.createDataFrame(rows, _chunks.SCHEMA)
        frame.coalesce(1).write.parquet(os.path.join(path, "model"))


class _ModelReader(MLReader):  # type: ignore[misc]
    """The reverse."""

    def load(self, path: str) -> SparkSparseRegressorModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        frame = self.sparkSession.read.parquet(os.path.join(path, "model")).orderBy(sql.col("chunk"))
        ((_, estimator),) = _chunks.summaries(frame.toArrow().to_batches())
        if not isinstance(estimator, SparseRegressor):
            raise ValueError(f"{path} holds a {type(estimator).__name__}, not a SparseRegressor.")
        model = SparkSparseRegressorModel(estimator)
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model
