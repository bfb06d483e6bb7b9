"""Files drawn from a grammar, read by thresher and by a simple reader: the same rows, or an error of one line.

    python checks/fuzz_sources.py                                # short
    python checks/fuzz_sources.py --long                         # 100,000 files and 1,000 commands, saved
    python checks/fuzz_sources.py --only 12345                   # one case again, in this process

`source_grammar.py` draws CSV, JSON lines, NumPy and Parquet files, half of them as they should be and half odd or
damaged. Each is read in a process that may die of it. What is counted: rows that differ from those of the simple
reader, exceptions other than SourceError, errors of several lines, refusals of files that are as they should be,
crashes, and cases that take longer than 20 seconds. Some also go through the command, whose summary must have the
moments of the same rows.
"""

import argparse
import contextlib
import faulthandler
import json
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from multiprocessing.sharedctypes import RawArray
from pathlib import Path

import numpy as np

import thresher
from source_grammar import FALSE, NULLS, TRUE, draw, read_parquet, write
from thresher.cli import main as thresher_command
from thresher.cli.feeding import feed  # noqa: F401  # loaded before forking
from thresher.io.sources.batches import Batches
from thresher.io.sources.columns import Columns
from thresher.io.sources.source import open_source
from thresher.io.sources.source_error import SourceError

RESULTS = Path(__file__).parent / "results" / "fuzz_sources.json"
SLOW = 20.0
# Cases that were faults once: damaged headers of Parquet pages, which pyarrow reads without end through a buffer.
KNOWN = (2026810, 2028076, 1002000072)
LARGEST = 1e151
FAST_DIRECTORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


class WrongError(Exception):
    """What was read is not what is there."""


# -- what a simple reader makes of the rows --------------------------------------------------------------------------


def as_number(cell, truth):
    """A cell as a number, NaN if it is missing."""
    if cell is None or (isinstance(cell, str) and cell in NULLS):
        return np.nan
    if truth and isinstance(cell, str):
        if cell.strip() not in TRUE | FALSE:
            raise WrongError(f"{cell!r} is neither true nor false")
        return float(cell.strip() in TRUE)
    try:
        return float(cell)
    except (TypeError, ValueError) as error:
        raise WrongError(f"{cell!r} is no number") from error


def matrix(rows, columns):
    """X and y, with NaN where a value is missing."""
    lists = []
    for name in columns.features:
        cells = [row.get(name) for row in rows]
        if name in columns.levels:
            missing = np.array([cell is None or cell in NULLS for cell in cells])
            for level in columns.levels[name]:
                lists.append(np.where(missing, np.nan, [float(cell == level) for cell in cells]))
        else:
            lists.append([as_number(cell, name in columns.truths) for cell in cells])
    y = [as_number(row.get(columns.target), columns.target in columns.truths) for row in rows]
    return np.array(lists, float).reshape(len(lists), len(rows)).T, np.array(y, float)


