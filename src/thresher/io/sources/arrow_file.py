"""Rows of an Arrow file (also known as Feather, version 2) or of a saved Arrow stream."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from thresher.io.sources.table_file import StoredFile

# An Arrow file begins with this; a stream does not.
MAGIC = b"ARROW1"


class ArrowFile(StoredFile):
    """Record batches as they were written, of the columns that are asked for."""

    def __init__(self, source: Path, name: str) -> None:
        self.name = name
        self._source = source
        try:
            with source.open("rb") as file:
                self._is_file = file.read(len(MAGIC)) == MAGIC
            with self._open(None) as reader:
                self._columns = self.read_names(reader.schema)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self.error("is not a whole Arrow file; fetch or write it again.") from error

    def _open(self, columns: list[str] | None) -> Any:
        wanted = None if columns is None else [self._columns.index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=wanted)
        source = pa.OSFile(str(self._source))
        return (pa.ipc.open_file if self._is_file else pa.ipc.open_stream)(source, options=options)

    def _tables(self, columns: list[str]) -> Iterator[Any]:
        try:
            with self._open(columns) as reader:
                batches = (
                    (reader.get_batch(i) for i in range(reader.num_record_batches)) if self._is_file else iter(reader)
                )
                for batch in batches:
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self.error(f"cannot be read ({error}); fetch or write it again.", self._n_read + 1) from error
