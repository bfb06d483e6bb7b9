"""Files in directories that others write to, too: links, modes, owners, and what is no file at all."""

import os
import re
import stat
from pathlib import Path

import pytest

from thresher import Gram, load
from thresher._utils.new_file import new_file_beside, open_unfollowed
from thresher.cli import main
from thresher.cli.errors import OptionsError
from thresher.cli.feeding import alone
from thresher.io.checkpoint import load_with_note, save

ROWS = "x,y\n" + "".join(f"{i},{2 * i}\n" for i in range(20))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(ROWS)
    Path("precious").write_text("do not touch")
    return tmp_path


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_the_lock_does_not_follow_links(here, capfd):
    os.symlink("precious", ".m.lock")
    with pytest.raises(OptionsError, match=r"\.m\.lock is a symbolic link"), alone(Path("m")):
        pass
    assert main(["fit", "t.csv", "-t", "y", "-m", "m"]) == 2
    assert "symbolic link; remove it" in capfd.readouterr().err
    assert Path("precious").read_text() == "do not touch"
    os.unlink(".m.lock")
    os.link("precious", ".m.lock")  # another name of the same file: it is not written to
    assert main(["fit", "t.csv", "-t", "y", "-m", "m", "--quiet"]) == 0
    assert Path("precious").read_text() == "do not touch"


def test_a_lock_that_was_removed_is_taken_again(here, monkeypatch):
    """A run ends, and removes its lock file, just after this one has opened it."""
    removed = []

    def open_(path, *how):
        file = open_unfollowed(path, *how)
        if not removed:
            removed.append(path.unlink())
        return file

    with monkeypatch.context() as patch:
        patch.setattr("thresher.cli.feeding.open_unfollowed", open_)
        with alone(Path("m")):
            assert removed
            with pytest.raises(OptionsError, match="being written by another run"), alone(Path("m")):
                pass


def test_temporary_files_have_names_that_nobody_can_expect(here):
    names = set()
    for _ in range(20):
        with new_file_beside(Path("m")) as (file, beside):
            assert re.fullmatch(r"\.m\.[0-9a-f]{16}\.part", beside.name)
            assert not os.path.samestat(os.fstat(file.fileno()), os.stat("precious"))
            names.add(beside.name)
    assert len(names) == 20


def test_a_file_or_link_at_the_place_of_a_temporary_file_is_an_error(here, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda n: "0" * 2 * n)
    place = Path(f".m.{'0' * 16}.part")
    for put in (lambda: os.symlink("precious", place), lambda: os.symlink("nowhere", place), place.touch):
        put()
        with pytest.raises(FileExistsError):
            save(Gram(2), "m")
        place.unlink(missing_ok=True)
    assert Path("precious").read_text() == "do not touch"
    assert not Path("nowhere").exists()


@pytest.mark.parametrize("secret", [0o600, 0o640, 0o664])
def test_the_mode_stays(here, secret):
    arguments = ["fit", "t.csv", "-t", "y", "-m", "m", "--quiet"]
    old = os.umask(0o022)
    try:
        assert main(arguments) == 0
        assert mode("m") == 0o644
        os.chmod("m", secret)
        assert main([*arguments, "--overwrite"]) == 0
        assert mode("m") == mode("m.1") == secret
        assert main(["predict", "m", "t.csv", "-o", "p.csv"]) == 0
        os.chmod("p.csv", secret)
        assert main(["predict", "m", "t.csv", "-o", "p.csv"]) == 0
        assert mode("p.csv") == secret
    finally:
        os.umask(old)


def test_nobody_reads_a_secret_file_while_it_is_written(here):
    save(Gram(2), "m")
    os.chmod("m", 0o600)
    with new_file_beside(Path("m")) as (_, beside):
        assert mode(beside) == 0o600


def test_the_owner_stays_where_that_is_permitted(here, monkeypatch):
    save(Gram(2), "m")
    asked = []

    def refuse(_, owner, group):
        asked.append((owner, group))
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    save(Gram(2), "m")
    assert asked == [(-1, os.stat("m").st_gid), (os.stat("m").st_uid, -1)]


def test_a_link_stays_a_link(here):
    os.mkdir("store")
    os.symlink("store/real", "m")
    for number in range(3):
        save(Gram(2), "m", number, generations=2)
    assert os.readlink("m") == "store/real"
    assert sorted(os.listdir("store")) == ["real", "real.1"]
    assert load_with_note("m")[1] == 2
    Path("store/real").write_bytes(b"damaged")
    with pytest.warns(UserWarning, match=r"going on from real\.1"):
        assert load_with_note("m")[1] == 1
    assert main(["fit", "t.csv", "-t", "y", "-m", "m", "--overwrite", "--quiet"]) == 0
    assert os.readlink("m") == "store/real"
    assert load("store/real").n_samples_seen_ == 20
    os.symlink("store/p.csv", "p.csv")
    assert main(["predict", "m", "t.csv", "-o", "p.csv"]) == 0
    assert os.readlink("p.csv") == "store/p.csv"


def test_two_names_of_one_file_are_locked_together(here):
    os.symlink("m", "other")
    with alone(Path("m")), pytest.raises(OptionsError, match="another run"), alone(Path("other")):
        pass


def test_what_is_no_file_is_not_replaced(here, capfd):
    os.mkfifo("pipe")
    assert main(["fit", "t.csv", "-t", "y", "-m", "pipe", "--overwrite"]) == 2
    assert "pipe cannot be written: it is not a regular file" in capfd.readouterr().err
    with pytest.raises(OSError, match="not a regular file"):
        save(Gram(2), "pipe")
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
