"""Sources that somebody is writing while they are read: last lines without an end, logs that are rotated or cut."""

import gzip
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import thresher
from thresher.cli import main
from thresher.io.checkpoint import load_with_note
from thresher.io.encoding import encode
from thresher.io.sources.batches import Batches, Place
from thresher.io.sources.columns import Columns
from thresher.io.sources.growing_file import WINDOW
from thresher.io.sources.lines import Lines
from thresher.io.sources.source import open_source
from thresher.io.sources.source_error import ChangedSourceError, SourceError

HEADER = "x,y\n"
ROWS = [f"{i % 7}.5,{i * i % 11}\n" for i in range(40)]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(model, *options, source="t.csv"):
    return main(["fit", source, "-t", "y", "-m", model, "--resume", "--quiet", *options])


def n_rows(path):
    return load_with_note(path)[1]["place"].n_rows


# -- a last line without its end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--keep", "1"), ("--checkpoint-every", "1", "--keep", "3")])
@pytest.mark.parametrize("n_whole", [0, 1, 20])
def test_a_line_that_was_finished_later_counts_as_it_is_then(here, capfd, options, n_whole):
    """The model is that of a run that saw the finished file alone."""
    whole = HEADER + "".join(ROWS[:n_whole])
    path = Path("t.csv")
    for text in ("3.5,1", "3.5,12", "3.5,123"):  # ever more of the same line
        path.write_text(whole + text)
        assert fit("m", *options) == 0
        assert n_rows("m") == n_whole + 1
        assert fit("m", *options) == 0  # nothing new, and nothing lost
        capfd.readouterr()
    path.write_text(whole + "3.5,1234\n" + "".join(ROWS[20:]))
    assert fit("m", *options) == 0
    assert "t.csv is not what m was fitted to; going on after" in capfd.readouterr().err
    assert fit("once") == 0
    assert n_rows("m") == n_rows("once") == n_whole + 21
    np.testing.assert_array_equal(thresher.load("m").coef_, thresher.load("once").coef_)
    np.testing.assert_array_equal(thresher.load("m").summary_.comoment(), thresher.load("once").summary_.comoment())


def test_a_complete_file_without_its_last_line_end_is_the_same_file(here):
    for name, text in (("a.csv", HEADER + "".join(ROWS)), ("b.csv", HEADER + "".join(ROWS).rstrip("\n"))):
        Path(name).write_text(text)
        assert fit(name[0], source=name) == 0
    assert encode(thresher.load("a")) == encode(thresher.load("b"))
    assert n_rows("b") == 40
    assert n_rows("b.1") == 39


def test_half_a_level_does_not_stay_a_level(here):
    """Where there is no other row, the columns are those of the finished line; options are those of the first run."""
    Path("t.csv").write_text("city,y\nBer")
    assert main(["fit", "t.csv", "-t", "y", "-m", "m", "--resume"]) == 3  # too few fields
    Path("t.csv").write_text("y,city\n1,Ber")
    assert fit("m", "--sparsity", "1") == 0
    Path("t.csv").write_text("y,city\n1,Bern\n2,Oslo\n")
    assert main(["fit", "t.csv", "-m", "m", "--resume", "--quiet"]) == 0
    model = thresher.load("m")
    assert model.feature_names_in_.tolist() == ["city=Bern", "city=Oslo"]
    assert model.sparsity == 1


def test_the_newest_generation_that_fits_is_taken(here, capfd):
    """Also when more than the last line is another."""
    Path("t.csv").write_text(HEADER + "".join(ROWS))
    assert fit("m", "--checkpoint-every", "10", "--keep", "9") == 0
    Path("t.csv").write_text(HEADER + "".join(ROWS[:25]) + "9,9\n9,8\n")
    assert fit("m", "--keep", "9") == 0
    assert "going on after its first 20 rows" in capfd.readouterr().err
    assert n_rows("m") == 27
    assert fit("once") == 0
    np.testing.assert_array_equal(thresher.load("m").coef_, thresher.load("once").coef_)
    before = Path("m").read_bytes()
    Path("t.csv").write_text(HEADER + "9,9\n" + "".join(ROWS))
    assert fit("m", "--keep", "9") == 3
    assert Path("m").read_bytes() == before


def test_generations_of_another_run_are_left_alone(here, capfd):
    Path("t.csv").write_text(HEADER + "".join(ROWS[:10]))
    assert fit("m", "--sparsity", "1") == 0
    Path("t.csv").write_text(HEADER + "".join(ROWS[:20]))
    assert main(["fit", "t.csv", "-t", "y", "-m", "m", "--overwrite", "--quiet"]) == 0
    assert n_rows("m.1") == 10
    Path("t.csv").write_text(HEADER + "".join(ROWS[:10]) + "9,9\n")
    assert fit("m") == 3
    assert "11 rows now, and 20 were read before" in capfd.readouterr().err


