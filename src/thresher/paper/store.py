"""Finished cells on disk: one small file each, complete or not there."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from thresher import __version__
from thresher.paper.cells import Cell
from thresher.paper.running import Result


@dataclass(frozen=True)
class Finished:
    """A cell's results, and when and with what they were computed: seconds since 1970, processor and software."""

    cell: Cell
    results: list[Result]
    began: float
    ended: float
    machine: str = ""
    software: str = ""


class Store:
    """A directory with a file for each finished cell, by the digest of its settings.

    Files are written under another name and renamed, so that a process that is killed leaves no half of one, and
    processes that share a directory do not disturb each other. What cannot be read, or is of another version of this
    package, counts as not there.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, cell: Cell) -> Finished | None:
        """What is kept for a cell, if anything."""
        try:
            kept = json.loads(self._path(cell).read_text(encoding="utf-8"))
            if kept["version"] != __version__:
                return None
            results = [
                Result(cell.name, cell.seed, str(method), int(t), float(mse)) for method, t, mse in kept["results"]
            ]
            expected = [(method.label, t) for method in cell.methods for t in method.times]
            if sorted((r.method, r.t) for r in results) != sorted(expected):
                return None
            return Finished(cell, results, *(kept[name] for name in ("began", "ended", "machine", "software")))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, finished: Finished) -> None:
        """Keep a cell, in one piece."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._path(finished.cell)
        content = {
            "cell": finished.cell.key,
            "version": __version__,
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
