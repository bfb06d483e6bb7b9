"""Rows of a matrix in a NumPy file."""

import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from thresher.io.sources.source_error import SourceError
from thresher.io.sources.table_file import StoredFile

ROWS = 4096
# A byte of a compressed file stands for no more bytes than this.
DEFLATED = 1032


class NumpyFile(StoredFile):
    """A matrix in .npy, with columns "0", "1", ... or those of a structured array; or X and y in .npz.

    In .npz, X is the matrix, y a vector that becomes the column "y", and sample_weight another, if it is there.
    """

    def __init__(self, source: Path, name: str) -> None:
        self.name = name
        self._source = source
        with ExitStack() as stack:
            parts = self._open(stack)
            sizes = {len_ for _, _, (len_, *_) in parts.values()}
            if len(sizes) != 1:
                raise self.error("has arrays of different lengths.")
            (self.n_rows,) = sizes
            self._columns = self.check_names([column for part in parts for column in self._names(part, parts[part])])

    def _open(self, stack: ExitStack) -> dict[str, tuple[IO[bytes], np.dtype[Any], tuple[int, ...]]]:
        """Every array, open behind its header: file, type and shape."""
        try:
            most = self._source.stat().st_size
            if self._source.suffix != ".npz":
                files: dict[str, IO[bytes]] = {"X": stack.enter_context(self._source.open("rb"))}
            else:
                most *= DEFLATED
                archive = stack.enter_context(zipfile.ZipFile(self._source))
                there = {Path(name).stem: name for name in archive.namelist()}
                if not {"X", "y"} <= there.keys():
                    raise self.error(f"has the arrays {sorted(there)}; X and y are needed.")
                wanted = [name for name in ("X", "y", "sample_weight") if name in there]
                files = {name: stack.enter_context(archive.open(there[name])) for name in wanted}
            return {name: self._header(name, file, most) for name, file in files.items()}
        except SourceError:
            raise
        except Exception as error:  # headers are parsed as Python, archives in many ways: any of that may fail
            raise self.error("is not a whole NumPy file; fetch or write it again.") from error

    def _header(self, name: str, file: IO[bytes], most: int) -> tuple[IO[bytes], np.dtype[Any], tuple[int, ...]]:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        columns = 2 if name == "X" and dtype.names is None else 1
        if fortran and columns == 2:
            raise self.error("has a matrix that is stored by columns; save numpy.ascontiguousarray of it.")
        if math.prod(shape) * dtype.itemsize > most:
            raise self.error(f"is not a whole NumPy file: {name} has the shape {shape}; fetch or write it again.")
        kinds = {dtype[field].kind for field in dtype.names or ()} or {dtype.kind}
        if len(shape) != columns or not kinds <= set("fiub"):
            raise self.error(f"has an array of {dtype} and shape {shape} for {name}; a table of numbers is needed.")
        return file, dtype, shape

    @staticmethod
    def _names(part: str, opened: tuple[Any, np.dtype[Any], tuple[int, ...]]) -> list[str]:
        _, dtype, shape = opened
        if part != "X":
            return [part]
        return list(dtype.names) if dtype.names else [str(j) for j in range(shape[1])]

    def _tables(self, columns: list[str]) -> Iterator[Any]:
        with ExitStack() as stack:
            parts = self._open(stack)
            for start in range(0, self.n_rows or 0, ROWS):
                n = min(ROWS, (self.n_rows or 0) - start)
                found = {}
                for part, (file, dtype, shape) in parts.items():
                    row = (n, *shape[1:])
                    size = dtype.itemsize * int(np.prod(row))
                    try:
                        content = file.read(size)
                    except (EOFError, zlib.error, zipfile.BadZipFile) as error:
                        raise self.error(f"is damaged ({error}); fetch or write it again.", start + 1) from error
                    if len(content) < size:
                        raise self.error("the file ends here; fetch or write it again.", start + 1)
                    values = np.frombuffer(content, dtype).reshape(row)
                    for j, name in enumerate(self._names(part, (file, dtype, shape))):
                        if name in columns:
                            one = values if part != "X" else values[name] if dtype.names else values[:, j]
                            found[name] = pa.array(np.ascontiguousarray(one, np.float64))
                yield pa.table(found)
