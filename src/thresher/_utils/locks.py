"""Files that only one process may write to."""

from typing import IO


def lock(file: IO[bytes]) -> bool:
    """Keep others out, until the file is closed or the process ends in whatever way. False if one is there already.

    Where there are no locks, on Windows and some network file systems, nobody is kept out.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
