"""Rows of a Parquet file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from thresher.io.sources.table_file import StoredFile

ROWS = 16384
# Columns of large files are read through buffers of this size, because a file may be one single row group. Small files
# are not: pyarrow reads without end through a buffer if the header of a page is damaged in certain ways.
BUFFER, SMALL = 1 << 16, 1 << 26


class ParquetFile(StoredFile):
    """Columns that are asked for, and no others, some rows at a time."""

    def __init__(self, source: Path, name: str) -> None:
        self.name = name
        self._source = source
        try:
            with pq.ParquetFile(source) as file:
                self.n_rows = file.metadata.num_rows
                self._columns = self.read_names(file.schema_arrow)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self.error("is not a whole Parquet file; fetch or write it again.") from error

    def _tables(self, columns: list[str]) -> Iterator[Any]:
        try:
            buffer = 0 if self._source.stat().st_size <= SMALL else BUFFER
            # Files have checksums only if they were written with them.
            with pq.ParquetFile(
                self._source, buffer_size=buffer, pre_buffer=False, page_checksum_verification=True
            ) as file:
                for batch in file.iter_batches(ROWS, columns=columns):
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self.error(f"cannot be read ({error}); fetch or write it again.", self._n_read + 1) from error
