"""Run the Python blocks of pages and write what they print into the text blocks that follow them.

python docs/outputs.py docs/tutorial.md ...

Read the difference before you commit it: the tests only compare a page with what its blocks print.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def with_outputs(page: Path) -> str:
    """The text of a page with its outputs written again."""
    text, parts, end, printed = page.read_text(), [], 0, None
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        language, code = block.groups()
        if language == "text" and printed is not None:
            code = printed.rstrip() + "\n"
        printed = None
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(code, page.name, "exec"), namespace)
            printed = output.getvalue()
        parts += [text[end : block.start()], f"```{language}\n{code}```"]
        end = block.end()
    return "".join([*parts, text[end:]])


if __name__ == "__main__":
    os.environ.update(MPLBACKEND="Agg", OPENBLAS_NUM_THREADS="1")
    for page in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
            text = with_outputs(page)
        page.write_text(text)
