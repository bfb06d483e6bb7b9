"""Records in a file, a line of JSON each, that survive whatever ends the process."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from thresher.rivals._comparison import Record

FLOATS = ("mse", "prediction_error", "precision", "recall", "seconds")


def read_records(path: Path) -> list[Record]:
    """All records of a file, without a last line that was not written to its end."""
    whole = path.read_bytes().rpartition(b"\n")[0]
    return [_parse(line, path, i) for i, line in enumerate(whole.split(b"\n"), 1) if line.strip()]


class SavedRecords:
    """A file that records are appended to; what is there already is in `records`."""

    def __init__(self, path: Path) -> None:
        self.records = read_records(path) if path.exists() else []
        self._file = path.open("ab")
        if self._file.tell():
            self._file.truncate(path.read_bytes().rfind(b"\n") + 1)

    def append(self, records: Iterable[Record]) -> None:
        """Write records, all the way to the operating system."""
        self._file.write("".join(_line(record) for record in records).encode())
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _line(record: Record) -> str:
    fields: dict[str, Any] = record._asdict()
    for name in FLOATS:  # JSON has no word for these
        if not math.isfinite(fields[name]):
            fields[name] = None if math.isnan(fields[name]) else "inf"
    return json.dumps(fields) + "\n"


def _parse(line: bytes, path: Path, number: int) -> Record:
    try:
        fields = json.loads(line)
        for name in FLOATS:
            fields[name] = math.nan if fields[name] is None else float(fields[name])
        return Record(**fields)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"Line {number} of {path} is not a record of compare. Use another file as output.") from error
