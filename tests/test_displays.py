"""Pictures show what the model says, after a stream and after fit, on light and on dark paper."""

import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from thresher import OnlineHardThresholding, SparseRegressor
from thresher.io.sources.synthetic import SparseLinearStream
from thresher.online.error_history import ErrorHistory
from thresher.plotting import (
    CoefficientsDisplay,
    CriterionDisplay,
    DriftDisplay,
    InclusionDisplay,
    IntervalsDisplay,
    PathDisplay,
    PrequentialDisplay,
    SupportDisplay,
)
from thresher.plotting._style import DARK, LIGHT
from thresher.selection.criteria import Selection

mpl.use("Agg")
ALL = [
    CoefficientsDisplay,
    CriterionDisplay,
    InclusionDisplay,
    IntervalsDisplay,
    PathDisplay,
    PrequentialDisplay,
    SupportDisplay,
]


@pytest.fixture
def rows():
    X, y = SparseLinearStream(40, 4, signal=0.7, seed=1).draw(900)
    yield X * np.linspace(0.01, 100.0, 40), y
    plt.close("all")


@pytest.fixture
def model(rows):
    return SparseRegressor().partial_fit(*rows)


def standardized(model, rows):
    X, y = rows
    return model.coef_ * X.std(axis=0) / y.std()


def names_at_left(shown):
    return [label.get_text() for label in shown.ax_.get_yticklabels()]


@pytest.mark.parametrize("display", ALL)
@pytest.mark.parametrize("how", ["fit", "partial_fit"])
@pytest.mark.parametrize("make", [SparseRegressor, lambda: OnlineHardThresholding(4, fit_intercept=True)])
def test_every_picture_works_after_fit_and_after_a_stream(rows, display, how, make):
    model = getattr(make(), how)(*rows)
    if display is CriterionDisplay and not hasattr(model, "selection_"):
        with pytest.raises(ValueError, match="Use 'auto'"):
            display.from_estimator(model)
        return
    shown = display.from_estimator(model)
    assert shown.ax_.get_title(loc="left")
    assert len(shown.caption_.get_text()) > 20
    assert shown.ax_.get_xlabel()
    assert shown.ax_.has_data()
    _, ax = plt.subplots()
    assert display.from_estimator(model, ax=ax).ax_ is ax


def contrast(one, other):
    """The ratio that accessibility guidelines use."""

    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("palette", "papers"), [(LIGHT, ["white"]), (DARK, ["black", "#14191f"])])
def test_all_colours_can_be_read_on_their_paper(palette, papers):
    for paper in papers:
        for colour in (palette.ink, palette.muted, palette.accent, palette.contrast, *palette.lines):
            assert contrast(colour, paper) > 4.5, colour


def test_pictures_take_the_colours_of_their_paper(model):
    assert IntervalsDisplay.from_estimator(model).palette_ is LIGHT
    with plt.style.context("dark_background"):
        shown = CoefficientsDisplay.from_estimator(model)
    assert shown.palette_ is DARK
    assert [line.get_color() for line in shown.lines_ if abs(line.get_ydata()[-1]) == abs(shown.coef[-1]).max()] == [
        DARK.lines[0]
    ]


def test_lines_can_be_told_apart_without_colours(model):
    lines = CoefficientsDisplay.from_estimator(model, n_features=4).lines_
    assert len({line.get_linestyle() + str(line._dash_pattern) for line in lines}) == 4


def test_coefficients_over_rows(model, rows):
    shown = CoefficientsDisplay.from_estimator(model, n_features=3)
    expected = standardized(model, rows)
    assert len(shown.lines_) == 3
    for line in shown.lines_:
        assert line.get_ydata()[-1] == pytest.approx(expected[int(line.get_label()[1:])])
        assert line.get_xdata()[-1] == 900
    raw = CoefficientsDisplay.from_estimator(model, n_features=3, standardized=False)
    for line in raw.lines_:
        assert line.get_ydata()[-1] == model.coef_[int(line.get_label()[1:])]


