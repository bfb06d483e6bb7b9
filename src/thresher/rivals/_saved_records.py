"""Records in a file, a line of JSON each, that survive whatever ends the process."""

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from thresher._locks import lock
from thresher.rivals._comparison import Record

FLOATS = ("mse", "prediction_error", "precision", "recall", "seconds")
START = b'{"method": "'


def read_records(path: Path) -> list[Record]:
    """All records of a file, without a last line that was not written to its end."""
    return _parse(path.read_bytes(), path)[0]


class SavedRecords:
    """A file that records are appended to, by one at a time; what is there already is in `records`.

    Nothing is changed before the first record is appended.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+b")
        try:
            if not lock(self._file):
                raise RuntimeError(f"Another comparison is writing to {path}. Wait for it, or use another file.")
            self._file.seek(0)
            self.records, self._end = _parse(self._file.read(), path)
        except BaseException:
            self._file.close()
            raise

    def append(self, records: Iterable[Record]) -> None:
        """Write records, all the way to the operating system."""
        if self._end is not None:
            self._file.truncate(self._end)
            self._end = None
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


def _parse(content: bytes, path: Path) -> tuple[list[Record], int | None]:
    """Records, and where they end if there is a piece of another behind them. All else is somebody's file."""
    *lines, rest = content.split(b"\n")
    records = [_record(line, path, i) for i, line in enumerate(lines, 1) if line.strip()]
    if not rest:
        return records, None
    if not _is_torn(rest):
        _record(rest, path, len(lines) + 1)
    return records, len(content) - len(rest)


def _is_torn(line: bytes) -> bool:
    """Whether a line is the beginning of a record, and no more."""
    keys = [key.decode() for key in re.findall(rb'"(\w+)": ', line)]  # quotes inside texts have a backslash
    begins = line.startswith(START) or START.startswith(line)
    return begins and keys == list(Record._fields[: len(keys)]) and not _is_json(line)


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _record(line: bytes, path: Path, number: int) -> Record:
    try:
        fields = json.loads(line)
        for name in FLOATS:
            fields[name] = math.nan if fields[name] is None else float(fields[name])
        return Record(**fields)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"Line {number} of {path} is not a record of compare. Use another file as output.") from error
