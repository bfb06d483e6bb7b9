"""Models as scikit-learn pipelines: the same predictions, without this library."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from thresher import OnlineHardThresholding, ReducedRankRegressor, SparseRegressor
from thresher.baselines import FTRLProximal

LEVELS = ["Bern", "New = York", "Rome"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 12)) * 10.0 ** rng.integers(-3, 4, 12) + 5.0
    return X, X[:, 3] / X[:, 3].std() - X[:, 7] / X[:, 7].std() + rng.standard_normal(400)


@pytest.fixture(scope="module")
def table(rows):
    X, y = rows
    city = np.random.default_rng(4).choice(LEVELS, len(X))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)]).assign(city=pd.Categorical(city))
    return frame, y + 1.5 * (city == "Rome") - 2.0 * (city == "New = York")


def same(pipeline, X, expected):
    np.testing.assert_allclose(pipeline.predict(X), expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize(
    "model",
    [
        SparseRegressor(),
        SparseRegressor(2, fit_intercept=False),
        SparseRegressor(selection="ebic", estimate="posterior_mean"),
        OnlineHardThresholding(3, fit_intercept=True, standardize=True),
        FTRLProximal(),
    ],
    ids=str,
)
def test_same_predictions_from_arrays(rows, model):
    X, y = rows
    model = clone(model).fit(X, y)
    pipeline = model.to_sklearn()
    assert len(pipeline["regression"].coef_) == np.count_nonzero(model.coef_)
    same(pipeline, X, X @ model.coef_ + model.intercept_)
    same(pipeline, sparse.csr_array(X), model.predict(X))
    again = pickle.loads(pickle.dumps(pipeline))
    assert b"thresher" not in pickle.dumps(pipeline)
    same(again, X, model.predict(X))


def test_the_pipeline_does_not_follow_the_model(rows):
    X, y = rows
    model = SparseRegressor().partial_fit(X, y)
    before, pipeline = model.predict(X), model.to_sklearn()
    model.partial_fit(X, -y)
    same(pipeline, X, before)
    pipeline["regression"].coef_ *= 2.0  # nor the model the pipeline
    assert model.coef_.flags.writeable is False


def test_several_responses(rows):
    X, y = rows
    model = ReducedRankRegressor(1).fit(X, np.column_stack([y, 2.0 * y + X[:, 0]]))
    pipeline = model.to_sklearn()
    same(pipeline, X, X @ model.coef_.T + model.intercept_)
    one = ReducedRankRegressor(1).fit(X, y)
    assert one.to_sklearn().predict(X).shape == (400,)
    same(one.to_sklearn(), X, one.predict(X))


def test_a_model_that_kept_nothing(rows):
    X, _ = rows
    model = SparseRegressor(selection="ebic").fit(X, np.tile([1.0, 2.0], 200))
    assert len(model.support_) == 0
    same(model.to_sklearn(), X, np.full(400, 1.5))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_columns_of_frames_are_found_by_name(rows, make):
    X, y = rows
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    model = SparseRegressor().fit(frame, y)
    pipeline = model.to_sklearn()
    assert list(pipeline["columns"].get_feature_names_out()) == list(model.get_feature_names_out())
    same(pipeline, make(frame.to_dict("list")), model.predict(frame))
    same(pipeline, make(frame[["c9", "c7", "c3"]].to_dict("list")), model.predict(frame))
    with pytest.raises(ValueError, match="c3"):
        pipeline.predict(frame.drop(columns="c3"))


def test_levels_come_from_their_column(table):
    frame, y = table
    arrow = pa.Table.from_pandas(frame.assign(y=y))
    model = SparseRegressor().fit(arrow, "y")
    assert {"city=New = York", "city=Rome"} & set(model.get_feature_names_out())
    pipeline = model.to_sklearn(categories=["city"])
    same(pipeline, frame, model.predict(arrow))
    texts = frame.assign(city=frame["city"].astype(str))
    same(pipeline, texts, model.predict(arrow))
    texts.loc[0, "city"] = "Paris"  # counts as none of them
    numbers = pd.get_dummies(texts, prefix_sep="=", dtype=float).reindex(
        columns=model.feature_names_in_, fill_value=0.0
    )
    same(pipeline, texts, numbers.to_numpy() @ model.coef_ + model.intercept_)
    same(model.to_sklearn(), numbers, pipeline.predict(texts))


def test_wrong_categories_are_refused(rows, table):
    X, y = rows
    with pytest.raises(ValueError, match="names of its columns"):
        SparseRegressor().fit(X, y).to_sklearn(["city"])
    frame, responses = table
    model = SparseRegressor().fit(frame.drop(columns="city"), responses)
    with pytest.raises(ValueError, match="'town' is no category"):
        model.to_sklearn(["town"])
    with pytest.raises(ValueError, match="fitted"):
        SparseRegressor().to_sklearn()
