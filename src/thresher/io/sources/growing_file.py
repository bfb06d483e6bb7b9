"""A file that somebody else writes to while it is read."""

import os
from pathlib import Path
from typing import IO

from thresher.io.sources.source_error import SourceError

# What is compared to see whether a file is still the same: so many bytes at its beginning and before the place reached.
WINDOW = 1 << 16


class GrowingFile:
    """The bytes of a file in the order in which they are appended, as long as nothing but that happens to it.

    Programs that rotate logs rename a file and begin a new one in its place, or copy it and cut it to nothing. In the
    first case nothing is lost: `replacement` is the new file, and what is left of the old one can still be read. In the
    second, lines may be gone before they were read, and the file may be longer than before when somebody looks. So
    whenever there is more, and whenever the file was written to, the bytes before the place reached are compared with
    what they were.

    Parameters
    ----------
    path : Path
    raw : raw binary file
        The same, open for reading, at its beginning.
    name : str
        What to call it in errors.
    """

    def __init__(self, path: Path, raw: IO[bytes], name: str) -> None:
        self._path, self._raw, self._name = path, raw, name
        self._place = 0
        self._head = self._tail = b""
        self._looked: tuple[int, int] | None = None

    def tell(self) -> int:
        """How many bytes were read."""
        return self._place

    def read(self, size: int) -> bytes:
        """What comes next, at most `size` bytes; nothing if there is no more now. SourceError if it was overwritten."""
        self._raw.seek(self._place)
        more = self._raw.read(size)
        status = os.fstat(self._raw.fileno())
        look = status.st_size, status.st_mtime_ns
        # After reading: if the bytes before are what they were even now, the new ones follow them.
        if (more or look != self._looked) and not self._continues(self._raw):
            raise SourceError(
                f"{self._name} was cut or overwritten while it was followed, after {self._place:,} bytes, so lines "
                "written meanwhile may be lost; if a copy has all the old lines, --resume continues from that."
            )
        self._looked = look
        self._head = (self._head + more)[:WINDOW] if len(self._head) < WINDOW else self._head
        self._tail = (self._tail + more)[-WINDOW:]
        self._place += len(more)
        return more

    def replacement(self) -> IO[bytes] | None:
        """The file that is in the place of this one now, open; None if there is none, or nothing in it yet.

        A program that writes to the new file has stopped writing to the old one, which is then complete.
        """
        try:
            new = self._path.open("rb", buffering=0)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceError(
                f"{self._name} was replaced by a new file, which cannot be opened ({error.strerror})."
            ) from error
        there = os.fstat(new.fileno())
        if os.path.samestat(there, os.fstat(self._raw.fileno())) or there.st_size == 0:
            new.close()
            return None
        return new

    def moved_to(self, new: IO[bytes]) -> bool:
        """Whether another file begins with all that was read of this one; if so, it is read from here on."""
        if not self._continues(new):
            return False
        self._raw.close()
        self._raw, self._looked = new, None
        return True

    def close(self) -> None:
        """Close what is read now."""
        self._raw.close()

    def _continues(self, raw: IO[bytes]) -> bool:
        """Whether the bytes before the place reached are those that were read."""
        for start, expected in ((0, self._head), (self._place - len(self._tail), self._tail)):
            raw.seek(start)
            if raw.read(len(expected)) != expected:
                return False
        return True
