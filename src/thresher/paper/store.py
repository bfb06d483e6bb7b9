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
    """A cell's results, and when they were computed, in seconds since 1970."""

    cell: Cell
    results: list[Result]
    began: float
    ended: float


class Store:
    """A directory with a file for each finished cell, by the digest of its settings.

    Files are written under another name and renamed, so that a process that is killed leaves no half of one, and
    processes that share a directory do not disturb each other. Results of another version of this package
    count as not there.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, cell: Cell) -> Finished | None:
        """What is kept for a cell, if anything."""
        path = self._path(cell)
        try:
            kept = json.loads(path.read_text())
            if kept["version"] != __version__:
                return None
            results = [Result(cell.name, cell.seed, method, t, mse) for method, t, mse in kept["results"]]
            return Finished(cell, results, kept["began"], kept["ended"])
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} is not a finished cell. Delete it, and it will be computed anew.") from error

    def write(self, finished: Finished) -> None:
        """Keep a cell, in one piece."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._path(finished.cell)
        content = {
            "cell": finished.cell.key,
            "version": __version__,
            "began": finished.began,
            "ended": finished.ended,
            "results": [(r.method, r.t, r.mse) for r in finished.results],
        }
        temporary = path.with_suffix(f".{os.getpid()}.part")
        with temporary.open("w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def _path(self, cell: Cell) -> Path:
        return self._directory / f"{cell.digest}.json"
