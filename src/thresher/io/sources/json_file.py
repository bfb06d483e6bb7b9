"""Rows of a file of JSON objects, one per line, a compressed one, or a pipe."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json
from numpy.typing import NDArray

from thresher.io.sources.lines import LineFile, Lines
from thresher.io.sources.source_error import SourceError
from thresher.io.sources.table_file import REMEDY, TYPES, Kinds

# What a value may be instead of what was expected.
FOUND = {"number": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}
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
        n_lines = self._check_lines(block, n_before)
        types = {name: TYPES[kind] for name, kind in kinds.items()}
        odd: dict[str, SourceError] = {}
        while True:
            try:
                table = self._read(block, types, everything)
                if table.num_rows != n_lines:
                    raise self._not_one_each(block, n_before)
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

    def _check_lines(self, block: bytes, n_before: int) -> int:
        """The number of lines, blank ones aside.

        Refuses what is not UTF-8, which pyarrow takes for text, and lines on which it crashes: those that are not
        objects, such as null, and deeply nested ones.
        """
        content = np.frombuffer(block, np.uint8)
        ends = np.append(np.flatnonzero(content == ord("\n")), len(block))
        starts = np.append(0, ends[:-1] + 1)
        starts, ends = starts[starts < len(block)], ends[starts < len(block)]
        blank = np.zeros(len(starts), bool)
        for k in np.flatnonzero(content[starts] != ord("{")):
            line = block[starts[k] : ends[k]].lstrip(b" \t\r")
            blank[k] = not line
            if line and not line.startswith(b"{"):
                raise self.error("is not an object in braces.", _row(n_before, blank, k))
        try:
            block.decode()
        except UnicodeDecodeError as error:
            line_of_it = np.searchsorted(starts, error.start, "right") - 1
            raise self.error("is not text in UTF-8; convert it first.", _row(n_before, blank, line_of_it)) from error
        n_lines = len(blank) - int(blank.sum())
        if block.count(b"{") + block.count(b"[") > n_lines:  # not one for each line, and no more
            opened = np.flatnonzero((content == ord("{")) | (content == ord("[")))
            for k in np.flatnonzero(np.diff(np.searchsorted(opened, starts), append=len(opened)) > MOST_NESTED):
                if _depth(block[starts[k] : ends[k]]) > MOST_NESTED:
                    fault = f"has objects or lists in each other more than {MOST_NESTED} deep."
                    raise self.error(fault, _row(n_before, blank, k))
        return n_lines

    def _not_one_each(self, block: bytes, n_before: int) -> SourceError:
        """Say which line of a block is not one object: there are more or fewer of these than lines."""
        for row, line in enumerate(filter(bytes.strip, block.split(b"\n")), n_before + 1):
            try:
                json.loads(line.decode(errors="replace"))
            except ValueError:
                return self.error("is not one object; each line needs one, and no more.", row)
        return self.error("has lines that are not one object each.")


def _row(n_before: int, blank: NDArray[np.bool_], k: Any) -> int:
    """The row that line `k` of a block is."""
    return n_before + int(k) + 1 - int(blank[:k].sum())


def _depth(line: bytes) -> int:
    """How many braces and brackets are open at once, outside of texts."""
    content = np.frombuffer(TEXT.sub(b"", line), np.uint8)
    steps = np.isin(content, OPENING).astype(np.int64) - np.isin(content, CLOSING)
    return int(np.cumsum(steps).max(initial=0))
