"""The Python blocks of the README and of the pages in docs run as printed, in order, each page in one namespace.

A text block after a Python block is what that prints. Console blocks are not run. docs/command.md and docs/river.md
have tests of their own, which run more of them. Pages of engines are run by checks/engines.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ENGINES = [ROOT / "docs" / "engines" / f"{name}.md" for name in ("dask", "duckdb", "spark")]
TESTED_ELSEWHERE = {ROOT / "docs" / "command.md", ROOT / "docs" / "river.md", *ENGINES}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(page):
    return str(page.relative_to(ROOT))


def heading_anchors(text):
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [page for page in PAGES if page not in TESTED_ELSEWHERE], ids=name)
def test_python_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    run_page(page, tmp_path, monkeypatch, capsys)


def run_page(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = page.read_text()
    namespace, printed = {"__name__": "__main__"}, None
    for block in BLOCK.finditer(text):
        language, code = block.groups()
        assert language in {"python", "text", "console"}, f"a block of {name(page)} has no language that is known"
        if language == "text" and printed is not None:
            assert printed.rstrip() == code.rstrip()
        printed = None
        if language == "python":
            above = text.count("\n", 0, block.start()) + 1
            exec(compile("\n" * above + code, name(page), "exec"), namespace)
            printed = capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", page.read_text())):
        path, _, anchor = target.partition("#")
        if path.startswith(("http://", "https://")):
            continue
        file = page.parent / path if path else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in heading_anchors(file.read_text()), target
