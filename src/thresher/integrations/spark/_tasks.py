"""What Spark's tasks run, in a module that takes its workers little time to import."""

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark import TaskContext

from thresher.integrations._partials import EntriesPlan, Plan, in_partition
from thresher.integrations.spark import _chunks


def summarized(names: list[str], plan: Plan | EntriesPlan, batches: Iterable[Any]) -> Iterator[Any]:
    """The summary of a partition with columns of these names, as chunks; none if there are no rows."""
    context = TaskContext.get()
    assert context is not None
    number = context.partitionId()
    try:
        summary = plan.summary(batch.rename_columns(names) for batch in batches)
    except ValueError as error:
        raise in_partition(error, number) from error
    if summary is not None:
        yield from _chunks.to_batches(number, summary)


def merged_groups(group: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Summaries of neighbouring partitions as one, for every group of them; 0 merges all."""
    yield from _chunks.merge_groups(batches, group)
