"""Read a source to its end, into a learner, and keep both in one file on the way."""

import errno
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from thresher._utils.new_file import open_unfollowed, real_path, remove_leftovers
from thresher.cli.begin import Attempt
from thresher.cli.errors import InterruptedRunError, OptionsError
from thresher.cli.live import Live
from thresher.cli.stopping import Stopping
from thresher.io.ingest import Ingest
from thresher.io.sources.batches import Batches, Place
from thresher.io.sources.prefetcher import NothingYetError, Prefetcher
from thresher.io.sources.source import Source
from thresher.io.sources.source_error import ChangedSourceError, SourceError

fcntl: Any = None
with suppress(ImportError):
    import fcntl

# Seconds after which rows of a slow stream are kept even if there are few of them.
SOON = 10.0
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """See to it that no other run writes the same file, until this one ends in whatever way.

    Where there are no locks, on Windows and some network file systems, nobody is kept out.
    """
    path = real_path(path)
    beside = path.with_name(f".{path.name}.lock")
    with _locked(beside, path):
        try:
            remove_leftovers(path)
            yield
        finally:
            beside.unlink(missing_ok=True)


def _locked(beside: Path, path: Path) -> IO[bytes]:
    """The lock file, open and locked. It is never written to, so it does not matter whose file it is."""
    while True:
        try:
            file = open_unfollowed(beside, "ab", 0o600)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OptionsError(f"{beside} is a symbolic link; remove it, it is the place of a lock.") from None
            raise
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise OptionsError(f"{path} is being written by another run; wait for it, or use another file.") from None
        except OSError:
            pass
        # A run that just ended may have removed the file between opening and locking: then others lock another one.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), beside.stat()):
                return file
        file.close()


class Checkpointer:
    """Writes the file when it is time to, if there is one.

    The last line of a file may lack its end because somebody is still writing it. So the state before it is written
    first and stays as a generation of its own, from which --resume goes on when that line has become another one.
    """

    def __init__(self, ingest: Ingest, path: Path | None, every: int, keep: int, is_newest: bool) -> None:
        self._ingest, self._path, self.every, self._keep = ingest, path, every, keep
        self._n_kept, self._when = ingest.place.n_rows, time.monotonic()
        # What the newest generation on the disk holds, as far as this run knows.
        self._newest = self._state() if is_newest else None
        self._unterminated = False

    def _state(self) -> tuple[Place, bool]:
        return self._ingest.place, self._ingest.finished

    def keep_before_unterminated(self) -> None:
        """Write it before a line without its end, which is the last."""
        self.keep()
        self._unterminated = True

    def keep_if_due(self) -> None:
        """Write it if enough came in."""
        new = self._ingest.place.n_rows - self._n_kept
        if not self._unterminated and (new >= self.every or (new and time.monotonic() - self._when > SOON)):
            self.keep()

    def keep(self) -> None:
        """Write it now, unless it is what the file holds. A disk that is full leaves the one before as it is."""
        if self._path is None or self._newest == self._state():
            return
        try:
            self._ingest.save(self._path, max(self._keep, 2) if self._unterminated else self._keep)
        except OSError as error:
            there = f"; what was kept after {self._n_kept:,} rows is intact" if self._n_kept else ""
            remedy = ". Make room and use --resume" if error.errno in FULL else ""
            raise OSError(error.errno, f"{error.strerror}{there}{remedy}", str(self._path)) from error
        self._n_kept, self._when, self._newest = self._ingest.place.n_rows, time.monotonic(), self._state()


def feed(attempts: Iterator[Attempt], source: Source, path: Path | None, every: int, keep: int, live: bool) -> Ingest:
    """Absorb what is left of the source, then let the learner finish, and keep it.

    `attempts` are where to go on, the best first: the next is taken if the source does not begin with the rows of one.
    """
    with alone(path) if path is not None else nullcontext():
        changed: ChangedSourceError | None = None
        for ingest, is_newest in attempts:
            if changed is not None:
                rows = f"its first {ingest.place.n_rows:,} rows" if ingest.place.n_rows else "the first row"
                warnings.warn(f"{source.name} is not what {path} was fitted to; going on after {rows}.", stacklevel=2)
            try:
                _feed(ingest, source, path, Checkpointer(ingest, path, every, keep, is_newest), live)
            except ChangedSourceError as error:
                changed = changed or error
                if not source.rereadable:
                    break
                source.restart()
            else:
                return ingest
    assert changed is not None
    raise changed


def _feed(ingest: Ingest, source: Source, path: Path | None, checkpointer: Checkpointer, live: bool) -> None:
    missing, every = ingest.settings["missing"], checkpointer.every
    late = ingest.settings["late_rows"]
    batches = Batches(source, ingest.columns, missing, ingest.place, path is not None, every, late)
    with ExitStack() as stack:
        stop = stack.enter_context(Stopping())
        line = stack.enter_context(Live(source, ingest.place.n_rows, live))
        ahead = stack.enter_context(Prefetcher(batches))
        while not stop.signal:
            try:
                batch = ahead.get(0.1)
            except NothingYetError:
                batches.check_waiting()
                checkpointer.keep_if_due()
                line.show(ingest.place.n_rows, *_remarks(ingest), n_again=batches.n_again)
                continue
            except StopIteration:
                break
            except ChangedSourceError:
                raise
            except SourceError as error:
                raise _with_what_is_kept(error, ingest, checkpointer, path) from error
            if batch.unterminated:
                checkpointer.keep_before_unterminated()
            ingest.absorb(batch)
            checkpointer.keep_if_due()
            line.show(ingest.place.n_rows, *_remarks(ingest), n_again=batches.n_again)
        if stop.signal:
            checkpointer.keep()
            n_rows = ingest.place.n_rows
            kept = f", which {path} holds. The same command with --resume continues." if path else "; nothing was kept."
            told = f"Interrupted after {n_rows:,} rows{kept}"
            raise InterruptedRunError(told, stop.signal)
        if ingest.place.n_rows == 0:
            raise SourceError(f"{source.name} has no rows.")
        if ingest.n_used == 0:
            raise SourceError(f"{source.name} has no row without missing values.")
        if getattr(ingest.learner, "summary_", ingest.learner).weight == 0.0:
            raise SourceError(f"{source.name} has no row with a positive weight.")
        ingest.finish()
        checkpointer.keep()


def _remarks(ingest: Ingest) -> list[str]:
    """How many features are kept, and how well rows were predicted before they were seen."""
    remarks = []
    if hasattr(ingest.learner, "summary_"):
        remarks.append(f"{len(ingest.learner.support_)} features")
        if (r2 := ingest.learner.prequential_r2_) is not None:
            remarks.append(f"R2 {r2:.4f} on new rows")
    return remarks


def _with_what_is_kept(
    error: SourceError, ingest: Ingest, checkpointer: Checkpointer, path: Path | None
) -> SourceError:
    """Keep the good rows before the bad ones, and say so."""
    if path is None or ingest.place.n_rows == 0:
        return error
    checkpointer.keep()
    return SourceError(f"{error} The {ingest.place.n_rows:,} rows before are kept in {path}; fix it and use --resume.")
