"""Finished cells on disk: one small file each, written atomically."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from reproduction.cells import Cell
from reproduction.run_cell import Result
from reproduction.source import source_digest


@dataclass(frozen=True)
class Finished:
    """The results of a cell; when they were computed, in seconds since 1970, and on which processor and software."""

    cell: Cell
    results: list[Result]
    began: float
    ended: float
    machine: str = ""
    software: str = ""


class Store:
    """A directory with a file for each finished cell, by the digest of its settings.

    A file is written under another name and renamed, so a killed process leaves no incomplete file, and processes can
    share a directory. A file that cannot be read, or that other code computed, is ignored.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, cell: Cell) -> Finished | None:
        """The saved results of a cell, or None."""
        try:
            saved = json.loads(self._path(cell).read_text(encoding="utf-8"))
            if saved["source"] != _source(cell):
                return None
            results = [
                Result(cell.name, cell.seed, str(method), int(t), float(mse)) for method, t, mse in saved["results"]
            ]
            expected = [(method.label, t) for method in cell.methods for t in method.times]
            if sorted((r.method, r.t) for r in results) != sorted(expected):
                return None
            return Finished(cell, results, *(saved[name] for name in ("began", "ended", "machine", "software")))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, finished: Finished) -> None:
        """Save a cell."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._path(finished.cell)
        content = {
            "cell": finished.cell.key,
            "source": _source(finished.cell),
            "began": finished.began,
            "ended": finished.ended,
            "machine": finished.machine,
            "software": finished.software,
            "results": [(r.method, r.t, r.mse) for r in finished.results],
        }
        temporary = path.with_suffix(f".{os.getpid()}.part")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def _path(self, cell: Cell) -> Path:
        return self._directory / f"{cell.digest}.json"


def _source(cell: Cell) -> str:
    """The code that computes the methods of a cell."""
    return source_digest(method.kind for method in cell.methods)
