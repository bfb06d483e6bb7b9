"""What is said about the package in several places is the same in all of them."""

import re
import tomllib
from pathlib import Path

import yaml

import thresher

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def versions_in(text):
    return sorted(set(re.findall(r'"(3\.1\d)"', text)))


def test_python_versions_are_those_that_are_tried():
    named = sorted(
        one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.fullmatch(r"Programming.* :: 3\.\d+", one)
    )
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert versions_in(workflow) == named
    tried = re.search(r"^VERSIONS = (.*)$", (ROOT / "checks" / "release.py").read_text(), re.MULTILINE)
    assert set(named) <= set(versions_in(tried[1]))
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == thresher.__version__
    assert citation["license"] == PROJECT["license"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


def test_forms_and_hooks_can_be_read():
    for path in [*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"]:
        assert yaml.safe_load(path.read_text()), path
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert all(hook["entry"].startswith(".venv/bin/") for hook in hooks)
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert any(step.get("run") == ".ci/run" for step in jobs["checks"]["steps"])