def learned(rows, columns, missing, sample):
    """X and y as they are learned from, and where values were filled in. WrongError if there should be an error."""
    X, y = matrix(rows, columns)
    for values in (X, y):
        if (np.abs(values) > LARGEST).any():
            raise WrongError("a value is too large")
    gaps, kept = np.isnan(X), ~np.isnan(y)
    if missing == "error" and (gaps.any() or not kept.all()):
        raise WrongError("a value is missing")
    if missing == "mean":
        first = X[: sample if sample > 0 else 1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X = np.where(gaps, np.nanmean(first, axis=0), X)
        if np.isnan(X[kept]).any():
            raise WrongError("there is no mean")
    else:
        kept &= ~gaps.any(axis=1)
    return X[kept], y[kept], gaps[kept]


# -- one case --------------------------------------------------------------------------------------------------------


def read(path, case):
    """Columns, X and y by thresher."""
    source = open_source(str(path), **case.how)
    columns = Columns.choose(source, case.target)
    batches = list(Batches(source, columns, case.missing))
    X = np.concatenate([np.zeros((0, len(columns.names))), *(batch.X for batch in batches)])
    return columns, X, np.concatenate([np.zeros(0), *(batch.y for batch in batches)])


def compare(case, columns, X, y):
    """Raise unless these are the rows of one of the simple readers."""
    faults = []
    for _, rows in case.expected:
        try:
            expected_X, expected_y, filled = learned(rows, columns, case.missing, case.sample)
        except WrongError as error:
            faults.append(str(error))
            continue
        if X.shape != expected_X.shape:
            faults.append(f"shape {X.shape}, not {expected_X.shape}")
        elif (bad := ~filled & (expected_X != X)).any() or (expected_y != y).any():
            faults.append(f"{X[bad][:3]} {y[:3]}, not {expected_X[bad][:3]} {expected_y[:3]}")
        elif not close(X, expected_X, filled):
            faults.append("means")
        else:
            return
    raise WrongError("; ".join(faults) or "rows, although a simple reader finds none")


def close(X, expected, filled):
    """Whether means are the same, up to rounding beside the values they are of."""
    scale = np.broadcast_to(np.abs(expected).max(axis=0, initial=0.0), X.shape)
    return (np.abs(X - expected)[filled] <= 1e-12 * scale[filled]).all()


def should_be_read(case):
    """Whether a clean case has nothing in it that is refused rightly."""
    ((_, rows),) = case.expected
    if len({name for row in rows for name in row} | {case.target}) == 1 or not any(case.target in row for row in rows):
        return False
    numbers = [row.get(case.target) for row in rows]
    if case.missing == "error":
        return all(
            cell is not None and cell not in NULLS and cell == cell for row in rows for cell in row.values()
        ) and (len({tuple(sorted(row)) for row in rows}) == 1)
    everything = {name for row in rows for name in row}
    first = rows[: case.sample if case.sample > 0 else 1]
    known = all(
        any((cell := row.get(name)) not in (None, *NULLS) and cell == cell for row in first)
        for name in everything | {case.target}
    )
    whole = all(name in row for name in everything for row in first[:1])
    return known and whole and any(cell is not None for cell in numbers)


def judge(seed, directory):
    """What became of a case: read, refused; WrongError or another exception if it should not have."""
    case = draw(seed)
    path = write(case, directory)
    try:
        found = read(path, case)
    except SourceError as error:
        if "\n" in str(error) or not str(error):
            raise WrongError(f"an error of several lines: {error}") from error
        if case.clean and should_be_read(case):
            raise WrongError(f"refused: {error}") from error
        return "refused"
    try:
        compare(case, *found)
    except WrongError:
        if case.clean or path.suffix != ".parquet":
            raise
        # Damaged so that it says something else, or that a column has another name.
        columns = open_source(str(path)).columns
        ((names, rows),) = case.expected
        renamed = dict(zip(names, columns, strict=False))
        case.expected += [(columns, [{renamed.get(name): cell for name, cell in row.items()} for row in rows])]
        case.expected += read_parquet(path)
        compare(case, *found)
    return "read"


# -- the same through the command ------------------------------------------------------------------------------------


def judge_command(seed, directory):
    """As `judge`, by ``thresher accumulate`` in a process of its own."""
    case = draw(seed)
    path, summary, told = write(case, directory), Path(directory, "s"), Path(directory, "told")
    options = ["--missing", case.missing, *(["--delimiter", case.how["delimiter"]] if case.how else [])]
    child = os.fork()
    if child == 0:
        status = 99
        with contextlib.suppress(BaseException), told.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            status = thresher_command(
                ["accumulate", str(path), "-t", case.target, "-o", str(summary), "--quiet", *options]
            )
            sys.stdout.flush()
        os._exit(status)
    status = wait_for(child)
    text = told.read_text(errors="replace")
    try:
        if status is None:
            raise WrongError("it hangs")
        if status not in (0, 3) or "Traceback" in text or (status and text.count("\n") != 1):
            raise WrongError(f"status {status}: {text}")
        if status == 3:
            return "refused"
        gram = thresher.load(summary)
        source = open_source(str(path), **case.how)
        columns = Columns.choose(source, case.target)
        others = read_parquet(path) if path.suffix == ".parquet" and not case.clean else []
        for _, rows in case.expected + others:
            with contextlib.suppress(WrongError):
                X, y, _ = learned(rows, columns, case.missing, case.sample)
                scale = np.abs(np.c_[X, y]).max(axis=0)
                means = np.c_[X, y].mean(axis=0)
                if (
                    gram.n_samples == len(y)
                    and (np.abs(np.r_[gram.mean_x, gram.mean_y] - means) <= 1e-12 * scale).all()
                ):
                    return "read"
        raise WrongError("other moments than those of the rows")
    finally:
        for one in Path(directory).iterdir():
            one.unlink()


def wait_for(child):
    """The exit status of a child; None if it takes too long."""
    end = time.monotonic() + SLOW
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


# -- all cases -------------------------------------------------------------------------------------------------------


def work(seeds, place, report, hung, judged):
    """Judge cases one after another, in a child process: where it is, and what it found, can be seen from outside."""
    counts = Counter()
    with (
        tempfile.TemporaryDirectory(dir=FAST_DIRECTORY) as directory,
        report.open("a") as file,
        hung.open("w") as stacks,
    ):
        faulthandler.register(signal.SIGUSR1, file=stacks)
        for seed in seeds:
            place[0], place[1] = time.monotonic(), seed
            try:
                counts[judged(seed, directory)] += 1
            except BaseException as error:
                counts["faults"] += 1
                kind = "wrong" if isinstance(error, WrongError) else "traceback"
                told = str(error) if kind == "wrong" else traceback.format_exc(limit=-3)
                file.write(json.dumps({"seed": seed, "kind": kind, "told": told[:1500]}) + "\n")
                file.flush()
        file.write(json.dumps({"counts": counts}) + "\n")


def run(n_cases, first_seed, judged, directory, n_workers=2):
    """All cases, in child processes; counts, and what went wrong."""
    faults, total, chunks = [], Counter(), [[seed] for seed in KNOWN]
    for start in range(first_seed, first_seed + n_cases, 2000):
        chunks.append(list(range(start, min(start + 2000, first_seed + n_cases))))
    running = {}
    while chunks or running:
        while chunks and len(running) < n_workers:
            seeds, place = chunks.pop(0), RawArray("d", 2)
            report = Path(directory, f"{judged.__name__}-{seeds[0]}.json")
            place[:] = time.monotonic(), seeds[0]
            child = os.fork()
            if child == 0:
                with contextlib.suppress(BaseException):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                    work(seeds, place, report, report.with_suffix(".stacks"), judged)
                os._exit(0)
            running[child] = (seeds, place, report)
        time.sleep(0.05)
        for child, (seeds, place, report) in list(running.items()):
            since, seed = place[0], int(place[1])
            done, status = os.waitpid(child, os.WNOHANG)
            if not done and time.monotonic() - since > 2 * SLOW:
                os.kill(child, signal.SIGUSR1)  # where it hangs
                time.sleep(1.0)
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                done, status = child, None
            if not done:
                continue
            del running[child]
            lines = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
            faults += [line for line in lines if "seed" in line]
            total += sum((Counter(line["counts"]) for line in lines if "counts" in line), Counter())
            told = report.with_suffix(".stacks").read_text() if report.with_suffix(".stacks").exists() else ""
            if status != 0:  # it died, or hung, of one case: go on behind it
                faults.append(
                    {"seed": seed, "kind": "hang" if status is None else "crash", "told": f"{status} {told[-3000:]}"}
                )
                total += Counter(faults=1, uncounted=seed - seeds[0])
                chunks.insert(0, list(range(seed + 1, seeds[-1] + 1)))
    return total, faults


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--commands", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first case")
    parser.add_argument("--only", type=int, help="one case, in this process")
    parser.add_argument("--long", action="store_true", help="the run whose result is kept in checks/results")
    options = parser.parse_args(arguments)
    if options.long:
        options.files, options.commands = 100_000, 1000
    with tempfile.TemporaryDirectory(dir=FAST_DIRECTORY) as directory:
        if options.only is not None:
            print(draw(options.only))
            print(judge(options.only, directory))
            return 0
        began = time.monotonic()
        files, faults = run(options.files, options.seed, judge, directory)
        commands, more = run(options.commands, options.seed + 10**9, judge_command, directory)
    result = {
        "files": sum(files.values()),
        **{f"files {name}": files[name] for name in ("read", "refused")},
        "commands": sum(commands.values()),
        **{f"commands {name}": commands[name] for name in ("read", "refused")},
        **{
            name: sum(fault["kind"] == name for fault in faults + more)
            for name in ("wrong", "traceback", "crash", "hang")
        },
        "seconds": round(time.monotonic() - began),
    }
    for fault in (faults + more)[:20]:
        print(json.dumps(fault), file=sys.stderr)
    print(json.dumps(result))
    if options.long:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    return int(bool(faults or more))


if __name__ == "__main__":
    sys.exit(main())
