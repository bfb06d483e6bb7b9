"""A disk that is full, a directory that is read-only, a clock that jumps back: one line, and nothing is lost.

    python checks/disk_trouble.py                    # short
    python checks/disk_trouble.py --long             # saved

The disk is a tmpfs of two megabytes, mounted where only the check sees it (Linux, ``unshare``). It is filled
up to some bytes, the command is run until it fails, room is made, and the command is resumed: the file must be that of
a run that had room, byte by byte.
"""

import argparse
import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from thresher.cli import main as thresher_command
from thresher.io.sources.synthetic import SparseLinearStream

RESULTS = Path(__file__).parent / "results" / "disk_trouble.json"
N_ROWS, N_FEATURES = 1500, 20


def command(*arguments):
    """The exit status, and what was told on the standard error, of which there must be a line for each failure."""
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        status = thresher_command([str(argument) for argument in arguments])
    text = told.getvalue()
    assert "Traceback" not in text, text
    assert status == 0 or text.count("\n") == 1, text
    return status, text


def fit(model, *options):
    return command("fit", "rows.csv", "-t", "y", "-m", model, "--checkpoint-every", 200, "--quiet", *options)


def write_rows():
    X, y = SparseLinearStream(N_FEATURES, 3, signal=1.0, seed=1).draw(N_ROWS)
    names = ",".join(f"x{j}" for j in range(N_FEATURES))
    lines = [",".join(map(repr, [*row, target])) for row, target in zip(X.tolist(), y.tolist(), strict=True)]
    Path("rows.csv").write_text(f"{names},y\n" + "\n".join(lines) + "\n")


def names_in(directory):
    return sorted(path.name for path in Path(directory).iterdir())


def full(disk, runs):
    """Fill the disk up to a random number of bytes, fail, make room, resume."""
    rng, failed = random.Random(3), 0
    assert fit("whole")[0] == 0
    expected = Path("whole").read_bytes()
    model, filler = disk / "m", disk / "filler"
    for _ in range(runs):
        left = rng.randrange(4 * len(expected))
        room = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        filler.write_bytes(bytes(max(room - left, 0)))
        status, told = fit(model)
        if status:
            failed += 1
            assert status == 5, told
            assert "No space left on device" in told, told
            assert set(names_in(disk)) <= {"filler", "m", "m.1"}, names_in(disk)
        filler.unlink()
        status, told = fit(model, "--resume")
        assert status == 0, told
        assert model.read_bytes() == expected
        filler.write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize))
        for output in (disk / "p.csv", disk / "p.parquet"):
            status, told = command("predict", model, "rows.csv", "-o", output, "--quiet")
            assert status == 5, told
            assert not output.exists()
        for path in disk.iterdir():
            path.unlink()
    return failed


def read_only(disk, runs):
    """A directory in which nothing can be written, with a model in it."""
    assert fit(disk / "m")[0] == 0
    before = (disk / "m").read_bytes()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for arguments in (
        ("fit", "rows.csv", "-t", "y", "-m", disk / "new"),
        ("fit", "rows.csv", "-m", disk / "m", "--resume"),
        ("accumulate", "rows.csv", "-t", "y", "-o", disk / "s"),
        ("predict", disk / "m", "rows.csv", "-o", disk / "p.csv"),
    ):
        status, told = command(*arguments, "--quiet")
        assert status == 5, (arguments, status, told)
        assert "Read-only file system" in told, told
    assert command("show", disk / "m")[0] == 0
    assert (disk / "m").read_bytes() == before
    return 4


def clock(disk, runs):
    """The time of day goes back at every look, and files are from the future: nothing depends on either."""
    assert fit("whole")[0] == 0
    expected, real = Path("whole").read_bytes(), (time.time, time.time_ns)
    seconds = 2e9

    def back():
        nonlocal seconds
        seconds -= 1000.0
        return seconds

    time.time, time.time_ns = back, lambda: int(back() * 1e9)
    try:
        for k in range(2):
            lines = Path("rows.csv").read_text().splitlines(keepends=True)
            Path("rows.csv").write_text("".join(lines[: len(lines) // 2]))
            assert fit(disk / f"m{k}")[0] == 0
            Path("rows.csv").write_text("".join(lines))
            for path in (disk / f"m{k}", Path("rows.csv")):
                os.utime(path, (4e9 * k, 4e9 * k))
            assert fit(disk / f"m{k}", "--resume")[0] == 0
            assert fit(disk / f"n{k}")[0] == 0
            assert (disk / f"n{k}").read_bytes() == expected
    finally:
        time.time, time.time_ns = real
    return 2


CHECKS = {"full": full, "read_only": read_only, "clock": clock}


def inside(name, disk, runs):
    """In a namespace of mounts of its own: mount the disk, and run one check."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=True)
    write_rows()
    print(json.dumps(CHECKS[name](disk, runs)))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4, help="how often the disk is filled")
    parser.add_argument("--long", action="store_true", help="the run whose result is kept in checks/results")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.long:
        options.runs = 60
    if options.inside:
        inside(options.inside[0], Path(options.inside[1]), options.runs)
        return 0
    result, failed = {"full disks": options.runs}, 0
    for name in CHECKS:
        with tempfile.TemporaryDirectory() as directory:
            disk = Path(directory, "disk")
            disk.mkdir()
            command = ["unshare", "-Urm", sys.executable, str(Path(__file__).resolve())]
            command += ["--runs", str(options.runs), "--inside", name, str(disk)]
            done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
        result[name] = int(done.stdout) if done.returncode == 0 else "failed"
        failed += done.returncode != 0
        print(done.stderr, end="", file=sys.stderr)
    print(json.dumps(result))
    if options.long and not failed:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
