"""Models and summaries in files that survive whatever happens while they are written."""

import os
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

from thresher._utils.locks import LOCK, lock_of
from thresher._utils.new_file import name_beside, new_file_beside, real_path, sync_directory
from thresher.io.encoding import NewerFormatError, decode, encode
from thresher.io.schema import CheckpointError

__all__ = [
    "CheckpointError",
    "NewerFormatError",
    "Saving",
    "from_bytes",
    "generations_of",
    "load",
    "load_with_note",
    "save",
]


class Saving:
    """What all estimators and summaries offer. A file has no lock in it."""

    _transient: ClassVar[tuple[str, ...]] = (LOCK,)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, complete or not at all; ``thresher.load`` reads it again.

        Learning goes on from there to the same bits. Takes about twice its memory.
        """
        save(self, path)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The same bytes for pickling and copying, where that is possible.

        It is not for classes from elsewhere and for parameters such as functions, of which pickle takes care.
        """
        with lock_of(self):
            try:
                return from_bytes, (encode(self),)
            except (TypeError, ValueError, RecursionError):
                return super().__reduce_ex__(protocol)

    def __getstate__(self) -> Any:
        """The attributes, for pickle: a copy has a lock of its own."""
        state: Any = super().__getstate__()
        return {name: value for name, value in (state or {}).items() if name != LOCK}


def from_bytes(content: bytes) -> Any:
    """The model or summary of which these are the bytes; unpickling calls this."""
    return decode(content)[0]


def save(value: Any, path: str | os.PathLike[str], note: Any = None, generations: int = 1) -> None:
    """Keep a model or a summary in a file, with a note such as how far its source was read.

    The file appears complete or not at all: it is written beside its place, brought to the disk, and renamed. Whenever
    this is interrupted, the previous one is still there. The new file has the mode of the previous one, and its owner
    where that is permitted. If `path` is a symbolic link, the file that it points to is replaced.

    Parameters
    ----------
    value : estimator or summary of this package
    path : path-like
    note : numbers, texts, lists and dictionaries, optional
        Kept in the same file, so that both are of the same moment.
    generations : int, default=1
        How many to keep: the newest at `path`, earlier ones beside it with .1, .2, ... behind the name.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.io.checkpoint import load_with_note, save
    >>> model = SparseRegressor(1).partial_fit(np.eye(3), np.array([0.0, 2.0, 1.0]))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(model, f"{directory}/m.thresher", note="after three rows")
    ...     again, note = load_with_note(f"{directory}/m.thresher")
    >>> bool((again.coef_ == model.coef_).all()), note
    (True, 'after three rows')
    """
    if generations < 1:
        raise ValueError(f"generations must be at least 1, got {generations}")
    with lock_of(value) if isinstance(value, Saving) else nullcontext():
        content = encode(value, note)
    path = real_path(path)
    with new_file_beside(path) as (file, beside):
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        _make_room(path, generations)
        beside.replace(path)
    sync_directory(path.parent)


def load(path: str | os.PathLike[str]) -> Any:
    """The model or summary in a file, verified before anything of it is used.

    If the file is damaged and there is an earlier generation, that is taken, with a warning. Nothing in a file is ever
    executed. Takes about three times the memory of the file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import thresher
    >>> model = thresher.SparseRegressor(1).partial_fit(np.eye(3), np.array([0.0, 2.0, 1.0]))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     model.save(f"{directory}/m.thresher")
    ...     again = thresher.load(f"{directory}/m.thresher")
    >>> again.n_samples_seen_
    3
    """
    return load_with_note(path)[0]


def load_with_note(path: str | os.PathLike[str], fall_back: bool = True) -> tuple[Any, Any]:
    """What ``load`` returns, and the note kept with it; from an earlier generation only if `fall_back`."""
    path, first = Path(path), None
    for candidate in [path, *(_earlier(path) if fall_back else ())]:
        try:
            found = decode(candidate.read_bytes())
        except NewerFormatError as error:
            raise NewerFormatError(f"{candidate}: {error}") from error
        except (CheckpointError, FileNotFoundError) as error:
            first = first or error
            continue
        if first is not None:
            warnings.warn(f"{path} cannot be used ({first}); going on from {candidate.name}.", stacklevel=2)
        return found
    if isinstance(first, CheckpointError):
        raise CheckpointError(f"{path}: {first}") from first
    assert first is not None
    raise first


def generations_of(path: str | os.PathLike[str]) -> list[Path]:
    """All generations that are there, the newest first."""
    path = Path(path)
    return [*([path] if path.exists() else []), *_earlier(path)]


def _earlier(path: Path) -> list[Path]:
    """Generations before the newest that are there, the latest first; beside the file itself if `path` is a link."""
    path = Path(os.path.realpath(path))
    start = f"{path.name}."
    numbers = [one.name.removeprefix(start) for one in path.parent.iterdir() if one.name.startswith(start)]
    return [path.with_name(f"{start}{n}") for n in sorted(int(number) for number in numbers if number.isdecimal())]


def _make_room(path: Path, generations: int) -> None:
    """Move every generation back by one. The newest stays in place too, until it is replaced."""
    if not path.exists():
        return
    for number in range(generations - 1, 0, -1):
        source = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
        if not source.exists():
            continue
        target = path.with_name(f"{path.name}.{number}")
        if number > 1:
            source.replace(target)
        else:
            linked = name_beside(path)
            try:
                os.link(source, linked)
                linked.replace(target)
            finally:
                linked.unlink(missing_ok=True)
