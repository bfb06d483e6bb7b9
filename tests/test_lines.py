"""Lines of files and pipes: every byte once, whole lines only, and an exact place to begin again."""

import gzip
import io
import os
import threading
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.streams.lines import ChangedSourceError, Lines

TEXTS = st.lists(st.binary(max_size=9).filter(lambda line: b"\n" not in line)).map(b"\n".join)


@given(TEXTS, st.integers(1, 12))
def test_every_byte_once_in_whole_lines(content, block_size):
    blocks = list(Lines(io.BytesIO(content), block_size=block_size))
    assert b"".join(block.content for block in blocks) == content
    assert all(block.content.endswith(b"\n") for block in blocks[:-1])
    assert [block.end for block in blocks] == [
        sum(len(earlier.content) for earlier in blocks[: i + 1]) for i in range(len(blocks))
    ]


@given(TEXTS, st.integers(1, 12), st.integers(1, 12), st.data())
def test_reading_begins_again_at_the_end_of_any_block(content, block_size, other, data):
    ends = []
    lines = Lines(io.BytesIO(content), block_size=block_size)
    for block in lines:
        ends.append((block.end, lines.digest))
    end, digest = data.draw(st.sampled_from([(0, ""), *ends]))
    rest = Lines(io.BytesIO(content), end, digest, other)
    assert b"".join(block.content for block in rest) == content[end:]
    assert rest.digest == lines.digest  # at the end both have seen everything
    if end:
        changed = bytes([content[0] ^ 1]) + content[1:]
        with pytest.raises(ChangedSourceError, match="have changed"):
            list(Lines(io.BytesIO(changed), end, digest, other))
        with pytest.raises(ChangedSourceError, match=f"{end - 1} bytes now; {end} were read"):
            list(Lines(io.BytesIO(content[: end - 1]), end, digest, other))


def test_files_plain_and_compressed(tmp_path):
    content = b"".join(b"%d,%d\n" % (i, i * i) for i in range(1000))
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    found = [list(Lines(path, block_size=100)) for path in (plain, packed)]
    assert found[0] == found[1]
    lines = Lines(packed, block_size=100)
    *_, third = islice(lines, 3)
    again = Lines(packed, third.end, lines.digest)
    assert b"".join(block.content for block in again) == content[third.end :]


def test_a_pipe_is_read_as_it_comes():
    """A line is given away when it is complete, not when a block is full."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as source, os.fdopen(writer, "wb", buffering=0) as sink:
        blocks = iter(Lines(source))
        sink.write(b"1\n2")
        assert next(blocks).content == b"1\n"
        sink.write(b"3\n")
        assert next(blocks).content == b"23\n"
        sink.close()
        assert list(blocks) == []


def test_a_growing_file_is_followed(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"1\n2")
    blocks = iter(Lines(path, follow=True, patience=0.01))
    assert next(blocks).content == b"1\n"
    grown = threading.Timer(0.05, lambda: path.open("ab").write(b"3\n4\n"))
    grown.start()
    found = next(blocks)
    grown.join()
    assert found.content in (b"23\n", b"23\n4\n")
    assert found.end in (5, 7)
