"""Our pages in a real browser: every picture is drawn, nothing overflows, no request leaves the page."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from thresher import SparseRegressor
from thresher.cli import main
from thresher.io.sources.synthetic import SparseLinearStream
from thresher.online.samples import Rows

ROOT = Path(__file__).parents[1]
REPORTS = [ROOT / "docs" / "paper" / "report.html", ROOT / "build" / "reproduction" / "quick" / "report.html"]
N_ITEMS, N_PICTURES = 16, 48  # figures, tables and the other claims of the paper; panels in them
WIDTHS = [1280, 390]
NAMES = [f"a column with the long name {j} & <img src=x onerror='window.fault=1'> letters" for j in range(60)]


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "needs Chromium: make check-report installs it on Debian, and CHROMIUM may name its path"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@contextmanager
def opened(browser, path, width, scheme="light"):
    """A page that is complete, fits, asks for nothing and says nothing."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    requests, errors = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    yield page
    sizes = page.evaluate("[...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth, i.clientHeight])")
    assert all(complete and natural > 0 for complete, natural, _, _ in sizes)
    # Wide enough to read, and within the window.
    assert all(300 <= w <= width and h >= 200 for _, _, w, h in sizes)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [url for url in requests if not url.startswith(("data:", path.as_uri()))] == []
    assert errors == []
    page.close()


@pytest.mark.parametrize("report", REPORTS, ids=["saved", "quick"])
@pytest.mark.parametrize("width", WIDTHS, ids=["desktop", "phone"])
def test_report_is_complete_and_fits(browser, report, width):
    with opened(browser, report, width) as page:
        assert page.locator("section").count() == N_ITEMS
        assert page.locator("section img").count() == N_PICTURES
        for name in ("holds", "does-not-hold"):
            assert page.locator(f".claims .verdict.{name}").count() > 0


@pytest.fixture(scope="module")
def model_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "m.html"
    X, y = SparseLinearStream(60, 8, signal=1.0, seed=1).draw(3000)
    model = SparseRegressor()
    model._learn(Rows(X, y), np.array(NAMES, object))
    model.save(path.with_suffix(""))
    assert main(["show", str(path.with_suffix("")), "--html", str(path)]) == 0
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS, ids=["desktop", "phone"])
def test_the_page_of_a_model_is_complete_and_fits(browser, model_page, width, scheme):
    with opened(browser, model_page, width, scheme) as page:
        assert page.locator("img").count() == 6
        assert page.locator(".drivers li").count() >= 7
        assert page.locator("tbody tr").count() >= 8
        assert NAMES[0] in page.locator("tbody").inner_text()
        assert page.evaluate("window.fault") is None
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def brightness(png):
    """The mean of all pixels, from 0 to 1."""
    import io

    from matplotlib.image import imread

    return float(imread(io.BytesIO(png))[..., :3].mean())


def test_pictures_follow_the_style_and_print_in_light_colours(browser, model_page):
    page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    page.goto(model_page.as_uri())
    assert brightness(page.locator("figure img").first.screenshot()) < 0.4
    page.emulate_media(media="print", color_scheme="dark")
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert ink == "rgb(31, 42, 54)"
    title = page.locator("figure img").first.screenshot()
    assert brightness(title) > 0.6
    page.close()
