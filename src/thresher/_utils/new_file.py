"""Files that appear complete or not at all, where they were meant to be, with the access that the old ones had."""

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

# Where the system has it: a symbolic link at the place of a new file is an error, not a way to another file.
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


def real_path(path: str | os.PathLike[str]) -> Path:
    """Where a file is or will be, behind all links.

    Raises OSError if there is something else than a file: a device or a pipe must not be replaced by one.
    """
    found = Path(os.path.realpath(path))
    if found.exists() and not found.is_file():
        raise OSError(None, "it is not a regular file, so it cannot be replaced", os.fspath(path))
    return found


def name_beside(path: Path) -> Path:
    """A name in the same directory that nobody can know in advance."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


def open_unfollowed(path: Path, mode: str, permissions: int) -> IO[bytes]:
    """The file at a place; a symbolic link there is an error. A new file gets these permissions, less the umask."""
    # Whoever calls this closes it.
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | NO_FOLLOW, permissions))


@contextmanager
def new_file_beside(path: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """A new file in the same directory, open for writing, and its name; it is removed unless it was renamed.

    It has the mode, the group and the owner of the file at `path`, as far as the system permits, so that it can take
    its place.
    """
    beside = name_beside(path)
    try:
        before = path.stat()
    except FileNotFoundError:
        before = None
    # Nobody else reads it before it has the mode of the old one.
    permissions = 0o666 if before is None else 0o600
    try:
        with open_unfollowed(beside, "xb", permissions) as file:
            if before is not None:
                _take_over(file.fileno(), before)
            yield file, beside
    finally:
        beside.unlink(missing_ok=True)


def _take_over(descriptor: int, before: os.stat_result) -> None:
    if not hasattr(os, "fchown"):  # Windows
        return
    for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
        with suppress(PermissionError):
            os.fchown(descriptor, owner, group)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o777)


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes left beside a file. Nobody else may be writing it."""
    pattern = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}\.part")
    for one in path.parent.iterdir():
        if pattern.fullmatch(one.name):
            one.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Bring a renaming to the disk, where directories can be opened for that."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
