"""Logs that are written, rotated and cut by random schedules while they are followed: each row once, or a word of loss.

    python checks/follow_schedules.py                                   # short
    python checks/follow_schedules.py --long                            # 500 schedules, 40 commands, saved
    python checks/follow_schedules.py --only 17                         # one schedule again

A schedule appends lines, whole and in pieces; rotates the log by renaming it, with a writer that notices late, and
compresses the old one; copies it and cuts it to nothing; cuts it somewhere; replaces it by a copy that has grown; sets
the clock back; and stops the follower and starts it again. The rows that were learned must be those that were written,
in their order, once each; or a prefix of them, with an error that says that lines may be lost or that the file is not
the one it was. Rows that appear and vanish between two looks at a file cannot be seen by anybody, so the follower
catches up before a log is cut or rotated again. Some schedules go through ``thresher fit --follow --resume``, which is
interrupted and killed.
"""

import argparse
import gzip
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from thresher.cli import main as thresher_command
from thresher.cli.feeding import feed  # noqa: F401  # loaded before forking
from thresher.io.checkpoint import load_with_note
from thresher.io.sources import lines
from thresher.io.sources.batches import START, Batches
from thresher.io.sources.columns import Columns
from thresher.io.sources.source import open_source
from thresher.io.sources.source_error import SourceError

RESULTS = Path(__file__).parent / "results" / "follow_schedules.json"
FAST_DIRECTORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
LOSS = ("may be lost", "were read before", "are not those that were read", "numbers in its first line", "has no column")
PATIENCE = 20.0


class Stopped(BaseException):
    """The follower is stopped where it waits."""


class Log:
    """A log and the program that writes it."""

    def __init__(self, path, rng):
        self.path, self.rng, self.numbers = path, rng, itertools.count(1)
        self.kind = path.suffix
        self.written, self.was_cut = [], False
        self.file = path.open("ab", buffering=0)
        self.file.write(self.header())

    def header(self):
        return b"x,y\n" if self.kind == ".csv" else b""

    def row(self):
        """A new line; rows are never the same twice."""
        number = next(self.numbers)
        row = float(number), round(self.rng.uniform(0.0, 1e6), 3)
        self.written.append(row)
        text = f"{row[0]},{row[1]}\n" if self.kind == ".csv" else json.dumps({"x": row[0], "y": row[1]}) + "\n"
        return text.encode()

    def append(self):
        """Some whole lines."""
        self.file.write(b"".join(self.row() for _ in range(self.rng.randint(1, 20))))

    def in_pieces(self):
        """A line that takes its time, cut anywhere."""
        line = self.row()
        cuts = sorted(self.rng.sample(range(1, len(line)), self.rng.randint(1, 3)))
        for start, stop in itertools.pairwise([0, *cuts, len(line)]):
            self.file.write(line[start:stop])
            time.sleep(self.rng.choice([0.0, 0.002, 0.01]))

    def rotate(self):
        """Rename the log; the writer goes on with the old one for a while. Then compress that, perhaps."""
        old = self.path.with_name(f"{self.path.name}.{time.monotonic_ns()}")
        self.path.rename(old)
        if self.rng.random() < 0.5:
            self.path.touch()
        for _ in range(self.rng.randint(0, 3)):
            self.append()
            time.sleep(self.rng.choice([0.0, 0.005]))
        self.file.close()
        self.file = self.path.open("ab", buffering=0)
        self.file.write(self.header() + self.row())
        if self.rng.random() < 0.5:
            with gzip.open(f"{old}.gz", "wb") as packed:
                packed.write(old.read_bytes())
            old.unlink()

    def copy_and_cut(self):
        """As logrotate does it with copytruncate; the header may come back or not."""
        shutil.copy(self.path, f"{self.path}.1")
        os.truncate(self.path, 0)
        if self.rng.random() < 0.5:
            self.file.write(self.header())
        for _ in range(self.rng.choice([0, 1, 30])):
            self.append()

    def cut(self):
        """Cut the log anywhere behind its header."""
        size, self.was_cut = self.path.stat().st_size, True
        os.truncate(self.path, self.rng.randint(len(self.header()), size - 1))
        if self.rng.random() < 0.7:
            self.append()

    def replace_by_copy(self):
        """A copy with more lines takes its place, at once."""
        new = self.path.with_name("new")
        shutil.copy(self.path, new)
        self.file.close()
        self.file = new.open("ab", buffering=0)
        self.append()
        new.rename(self.path)

    def set_clock_back(self):
        os.utime(self.path, (self.rng.randrange(10**9), self.rng.randrange(10**9)))


