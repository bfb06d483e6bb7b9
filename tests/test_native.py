"""How the library feels to people who know scikit-learn: short texts, readable help, names, tags and routing."""

import pydoc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import thresher
from thresher import (
    LowRankRegressor,
    MatrixCompleter,
    OnlineHardThresholding,
    ReducedRankRegressor,
    SparseRegressor,
    posterior,
)
from thresher.baselines import FTRLProximal
from thresher.io.sources.synthetic import SparseLinearStream


@pytest.fixture(scope="module")
def rows():
    X, y = SparseLinearStream(12, 3, signal=1.0, seed=4).draw(400)
    return pd.DataFrame(X, columns=[f"col{j}" for j in range(12)]), y


@pytest.mark.parametrize("name", [name for name in thresher.__all__ if name != "__version__"])
def test_help_shows_names_of_types(name):
    text = pydoc.render_doc(getattr(thresher, name), renderer=pydoc.plaintext)
    for inner in ("_SupportsArray", "_typing", "numpy.ndarray[tuple"):
        assert inner not in text, [line for line in text.split("\n") if inner in line][:1]


def test_what_users_meet_prints_in_a_few_lines(rows):
    model = SparseRegressor().partial_fit(*rows)
    shown = [model, model.selection_, model.summary_, model.posterior(), model.selection_history_[-1], model.diagnose()]
    shown += [model.path(), model.selection_history_, model.prequential_history_, model.confidence_intervals()]
    shown += [model.summary(), OnlineHardThresholding(3).fit(*rows), posterior(model.summary_)]
    for one in shown:
        lines = str(one).split("\n")
        assert len(lines) <= 30, type(one)
        assert max(map(len, lines)) < 250, type(one)
        assert "array(" not in str(one), type(one)


def test_selected_columns_keep_their_names_and_their_frame(rows):
    X, y = rows
    model = SparseRegressor(3).fit(X, y)
    names = [f"col{j}" for j in np.flatnonzero(model.coef_)]
    assert list(model.get_feature_names_out()) == names
    np.testing.assert_array_equal(model.transform(X), X[names])
    pd.testing.assert_frame_equal(model.set_output(transform="pandas").transform(X), X[names])
    framed = model.set_output(transform="polars").transform(X)
    assert isinstance(framed, pl.DataFrame)
    assert framed.columns == names
    pipeline = make_pipeline(StandardScaler(), SparseRegressor(3)).set_output(transform="pandas").fit(X, y)
    assert list(pipeline.get_feature_names_out()) == names


@pytest.mark.parametrize("model", [SparseRegressor(), OnlineHardThresholding(3), ReducedRankRegressor(1)], ids=str)
def test_weights_can_be_routed(rows, model):
    X, y = rows
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        folds = cross_validate(model, X, y, cv=3, params={"sample_weight": weights}, return_estimator=True)
        fold = np.arange(len(y)) >= -(-len(y) // 3)
        expected = type(model)(**model.get_params()).fit(X[fold], y[fold], weights[fold])
        np.testing.assert_allclose(folds["estimator"][0].coef_, expected.coef_)
        score = expected.score(X[~fold], y[~fold], weights[~fold])
        assert folds["test_score"][0] == pytest.approx(score)


def test_grids_and_pipelines(rows):
    search = GridSearchCV(make_pipeline(StandardScaler(), SparseRegressor()), {"sparseregressor__sparsity": [1, 3]})
    assert search.fit(*rows).best_params_ == {"sparseregressor__sparsity": 3}


@pytest.mark.parametrize(
    ("model", "multi_output", "three_d", "sparse"),
    [
        (SparseRegressor(), False, False, True),
        (OnlineHardThresholding(), False, False, True),
        (FTRLProximal(), False, False, True),
        (ReducedRankRegressor(), True, False, True),
        (LowRankRegressor(), False, True, True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_tags_say_what_models_take(model, multi_output, three_d, sparse):
    tags = get_tags(model)
    assert tags.estimator_type == "regressor"
    assert tags.target_tags.required
    assert tags.target_tags.multi_output == multi_output
    assert tags.input_tags.three_d_array == three_d
    assert tags.input_tags.sparse == sparse
    assert not tags.input_tags.allow_nan
    assert (tags.transformer_tags is not None) == hasattr(model, "transform")


def test_a_completer_is_no_regressor_of_rows():
    assert get_tags(MatrixCompleter()).estimator_type != "regressor"
