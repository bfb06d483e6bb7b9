"""The report in a real browser: every picture is drawn, nothing overflows, no request leaves the page."""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
REPORTS = [ROOT / "docs" / "paper" / "report.html", ROOT / "reproduction" / "quick" / "report.html"]
N_ITEMS, N_PICTURES = 14, 39


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "needs Chromium: make check-report installs it on Debian, and CHROMIUM may name its path"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.mark.parametrize("report", REPORTS, ids=["saved", "quick"])
@pytest.mark.parametrize("width", [1280, 375], ids=["desktop", "phone"])
def test_report_is_complete_and_fits(browser, report, width):
    page = browser.new_page(viewport={"width": width, "height": 800})
    requests, errors = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(report.as_uri())
    assert page.locator("section").count() == N_ITEMS
    assert page.locator("section img").count() == N_PICTURES
    sizes = page.evaluate("[...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth, i.clientHeight])")
    assert all(complete and natural > 0 for complete, natural, _, _ in sizes)
    # Wide enough to read, and within the window.
    assert all(300 <= w <= width and h >= 200 for _, _, w, h in sizes)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("holds", "does-not-hold"):
        assert page.locator(f".claims .verdict.{name}").count() > 0
    assert [url for url in requests if not url.startswith(("data:", report.as_uri()))] == []
    assert errors == []
    page.close()
