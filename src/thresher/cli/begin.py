"""Begin a run, or continue one."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import typer

from thresher._utils.feature_names import column_of
from thresher.cli.errors import OptionsError
from thresher.io.checkpoint import CheckpointError, generations_of
from thresher.io.encoding import HEAD, MAGIC, encode
from thresher.io.ingest import Ingest
from thresher.io.sources.columns import Columns
from thresher.io.sources.source import Source
from thresher.summaries.gram import Gram

# Makes a learner from settings and columns.
Fresh = Callable[[dict[str, Any], Columns], Any]


class Attempt(NamedTuple):
    """Where a run may go on, and whether that is what the file holds, not one of its earlier generations."""

    ingest: Ingest
    is_newest: bool


def is_checkpoint(path: str) -> bool:
    """Whether a file was written by this package."""
    if not Path(path).is_file():  # what is read from a pipe is gone
        return False
    with Path(path).open("rb") as file:
        head = file.read(HEAD.size)
    # The number of the format tells it from a text that begins with the same word.
    return head.startswith(MAGIC) and len(head) == HEAD.size and HEAD.unpack(head)[1] < 1000


def explicit(context: typer.Context) -> set[str]:
    """The options that were given."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and not source.name.startswith("DEFAULT")}


def finished_summary(path: str | Path) -> Ingest:
    """The summary in a file, and what it was made from."""
    part = Ingest.load(path)
    if not isinstance(part.learner, Gram):
        raise CheckpointError(f"{path} holds a {type(part.learner).__name__}, not a summary.")
    if not part.finished:
        raise CheckpointError(f"{path} is not finished; run its accumulate again with --resume first.")
    return part


def check_free(path: Path | None, overwrite: bool) -> None:
    """Raise if there is a file at the place of the result that was not given up."""
    if path is not None and path.exists() and not overwrite:
        raise OptionsError(f"{path} exists; --overwrite replaces it.")


def begin(
    context: typer.Context,
    source: Source,
    settings: dict[str, Any],
    path: Path | None,
    kind: type,
    fresh: Fresh,
) -> Iterator[Attempt]:
    """Where to go on, the best first, each loaded when it is asked for.

    From the first row on, with a new learner, which `fresh` makes; or from the generations of the file if --resume was
    given.
    """
    resume, overwrite = context.params["resume"], context.params["overwrite"]
    if resume and overwrite:
        raise OptionsError("--resume continues the file and --overwrite starts over; give one of them.")
    if resume and path is None:
        raise OptionsError("--resume needs the file to continue.")
    if path is not None:
        _check_path(path, source)
    there = path is not None and bool(generations_of(path))
    if there and not resume and not overwrite:
        raise OptionsError(f"{path} exists; --resume continues it, --overwrite starts over.")
    if path is not None and there and resume:
        return _resumed(context, source, settings, path, kind, fresh)
    return iter([Attempt(_new(source, settings, fresh), is_newest=False)])


def _resumed(
    context: typer.Context, source: Source, settings: dict[str, Any], path: Path, kind: type, fresh: Fresh
) -> Iterator[Attempt]:
    try:
        newest = Attempt(Ingest.load(path, fall_back=False), is_newest=True)
    except (CheckpointError, FileNotFoundError):
        newest = Attempt(Ingest.load(path), is_newest=False)
    ingest = newest.ingest
    if not isinstance(ingest.learner, kind):
        raise CheckpointError(
            f"{path} holds a {type(ingest.learner).__name__}; fit continues models, and accumulate summaries."
        )
    if ingest.place.n_rows and not ingest.place.digest:
        raise CheckpointError(f"{path} was made from summaries, so there is no row of a source to continue from.")
    _check_unchanged(context, settings, ingest.settings, path)
    attempts: Iterator[Attempt] = chain([newest], _earlier(ingest, path))
    if not source.rereadable:
        # A pipe cannot be read again, so a last row that may have had no end is read again in any case.
        before = (
            attempt for attempt in _earlier(ingest, path) if attempt.ingest.place.n_rows == ingest.place.n_rows - 1
        )
        attempts = iter([next(before, newest)])
    for attempt in attempts:
        if attempt.ingest.place.n_rows:
            attempt.ingest.columns.check(source)
            yield attempt
        else:  # its columns may be those of half a line
            yield Attempt(_new(source, attempt.ingest.settings, fresh), attempt.is_newest)


def _earlier(ingest: Ingest, path: Path) -> Iterator[Attempt]:
    """Earlier states of the same run, the latest first."""
    for generation in generations_of(path):
        with suppress(CheckpointError, FileNotFoundError):
            one = Ingest.load(generation, fall_back=False)
            same_columns = one.place.n_rows == 0 or encode(one.columns) == encode(ingest.columns)
            if one.place.n_rows < ingest.place.n_rows and one.settings == ingest.settings and same_columns:
                yield Attempt(one, is_newest=False)


def _new(source: Source, settings: dict[str, Any], fresh: Fresh) -> Ingest:
    """A run from the first row on."""
    if settings["target"] is None:
        raise OptionsError(f"--target is missing: which of {', '.join(source.columns[:12])} ... is the response?")
    columns = Columns.choose(
        source,
        settings["target"],
        settings["weight"],
        _names(settings["features"], source) or None,
        _names(settings["drop"], source),
        _categories(settings["categories"], source),
        settings["time_column"],
    )
    return Ingest(fresh(settings, columns), columns, settings)


def _check_path(path: Path, source: Source) -> None:
    """Raise if nothing can be kept there, or should not be: before anything is read."""
    if path.is_dir() or not path.parent.is_dir():
        raise OptionsError(f"{path} cannot be written: {'it is' if path.is_dir() else 'its place is not'} a directory.")
    if path.exists() and not path.is_file():
        raise OptionsError(f"{path} cannot be written: it is not a regular file.")
    if source.reads(path):
        raise OptionsError(f"{path} is one of the files with the rows; keep the model somewhere else.")


def _names(values: list[str], source: Source) -> list[str]:
    """Names of columns, several of them in one value unless there is a column of that name."""
    parts = [[value] if value in source.columns else value.split(",") for value in values]
    return list(dict.fromkeys(name for part in parts for name in part))


def _categories(values: list[str], source: Source) -> dict[str, tuple[str, ...] | None]:
    """Levels by column, None if they are to be found. Names may have equals signs, too."""
    found: dict[str, tuple[str, ...] | None] = {}
    for value in values:
        known = value if value in source.columns else column_of(value, source.columns)
        name = value.partition("=")[0] if known is None else known
        levels = value[len(name) + 1 :]
        found[name] = tuple(levels.split(",")) if len(value) > len(name) else None
    return found


def _check_unchanged(context: typer.Context, now: dict[str, Any], then: dict[str, Any], path: Path) -> None:
    """Raise if an option was changed: those of the first run hold, and may be left out."""
    for name in sorted(explicit(context) & then.keys()):
        if now[name] != then[name]:
            option = f"--{name.replace('_', '-')}"
            raise OptionsError(
                f"{path} was begun with another {option} ({then[name]!r}, not {now[name]!r}); leave it out, or start "
                "over with --overwrite."
            )
