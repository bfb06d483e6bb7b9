"""Rows of a file of JSON objects, one per line, a compressed one, or a pipe."""

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.json

from thresher.io.sources.lines import LineFile, Lines
from thresher.io.sources.source_error import SourceError
from thresher.io.sources.table_file import REMEDY, TYPES, Kinds

# What a value may be instead of what was expected.
FOUND = {"number": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}
NO_OBJECT = re.compile(rb"^[ \t]*[^{ \t\r\n]", re.MULTILINE)


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
        return self.check_names(list(self.sample().column_names))

    def _open(self) -> None:
        if self._blocks is None:
            self._blocks = iter(self._lines)
            self._first = next((block for block in self._blocks if block.strip()), b"")
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
                return self._read(block, types, everything)
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
        """Refuse lines that are not objects, such as null, on which pyarrow crashes."""
        if other := NO_OBJECT.search(block):
            before = sum(1 for line in block[: other.start()].splitlines() if line.strip())
            raise self.error("is not an object in braces.", n_before + before + 1)
