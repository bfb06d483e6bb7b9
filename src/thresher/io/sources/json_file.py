"""Rows of a file of JSON objects, one per line, a compressed one, or a pipe."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from thresher.io.sources.lines import LineFile, Lines
from thresher.io.sources.source_error import SourceError
from thresher.io.sources.table_file import REMEDY, TYPES, Kinds

# What a value may be instead of what was expected.
FOUND = {"number": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}
NO_OBJECT = re.compile(rb"^[ \t\r]*[^{ \t\r\n]", re.MULTILINE)
OBJECT = re.compile(rb"^[ \t\r]*\{", re.MULTILINE)
TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"')
OPENING, CLOSING = np.frombuffer(b"{[", np.uint8), np.frombuffer(b"}]", np.uint8)
# Objects in objects: a row has none, and pyarrow needs stack for each.
MOST_NESTED = 64


class JsonFile(LineFile):
    """Lines with one object each; its columns are the fields in the first block. What a line lacks is missing.

    Parameters are those of `CsvFile`.
    """

    loose = True

    def _begin(self, lines: Lines) -> None:
        super()._begin(lines)
        self._sample: Any = None

    @property
    def columns(self) -> list[str]:
        """Names of the fields in the first block."""
        return self.read_names(self.sample().schema)

    def _open(self) -> None:
        if self._blocks is None:
            self._blocks = iter(self._lines)
            self._first = self.check_text(next((block for block in self._blocks if block.strip()), b""))
            if not self._first:
                raise self.no_rows("is empty.")

    def sample(self, texts: Sequence[str] = ()) -> Any:
        """The first block, with the types that its fields seem to have; `texts` stay as they are."""
        self._open()
        if self._sample is None or texts:
            self._sample = self._parse(self._first, 0, dict.fromkeys(texts, "text"), everything=True)
        return self._sample

    def _parse(self, block: bytes, n_before: int, kinds: Kinds, everything: bool = False) -> Any:
        self._check_objects(block, n_before)
        types = {name: TYPES[kind] for name, kind in kinds.items()}
        odd: dict[str, SourceError] = {}
        while True:
            try:
                table = self._read(block, types, everything)
                self._check_count(block, table.num_rows, n_before)
                return table
            except pa.ArrowInvalid as error:
                text = str(error).removeprefix("JSON parse error: ")
            found = re.search(r" in row (\d+)$", text)
            row = n_before + int(found[1] if found else 0) + 1
            change = re.search(r"Column\(/(.*)\) changed from (\w+) to (\w+)", text)
            if not change:
                raise self.error(text.split(" in row ")[0].rstrip(".") + ".", row)
            name, wanted, there = change.groups()
            mismatch = self.error(f"column {name!r} has a {there} where a {wanted} belongs; {REMEDY}", row)
            if name in odd or name not in types or there not in FOUND:
                raise odd.get(name) or mismatch
            # Numbers that are texts, categories that are numbers: if all are, they are taken as they are.
            odd[name] = mismatch
            types[name] = FOUND[there]

    def _read(self, block: bytes, types: dict[str, Any], everything: bool) -> Any:
        return pa.json.read_json(
            pa.BufferReader(block),
            read_options=pa.json.ReadOptions(block_size=len(block) + 1),
            parse_options=pa.json.ParseOptions(
                explicit_schema=pa.schema(list(types.items())) if types else None,
                unexpected_field_behavior="infer" if everything else "ignore",
            ),
        )

    def _check_objects(self, block: bytes, n_before: int) -> None:
        """Refuse what pyarrow takes for text, and lines on which it crashes: no objects, and deeply nested ones."""
        try:
            block.decode()
        except UnicodeDecodeError as error:
            raise self.error(
                "is not text in UTF-8; convert it first.", n_before + _count(block[: error.start])
            ) from error
        if other := NO_OBJECT.search(block):
            raise self.error("is not an object in braces.", n_before + _count(block[: other.start()]) + 1)
        content = np.frombuffer(block, np.uint8)
        ends = np.append(np.flatnonzero(content == ord("\n")), len(content))
        opened = np.searchsorted(np.flatnonzero((content == ord("{")) | (content == ord("["))), ends)
        for line in np.flatnonzero(np.diff(opened, prepend=0) > MOST_NESTED):  # a line that may be too deep
            start = ends[line - 1] + 1 if line else 0
            if _depth(block[start : ends[line]]) > MOST_NESTED:
                fault = f"has objects or lists in each other more than {MOST_NESTED} deep."
                raise self.error(fault, n_before + _count(block[:start]) + 1)

    def _check_count(self, block: bytes, n_rows: int, n_before: int) -> None:
        """Refuse blocks with more or fewer objects than lines."""
        if n_rows == _count(block):
            return
        row = n_before
        for line in filter(bytes.strip, block.split(b"\n")):
            row += 1
            try:
                json.loads(line.decode(errors="replace"))
            except ValueError:
                raise self.error("is not one object; each line needs one, and no more.", row) from None


def _count(block: bytes) -> int:
    """Lines that are not blank, of which each begins with a brace."""
    return len(OBJECT.findall(block))


def _depth(line: bytes) -> int:
    """How many braces and brackets are open at once, outside of texts."""
    content = np.frombuffer(TEXT.sub(b"", line), np.uint8)
    steps = np.isin(content, OPENING).astype(np.int64) - np.isin(content, CLOSING)
    return int(np.cumsum(steps).max(initial=0))
