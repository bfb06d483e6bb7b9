"""Runs the Python blocks of a page of Markdown. It needs pytest and what the page imports."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(page):
    return str(page.relative_to(ROOT))


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