class Follower:
    """Follows a log in a thread, and notes what it learns and where it could go on."""

    def __init__(self, path):
        self.path, self.learned, self.place, self.error = path, [], START, None
        self.start()

    def start(self):
        self.stopping, self.source = threading.Event(), None
        self.thread = threading.Thread(target=self._follow, args=(self.stopping,))
        self.thread.stopping = self.stopping
        self.thread.start()

    def _follow(self, _):
        try:
            self.source = open_source(str(self.path), follow=True)
            batches = Batches(self.source, Columns("y", None, ("x",), {}, ()), start=self.place)
            self.batches = batches
            for batch in batches:
                self.learned += zip(batch.X[:, 0].tolist(), batch.y.tolist(), strict=True)
                self.place = batch.place
        except (SourceError, FileNotFoundError) as error:  # it may be started while the log is being renamed
            self.error = str(error)
        except Stopped:
            pass

    def stop(self):
        self.stopping.set()
        self.thread.join()

    def catch_up(self, n_rows):
        """Wait until so many rows are learned, or it has given up."""
        end = time.monotonic() + PATIENCE
        while self.thread.is_alive() and len(self.learned) < n_rows and time.monotonic() < end:
            if self.source is not None and hasattr(self, "batches"):
                try:
                    self.batches.check_waiting()
                except SourceError as error:  # as the command does, when nothing comes
                    self.stop()
                    self.error = self.error or str(error)
            time.sleep(0.001)


def patient(seconds):
    """Wait a little between looks, or give up."""
    if threading.current_thread().stopping.is_set():
        raise Stopped
    time.sleep(min(seconds, 0.002))


def run_schedule(seed, directory):
    """The outcome of a schedule; an AssertionError if rows were lost, learned twice or made up."""
    rng = random.Random(seed)
    log = Log(Path(directory, rng.choice(["log.csv", "log.csv", "log.jsonl"])), rng)
    log.append()
    follower = Follower(log.path)
    follower.catch_up(len(log.written))
    harmless = [log.append, log.append, log.in_pieces, log.set_clock_back]
    severe = [log.rotate, log.rotate, log.replace_by_copy, log.copy_and_cut, log.cut]
    for _ in range(rng.randint(3, 12)):
        if follower.error is not None:
            break
        action = rng.choice(harmless) if rng.random() < 0.7 else rng.choice([*severe, "restart"])
        if action in severe:
            follower.catch_up(len(log.written))
        if action == "restart":
            follower.stop()
            if rng.random() < 0.7:
                log.append()
            if follower.error is None:
                follower.start()
        else:
            action()
        if action == log.rotate:  # not twice between two looks
            follower.catch_up(len(log.written))
        time.sleep(rng.choice([0.0, 0.0, 0.003]))
    follower.catch_up(len(log.written))
    time.sleep(0.005)
    follower.stop()
    log.file.close()
    if follower.error is None:
        assert follower.learned == log.written, f"{len(follower.learned)} of {len(log.written)} rows, and no error"
        return "all rows"
    assert follower.learned == log.written[: len(follower.learned)], f"wrong rows before: {follower.error}"
    # What was cut inside a line and written on has a broken line, which is named.
    words = (*LOSS, "No such file", *([", row "] if log.was_cut else []))
    assert any(word in follower.error for word in words), f"no word of loss: {follower.error}"
    return "loss named"


