"""Begin a run, or continue one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from thresher.cli.errors import OptionsError
from thresher.io.checkpoint import CheckpointError
from thresher.io.encoding import HEAD, MAGIC
from thresher.io.ingest import Ingest
from thresher.io.sources.columns import Columns
from thresher.io.sources.source import Source
from thresher.summaries.gram import Gram


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
    fresh: Callable[[Columns], Any],
) -> Ingest:
    """A run from the first row on, or from the file if there is one and --resume was given; `fresh` is the learner."""
    resume, overwrite = context.params["resume"], context.params["overwrite"]
    if resume and overwrite:
        raise OptionsError("--resume continues the file and --overwrite starts over; give one of them.")
    if resume and path is None:
        raise OptionsError("--resume needs the file to continue.")
    if path is not None:
        _check_path(path, source)
    there = path is not None and (path.exists() or path.with_name(f"{path.name}.1").exists())
    if there and resume:
        assert path is not None
        ingest = Ingest.load(path)
        if not isinstance(ingest.learner, kind):
            raise CheckpointError(
                f"{path} holds a {type(ingest.learner).__name__}; fit continues models, and accumulate summaries."
            )
        if ingest.place.n_rows and not ingest.place.digest:
            raise CheckpointError(f"{path} was made from summaries, so there is no row of a source to continue from.")
        _check_unchanged(context, settings, ingest.settings, path)
        ingest.columns.check(source)
        return ingest
    if there and not overwrite:
        raise OptionsError(f"{path} exists; --resume continues it, --overwrite starts over.")
    if settings["target"] is None:
        raise OptionsError(f"--target is missing: which of {', '.join(source.columns[:12])} ... is the response?")
    columns = Columns.choose(
        source,
        settings["target"],
        settings["weight"],
        _names(settings["features"], source) or None,
        _names(settings["drop"], source),
        _categories(settings["categories"], source),
    )
    return Ingest(fresh(columns), columns, settings)


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
        known = [name for name in source.columns if value.startswith(f"{name}=")]
        name = value if value in source.columns else max(known, key=len, default=value.partition("=")[0])
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