def test_a_pipe_whose_last_line_was_finished_later(here, monkeypatch):
    """It cannot be read twice, so reading goes on before the last row in any case."""

    def piped(text):
        out, into = os.pipe()
        monkeypatch.setattr(sys, "stdin", os.fdopen(out, "rb"))
        threading.Thread(target=lambda: os.fdopen(into, "w").write(text)).start()

    text = HEADER + "".join(ROWS[:39]) + "3.5,123\n"
    for cut in range(len(text) - 3, len(text) + 1):
        piped(text[:cut])
        assert fit("m", source="-") == 0
        assert n_rows("m") == 40
    Path("t.csv").write_text(text)
    assert fit("once") == 0
    np.testing.assert_array_equal(thresher.load("m").coef_, thresher.load("once").coef_)


def test_summaries_too(here):
    Path("t.csv").write_text(HEADER + "".join(ROWS)[:-1])
    arguments = ["accumulate", "t.csv", "-t", "y", "-o", "s", "--resume", "--quiet"]
    assert main(arguments) == 0
    Path("t.csv").write_text(HEADER + "".join(ROWS)[:-1] + "7\n")
    assert main(arguments) == 0
    values = np.loadtxt("t.csv", delimiter=",", skiprows=1)
    assert thresher.load("s").mean_y == pytest.approx(values[:, 1].mean(), rel=1e-14)
    assert thresher.load("s").n_samples == 40


# -- files that are followed -----------------------------------------------------------------------------------------


class Log:
    """A log that is written and followed in turns, line by line: no thread, no waiting but for what is to come."""

    def __init__(self, path, first):
        self.path = path
        path.write_text(first)
        self.source = open_source(str(path), follow=True)
        self.source._first[1]._lines._patience = 0.001
        self.batches = iter(Batches(self.source, Columns("y", None, ("x",), {}, ())))

    def append(self, text):
        with self.path.open("a") as file:
            file.write(text)

    def read(self):
        """The next rows, and the place behind them."""
        batch = next(self.batches)
        self.place = batch.place
        return np.c_[batch.X, batch.y].tolist()


