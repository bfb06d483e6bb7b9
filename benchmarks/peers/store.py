"""Finished measurements on disk: one small file each, complete or not there."""

import json
import os
import re
from pathlib import Path


class Store:
    """A directory with a file of records for each (problem, method, seed).

    A file also has the setting; measurements with another setting count as not there.
    """

    def __init__(self, directory):
        self.directory = Path(directory) / "cells"

    def _path(self, *key):
        return self.directory / (re.sub(r"[^\w.]+", "-", "--".join(map(str, key))) + ".json")

    def read(self, problem, method, seed, setting):
        try:
            kept = json.loads(self._path(problem, method, seed).read_text())
        except (OSError, ValueError):
            return None
        return kept["records"] if kept["setting"] == json.loads(json.dumps(setting)) else None

    def write(self, problem, method, seed, setting, records):
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self._path(problem, method, seed)
        temporary = path.with_suffix(f".{os.getpid()}.part")
        temporary.write_text(json.dumps({"setting": setting, "records": records}))
        temporary.replace(path)
