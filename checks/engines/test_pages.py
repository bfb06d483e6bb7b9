"""The Python blocks of the pages of Spark, Dask and DuckDB run as printed."""

import pytest

from checks.pages import ROOT, run_page

PAGES = [ROOT / "docs" / "engines" / f"{name}.md" for name in ("dask", "duckdb", "spark")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch, capsys, request):
    if page.stem == "spark":
        request.getfixturevalue("spark")  # its settings: no sockets on other interfaces, few tasks
    run_page(page, tmp_path, monkeypatch, capsys)