def test_a_line_waits_for_its_end_also_the_header(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("x,y")
    writer = threading.Timer(0.05, lambda: path.open("a").write("y\n1,2\n3"))
    writer.start()
    source = open_source(str(path), follow=True)
    writer.join()
    assert source.columns == ["x", "yy"]
    batches = iter(Batches(source, Columns("yy", None, ("x",), {}, ())))
    assert next(batches).X.tolist() == [[1]]
    writer = threading.Timer(0.05, lambda: path.open("a").write("4,5\n"))
    writer.start()
    assert next(batches).X.tolist() == [[34]]
    writer.join()


def test_a_log_that_is_rotated_by_renaming_is_followed(tmp_path):
    log = Log(tmp_path / "log.csv", HEADER + "1,2\n")
    assert log.read() == [[1, 2]]
    old = log.path.open("a")
    log.path.rename(tmp_path / "log.csv.1")
    log.path.touch()  # as logrotate does; the writer does not know of it yet
    old.write("3,4\n")
    old.flush()
    assert log.read() == [[3, 4]]
    old.write("5,6\n")
    old.close()
    log.append("y,x\n8,7\n")  # the same columns, in another order
    with pytest.warns(UserWarning, match=r"log\.csv was replaced by a new file"):
        assert [log.read(), log.read()] == [[[5, 6]], [[7, 8]]]
    assert (log.place.n_rows, log.place.n_gone) == (4, 3)
    log.append("10,9\n")
    assert log.read() == [[9, 10]]
    # Going on from there later: the rows of the old file are gone, and not missed.
    again = open_source(str(log.path))
    rest = Batches(again, Columns("y", None, ("x",), {}, ()), start=Place(*log.place))
    assert list(rest) == []
    log.append("12,11\n")
    assert next(iter(rest)).place.n_rows == 6
    log.path.write_text("y,x\n8,7\n10,8\n")
    with pytest.raises(ChangedSourceError, match="its first 2 rows are not those"):
        list(rest)


def test_a_new_log_with_other_columns_is_refused(tmp_path):
    for new, message in (("x,z\n1,2\n", "lacks the column 'y'"), ("1,2\n3,4\n", "numbers in its first line")):
        log = Log(tmp_path / "log.csv", HEADER + "1,2\n")
        log.read()
        log.path.rename(tmp_path / "log.csv.1")
        log.append(new)
        with pytest.warns(UserWarning, match="replaced"), pytest.raises(SourceError, match=message):
            log.read()


def test_a_log_that_ends_in_half_a_line_when_it_is_rotated(tmp_path):
    log = Log(tmp_path / "log.csv", HEADER + "1,2\n3,")
    log.read()
    log.path.rename(tmp_path / "log.csv.1")
    log.append(HEADER + "5,6\n")
    with pytest.raises(SourceError, match="its last line had no end, so that line may be lost"):
        log.read()


def test_a_copy_that_grew_takes_the_place_of_a_log(tmp_path):
    """As programs that synchronise files do: nothing is read twice."""
    log = Log(tmp_path / "log.csv", HEADER + "1,2\n3,")
    assert log.read() == [[1, 2]]
    (tmp_path / "new").write_text(HEADER + "1,2\n3,4\n5,6\n")
    (tmp_path / "new").rename(log.path)
    with pytest.warns(UserWarning, match="begins with the 10 bytes that were read"):
        assert log.read() == [[3, 4], [5, 6]]
    assert log.place.n_gone == 0


@pytest.mark.parametrize(
    "refill",
    [
        "",
        HEADER,
        HEADER + "7,8\n",
        HEADER + "7,8\n" * 3,
        HEADER + "7,8\n" * 2000,
        "\0" * 5000 + "7,8\n",  # of a writer that keeps its place
    ],
    ids=["cut", "header", "as long as before", "longer", "much longer", "zeros"],
)
def test_a_log_that_is_copied_and_cut_is_noticed(tmp_path, refill):
    log = Log(tmp_path / "log.csv", HEADER + "1,2\n")
    log.read()
    log.path.write_text(refill)
    with pytest.raises(SourceError, match=r"log\.csv was cut or overwritten .* after 8 bytes.*may be lost"):
        log.read()


def test_a_long_log_is_checked_at_its_beginning_and_before_the_place_reached(tmp_path):
    rows = "".join(f"{i},{i}\n" for i in range(100_000))
    assert len(rows) > 4 * WINDOW
    for start in (2, len(rows) - 3):
        log = Log(tmp_path / "log.csv", HEADER + rows)
        while not log.source.waiting and log.read()[-1][0] < 99_999:
            pass
        with log.path.open("r+") as file:
            file.seek(start)
            file.write("9")
        log.append("1,2\n")
        with pytest.raises(SourceError, match="cut or overwritten"):
            log.read()


def test_a_clock_that_jumps_back_changes_nothing(tmp_path):
    log = Log(tmp_path / "log.csv", HEADER + "1,2\n")
    log.read()
    for i in range(3):
        log.append(f"{i},1\n")
        os.utime(log.path, (1000 - i, 1000 - i))
        assert log.read() == [[i, 1]]
        os.utime(log.path, (0, 0))


def test_a_followed_file_with_fewer_rows_than_before_is_refused_at_once(here, capfd):
    Path("t.csv").write_text(HEADER + "".join(ROWS))
    assert fit("m") == 0
    Path("t.csv").write_text(HEADER + "".join(ROWS[:5]))
    assert fit("m", "--follow") == 3
    assert "t.csv has 5 rows now, and 40 were read before" in capfd.readouterr().err


def test_a_followed_file_goes_on_from_the_generation_that_fits(here, capfd):
    Path("t.csv").write_text(HEADER + "".join(ROWS[:20]))
    assert fit("m") == 0
    Path("t.csv").write_text(HEADER + "".join(ROWS[:30]))
    assert fit("m") == 0
    Path("t.csv").write_text(HEADER + "".join(ROWS[:25]))
    n_before = threading.active_count()

    def wait_for(n):
        end = time.monotonic() + 30.0
        while n_rows("m") != n and time.monotonic() < end:
            time.sleep(0.01)

    def write_and_stop():
        wait_for(25)
        with Path("t.csv").open("a") as file:
            file.write("".join(ROWS[25:]))
        wait_for(40)
        os.kill(os.getpid(), signal.SIGTERM)

    writer = threading.Thread(target=write_and_stop)
    writer.start()
    assert fit("m", "--follow", "--checkpoint-every", "1") == 143
    writer.join()
    err = capfd.readouterr().err
    assert "going on after its first 20 rows" in err
    assert "Interrupted after 40 rows" in err
    Path("t.csv").write_text(HEADER + "".join(ROWS))
    assert fit("once") == 0
    np.testing.assert_array_equal(thresher.load("m").summary_.comoment(), thresher.load("once").summary_.comoment())
    assert threading.active_count() <= n_before + 1  # nobody waits any more for the rows that are gone


def test_compressed_files_are_not_followed(tmp_path):
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(HEADER.encode()))
    with pytest.raises(SourceError, match=r"log\.csv\.gz is compressed, which cannot be followed"):
        open_source(str(tmp_path / "log.csv.gz"), follow=True)


def test_a_line_without_end_is_not_collected_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("thresher.io.sources.lines.LONGEST_LINE", 1000)
    for name, content in (("a.csv", b"1" * 5000), ("a.jsonl.gz", gzip.compress(bytes(5000)))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError, match=rf"{name} has a line of more than 1,000 bytes"):
            list(Lines(tmp_path / name, name, block_size=400))