def test_support_over_rows(model, rows):
    shown = SupportDisplay.from_estimator(model)
    kept_now = {int(name[1:]) for name, kept in zip(shown.names, shown.kept[-1], strict=True) if kept}
    assert kept_now == set(model.support_)
    waiting = OnlineHardThresholding(4, n_warmup=500).partial_fit(rows[0][:300], rows[1][:300])
    SupportDisplay.from_estimator(waiting)
    CoefficientsDisplay.from_estimator(waiting)


def test_criterion_over_sizes(model, rows):
    shown = CriterionDisplay.from_estimator(model)
    np.testing.assert_array_equal(shown.line_.get_ydata(), model.selection_.criterion)
    assert shown.ax_.get_ylabel() == "distance from the posterior mean"
    ebic = SparseRegressor(selection="ebic").partial_fit(*rows)
    assert CriterionDisplay.from_estimator(ebic).ax_.get_ylabel() == "extended BIC"
    folds = SparseRegressor(selection="cv").partial_fit(rows[0][:300], rows[1][:300])
    assert "cross-validated" in CriterionDisplay.from_estimator(folds).ax_.get_ylabel()


def test_the_size_chosen_is_named():
    chosen = Selection("ebic", np.arange(4), np.array([9.0, 5.0, 4.0, 6.0]), None, 2, 1234)
    texts = [text.get_text() for text in CriterionDisplay(chosen).plot().ax_.texts]
    assert "2, after 1,234 rows" in texts
    plt.close("all")


def test_intervals_are_standardised_and_sorted(model, rows):
    shown = IntervalsDisplay.from_estimator(model, level=0.9, features=[0, 1, 30])
    assert "90 %" in shown.caption_.get_text()
    found = model.confidence_intervals(0.9, "posterior", [0, 1, 30])
    scale = rows[0][:, [0, 1, 30]].std(axis=0) / rows[1].std()
    order = np.argsort(-np.abs(found.estimate * scale))
    assert shown.names == [f"x{j}" for j in np.array([0, 1, 30])[order]]
    np.testing.assert_allclose(shown.estimate, (found.estimate * scale)[order])
    np.testing.assert_allclose(shown.upper, (found.upper * scale)[order])
    raw = IntervalsDisplay.from_estimator(model, standardized=False, method="debiased")
    assert set(raw.estimate) == set(model.confidence_intervals(method="debiased").estimate)
    assert len(IntervalsDisplay.from_estimator(model, n_features=2).names) == 2


def test_bars_whose_interval_has_zero_in_it_are_hollow():
    shown = IntervalsDisplay([1.0, 0.5, -2.0], [0.5, -0.1, -3.0], [1.5, 1.1, -1.0], ["a", "b", "c"]).plot()
    assert [patch.get_facecolor()[3] > 0.0 for patch in shown.ax_.patches] == [True, False, True]
    unknown = IntervalsDisplay([1.0], [-np.inf], [np.inf], ["a"]).plot()
    assert names_at_left(unknown) == ["a (?)"]
    plt.close("all")


def test_intervals_of_too_few_rows():
    X, y = SparseLinearStream(6, 2, signal=2.0, seed=1).draw(4)
    shown = IntervalsDisplay.from_estimator(SparseRegressor(3).fit(X, y))
    assert len(shown.names) == 3
    assert all(name.endswith("(?)") for name in names_at_left(shown))
    PrequentialDisplay.from_estimator(SparseRegressor(3).fit(X, y))
    plt.close("all")


