"""Whole lines of a file or a pipe, block by block."""

import gzip
import os
import time
import zlib
from abc import abstractmethod
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, ClassVar

from thresher.io.sources.source_error import SourceError
from thresher.io.sources.table_file import Kinds, TableFile

BLOCK_SIZE = 1 << 23


class Lines:
    r"""Blocks of whole lines, each line once, in memory that does not grow.

    A block is about `block_size` bytes, or one line if that is longer; or what has come so far, if `follow`.

    Parameters
    ----------
    source : Path or raw binary file
        A file, decompressed if its name ends in .gz, or something open for reading, such as a pipe.
    name : str
        What to call it in errors.
    block_size : int
    follow : bool, default=False
        Whether to hand on lines as they come: a file is looked at for more at its end until somebody interrupts, a pipe
        until it is closed. A line without its end is not complete yet.
    patience : float, default=0.2
        Seconds between looks.

    Attributes
    ----------
    fraction : float or None
        How much of a file was read.

    Examples
    --------
    >>> import io
    >>> from thresher.io.sources.lines import Lines
    >>> list(Lines(io.BytesIO(b"a,b\n1,2\n3,4"), block_size=5))
    [b'a,b\n', b'1,2\n', b'3,4']
    """

    def __init__(
        self,
        source: Path | IO[bytes],
        name: str = "the stream",
        block_size: int = BLOCK_SIZE,
        follow: bool = False,
        patience: float = 0.2,
    ) -> None:
        self._source, self._name, self._block_size = source, name, block_size
        self._follow, self._patience = follow, patience
        self.fraction: float | None = None

    def __iter__(self) -> Iterator[bytes]:
        if not isinstance(self._source, Path):
            yield from self._blocks(self._source, self._source)
            return
        with self._source.open("rb", buffering=0) as raw:
            if self._source.suffix.lower() != ".gz":
                yield from self._blocks(raw, raw)
                return
            with gzip.open(raw) as file:
                try:
                    yield from self._blocks(file, raw)  # type: ignore[arg-type]
                except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                    raise SourceError(f"{self._name} is not a whole gzip file ({error}); fetch it again.") from error

    def _blocks(self, file: IO[bytes], raw: IO[bytes]) -> Iterator[bytes]:
        live = self._follow
        waits = live and isinstance(self._source, Path)
        size = os.stat(self._source).st_size if isinstance(self._source, Path) else 0
        rest: list[bytes] = []
        while True:
            more = self._read(file, live)
            if more:
                cut = more.rfind(b"\n") + 1
                if not cut:
                    rest.append(more)
                    continue
                whole, rest = b"".join([*rest, more[:cut]]), [more[cut:]]
            elif waits:
                self._check_length(raw)
                time.sleep(self._patience)
                continue
            else:
                whole, rest = b"".join(rest), []
            if size:
                self.fraction = min(raw.tell() / size, 1.0)
            if whole:
                yield whole
            if not more:
                return

    def _read(self, file: IO[bytes], live: bool) -> bytes:
        """A block, or what there is if nobody should wait for more; empty at the end."""
        pieces, left = [], self._block_size
        while left and (piece := file.read(left)):
            pieces.append(piece)
            left -= len(piece)
            if live:
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _check_length(self, raw: IO[bytes]) -> None:
        if os.fstat(raw.fileno()).st_size < raw.tell():
            raise SourceError(f"{self._name} became shorter while it was followed; start again on the new file.")


class LineFile(TableFile):
    """A file with a row on each line, parsed block by block (`_parse`) from the first, which `_open` reads, on."""

    # What blocks without rows consist of; None stands for white space.
    _blank: ClassVar[bytes | None] = None

    def __init__(self, source: Path | IO[bytes], name: str, follow: bool = False) -> None:
        self.name, self._source = name, source
        self._lines = Lines(source, name, follow=follow)
        self._blocks: Iterator[bytes] | None = None
        self._first = b""

    @property
    def fraction(self) -> float | None:
        """How much was read so far."""
        return self._lines.fraction

    def tables(self, kinds: Kinds) -> Iterator[Any]:
        """All rows, block by block."""
        self._open()
        n_rows, blocks = 0, self._blocks or iter(())
        first, self._first, self._blocks = self._first, b"", None
        for block in chain([first], blocks):
            if block.strip(self._blank):
                table = self._parse(block, n_rows, kinds).select(list(kinds))
                n_rows += table.num_rows
                yield table

    @abstractmethod
    def _open(self) -> None:
        """Read the first block, once; a pipe cannot be read twice."""

    @abstractmethod
    def _parse(self, block: bytes, n_before: int, kinds: Kinds) -> Any:
        """The rows of a block as an Arrow table, with these columns at least; there are `n_before` before them."""
