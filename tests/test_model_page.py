"""The page of a model says what the model says, and names of columns are only text."""

import base64
import re
from functools import partial
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from thresher import OnlineHardThresholding, SparseRegressor
from thresher.plotting._page_pictures import bar
from thresher.plotting.model_page import model_page

OHT = partial(OnlineHardThresholding, 5, fit_intercept=True, standardize=True)
HOSTILE = ['"><script>alert(1)</script>', "<img src=x onerror=alert(1)>", "</style><b>", "]]>&amp;", "' onload='x"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((1500, 12)) * 10.0 ** rng.integers(-3, 3, 12)
    effects = np.zeros(12)
    effects[:5] = [3.0, -2.0, 1.0, 0.5, -0.4]
    y = 7.0 + (X / X.std(axis=0)) @ effects + rng.standard_normal(1500)
    return pd.DataFrame(X, columns=[*HOSTILE, *(f"c{j}" for j in range(7))]), y


class Seen(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "make", [SparseRegressor, lambda: OnlineHardThresholding(5, fit_intercept=True, standardize=True)]
)
def test_names_are_text_whatever_is_in_them(rows, how, make):
    model = getattr(make(), how)(*rows)
    page = model_page(model, "<title>", "<script>y</script>")
    seen = Seen(page)
    assert not {name for name in seen.attributes if name.startswith("on")}
    assert not seen.tags & {"script", "a", "base", "embed", "form", "iframe", "input", "object", "template"}
    texts = "".join(seen.texts)
    assert all(name in texts for name in HOSTILE)
    assert "What drives <script>y</script>" in texts
    assert not re.findall(r"(?:https?:)?//", re.sub(r"base64,[\w+/=]+", "", page))


def test_pictures_are_whole_and_follow_the_style(rows):
    page = model_page(SparseRegressor().partial_fit(*rows), "m")
    pictures = [base64.b64decode(one) for one in re.findall(r"base64,([\w+/=]+)", page)]
    assert len(pictures) == 6
    for svg in pictures:
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert b"prefers-color-scheme: dark" in svg
    assert len(re.findall(r'<img [^>]*alt="[^"]{10,}"', page)) == 6


def test_bars_are_in_standard_deviations_and_in_order(rows):
    model = SparseRegressor().partial_fit(*rows)
    page = model_page(model, "m")
    terms = [term for term in model.summary().terms if term.standardized is not None]
    widths = [float(width) for width in re.findall(r'<rect class="[a-z ]+" x="[-.\d]+" y="4" width="([.\d]+)"', page)]
    expected = np.abs(model.coef_) * rows[0].to_numpy().std(axis=0)
    expected = np.sort(expected[model.support_])[::-1]
    np.testing.assert_allclose(np.array(widths) / widths[0], expected / expected[0], atol=2e-4)
    assert len(widths) == len(terms)
    assert f"{terms[0].standardized:+.2f} (" in page


def test_a_bar_is_hollow_if_zero_is_in_its_interval():
    assert "unsure" in bar(0.2, -0.1, 0.5, True)
    assert "unsure" in bar(0.2, 0.2, 0.2, False)
    assert "unsure" not in bar(-0.5, -0.9, -0.1, True)
    assert 'class="down"' in bar(-0.5, -0.9, -0.1, True)


def test_after_fit_the_page_says_that_there_is_no_history(rows):
    page = model_page(SparseRegressor().fit(*rows), "m")
    assert "so there is no history" in page
    assert "had not seen" not in page
    streamed = model_page(SparseRegressor().partial_fit(*rows), "m")
    assert "so there is no history" not in streamed
    assert "had not seen" in streamed


def test_warnings_come_first(rows):
    X = rows[0].assign(still=1.0)
    X["twin"] = X["c0"] = X[HOSTILE[0]] * (1.0 + 1e-9)
    page = model_page(SparseRegressor().partial_fit(X, rows[1]), "m")
    found = re.findall(r'class="verdict (\w+)"', page)
    assert found == sorted(found, key=["warning", "note", "ok"].index)
    assert len(set(found)) > 1


@pytest.mark.parametrize("n", [1, 3, 40])
def test_models_of_few_rows_and_of_nothing(n):
    rng = np.random.default_rng(n)
    model = SparseRegressor(2 if n < 40 else "auto").partial_fit(rng.standard_normal((n, 4)), rng.standard_normal(n))
    page = model_page(model, "m")
    assert "nan" not in " ".join(Seen(re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)).texts)


def test_groups_have_no_probabilities(rows):
    model = SparseRegressor(groups=np.arange(12) // 2).partial_fit(*rows)
    page = model_page(model, "m")
    assert "no probabilities for single columns" in page


def test_page_of_a_changed_stream_shows_the_coefficients_in_use():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((4000, 8))
    y = np.where(np.arange(4000) < 2000, 2.0, -2.0) * X[:, 3] + X[:, 5] + rng.standard_normal(4000)
    model = SparseRegressor().partial_fit(X, y)
    assert model.drift_detected_
    shown = model_page(model, "changed")
    names = re.findall(r'<span class="name">(.*?)</span>', shown)
    by_size = np.argsort(-np.abs(model.coef_ * X.std(axis=0)))
    assert names == [f"x{j}" for j in by_size[: np.count_nonzero(model.coef_)]]
    assert f"{model.coef_[3]:+.3g} for each unit" in shown
    found = next(record.n_samples for record in model.drift_history_ if record.detected)
    assert f"since about row {found:,} of 4,000" in shown
    assert f"recent rows say, worth about {model.effective_rows_:,.0f}." in shown
    for word in ("practically certain", "95 % intervals", "Models of every size", "does not explain", "unsure"):
        assert word not in re.sub(r"<style>.*?</style>", "", shown, flags=re.DOTALL)


def test_a_level_has_no_unit():
    rng = np.random.default_rng(1)
    level = rng.integers(0, 3, 2000)
    X = np.c_[np.eye(3)[level], rng.standard_normal(2000)]
    y = 8.0 * X[:, 1] + X[:, 3] + rng.standard_normal(2000)
    frame = pd.DataFrame(X, columns=["city=Oslo", "city=Rome", "city=Ulm", "size"])
    model = SparseRegressor().partial_fit(frame, y)
    shown = model_page(model, "m", "price")
    assert f"{model.coef_[1]:+.3g} for this level, against the reference level" in shown
    assert f"{model.coef_[3]:+.3g} for each unit" in shown
    assert shown.count("for each unit") == 1
    assert "Hollow bars may be zero" in shown
    assert "Dashed" not in shown


def test_one_row_and_one_column_are_in_the_singular():
    shown = model_page(SparseRegressor(1).partial_fit([[1.0]], [2.0]), "m")
    assert "1 rows" not in shown
    assert "1 columns" not in shown
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    shown = model_page(SparseRegressor(1).partial_fit(X, X[:, 0]), "m")
    assert "From 200 rows, 1 of 3 columns was kept and explains 100 % of the variation of y." in shown


def test_a_model_that_diverged_is_an_error():
    X = 1000.0 * np.random.default_rng(0).standard_normal((300, 4))
    with pytest.warns(UserWarning, match="step_size"):
        model = OnlineHardThresholding(2, step_size=0.01).partial_fit(X, X[:, 1])
    shown = model_page(model, "m")
    assert re.findall(r'class="verdict (\w+)"', shown) == ["error"]
    assert "predicts y worse than no column would" in shown
    assert "found in order" not in shown
