"""The tree of src/thresher in docs/architecture.md, from the first lines of the modules' docstrings.

python docs/tree.py            prints the tree
python docs/tree.py --write    writes it to the page
python docs/tree.py --check    fails if the page has another one
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "thresher"
PAGE = Path(__file__).with_name("architecture.md")
BEGIN, END = "<!-- tree: written by docs/tree.py --write -->\n```text\n", "```\n<!-- end of tree -->"
WIDTH, NAMES = 120, 37


def summary(module: Path) -> str:
    """The first sentence of a docstring without its full stop."""
    found = re.match(r'r?"""(.*?)("""|\n)', module.read_text())
    first = found[1] if found else ""
    return first.split(". ")[0].rstrip(".")


def line(name: str, module: Path, depth: int) -> str:
    """Name and summary; what does not fit is cut at the colon, or else at the last comma."""
    text, left = summary(module), "  " * depth + name
    for separator in (":", ","):
        text = text if len(text) <= WIDTH - NAMES else text.rpartition(separator)[0] or text
    return f"{left:{NAMES}}{text}"


def tree(folder: Path, depth: int = 0) -> Iterator[str]:
    """A line for each package and module, modules first."""
    yield line(f"{folder.name}/", folder / "__init__.py", depth)
    headers = [path for path in folder.glob("*.pxd") if not path.with_suffix(".pyx").exists()]
    modules = [path for path in (*folder.glob("*.py"), *folder.glob("*.pyx"), *headers) if path.name != "__init__.py"]
    for module in sorted(modules, key=lambda path: (path.name.startswith("_"), path.name)):
        yield line(module.name, module, depth + 1)
    for package in sorted(path.parent for path in folder.glob("*/__init__.py")):
        yield from tree(package, depth + 1)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--write", action="store_true")
parser.add_argument("--check", action="store_true")
arguments = parser.parse_args()
now = "".join(f"{text}\n" for text in tree(PACKAGE))
page = PAGE.read_text()
fresh = re.sub(f"(?<={re.escape(BEGIN)}).*?(?={re.escape(END)})", lambda _: now, page, flags=re.DOTALL)
if arguments.write:
    PAGE.write_text(fresh)
elif arguments.check:
    if BEGIN not in page or fresh != page:
        sys.exit("docs/architecture.md has an old tree; run: python docs/tree.py --write")
else:
    print(now, end="")
