"""The Python blocks of the README and of the pages in docs run as printed, in order, each page in one namespace.

A text block after a Python block is what that prints. Console blocks are not run. docs/command.md and docs/river.md
have tests of their own, which run more of them. Pages of engines and exports are run by checks/engines, checks/exports.
"""

import re
import runpy
import subprocess
import sys
import tomllib
import warnings
from importlib import import_module

import pytest

from checks.pages import BLOCK, ROOT, name, run_page

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PUBLIC = ("thresher", "thresher.baselines", "thresher.theory", "thresher.plotting", "thresher.integrations.river")
GALLERY = ROOT / "examples" / "gallery"
ENGINES = [ROOT / "docs" / "engines" / f"{name}.md" for name in ("dask", "duckdb", "spark")]
EXPORTS = ROOT / "docs" / "exports.md"
TESTED_ELSEWHERE = {ROOT / "docs" / "command.md", ROOT / "docs" / "river.md", EXPORTS, *ENGINES}


def heading_anchors(text):
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [page for page in PAGES if page not in TESTED_ELSEWHERE], ids=name)
def test_python_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    run_page(page, tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", page.read_text())):
        path, _, anchor = target.partition("#")
        if path.startswith(("http://", "https://")):
            continue
        file = page.parent / path if path else page
        if file.parent.name == "gallery":  # `make docs` makes a page of each example
            file = GALLERY / ("GALLERY_HEADER.rst" if file.name == "index" else f"{file.name}.py")
        if file.parent.name == "api":
            file = file.with_suffix(".rst")
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in heading_anchors(file.read_text()), target


@pytest.mark.parametrize("example", sorted(GALLERY.glob("plot_*.py")), ids=lambda path: path.stem)
def test_examples_of_the_gallery_run(example, tmp_path, monkeypatch):
    """In a minute all together; `make docs` runs them again and keeps their pictures."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    plt.switch_backend("Agg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(str(example), run_name="__main__")
    assert plt.get_fignums(), "an example draws a picture"
    plt.close("all")


def public_names():
    """What the packages that users import offer; those of Spark and Dask need an environment of their own."""
    for package in PUBLIC:
        module = import_module(package)
        for public in module.__all__:
            if not public.startswith("__"):
                yield f"{package}.{public}", getattr(module, public)


@pytest.mark.parametrize(("full_name", "thing"), [pytest.param(*pair, id=pair[0]) for pair in public_names()])
def test_public_names_are_in_the_reference_with_an_example(full_name, thing):
    listed = set()
    for page in (ROOT / "docs" / "api").glob("*.rst"):
        module = ""
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split()[-1]
            elif re.fullmatch(r"   [\w.]+", line):
                listed.add(f"{module}.{line.strip()}")
    assert full_name in listed, "list it in docs/api"
    assert ">>>" in thing.__doc__, "give it an example"


def test_prose_is_plain():
    """No turns that need a second reading, no long lines, few long sentences: docs/prose.py lists what is wrong."""
    done = subprocess.run([sys.executable, ROOT / "docs" / "prose.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_long_sentences_and_forbidden_turns_are_found():
    prose = runpy.run_path(str(ROOT / "docs" / "prose.py"))
    text = (
        "# A heading\n\nShort. One "
        + "word " * 31
        + "end.\n\n```python\n"
        + "code " * 40
        + "\n```\n\n| a | b |\n\n- An item.\n"
    )
    assert [prose["is_long"](sentence) for sentence in prose["sentences"](text)] == [False, True, False]
    assert prose["TURN"].search("Rows are read anew.")
    assert not prose["TURN"].search("It renewed the income tokens.")


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().split()) < 700


def test_the_page_shows_the_layers_that_are_checked():
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [[module.removeprefix("thresher.") for module in line.split(" | ")] for line in contract["layers"]]
    page = (ROOT / "docs" / "architecture.md").read_text().partition("## Imports")[2]
    assert [line.split() for line in BLOCK.search(page)[2].splitlines()] == layers
