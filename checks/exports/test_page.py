"""The Python blocks of the page about exports run as printed."""

from checks.pages import ROOT, run_page


def test_blocks_run_and_print_what_the_page_says(tmp_path, monkeypatch, capsys):
    run_page(ROOT / "docs" / "exports.md", tmp_path, monkeypatch, capsys)