def test_inclusion_probabilities(model):
    shown = InclusionDisplay.from_estimator(model, n_features=10)
    probabilities = model.posterior().inclusion_probabilities
    np.testing.assert_array_equal(shown.probabilities, np.sort(probabilities)[::-1][:10])
    for name, probability, kept in zip(shown.names, shown.probabilities, shown.kept, strict=True):
        assert probabilities[int(name[1:])] == probability
        assert kept == (int(name[1:]) in model.support_)
    grouped = SparseRegressor(groups=np.arange(40) // 2).partial_fit(*SparseLinearStream(40, 4, seed=1).draw(300))
    with pytest.raises(ValueError, match="groups"):
        InclusionDisplay.from_estimator(grouped)


def test_the_path_shows_where_features_enter(model, rows):
    shown = PathDisplay.from_estimator(model, max_sparsity=6)
    path = model.path(6)
    for line, name in zip(shown.lines_, shown.names, strict=True):
        j = int(name[1:])
        scale = rows[0][:, j].std() / rows[1].std()
        assert line.get_ydata()[-1] == pytest.approx(path.coef[-1][j] * scale)
        first = next(size for size in path.sizes if path.coef[size][j] != 0.0)
        assert line.get_xdata()[0] == first - 1
        assert line.get_ydata()[0] == 0.0
    entered = [next(size for size in path.sizes if path.coef[size][int(name[1:])]) for name in shown.names]
    assert entered == sorted(entered)


def test_prequential_error(model):
    shown = PrequentialDisplay.from_estimator(model)
    history = model.prequential_history_
    np.testing.assert_array_equal(shown.line_.get_ydata()[:-1], history.error)
    np.testing.assert_array_equal(shown.line_.get_xdata()[1:], history.n_samples)
    drawn = PrequentialDisplay(
        ErrorHistory(np.array([10]), np.array([5]), np.array([np.inf]), np.array([1.0])), 1, 2, 10
    )
    assert drawn.plot().ax_.get_ylim()[1] < 10.0


def test_a_model_that_kept_nothing_can_be_drawn():
    rng = np.random.default_rng(0)
    nothing = SparseRegressor().partial_fit(rng.standard_normal((300, 10)), rng.standard_normal(300))
    for display in ALL:
        display.from_estimator(nothing)
    plt.close("all")


def test_odd_names_are_drawn_as_they_are(rows):
    names = ["$\\frac{x", "a\nb", "<b>", "n" * 200, *(f"c{j}" for j in range(36))]
    model = SparseRegressor(40).partial_fit(pd.DataFrame(rows[0], columns=names), rows[1])
    for display in ALL[:1] + ALL[2:]:
        display.from_estimator(model).figure_.canvas.draw()
    assert all(len(name) < 40 and "\n" not in name for name in names_at_left(IntervalsDisplay.from_estimator(model)))


def test_without_matplotlib_the_error_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"thresher\[plot\]"):
        CriterionDisplay.from_estimator(model)


