"""From several summaries to one."""

from dataclasses import replace
from pathlib import Path

from thresher.cli.errors import OptionsError
from thresher.io.checkpoint import CheckpointError
from thresher.io.ingest import Ingest
from thresher.io.sources.batches import Place
from thresher.summaries.gram import Gram


def merge(summaries: list[Path], output: Path, overwrite: bool) -> Ingest:
    """The summary of all rows, kept in a file."""
    if output.exists() and not overwrite:
        raise OptionsError(f"{output} exists; --overwrite replaces it.")
    seen: dict[Path, Path] = {}
    for path in summaries:
        if path.resolve() in seen:
            raise OptionsError(f"{path} is given twice; its rows would count twice.")
        seen[path.resolve()] = path
    merged = _load(summaries[0])
    for path in summaries[1:]:
        part = _load(path)
        ours, theirs = (replace(one.columns, means=()) for one in (merged, part))
        if ours != theirs:
            raise CheckpointError(
                f"{path} has other columns or categories than {summaries[0]}; accumulate all with the same options."
            )
        merged.learner = merged.learner.merge(part.learner)
        merged.n_skipped += part.n_skipped
        merged.n_filled += part.n_filled
        merged.n_unknown += part.n_unknown
        # Rows of several sources: there is no place to go on from.
        merged.place = Place(merged.place.n_rows + part.place.n_rows, "")
    merged.save(output, 1)
    return merged


def _load(path: Path) -> Ingest:
    part = Ingest.load(path)
    if not isinstance(part.learner, Gram):
        raise CheckpointError(f"{path} holds a {type(part.learner).__name__}, not a summary.")
    if not part.finished:
        raise CheckpointError(f"{path} is not finished; run its accumulate again with --resume first.")
    return part
