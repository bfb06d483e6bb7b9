"""Models through scikit-learn, ONNX Runtime and MLflow: the same predictions from columns of numbers and of texts."""

import os

import mlflow
import numpy as np
import onnxruntime
import pandas as pd
import pyarrow as pa
import pytest
from mlflow.exceptions import MlflowException
from mlflow.models import infer_signature
from skl2onnx import to_onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

from thresher import MatrixCompleter, OnlineHardThresholding, ReducedRankRegressor, SparseRegressor, load
from thresher.integrations.mlflow import load_model, log_model, save_model

LEVELS = ["Bern", "Oslo", "Rome"]
CLOSE = 1e-6  # relative to the largest prediction; single precision has 6e-8


@pytest.fixture(scope="module")
def frame():
    """Numbers at scales from 0.001 to 1000, whole numbers, truths, and two columns of texts."""
    rng = np.random.default_rng(5)
    n = 800
    result = pd.DataFrame({f"x{j}": rng.standard_normal(n) * 10.0 ** (j % 7 - 3) + j for j in range(8)})
    result["age"] = rng.integers(18, 80, n)
    result["member"] = rng.random(n) < 0.3
    result["city"] = rng.choice(LEVELS, n)
    result["colour"] = rng.choice(["red", "blue"], n)
    return result


@pytest.fixture(scope="module")
def y(frame):
    noise = np.random.default_rng(6).standard_normal(len(frame))
    cities = frame["city"].map({"Bern": 0.0, "Oslo": 2.0, "Rome": -3.0})
    return frame["x1"] * 200 - frame["x4"] + 0.1 * frame["age"] + 2.0 * frame["member"] + cities + noise


@pytest.fixture(scope="module")
def model(frame, y):
    table = frame.assign(y=y, city=pd.Categorical(frame["city"]), colour=pd.Categorical(frame["colour"]))
    return SparseRegressor().fit(pa.Table.from_pandas(table), "y")


@pytest.fixture(scope="module")
def expected(model, frame):
    """By hand: one column of zeros and ones for every level."""
    design = pd.get_dummies(frame, prefix_sep="=", dtype=float)[list(model.feature_names_in_)].astype(float)
    assert {"x1", "x4", "age", "member", "city=Rome"} <= set(model.get_feature_names_out())
    return design.to_numpy() @ model.coef_ + model.intercept_


def check(found, expected, close=CLOSE):
    np.testing.assert_allclose(np.ravel(found), expected, rtol=0, atol=close * np.abs(expected).max())


def onnx_inputs(frame, names, numbers):
    """The types that ONNX wants to know, and the columns as it takes them."""
    kinds = {name: numbers if frame[name].dtype.kind in "biuf" else StringTensorType for name in names}
    dtypes = {DoubleTensorType: np.float64, FloatTensorType: np.float32, StringTensorType: object}
    values = {name: frame[[name]].to_numpy(dtypes[kinds[name]]) for name in names}
    return [(name, kinds[name]([None, 1])) for name in names], values


def test_scikit_learn(model, frame, expected):
    check(model.to_sklearn(["city", "colour"]).predict(frame), expected, 1e-12)


@pytest.mark.parametrize("numbers", [DoubleTensorType, FloatTensorType])
def test_onnx_runtime(model, frame, expected, numbers):
    pipeline = model.to_sklearn(["city", "colour"])
    types, values = onnx_inputs(frame, list(pipeline["columns"].feature_names_in_), numbers)
    content = to_onnx(pipeline, initial_types=types).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    check(session.run(None, values)[0], expected)


def test_onnx_runtime_on_one_array():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((300, 20))
    model = OnlineHardThresholding(3).fit(X, X[:, 2] - 2.0 * X[:, 11] + rng.standard_normal(300))
    content = to_onnx(model.to_sklearn(), initial_types=[("X", DoubleTensorType([None, 20]))]).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    check(session.run(None, {"X": X})[0], X @ model.coef_ + model.intercept_)


def test_mlflow_serves_our_own_file(model, frame, expected, tmp_path):
    save_model(model, str(tmp_path / "m"))
    check(mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(frame), expected, 1e-12)
    files = {path.name for path in (tmp_path / "m").rglob("*") if path.is_file()}
    assert "model.thresher" in files
    assert not {name for name in files if name.endswith((".pkl", ".pickle", ".joblib"))}
    by_hand = load(tmp_path / "m" / "data" / "model.thresher")
    np.testing.assert_array_equal(by_hand.coef_, model.coef_)
    again = load_model(str(tmp_path / "m"))
    assert again.n_samples_seen_ == len(frame)
    with pytest.raises(MlflowException, match="already exists"):
        save_model(model, str(tmp_path / "m"))


def test_mlflow_with_a_signature_and_an_example(model, frame, expected, tmp_path):
    signature = infer_signature(frame.head(3), expected[:3])
    save_model(model, str(tmp_path / "m"), signature=signature, input_example=frame.head(3))
    served = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    assert served.metadata.signature.inputs.input_names() == list(frame.columns)
    check(served.predict(frame[list(reversed(frame.columns))]), expected, 1e-12)


def test_mlflow_runs(model, frame, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run():
        logged = log_model(model, "price")
    check(mlflow.pyfunc.load_model(logged.model_uri).predict(frame), expected, 1e-12)
    np.testing.assert_array_equal(load_model(logged.model_uri).coef_, model.coef_)


def test_mlflow_takes_arrays_and_several_responses(tmp_path):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((200, 6))
    model = ReducedRankRegressor(1).fit(X, X[:, :2] + 0.1 * rng.standard_normal((200, 2)))
    save_model(model, str(tmp_path / "m"))
    served = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    np.testing.assert_array_equal(served.predict(X), model.predict(X))


def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path):
    for wrong in (MatrixCompleter(), object()):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            save_model(wrong, str(tmp_path / "m"))
    assert os.listdir(tmp_path) == []


def test_other_models_are_refused(tmp_path):
    class Zero(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input: list[str], params=None) -> list[str]:
            return model_input

    mlflow.pyfunc.save_model(str(tmp_path / "m"), python_model=Zero(), pip_requirements=[])
    with pytest.raises(ValueError, match="not a model of thresher"):
        load_model(str(tmp_path / "m"))
