"""Begin a run, or go on with one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from thresher._encoding import MAGIC
from thresher.checkpoint import CheckpointError
from thresher.cli.errors import OptionsError
from thresher.ingest import Ingest
from thresher.streams.columns import Columns
from thresher.streams.source import Source


def is_checkpoint(path: str) -> bool:
    """Whether a file was written by this package."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def explicit(context: typer.Context) -> set[str]:
    """The options that were given."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and not source.name.startswith("DEFAULT")}


def begin(
    context: typer.Context,
    source: Source,
    settings: dict[str, Any],
    path: Path | None,
    resume: bool,
    overwrite: bool,
    kind: type,
    fresh: Callable[[Columns], Ingest],
) -> Ingest:
    """A run from the first row on, or from the file if there is one and it is wanted."""
    if resume and overwrite:
        raise OptionsError("--resume goes on with the file and --overwrite begins anew; give one of them.")
    if resume and path is None:
        raise OptionsError("--resume needs the file to go on with.")
    there = path is not None and (path.exists() or path.with_name(f"{path.name}.1").exists())
    if there and resume:
        assert path is not None
        ingest = Ingest.load(path)
        if not isinstance(ingest.learner, kind):
            raise CheckpointError(f"{path} holds a {type(ingest.learner).__name__}, and a {kind.__name__} is needed.")
        _check_unchanged(context, settings, ingest.settings, path)
        ingest.columns.check(source)
        return ingest
    if there and not overwrite:
        raise OptionsError(f"{path} exists; --resume goes on with it, --overwrite begins anew.")
    if settings["target"] is None:
        raise OptionsError(f"--target is missing: which of {', '.join(source.columns[:12])} ... is the response?")
    return fresh(
        Columns.choose(
            source,
            settings["target"],
            settings["weight"],
            settings["features"] or None,
            settings["drop"],
            settings["categories"],
        )
    )


def _check_unchanged(context: typer.Context, now: dict[str, Any], then: dict[str, Any], path: Path) -> None:
    """Options may be left out when going on, not changed."""
    for name in sorted(explicit(context) & then.keys()):
        if now[name] != then[name]:
            option = f"--{name.replace('_', '-')}"
            raise OptionsError(
                f"{path} was begun with another {option} ({then[name]!r}, not {now[name]!r}); leave it out, or begin "
                "anew with --overwrite."
            )
