"""Whole lines of a file or a pipe, block by block."""

import gzip
import os
import time
import warnings
import zlib
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing
from copy import copy
from itertools import chain
from pathlib import Path
from typing import IO, Any, ClassVar

from thresher.io.sources.growing_file import GrowingFile
from thresher.io.sources.source_error import SourceError
from thresher.io.sources.table_file import Kinds, TableFile

BLOCK_SIZE = 1 << 23
BOM = b"\xef\xbb\xbf"
# A row of ten million numbers has room in it. What is longer is no table, and would fill the memory.
LONGEST_LINE = 1 << 28


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
        until it is closed. A line of a file waits for its end. Compressed files cannot be followed.
    patience : float, default=0.2
        Seconds between looks.
    opened : raw binary file, optional
        The file, if it is open already.

    Attributes
    ----------
    fraction : float or None
        How much of a file was read.
    unterminated : bool
        Whether the block given last is a line without its end, so that somebody may still be writing it.
    waiting : bool
        Whether everything was read that is there, and more may come.
    stopped : bool
        Set it to end the lines of a file that is followed.
    replacement : raw binary file or None
        The file that took the place of the one that was followed, to its end.

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
        opened: IO[bytes] | None = None,
    ) -> None:
        self._source, self._name, self._block_size = source, name, block_size
        self._follow, self._patience, self._opened = follow, patience, opened
        self.fraction: float | None = None
        self.unterminated = self.waiting = self.stopped = False
        self.replacement: IO[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        if not isinstance(self._source, Path):
            yield from self._blocks(self._source, self._source)
            return
        if self._follow:
            opened = self._opened or self._source.open("rb", buffering=0)
            with closing(GrowingFile(self._source, opened, self._name)) as growing:
                yield from self._followed(growing)
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
        size = os.stat(self._source).st_size if isinstance(self._source, Path) else 0
        rest: list[bytes] = []
        while more := self._read(file):
            whole, rest = self._cut(rest, more)
            if size:
                self.fraction = min(raw.tell() / size, 1.0)
            if whole:
                yield whole
        if last := b"".join(rest):
            self.unterminated = True
            yield last

    def _followed(self, file: GrowingFile) -> Iterator[bytes]:
        rest: list[bytes] = []
        while not self.stopped:
            if more := file.read(self._block_size):
                self.waiting = False
                whole, rest = self._cut(rest, more)
                if whole:
                    yield whole
            elif self.replacement is None:
                self.waiting = True
                self.replacement = file.replacement()
                if self.replacement is None:
                    time.sleep(self._patience)
            elif file.moved_to(self.replacement):
                warnings.warn(
                    f"{self._name} was replaced by a file that begins with the {file.tell():,} bytes that were read; "
                    "it is followed from there on.",
                    stacklevel=2,
                )
                self.replacement = None
            elif any(rest):
                self.replacement.close()
                raise SourceError(
                    f"{self._name} was replaced by a new file while its last line had no end, so that line may be lost."
                )
            else:
                return

    def _cut(self, rest: list[bytes], more: bytes) -> tuple[bytes, list[bytes]]:
        """Whole lines, of what was left and what is new, and what is left then."""
        cut = more.rfind(b"\n") + 1
        if cut:
            return b"".join([*rest, more[:cut]]), [more[cut:]]
        rest.append(more)
        if sum(map(len, rest)) > LONGEST_LINE:
            raise SourceError(f"{self._name} has a line of more than {LONGEST_LINE:,} bytes; is it a table?")
        return b"", rest

    def _read(self, file: IO[bytes]) -> bytes:
        """A block, or what there is if nobody should wait for more; empty at the end."""
        pieces, left = [], self._block_size
        while left and (piece := file.read(left)):
            pieces.append(piece)
            left -= len(piece)
            if self._follow:
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class LineFile(TableFile):
    """A file with a row on each line, parsed block by block (`_parse`) from the first, which `_open` reads, on."""

    # What blocks without rows consist of; None stands for white space.
    _blank: ClassVar[bytes | None] = None

    def __init__(self, source: Path | IO[bytes], name: str, follow: bool = False) -> None:
        self.name, self._source, self._follow = name, source, follow
        self._begin(Lines(source, name, follow=follow))

    def _begin(self, lines: Lines) -> None:
        """Nothing is read yet."""
        self._lines = lines
        self._blocks: Iterator[bytes] | None = None
        self._first = b""

    @property
    def fraction(self) -> float | None:
        """How much was read so far."""
        return self._lines.fraction

    @property
    def unterminated(self) -> bool:
        """Whether the table given last is a line without its end."""
        return self._lines.unterminated

    @property
    def waiting(self) -> bool:
        """Whether everything was read that is there, and more may come."""
        return self._lines.waiting

    def restart(self) -> None:
        """Whoever still reads gets no more, and what comes next is the first row."""
        self._lines.stopped = True
        self._begin(Lines(self._source, self.name, follow=self._follow))

    def replaced_by(self) -> "LineFile | None":
        """The file that took the place of this one while it was followed, if there is one."""
        if self._lines.replacement is None:
            return None
        new = copy(self)
        new._begin(Lines(self._source, self.name, follow=True, opened=self._lines.replacement))
        return new

    def check_text(self, block: bytes) -> bytes:
        """The first block without a byte order mark. UTF-16 has zeros in it, or a mark of its own."""
        head = block[:1000]
        for order, mark, zeros in (("LE", b"\xff\xfe", head[1::2]), ("BE", b"\xfe\xff", head[::2])):
            if head.startswith(mark) or (b"\0" in head and 2 * zeros.count(0) > len(zeros)):
                raise self.error(f"is UTF-16, not UTF-8; convert it, as in: iconv -f UTF-16{order} -t UTF-8.")
        if b"\0" in head:
            raise self.error("has zero bytes, so it is not text.")
        return block.removeprefix(BOM)

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
