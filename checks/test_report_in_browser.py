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
# Each report, its items and its pictures; the saved one has no cone and no printed tables.
REPORTS = [
    (ROOT / "docs" / "paper" / "report.html", 14, 39),
    (ROOT / "build" / "reproduction" / "quick" / "report.html", 16, 48),
]
WIDTHS = [1280, 375]


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "needs Chromium: make check-report installs it on Debian, and CHROMIUM may name its path"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@contextmanager
def opened(browser, path, width):
    """A page that is complete, fits, asks for nothing and says nothing."""
    page = browser.new_page(viewport={"width": width, "height": 800})
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


@pytest.mark.parametrize(("report", "n_items", "n_pictures"), REPORTS, ids=["saved", "quick"])
@pytest.mark.parametrize("width", WIDTHS, ids=["desktop", "phone"])
def test_report_is_complete_and_fits(browser, report, n_items, n_pictures, width):
    with opened(browser, report, width) as page:
        assert page.locator("section").count() == n_items
        assert page.locator("section img").count() == n_pictures
        for name in ("holds", "does-not-hold"):
            assert page.locator(f".claims .verdict.{name}").count() > 0


@pytest.mark.parametrize("width", WIDTHS, ids=["desktop", "phone"])
def test_the_page_of_a_model_is_complete_and_fits(browser, tmp_path, width):
    X, y = SparseLinearStream(60, 8, signal=1.0, seed=1).draw(3000)
    names = [f"a column with the long name {j} & <odd> letters" for j in range(60)]
    model = SparseRegressor()
    model._learn(Rows(X, y), np.array(names, object))
    model.save(tmp_path / "m")
    assert main(["show", str(tmp_path / "m"), "--html", str(tmp_path / "m.html")]) == 0
    with opened(browser, tmp_path / "m.html", width) as page:
        assert page.locator("img").count() == 4
        assert page.locator("tbody tr").count() >= 7
        assert names[0] in page.locator("tbody").inner_text()
