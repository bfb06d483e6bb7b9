"""Rows of a file of JSON objects, one per line, a compressed one, or a pipe."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.json

from thresher.streams.lines import Lines
from thresher.streams.table_file import TYPES, Kinds, TableFile


class JsonFile(TableFile):
    """Lines with one object each; its columns are the fields in the first block. What a line lacks is missing.

    Parameters are those of `CsvFile`.
    """

    def __init__(self, source: Path | IO[bytes], name: str, follow: bool = False) -> None:
        self.name = name
        self._lines = Lines(source, name, follow=follow)
        self._blocks: Iterator[bytes] | None = None
        self._first = b""
        self._sample: Any = None

    @property
    def fraction(self) -> float | None:
        """How much was read so far."""
        return self._lines.fraction

    @property
    def columns(self) -> list[str]:
        """Names of the fields in the first block."""
        return self.check_names(list(self.sample().column_names))

    def sample(self, texts: Sequence[str] = ()) -> Any:
        """The first block, with the types that its fields seem to have."""
        if self._sample is None:
            self._blocks = iter(self._lines)
            self._first = next((block for block in self._blocks if block.strip()), b"")
            if not self._first:
                raise self.error("is empty.")
            self._sample = self._parse(self._first, 0)
        return self._sample

    def tables(self, kinds: Kinds) -> Iterator[Any]:
        """All rows, block by block."""
        self.sample()
        n_rows, blocks = 0, self._blocks or iter(())
        first, self._first, self._blocks, self._sample = self._first, b"", None, None
        for block in chain([first], blocks):
            if block.strip():
                table = self._parse(block, n_rows, kinds).select(list(kinds))
                n_rows += table.num_rows
                yield table

    def _parse(self, block: bytes, n_before: int, kinds: Kinds | None = None) -> Any:
        schema = None if kinds is None else pa.schema([(name, TYPES[kind]) for name, kind in kinds.items()])
        try:
            return pa.json.read_json(
                pa.BufferReader(block),
                read_options=pa.json.ReadOptions(block_size=len(block) + 1),
                parse_options=pa.json.ParseOptions(
                    explicit_schema=schema, unexpected_field_behavior="infer" if kinds is None else "ignore"
                ),
            )
        except pa.ArrowInvalid as error:
            text = str(error).removeprefix("JSON parse error: ")
        found = re.search(r" in row (\d+)$", text)
        row = n_before + int(found[1] if found else 0) + 1
        if change := re.search(r"Column\(/(.*)\) changed from (\w+) to (\w+)", text):
            raise self.error(f"column {change[1]!r} has a {change[3]} where a {change[2]} belongs.", row)
        raise self.error(text.split(" in row ")[0].rstrip(".") + ".", row)
