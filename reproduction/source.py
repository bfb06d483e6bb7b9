"""What computes a cell: a digest of the code behind each kind of method, so that results of other code are not used."""

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Files and directories that every cell runs through, and those of some kinds of methods.
COMMON = (
    "reproduction/bank.py",
    "reproduction/lockstep.py",
    "reproduction/run_cell.py",
    "reproduction/span.py",
    "src/thresher/_utils",
    "src/thresher/io/sources/synthetic.py",
    "src/thresher/online",
    "src/thresher/sparsity",
    "src/thresher/summaries",
)
OF_KIND = {
    "default": ("src/thresher/drift", "src/thresher/estimators", "src/thresher/selection", "src/thresher/solvers"),
    "offline": ("src/thresher/solvers",),
    "os_lasso": ("reproduction/os_lassos.py", "src/thresher/baselines"),
    "l1": ("reproduction/l1_steps.py",),
}
SUFFIXES = (".py", ".pyx", ".pxd", ".h")


def source_digest(kinds: Iterable[str]) -> str:
    """A hash of the code that computes methods of these kinds. Docstrings and comments of Python do not count."""
    return _digest(tuple(sorted({path for kind in kinds for path in OF_KIND.get(kind, ())})))


@cache
def _digest(more: tuple[str, ...]) -> str:
    found = hashlib.sha256()
    for path in sorted({file for name in COMMON + more for file in _files(ROOT / name)}):
        found.update(f"{path.relative_to(ROOT)}\n{_code(path)}\n".encode())
    return found.hexdigest()[:16]


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [file for file in path.rglob("*") if file.suffix in SUFFIXES]


def _code(path: Path) -> str:
    """What a file does, apart from what it says about itself."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
    return ast.dump(tree)
