"""Runs of ``thresher fit`` that are killed at random moments and resumed, compared with one that is not.

    python benchmarks/killed_runs.py              # 300 runs, some minutes
    python benchmarks/killed_runs.py --runs 15    # as the tests do

Each run is killed by SIGKILL once or more, at moments drawn from the whole length of a run, and then resumed to its
end. The file that it leaves, with the model, the place in the source and the progressive error, must equal that of
an uninterrupted run byte by byte. Both methods of ``thresher fit`` take turns. Processes are forked from one that has
loaded everything, so that they are killed at work and not while they load.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from thresher import OnlineHardThresholding, SparseRegressor
from thresher.cli import main as thresher_command
from thresher.cli.feeding import feed  # noqa: F401  # loaded before forking
from thresher.io.checkpoint import CheckpointError, load_with_note
from thresher.io.sources.synthetic import SparseLinearStream

N_ROWS, N_FEATURES, EVERY = 20_000, 30, 500
METHODS = {"sparse": [], "oht": ["--method", "oht", "--sparsity", "5", "--round-size", "10"]}
RESULTS = Path(__file__).parent / "results" / "killed_runs.json"


def write_sources(directory):
    """The same rows as CSV, compressed, as Parquet, as two files of JSON lines, with missing values and categories."""
    X, y = SparseLinearStream(N_FEATURES, 5, signal=1.0, seed=3).draw(N_ROWS)
    rng = np.random.default_rng(4)
    X[rng.random(X.shape) < 0.0005] = np.nan
    columns = {f"x{j}": pa.array(X[:, j], from_pandas=True) for j in range(N_FEATURES)}
    columns["kind"] = pa.array(np.array(["a", "b", "c"])[rng.integers(0, 3, N_ROWS)])
    table = pa.table(columns | {"y": y})
    pa.csv.write_csv(table, directory / "rows.csv")
    with pa.CompressedOutputStream(str(directory / "rows.csv.gz"), "gzip") as file:
        pa.csv.write_csv(table, file)
    pq.write_table(table, directory / "rows.parquet", row_group_size=5000)
    (directory / "lines").mkdir()
    for k, half in enumerate((table[: N_ROWS // 2], table[N_ROWS // 2 :])):
        text = "\n".join(json.dumps(row) for row in half.to_pylist())
        (directory / "lines" / f"{k}.jsonl").write_text(text + "\n")
    return [directory / name for name in ("rows.csv", "rows.csv.gz", "rows.parquet", "lines")]


def load_everything():
    """Modules, and compiled functions, are loaded when they are first used."""
    for model in (SparseRegressor(), OnlineHardThresholding(5, round_size=10)):
        for X, y in SparseLinearStream(N_FEATURES, 5, signal=1.0).blocks(3000, 700):
            model.partial_fit(X, y).finish()
        model.summary()


def start(source, model, method):
    """The command in a process of its own."""
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        options = ["--model", str(model), "--resume", "--checkpoint-every", str(EVERY), "--missing", "skip", "--quiet"]
        status = thresher_command(["fit", str(source), "--target", "y", *METHODS[method], *options])
    finally:
        os._exit(status)


def finish(source, model, method):
    """Seconds that a run takes to its end."""
    began = time.monotonic()
    _, status = os.waitpid(start(source, model, method), 0)
    if status:
        raise SystemExit(f"{source} ended with status {status}")
    return time.monotonic() - began


def killed_then_resumed(source, model, method, length, rng):
    """Kill a run once or more, look at what it left, and resume it to the end: kills, and what they hit."""
    hits = {"kills": 0, "before the first file": 0, "while writing": 0, "unreadable": 0}
    for _ in range(rng.choice((1, 1, 2, 4))):
        child = start(source, model, method)
        time.sleep(rng.uniform(0.0, length))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            hits["kills"] += 1
            hits["while writing"] += any(model.parent.glob(f".{model.name}.*.part"))
            if not model.exists():
                hits["before the first file"] += 1
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # falling back to an earlier generation counts as well
                try:
                    load_with_note(model)
                except (CheckpointError, UserWarning):
                    hits["unreadable"] += 1
    finish(source, model, method)
    return hits


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args(arguments)
    rng, total, different = random.Random(options.seed), {}, 0
    load_everything()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        sources = write_sources(directory)
        expected, lengths = {}, {}
        for case in product(sources, METHODS):
            source, method = case
            model = directory / f"{source.name}.{method}.uninterrupted"
            finish(source, model, method)
            expected[case] = model.read_bytes()
            lengths[case] = finish(source, directory / f"{source.name}.{method}.again", method)
        cases = list(expected)
        for run in range(options.runs):
            case = source, method = cases[run % len(cases)]
            model = directory / f"{run}.thresher"
            for name, count in killed_then_resumed(source, model, method, lengths[case], rng).items():
                total[name] = total.get(name, 0) + count
            different += model.read_bytes() != expected[case]
            for file in directory.glob(f"*{run}.thresher*"):
                file.unlink()
            if sys.stderr.isatty() or (run + 1) % 20 == 0:
                print(f"{run + 1} of {options.runs} runs: {total}, {different} different", file=sys.stderr)
    result = {"runs": options.runs, **total, "different": different}
    print(json.dumps(result))
    if options.save:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    return int(different > 0 or total["unreadable"] > 0)


if __name__ == "__main__":
    sys.exit(main())
