"""Rows of a CSV file, a compressed one, or a pipe."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from thresher.io.sources.lines import BOM, LineFile, Lines
from thresher.io.sources.source_error import SourceError
from thresher.io.sources.table_file import REMEDY, TYPES, Kinds, is_number

# pyarrow parses pieces of this size side by side.
PIECE = 1 << 20
# What is read at first to find the names.
HEADER = 1 << 14


class CsvFile(LineFile):
    """Lines of fields, the first line with names unless told otherwise; one row per line.

    Parameters
    ----------
    source : Path or binary file
    name : str
    delimiter : str, default=","
    header : bool, default=True
        Whether the first line has the names; otherwise they are "0", "1", ...
    decimal : {".", ","}, default="."
        The decimal point of numbers.
    follow : bool, default=False
        As for `Lines`.
    """

    _blank = b"\r\n"

    def __init__(
        self,
        source: Path | IO[bytes],
        name: str,
        delimiter: str = ",",
        header: bool = True,
        decimal: str = ".",
        follow: bool = False,
    ) -> None:
        super().__init__(source, name, follow)
        self._delimiter, self._decimal = delimiter, decimal
        self._header = header

    def _begin(self, lines: Lines) -> None:
        super()._begin(lines)
        self._columns: list[str] = []

    @property
    def columns(self) -> list[str]:
        """Names of all columns, from the first line."""
        if not self._columns and isinstance(self._source, Path) and not self._follow:  # without reading more than that
            self._read_header(next(iter(Lines(self._source, self.name, block_size=HEADER)), b""))
        elif not self._columns:
            self._open()
        return self._columns

    def _open(self) -> None:
        if self._blocks is None:
            self._blocks = iter(self._lines)
            self._first = self._read_header(next(self._blocks, b""))

    def _read_header(self, block: bytes) -> bytes:
        """Take the names from the beginning of the file; the rest of the block."""
        block = self.check_text(block).lstrip(b"\r\n")
        if not block:
            raise self.no_rows("is empty.")
        line, _, rest = block.partition(b"\n")
        try:
            fields = next(csv.reader([line.decode().rstrip("\r")], delimiter=self._delimiter, strict=True), [])
        except UnicodeDecodeError as error:
            raise self.error("is not text in UTF-8; convert it first.") from error
        except csv.Error as error:
            raise self.error(f"has a first line that cannot be read ({error}); lines end with a line feed.") from error
        if not self._header:
            self._columns = [str(j) for j in range(len(fields))]
            return block
        self._columns = self.check_names([field.strip() for field in fields])
        if all(map(is_number, fields)):
            raise self.error("has numbers in its first line instead of names; use --no-header, or add names.")
        return rest

    def sample(self, texts: Sequence[str] = ()) -> Any:
        """The first block, with the types that its columns seem to have; `texts` stay as they are."""
        self._open()
        while not self._first.strip() and self._blocks is not None:  # the header alone
            self._first = next(self._blocks, b"")
            if not self._first:
                raise self.no_rows("has no rows.")
        return self._parse(self._first, 0, texts=texts)

    def _parse(self, block: bytes, n_before: int, kinds: Kinds | None = None, texts: Sequence[str] = ()) -> Any:
        types = {name: TYPES[kind] for name, kind in (kinds or dict.fromkeys(texts, "text")).items()}
        wanted = list(kinds or ())
        if block.startswith(BOM):  # pyarrow would leave it out, but not where it stands elsewhere
            raise self.error("a byte order mark is no part of a field; remove it.", n_before + 1)
        try:
            table = self._convert(block, wanted, types, threads=True)
        except pa.ArrowInvalid:
            raise self._explained(block, n_before, wanted, types) from None
        if b'"' in block:
            self._check_quotes(block, n_before)
        return table

    def _convert(self, block: bytes, wanted: list[str], types: dict[str, Any], threads: bool) -> Any:
        try:
            return self._read(block, wanted, types, threads, PIECE)
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error):
                raise
        return self._read(block, wanted, types, threads, len(block))  # a line is longer than a piece

    def _read(self, block: bytes, wanted: list[str], types: dict[str, Any], threads: bool, piece: int) -> Any:
        return pa.csv.read_csv(
            pa.BufferReader(block),
            read_options=pa.csv.ReadOptions(column_names=self._columns, use_threads=threads, block_size=piece),
            parse_options=pa.csv.ParseOptions(delimiter=self._delimiter),
            convert_options=pa.csv.ConvertOptions(
                include_columns=wanted, column_types=types, strings_can_be_null=True, decimal_point=self._decimal
            ),
        )

    def _explained(self, block: bytes, n_before: int, wanted: list[str], types: dict[str, Any]) -> SourceError:
        """What is wrong with a block; on one thread, pyarrow counts rows."""
        try:
            self._convert(block, wanted, types, threads=False)
        except pa.ArrowInvalid as error:
            text = str(error)
        else:  # pragma: no cover - what fails on two threads fails on one
            text = "it cannot be parsed"
        found = re.search(r"Row #(\d+)", text)
        row = n_before + int(found[1]) if found else None
        if fields := re.search(r"Expected (\d+) columns, got (\d+)", text):
            few = "few" if int(fields[2]) < int(fields[1]) else "many"
            return self.error(f"too {few} fields, {fields[2]} instead of {fields[1]}.", row)
        if value := re.search(r"In CSV column #(\d+).*invalid value '(.*)'", text, re.DOTALL):
            column = self._columns[int(value[1])]
            return self.error(f"column {column!r} has {value[2]!r} where a number belongs; {REMEDY}", row)
        return self.error(text.removeprefix("CSV parse error: "), row if row is not None else n_before + 1)

    def _check_quotes(self, block: bytes, n_before: int) -> None:
        """Refuse fields that continue on the next line: a block may end there."""
        content = np.frombuffer(block, np.uint8)
        ends = np.append(np.flatnonzero(content == ord("\n")), len(content))
        quotes = np.searchsorted(np.flatnonzero(content == ord('"')), ends)
        for row in np.flatnonzero(np.diff(quotes, prepend=0) % 2):  # an odd number of them in a line
            line = block[ends[row - 1] + 1 if row else 0 : ends[row]].decode(errors="replace")
            try:
                list(csv.reader([line], delimiter=self._delimiter, strict=True))
            except csv.Error:
                message = "a quoted field continues on the next line; put it on one line."
                raise self.error(message, n_before + int(row) + 1) from None
