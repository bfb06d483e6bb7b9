"""What a sparse model says about itself: paths, intervals, stability, diagnoses."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from oracles import design
from thresher import Gram, SparseRegressor
from thresher.selection.ebic import Ebic


def rows(seed, n, d, kind="correlated"):
    rng = np.random.default_rng(seed)
    X = design(rng, kind, n, d) + 1.0
    return X, X[:, :3] @ [1.0, -1.0, 0.7] + rng.standard_normal(n)


@pytest.mark.parametrize("settings", [{}, {"sparsity": 5, "fit_intercept": False}, {"selection": Ebic(1.0)}])
def test_path_holds_the_models_of_every_size(settings):
    X, y = rows(0, 400, 30)
    model = SparseRegressor(**settings).partial_fit(X, y)
    before = model.coef_.copy()
    path = model.path(6)
    np.testing.assert_array_equal(path.sizes, np.arange(7))
    for k in range(7):
        support = np.flatnonzero(path.coef[k])
        assert len(support) == k
        residual = y - X @ path.coef[k] - path.intercept[k]
        np.testing.assert_allclose(path.loss[k], 0.5 * np.mean(residual**2), rtol=1e-9)
        np.testing.assert_allclose(X[:, support].T @ residual, 0.0, atol=1e-7)
    np.testing.assert_array_equal(model.coef_, before)
    for wrong in (-1, 2.5, True):
        with pytest.raises(ValueError, match="max_sparsity"):
            model.path(wrong)
    if settings.get("sparsity") is None:
        np.testing.assert_allclose(path.criterion, model.path().criterion[:7])
        assert model.sparsity_ == np.argmin(model.path().criterion)


def test_split_intervals_use_only_rows_after_the_support_was_frozen():
    X, y = rows(1, 1500, 40)
    model = SparseRegressor().partial_fit(X, y)
    then = next(m for m in reversed(model.selection_history_) if m.n_samples <= 700 and m.part is not None)
    assert then.n_samples > 700 / 1.3
    result = model.confidence_intervals(0.9, "split", split_at=700)
    np.testing.assert_array_equal(result.features, then.support)
    A = np.column_stack([np.ones(1500 - then.n_samples), X[then.n_samples :, then.support]])
    b = y[then.n_samples :]
    theta, rss = np.linalg.lstsq(A, b, rcond=None)[:2]
    freedom = len(b) - A.shape[1]
    error = np.sqrt(rss[0] / freedom * np.diagonal(np.linalg.inv(A.T @ A)))[1:]
    np.testing.assert_allclose(result.estimate, theta[1:], rtol=1e-7)
    np.testing.assert_allclose(result.upper, theta[1:] + stats.t.ppf(0.95, freedom) * error, rtol=1e-7)
    some = model.confidence_intervals(0.9, "split", features=then.support[[1]], split_at=700)
    np.testing.assert_array_equal(some.lower, result.lower[[1]])
    with pytest.raises(ValueError, match="no interval for feature 39"):
        model.confidence_intervals(method="split", features=[39])
    with pytest.raises(ValueError, match="method='debiased'"):
        model.confidence_intervals(method="split", split_at=1)
    for wrong in (0, 2.5, "a", True):
        with pytest.raises(ValueError, match="split_at"):
            model.confidence_intervals(method="split", split_at=wrong)
    for method in ("split", "debiased"):
        for features in ([True] * 40, [1.5], [[1, 2]]):
            with pytest.raises(ValueError, match="column numbers"):
                model.confidence_intervals(method=method, features=features)
    with pytest.raises(ValueError, match="stream the rows"):
        SparseRegressor().fit(X, y).confidence_intervals(method="split")
    with pytest.raises(ValueError, match="method must be"):
        model.confidence_intervals(method="bootstrap")


def test_debiased_intervals_for_any_feature_by_name():
    X, y = rows(2, 800, 20)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(20)])
    model = SparseRegressor().fit(frame, y)
    result = model.confidence_intervals(features=["x2", "x9"])
    assert result.names == ("x2", "x9")
    assert result.lower[0] < 0.7 < result.upper[0]
    np.testing.assert_array_equal(model.confidence_intervals().features, model.support_)
    with pytest.raises(ValueError, match="Unknown feature 'z'"):
        model.confidence_intervals(features=["z"])


def test_stability_is_the_share_of_rows_weighted_by_their_number():
    X, y = rows(3, 300, 15)
    model, expected = SparseRegressor(4), np.zeros(15)
    for i in range(300):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        expected += (i + 1) * (model.coef_ != 0.0)
    np.testing.assert_allclose(model.support_stability(), expected / (300 * 301 / 2))
    whole = SparseRegressor(4).partial_fit(X, y)
    np.testing.assert_array_equal(whole.support_stability(), model.support_stability())
    grouped = SparseRegressor(groups=np.repeat(np.arange(5), 3)).partial_fit(X, y)
    stability = grouped.support_stability()
    assert stability[:3].min() > 0.9
    assert 0.0 <= stability.min() <= stability.max() <= 1.0


def test_noise_variance_has_its_degrees_of_freedom():
    X, y = rows(4, 200, 10)
    model = SparseRegressor(sparsity=3).fit(X, y)
    residual = y - model.predict(X)
    np.testing.assert_allclose(model.noise_variance(), residual @ residual / (200 - 4), rtol=1e-9)


def test_diagnose_names_the_twin_the_constant_column_and_too_few_rows():
    rng = np.random.default_rng(0)
    names = [f"sensor {j}" for j in range(30)]
    X = rng.standard_normal((600, 30))
    X[:, 17] = X[:, 4] + 0.01 * rng.standard_normal(600)
    y = 2.0 * X[:, 4] + X[:, 8] + rng.standard_normal(600)
    found = SparseRegressor().partial_fit(pd.DataFrame(X, columns=names), y).diagnose()
    assert found["twins"].severity == "warning"
    assert "'sensor 4'" in found["twins"].sentence
    assert "'sensor 17'" in found["twins"].sentence
    assert found["rows"].severity == found["constant"].severity == "ok"

    X = rng.standard_normal((600, 30))
    X[:, 11] = 3.0
    found = SparseRegressor().partial_fit(pd.DataFrame(X, columns=names), X[:, 2] + rng.standard_normal(600)).diagnose()
    assert found["constant"].severity == "note"
    assert "'sensor 11'" in found["constant"].sentence
    assert "sensor 11" in found._repr_html_()

    X = rng.standard_normal((40, 30))
    found = SparseRegressor(sparsity=10).partial_fit(X, X[:, 0] + rng.standard_normal(40)).diagnose()
    assert found["rows"].severity == "warning"
    assert "Too few" in str(found)


def test_diagnose_tells_whether_the_support_holds_still():
    X, y = rows(5, 2000, 20, "independent")
    assert SparseRegressor().partial_fit(X, y).diagnose()["support"].severity == "ok"
    moving = np.where(np.arange(2000) < 1000, X[:, 0], 8.0 * X[:, 1]) + 0.1 * y
    assert SparseRegressor(sparsity=1).partial_fit(X, moving).diagnose()["support"].severity == "note"
    nothing = SparseRegressor().partial_fit(X, np.random.default_rng(0).standard_normal(2000)).diagnose()
    assert nothing["support"].severity == "warning"


def test_questions_can_be_asked_of_a_fitted_summary():
    X, y = rows(6, 500, 12)
    model = SparseRegressor().fit_summary(Gram(12).absorb(X, y))
    assert len(model.confidence_intervals()) == len(model.support_)
    assert model.path().coef.shape[1] == 12
    assert model.diagnose()["rows"].severity == "ok"
