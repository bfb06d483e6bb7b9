"""Lines of files and pipes: every byte once, in whole lines."""

import gzip
import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.io.sources.lines import Lines
from thresher.io.sources.source_error import SourceError

TEXTS = st.lists(st.binary(max_size=9).filter(lambda line: b"\n" not in line)).map(b"\n".join)


@given(TEXTS, st.integers(1, 12), st.booleans())
def test_every_byte_once_in_whole_lines(content, block_size, follow):
    blocks = list(Lines(io.BytesIO(content), block_size=block_size, follow=follow))
    assert b"".join(blocks) == content
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert all(blocks)


def test_files_plain_and_compressed(tmp_path):
    content = b"".join(b"%d,%d\n" % (i, i * i) for i in range(1000))
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    first, second = (Lines(path, block_size=100) for path in (plain, packed))
    assert list(first) == list(second)
    assert first.fraction == second.fraction == 1.0
    assert b"".join(first) == content  # a file can be read again


@pytest.mark.parametrize("damage", [lambda b: b[:-20], lambda b: b[:50] + b"\0\0\0" + b[53:], lambda b: b"x" + b])
def test_a_damaged_gzip_file_is_named(tmp_path, damage):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(damage(gzip.compress(os.urandom(1000).hex().encode() + b"\n")))
    with pytest.raises(SourceError, match=r"a\.csv\.gz is not a whole gzip file"):
        list(Lines(path, "a.csv.gz"))


def test_a_pipe_is_read_as_it_comes():
    """A line is given away when it is complete, not when a block is full."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as source, os.fdopen(writer, "wb", buffering=0) as sink:
        blocks = iter(Lines(source, follow=True))
        sink.write(b"1\n2")
        assert next(blocks) == b"1\n"
        sink.write(b"3\n")
        assert next(blocks) == b"23\n"
        sink.close()
        assert list(blocks) == []


def test_a_pipe_that_is_not_followed_gives_whole_blocks():
    reader, writer = os.pipe()

    def write():
        with os.fdopen(writer, "wb", buffering=0) as sink:
            for i in range(20):
                sink.write(b"%d\n" % i)

    writing = threading.Thread(target=write)
    writing.start()
    with os.fdopen(reader, "rb", buffering=0) as source:
        assert len(list(Lines(source))) == 1
    writing.join()


def test_a_growing_file_is_followed(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"1\n2")
    blocks = iter(Lines(path, "log.csv", follow=True, patience=0.01))
    assert next(blocks) == b"1\n"
    grown = threading.Timer(0.05, lambda: path.open("ab").write(b"3\n4\n"))
    grown.start()
    found = next(blocks)
    grown.join()
    assert found in (b"23\n", b"23\n4\n")
    path.write_bytes(b"")
    with pytest.raises(SourceError, match=r"log\.csv was cut or overwritten .* after 7 bytes"):
        next(blocks)