# -- the same through the command ------------------------------------------------------------------------------------


def start_command(log, model, told):
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        options = ["--follow", "--resume", "--checkpoint-every", "1", "--keep", "3", "--quiet"]
        status = thresher_command(["fit", str(log), "-t", "y", "-m", str(model), *options])
        sys.stdout.flush()
    finally:
        os._exit(status)


def kept_rows(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_with_note(model)[1]["place"].n_rows if model.exists() else 0


def run_command(seed, directory):
    """As `run_schedule`, by the command, interrupted and killed."""
    rng = random.Random(seed)
    log = Log(Path(directory, "log.csv"), rng)
    model, told = Path(directory, "m"), Path(directory, "told")
    log.append()
    child, status = start_command(log.path, model, told), None

    def wait(done):
        nonlocal status
        end = time.monotonic() + PATIENCE
        while status is None and not done() and time.monotonic() < end:
            ended, code = os.waitpid(child, os.WNOHANG)
            status = os.waitstatus_to_exitcode(code) if ended else None
            time.sleep(0.01)

    for _ in range(rng.randint(2, 5)):
        wait(lambda: kept_rows(model) == len(log.written))
        if status is not None:
            break
        action = rng.choice([log.append, log.in_pieces, log.rotate, log.copy_and_cut, "interrupt", "kill", "kill"])
        if action in ("interrupt", "kill"):
            log.append()
            # A shell may have ignored SIGINT for what it started in the background.
            os.kill(child, signal.SIGTERM if action == "interrupt" else signal.SIGKILL)
            os.waitpid(child, 0)
            child = start_command(log.path, model, told)
        else:
            action()
    wait(lambda: kept_rows(model) == len(log.written))
    if status is None:
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)
    text = told.read_text()
    learner, note = load_with_note(model)
    n_rows = note["place"].n_rows
    expected = np.array(log.written[:n_rows])
    np.testing.assert_allclose([learner.summary_.mean_x[0], learner.summary_.mean_y], expected.mean(axis=0), rtol=1e-12)
    assert "Traceback" not in text, text
    if status is None:
        assert n_rows == len(log.written), f"{n_rows} of {len(log.written)} rows, and no error: {text}"
        return "all rows"
    assert status == 3, f"status {status}: {text}"
    assert any(word in text for word in LOSS), text
    return "loss named"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=40)
    parser.add_argument("--commands", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one schedule")
    parser.add_argument("--long", action="store_true", help="the run whose result is kept in checks/results")
    options = parser.parse_args(arguments)
    if options.long:
        options.schedules, options.commands = 500, 40
    outcomes, faults = {"schedules": Counter(), "commands": Counter()}, []
    warnings.simplefilter("ignore")
    cases = [("commands", run_command, seed) for seed in range(options.seed, options.seed + options.commands)]
    cases += [("schedules", run_schedule, seed) for seed in range(options.seed, options.seed + options.schedules)]
    if options.only is not None:
        cases = [("schedules", run_schedule, options.only)]
    waiting = lines.time
    for name, judged, seed in cases:
        lines.time = SimpleNamespace(sleep=patient) if name == "schedules" else waiting
        with tempfile.TemporaryDirectory(dir=FAST_DIRECTORY) as directory:
            try:
                outcomes[name][judged(seed, directory)] += 1
            except AssertionError as error:
                faults.append({"kind": name, "seed": seed, "told": str(error)[:1000]})
                print(json.dumps(faults[-1]), file=sys.stderr)
    result = {
        "schedules": options.schedules,
        **{f"schedules, {name}": count for name, count in sorted(outcomes["schedules"].items())},
        "commands": options.commands,
        **{f"commands, {name}": count for name, count in sorted(outcomes["commands"].items())},
        "silent losses or wrong rows": len(faults),
    }
    print(json.dumps(result))
    if options.long:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
