"""Pictures show what the model says."""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from thresher import OnlineHardThresholding, SparseRegressor
from thresher.io.sources.synthetic import SparseLinearStream
from thresher.plotting.displays import CoefficientsDisplay, CriterionDisplay, IntervalsDisplay, SupportDisplay
from thresher.selection.criteria import Selection

mpl.use("Agg")


@pytest.fixture
def model():
    yield SparseRegressor().partial_fit(*SparseLinearStream(40, 4, signal=0.7, seed=1).draw(900))
    plt.close("all")


def test_coefficients_over_rows(model):
    shown = CoefficientsDisplay.from_estimator(model, n_features=3)
    assert len(shown.lines_) == 3
    for line in shown.lines_:
        assert line.get_ydata()[-1] == model.coef_[int(line.get_label())]
        assert line.get_xdata()[-1] == 900
    _, ax = plt.subplots()
    assert CoefficientsDisplay.from_estimator(model, ax=ax).ax_ is ax


def test_support_over_rows(model):
    shown = SupportDisplay.from_estimator(model)
    kept_now = {int(name) for name, kept in zip(shown.names, shown.kept[-1], strict=True) if kept}
    assert kept_now == set(model.support_)
    waiting = OnlineHardThresholding(4, n_warmup=500).partial_fit(*SparseLinearStream(40, 4, seed=1).draw(300))
    SupportDisplay.from_estimator(waiting)
    CoefficientsDisplay.from_estimator(waiting)


def test_criterion_over_sizes(model):
    shown = CriterionDisplay.from_estimator(model)
    np.testing.assert_array_equal(shown.line_.get_ydata(), model.selection_.criterion)
    assert shown.ax_.get_ylabel() == "extended BIC"
    folds = SparseRegressor(selection="cv").partial_fit(*SparseLinearStream(40, 4, seed=1).draw(300))
    assert "cross-validated" in CriterionDisplay.from_estimator(folds).ax_.get_ylabel()
    with pytest.raises(ValueError, match="Use 'auto'"):
        CriterionDisplay.from_estimator(SparseRegressor(3).fit(np.eye(5), np.arange(5.0)))


def test_intervals(model):
    shown = IntervalsDisplay.from_estimator(model, level=0.9, features=[0, 1, 30])
    assert "90 %" in shown.ax_.get_title(loc="left")
    assert [label.get_text() for label in shown.ax_.get_yticklabels()] == ["0", "1", "30"]


def test_the_size_chosen_is_named():
    chosen = Selection("ebic", np.arange(4), np.array([9.0, 5.0, 4.0, 6.0]), None, 2, 1234)
    (text,) = CriterionDisplay(chosen).plot().ax_.texts
    assert text.get_text() == "2, after 1,234 rows"
    plt.close("all")


def test_a_model_that_kept_nothing_can_be_drawn():
    rng = np.random.default_rng(0)
    nothing = SparseRegressor().partial_fit(rng.standard_normal((300, 10)), rng.standard_normal(300))
    for display in (CoefficientsDisplay, SupportDisplay, CriterionDisplay):
        display.from_estimator(nothing)
    plt.close("all")


def test_without_matplotlib_the_error_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"thresher\[plot\]"):
        CriterionDisplay.from_estimator(model)
