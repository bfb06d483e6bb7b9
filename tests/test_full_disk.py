"""A disk that is full, at any moment: the previous file is still there, and so are those before it."""

import errno
import io
import os
import resource
import warnings

import pytest

from thresher import Gram
from thresher.cli.feeding import alone
from thresher.io.checkpoint import load_with_note, save
from thresher.io.encoding import encode


def full():
    return OSError(errno.ENOSPC, "No space left on device")


class Disk:
    """Counts what touches the disk, and fails at a given call; has room for so many bytes, and takes few at once."""

    def __init__(self, monkeypatch):
        self.calls, self.fail_at, self.room, self.at_once = [], None, None, None
        for name in ("fsync", "replace", "link"):
            monkeypatch.setattr(os, name, self.counted(name, getattr(os, name)))

        def open_(path, mode, permissions):
            self.count("open")
            return io.BufferedWriter(RawFile(path, self))

        monkeypatch.setattr("thresher._utils.new_file.open_unfollowed", open_)

    def count(self, name):
        self.calls.append(name)
        if len(self.calls) - 1 == self.fail_at:
            raise full()

    def counted(self, name, function):
        def call(*arguments):
            self.count(name)
            return function(*arguments)

        return call


class RawFile(io.FileIO):
    """What is below the buffer: a write may take some of the bytes, and the next one none."""

    def __init__(self, path, disk):
        super().__init__(path, "x")
        self.disk, self.written = disk, 0

    def write(self, content):
        self.disk.count("write")
        most = len(content)
        if self.disk.room is not None:
            most = min(most, self.disk.room - self.written)
            if most == 0:
                raise full()
        if self.disk.at_once is not None:
            most = min(most, self.disk.at_once)
        written = super().write(bytes(content[:most]))
        self.written += written
        return written


CALLS = {
    1: ["open", "write", "fsync", "replace", "fsync"],
    3: ["open", "write", "fsync", "replace", "link", "replace", "replace", "fsync"],
}


def three_saved(directory, disk, generations):
    """A path where three were saved, one after another, with 0, 1 and 2 as notes."""
    directory.mkdir()
    disk.fail_at = disk.room = disk.at_once = None
    for number in range(3):
        disk.calls.clear()
        save(Gram(2), directory / "m", number, generations)
    assert disk.calls == CALLS[generations]
    disk.calls.clear()
    return directory / "m"


def assert_survived(path, generations, latest=2):
    """The latest is there; if it is damaged, so is the one before; and there is nothing but generations."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_with_note(path)[1] == latest
    assert {one.name for one in path.parent.iterdir()} <= {"m", "m.1", "m.2"}
    if generations > 1:
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        with pytest.warns(UserWarning, match="going on from"):
            assert load_with_note(path)[1] == latest - 1
        path.write_bytes(content)


@pytest.mark.parametrize("generations", [1, 3])
def test_a_full_disk_at_any_call_leaves_the_previous_ones(tmp_path, monkeypatch, generations):
    disk = Disk(monkeypatch)
    for fail_at in range(len(CALLS[generations])):
        path = three_saved(tmp_path / str(fail_at), disk, generations)
        disk.fail_at = fail_at
        with pytest.raises(OSError, match="No space left"):
            save(Gram(2), path, 3, generations)
        disk.fail_at = None
        in_place = fail_at == len(CALLS[generations]) - 1  # only bringing the renaming to the disk has failed
        assert_survived(path, generations, 3 if in_place else 2)
        save(Gram(2), path, 4, generations)  # there is room again
        assert load_with_note(path)[1] == 4
        assert {one.name for one in path.parent.iterdir()} <= {"m", "m.1", "m.2"}


@pytest.mark.parametrize("generations", [1, 3])
@pytest.mark.parametrize("at_once", [None, 100])
def test_a_disk_that_fills_up_while_a_file_is_written(tmp_path, monkeypatch, generations, at_once):
    disk = Disk(monkeypatch)
    size = len(encode(Gram(2), 3))
    for room in (0, 1, 99, 100, size // 2, size - 1):
        path = three_saved(tmp_path / str(room), disk, generations)
        disk.room, disk.at_once = room, at_once
        with pytest.raises(OSError, match="No space left"):
            save(Gram(2), path, 3, generations)
        assert disk.calls.count("write") > 1 or room == 0
        assert "fsync" not in disk.calls
        disk.room = None
        assert_survived(path, generations)


def test_writes_that_take_a_few_bytes_at_once_add_up(tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    disk.at_once = 7
    save(Gram(2), tmp_path / "m", 5)
    assert disk.calls.count("write") >= len(encode(Gram(2), 5)) // 7
    assert (tmp_path / "m").read_bytes() == encode(Gram(2), 5)


def test_a_limit_of_the_system_on_the_size_of_files(tmp_path):
    save(Gram(2), tmp_path / "m", 1, generations=2)
    save(Gram(2), tmp_path / "m", 2, generations=2)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(Gram(2), tmp_path / "m", 3, generations=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_survived(tmp_path / "m", generations=2)


def test_what_a_killed_process_left_behind_is_in_nobodys_way(tmp_path):
    for number in range(3):
        (tmp_path / f".m.{number:016x}.part").write_bytes(b"half of a file" * 1000)
        save(Gram(2), tmp_path / "m", number, generations=3)
    (tmp_path / ".m.notes.part").write_text("of somebody else")
    with alone(tmp_path / "m"):
        assert {one.name for one in tmp_path.iterdir()} == {"m", "m.1", "m.2", ".m.lock", ".m.notes.part"}
    (tmp_path / ".m.notes.part").unlink()
    assert_survived(tmp_path / "m", generations=3)
