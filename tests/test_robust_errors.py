"""Standard errors when the variance of the noise depends on the features."""

import numpy as np
import pytest

from thresher import OnlineHardThresholding, SparseRegressor
from thresher.inference.robust import error_ratios


def rows(n, seed=0, varying=True):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 20)) + 2.0
    noise = rng.standard_normal(n) * (np.sqrt(0.5 + (X[:, 3] - 2.0) ** 2) if varying else 1.0)
    return X, X[:, 3] - X[:, 5] + noise


def white(X, y, weights, centred):
    """HC0 over usual standard errors, of least squares on these columns."""
    Z = np.c_[np.ones(len(y)), X] if centred else X
    inverse = np.linalg.inv((Z.T * weights) @ Z)
    residual = y - Z @ (inverse @ (Z.T @ (weights * y)))
    meat = (Z.T * (weights * residual**2)) @ Z
    variance = weights @ residual**2 / weights.sum()
    return np.sqrt(np.diagonal(inverse @ meat @ inverse) / (variance * np.diagonal(inverse)))[1 if centred else 0 :]


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_ratios_are_those_of_white(centred, weighted):
    X, y = rows(128 * 400)
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else np.ones(len(y))
    model = SparseRegressor(2, fit_intercept=centred).partial_fit(X, y, weights if weighted else None)
    assert model.support_.tolist() == [3, 5]
    found = error_ratios(model.summary_, model._scored.residual_moments, centred)
    # Residuals are of predictions by slightly older models, and the first rows have none.
    assert found == pytest.approx(white(X[:, [3, 5]], y, weights, centred), rel=0.02)


def test_moments_begin_again_with_another_support_and_are_the_same_however_rows_are_cut():
    X, y = rows(1000)
    model, cut = OnlineHardThresholding(2, fit_intercept=True), OnlineHardThresholding(2, fit_intercept=True)
    model.partial_fit(X, y)
    for start in range(0, 1000, 37):
        cut.partial_fit(X[start : start + 37], y[start : start + 37])
    one, other = model._scored.residual_moments, cut._scored.residual_moments
    assert np.array_equal(one.matrix, other.matrix)
    assert one.weight == other.weight > 0.0
    model.partial_fit(X, 20.0 * X[:, 9] + 20.0 * X[:, 11])  # other columns matter now
    later = model._scored.residual_moments
    assert later.support.tolist() == [9, 11]
    assert later.weight < 1000


def test_intervals_allow_for_noise_that_varies_and_the_diagnosis_says_so():
    X, y = rows(4000)
    model = SparseRegressor(2).partial_fit(X, y)
    errors = model.confidence_intervals().standard_error
    usual = np.sqrt(model.noise_variance() / 4000) / X[:, [3, 5]].std(axis=0)
    assert errors[0] == pytest.approx(1.5 * usual[0], rel=0.1)
    assert errors[1] == pytest.approx(usual[1], rel=0.1)
    finding = model.diagnose()["noise"]
    assert finding.severity == "note"
    assert "error of x3 is" in finding.sentence
    constant = SparseRegressor(2).partial_fit(*rows(4000, varying=False))
    assert constant.diagnose()["noise"].severity == "ok"


@pytest.mark.parametrize(
    "memory", [{"half_life": 300.0}, {"window": 900}, {"window": 900, "exact_window": True}], ids=str
)
def test_residuals_of_forgotten_rows_are_forgotten(memory):
    (before, y_before), (X, y) = rows(6000, seed=2), rows(6000, seed=3, varying=False)
    model = SparseRegressor(2, **memory).partial_fit(before, y_before)
    then = error_ratios(model.summary_, model._scored.residual_moments, True)
    assert then[0] == pytest.approx(1.5, rel=0.15)
    model.partial_fit(X, y)
    assert model.support_.tolist() == [3, 5]
    moments = model._scored.residual_moments
    assert moments.weight == pytest.approx(model.summary_.weight, rel=0.3)
    assert error_ratios(model.summary_, moments, True) == pytest.approx([1.0, 1.0], abs=0.12)


def test_few_rows_leave_the_usual_errors():
    X, y = rows(150)
    model = SparseRegressor(2).partial_fit(X, y)
    assert error_ratios(model.summary_, model._scored.residual_moments, True) is None
