"""Summaries as rows of bytes, in chunks that every part of Spark can hold, and their merge in order."""

from collections.abc import Iterable, Iterator
from typing import Any

from thresher._utils.arrow import import_pyarrow
from thresher.integrations._partials import merged
from thresher.io.encoding import decode, encode

# Partition of the rows summarised (the first one, after a merge), number of the chunk, how many there are, and bytes.
SCHEMA = "partition long, chunk int, n_chunks int, content binary"
# Bytes of a chunk; Spark sends batches of at most 64 MB to Python.
CHUNK = 16 << 20


def to_batches(partition: int, summary: Any, chunk: int = CHUNK) -> Iterator[Any]:
    """A summary as record batches of one row each."""
    pa = import_pyarrow()
    content = memoryview(encode(summary))
    n_chunks = -(-len(content) // chunk)
    kinds = [pa.int64(), pa.int32(), pa.int32(), pa.binary()]
    for number in range(n_chunks):
        values = [partition, number, n_chunks, bytes(content[number * chunk : (number + 1) * chunk])]
        arrays = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=["partition", "chunk", "n_chunks", "content"])


def summaries(batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Partitions and their summaries, from chunks in order; one at a time."""
    content, n_here, current, expected = bytearray(), 0, -1, 0
    for batch in batches:
        columns = [batch.column(name) for name in ("partition", "chunk", "n_chunks", "content")]
        for row in range(batch.num_rows):
            partition, number, n_chunks = (column[row].as_py() for column in columns[:3])
            if n_here and (partition != current or n_chunks != expected):
                raise ValueError(f"The summary of partition {current} lacks chunks: {n_here} of {expected} came.")
            if number != n_here:
                raise ValueError(f"Chunk {number} of partition {partition} is out of order; {n_here} was expected.")
            current, expected = partition, n_chunks
            content += columns[3][row].as_buffer()
            n_here += 1
            if n_here == n_chunks:
                summary, content, n_here = decode(memoryview(content))[0], bytearray(), 0
                yield partition, summary
                del summary
    if n_here:
        raise ValueError(f"The summary of partition {current} lacks chunks: {n_here} of {expected} came.")


def merge_groups(batches: Iterable[Any], group: int) -> Iterator[Any]:
    """Merge summaries of partitions k group, ..., (k + 1) group - 1 in this order, for every k; 0 merges all.

    The chunks must be sorted. Memory is that of four summaries and some chunks, so of about five in all: the merged
    summary, the one that was merged last, the bytes of the next, and what they stand for.
    """
    first, total = -1, None
    for partition, summary in summaries(batches):
        if total is not None and group and partition // group != first // group:
            yield from to_batches(first, total)
            total = None
        if total is None:
            first, total = partition, summary
        else:
            total = _merged(total, summary, first, partition)
    if total is not None:
        yield from to_batches(first, total)


def _merged(total: Any, summary: Any, first: int, partition: int) -> Any:
    """Two summaries as one; an error names the partitions, whose vectors may differ in length."""
    try:
        return merged(total, summary)
    except ValueError as error:
        raise ValueError(f"Partition {partition} does not fit partition {first}: {error}") from error
