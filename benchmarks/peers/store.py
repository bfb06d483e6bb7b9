"""Finished measurements on disk: one small file each, complete or not there."""

import hashlib
import json
import os
import re
from pathlib import Path

import thresher


def digest_of_library():
    """Changes whenever the code of thresher does."""
    files = sorted(Path(thresher.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class Store:
    """A directory with a file of records for each (problem, method, seed).

    A file also has the setting and, for ours, a digest of the library; measurements with others count as not there.
    """

    def __init__(self, directory):
        self.directory = Path(directory) / "cells"
        self.digest = digest_of_library()

    def _path(self, *key):
        return self.directory / (re.sub(r"[^\w.]+", "-", "--".join(map(str, key))) + ".json")

    def read(self, problem, method, seed, setting):
        try:
            kept = json.loads(self._path(problem, method, seed).read_text())
        except (OSError, ValueError):
            return None
        valid = kept["setting"] == json.loads(json.dumps(setting)) and kept.get("library") == self._library(method)
        return kept["records"] if valid else None

    def _library(self, method):
        return self.digest if method.startswith("thresher") else None

    def write(self, problem, method, seed, setting, records):
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self._path(problem, method, seed)
        temporary = path.with_suffix(f".{os.getpid()}.part")
        kept = {"setting": setting, "library": self._library(method), "records": records}
        temporary.write_text(json.dumps(kept))
        temporary.replace(path)