@pytest.fixture(scope="module")
def changed():
    """A model of a stream in which the coefficient of x1 goes from 2 to -1, and its rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 6))
    y = np.where(np.arange(4000) < 2000, 2.0, -1.0) * X[:, 1] + X[:, 2] + 0.5 * rng.standard_normal(4000)
    model = SparseRegressor().partial_fit(X, y)
    assert model.drift_detected_
    return model, X, y


@pytest.mark.filterwarnings("error")
def test_effects_after_a_change_are_those_in_use(changed):
    model, X, y = changed
    shown = IntervalsDisplay.from_estimator(model)
    expected = standardized(model, (X, y))
    np.testing.assert_allclose(shown.estimate, [expected[int(name[1:])] for name in shown.names])
    assert sorted(shown.names) == [f"x{j}" for j in model.support_]
    assert (shown.lower, shown.upper) == (None, None)
    assert "follow recent rows" in " ".join(shown.caption_.get_text().split())
    assert "half_life or window" in " ".join(shown.caption_.get_text().split())
    assert names_at_left(shown) == shown.names  # without question marks
    assert all(bar.get_facecolor()[3] > 0.0 for bar in shown.ax_.patches)
    raw = IntervalsDisplay.from_estimator(model, standardized=False, features=[1, 5])
    assert dict(zip(raw.names, raw.estimate, strict=True)) == {"x1": model.coef_[1], "x5": model.coef_[5]}
    plt.close("all")


@pytest.mark.parametrize("n", [3968, 4000])  # at the end of a buffer, and between
def test_coefficients_after_a_change_end_at_those_in_use(changed, n):
    _, X, y = changed
    model = SparseRegressor().partial_fit(X[:n], y[:n])
    shown = CoefficientsDisplay.from_estimator(model, standardized=False)
    assert shown.n_samples[-1] == n
    np.testing.assert_array_equal(shown.coef[-1], model.coef_[[int(name[1:]) for name in shown.names]])
    assert (np.diff(shown.n_samples) > 0).all()
    early = (shown.n_samples > 500) & (shown.n_samples < 2000)
    np.testing.assert_allclose(shown.coef[early, shown.names.index("x1")], 2.0, atol=0.1)
    assert shown.changes == model.drift_history_.changes
    assert "drift was detected" in " ".join(shown.caption_.get_text().split())
    low, high = shown.ax_.get_ylim()
    assert low < shown.coef[early].min()
    assert high > shown.coef[early].max()
    plt.close("all")


def test_the_picture_of_a_change_holds_all_lines_in_the_order_of_their_names(changed):
    for standard in (True, False):
        shown = DriftDisplay.from_estimator(changed[0], standardized=standard)
        low, high = shown.ax_.get_ylim()
        assert [line.get_label() for line in shown.lines_] == shown.names
        for line, values in zip(shown.lines_, shown.coef.T, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), values)
            assert low < values.min() <= values.max() < high
    plt.close("all")


@pytest.mark.parametrize("target", ["price", "$\\frac{y", "z" * 90])
def test_axes_name_the_response(model, target):
    name = target if len(target) < 28 else f"{target[:27]}\N{HORIZONTAL ELLIPSIS}"
    shown = IntervalsDisplay.from_estimator(model, target=target)
    assert shown.ax_.get_xlabel() == f"effect on {name} (standard deviations of it, per one of the feature)"
    shown.figure_.canvas.draw()
    raw = CoefficientsDisplay.from_estimator(model, target=target, standardized=False)
    assert raw.ax_.get_ylabel() == f"coefficient (units of {name} per unit of the feature)"
    raw.figure_.canvas.draw()
    error = PrequentialDisplay.from_estimator(model, target=target)
    assert error.ax_.get_ylabel() == f"error (units of {name})"
    error.figure_.canvas.draw()


def test_a_stream_that_changes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 6))
    y = np.where(np.arange(4000) < 2000, 1.0, -1.0) * X[:, 3] + X[:, 1] + rng.standard_normal(4000)
    model = SparseRegressor().partial_fit(X, y)
    shown = DriftDisplay.from_estimator(model, n_features=2, standardized=False)
    assert shown.names == ["x1", "x3"]
    at = {record.n_samples: record for record in model.drift_history_}
    np.testing.assert_array_equal(shown.n_samples, list(at))
    assert shown.changes_ == [next(n for n, record in at.items() if record.detected)]
    early, late = shown.n_samples < 2000, shown.n_samples > 3000
    np.testing.assert_allclose(shown.coef[early, 1].mean(), 1.0, atol=0.1)
    np.testing.assert_allclose(shown.coef[late, 1].mean(), -1.0, atol=0.1)
    np.testing.assert_array_equal(shown.effective_rows[early], shown.n_samples[early])
    assert shown.effective_rows[-1] < 2500


def test_without_a_history_of_drift_the_error_says_what_to_do():
    rows = SparseLinearStream(30, 3, signal=1.0).draw(500)
    for model, said in [
        (SparseRegressor().fit(*rows), "stream the rows through partial_fit, some hundreds"),
        (SparseRegressor(drift=None).partial_fit(*rows), "drift=None; stream the rows through partial_fit with drift="),
        (SparseRegressor(half_life=100).partial_fit(*rows), "not looked for with half_life or window"),
        (SparseRegressor(window=100).partial_fit(*rows), "not looked for with half_life or window"),
        (OnlineHardThresholding(3).partial_fit(*rows), "this is a OnlineHardThresholding"),
    ]:
        with pytest.raises(ValueError, match=said):
            DriftDisplay.from_estimator(model)
