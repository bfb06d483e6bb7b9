"""Whole lines of a file or a pipe, block by block, with exact offsets."""

import gzip
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

BLOCK_SIZE = 1 << 20


class ChangedSourceError(ValueError):
    """What was read before is not what is there now."""


class Block(NamedTuple):
    """Bytes that end with a line, and how many bytes there were up to their end; gzip counts what it holds."""

    content: bytes
    end: int


class Lines:
    r"""Blocks of whole lines, each line once, in memory that does not grow.

    A block is about `block_size` bytes, or one line if that is longer. Reading can begin again at the end of any
    block, with the proof that everything before it is unchanged: ``digest`` of the one reader is what another is
    given with its ``start``.

    Parameters
    ----------
    source : Path or binary file
        A file, decompressed if its name ends in .gz, or something open for reading, such as a pipe.
    start : int, default=0
        Bytes that were read before.
    digest : str, default=""
        The digest of these bytes, which are read again and compared with it.
    block_size : int
    follow : bool, default=False
        Whether to wait for more at the end, until somebody interrupts. A line without its end is not complete yet.
    patience : float, default=0.5
        Seconds between looks.

    Examples
    --------
    >>> import io
    >>> from thresher.streams.lines import Lines
    >>> lines = Lines(io.BytesIO(b"a,b\n1,2\n3,4"), block_size=5)
    >>> [block for block in lines]
    [Block(content=b'a,b\n', end=4), Block(content=b'1,2\n', end=8), Block(content=b'3,4', end=11)]
    """

    def __init__(
        self,
        source: Path | IO[bytes],
        start: int = 0,
        digest: str = "",
        block_size: int = BLOCK_SIZE,
        follow: bool = False,
        patience: float = 0.5,
    ) -> None:
        self._source, self._start, self._expected = source, start, digest
        self._block_size, self._follow, self._patience = block_size, follow, patience
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Of all bytes up to the end of the last block."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[Block]:
        if not isinstance(self._source, Path):
            yield from self._blocks(self._source)
        elif self._source.suffix == ".gz":
            with gzip.open(self._source) as file:
                yield from self._blocks(file)  # type: ignore[arg-type]
        else:
            with self._source.open("rb") as file:
                yield from self._blocks(file)

    def _blocks(self, file: IO[bytes]) -> Iterator[Block]:
        self._skip(file)
        end, rest = self._start, b""
        while True:
            more = file.read(self._block_size)
            content = rest + more
            if more:
                cut = content.rfind(b"\n") + 1
            elif self._follow:
                time.sleep(self._patience)
                continue
            else:
                cut = len(content)
            whole, rest = content[:cut], content[cut:]
            if whole:
                end += len(whole)
                self._hash.update(whole)
                yield Block(whole, end)
            if not more:
                return

    def _skip(self, file: IO[bytes]) -> None:
        """Read again what was read before, and see that it is the same."""
        left = self._start
        while left:
            content = file.read(min(left, self._block_size))
            if not content:
                raise ChangedSourceError(
                    f"{self._name} has {self._start - left} bytes now; {self._start} were read before."
                )
            self._hash.update(content)
            left -= len(content)
        if self._expected and self._hash.hexdigest() != self._expected:
            raise ChangedSourceError(f"The first {self._start} bytes of {self._name} have changed since then.")

    @property
    def _name(self) -> str:
        return str(self._source) if isinstance(self._source, Path) else "the source"
