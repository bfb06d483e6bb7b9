"""Eight threads on one object: every estimator, every summary and every baseline.

    python checks/threads.py                        # 60 calls a thread, about a minute
    python checks/threads.py --long                 # 10,000 calls a thread, kept in results/; about half an hour
    python checks/threads.py --long --calls 500     # the same with fewer
    python checks/threads.py --only Gram            # one kind

Threads learn, one row to a call, and read in between: coefficients, predictions, losses, a copy, a file. In the end all
rows must be counted and the moments must equal those of a serial run to 1e-12. Whatever is read must be finite, and
every file must be one that can be read again. Two summaries are merged by threads in opposite order, and a process
forks while threads are at work; its child must not wait for a lock that nobody holds. Each kind runs in a process of
its own, which is ended if it does not come to an end.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import traceback
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import clone

from saved_objects import D, baseline_kinds, entries, matrices, responses, rows
from thresher import (
    ConstrainedRegressor,
    Entries,
    Gram,
    LowRankRegressor,
    MatrixCompleter,
    MultiResponse,
    OnlineHardThresholding,
    Rank,
    ReducedRankRegressor,
    SparseRegressor,
)
from thresher._utils.locks import lock_of
from thresher.baselines import NuclearProximal
from thresher.io.checkpoint import from_bytes
from thresher.io.encoding import encode

RESULTS = Path(__file__).parent / "results" / "threads.json"
N_THREADS = 8
SLOW = ("IHT", "NIHT", "AdaptiveDantzig")  # a whole solution for every call: a tenth of the calls
SWITCH = 2e-5  # seconds between threads, much less than usual, so that they meet everywhere


def kinds():
    """What makes an object, and its samples, by name."""
    found = {
        "Gram": (lambda: Gram(D), rows),
        "Gram, float32": (lambda: Gram(D, np.float32), rows),
        "MultiResponse": (lambda: MultiResponse(D, 3), responses),
        "Entries": (lambda: Entries((4, 5)), entries),
        "SparseRegressor": (SparseRegressor, rows),
        "Gram, half-life": (lambda: Gram(D, half_life=30.0), rows),
        "SparseRegressor, half-life": (lambda: SparseRegressor(half_life=30.0), rows),
        "SparseRegressor, window": (lambda: SparseRegressor(window=60), rows),
        "SparseRegressor, exact window": (lambda: SparseRegressor(window=60, exact_window=True), rows),
        "SparseRegressor, cv": (lambda: SparseRegressor(selection="cv"), rows),
        "OnlineHardThresholding": (lambda: OnlineHardThresholding(2, fit_intercept=True), rows),
        "OnlineHardThresholding, groups": (lambda: OnlineHardThresholding(1, groups=[0, 0, 1, 1, 2, 2]), rows),
        "ConstrainedRegressor": (ConstrainedRegressor, rows),
        "ConstrainedRegressor, rank": (lambda: ConstrainedRegressor(Rank(1)), matrices),
        "LowRankRegressor": (lambda: LowRankRegressor(1), matrices),
        "ReducedRankRegressor": (ReducedRankRegressor, responses),
        "MatrixCompleter": (lambda: MatrixCompleter(1, shape=(4, 5)), entries),
        "NuclearProximal": (NuclearProximal, matrices),
    }
    for model in baseline_kinds():
        update = f", {model.update}" if hasattr(model, "update") else ""
        found[type(model).__name__ + update] = (partial(clone, model), rows)
    return found


def is_summary(value):
    return isinstance(value, Gram | MultiResponse | Entries)


def learn(value, sample):
    (value.absorb if is_summary(value) else value.partial_fit)(*sample)


def moments(value):
    """Everything that a summary knows about its rows; None if there is no summary."""
    value = value if is_summary(value) else getattr(value, "summary_", None)
    if isinstance(value, Gram):
        return [value.comoment(), value.cross_comoment(), value.mean_x, value.mean_y, value.weight]
    if isinstance(value, MultiResponse):
        return [value.joint_moments(), value.mean_x, value.mean_y, value.weight]
    return None if value is None else [value.counts, value.sums, value.sum_squares, value.weight]


def count(value):
    return value.n_samples if is_summary(value) else value.n_samples_seen_


def read(value, drawn, turn):
    """One of the things that can be read."""
    if turn % 3 == 2:
        again = from_bytes(content(value))  # checks that it is consistent
        assert count(again) <= len(drawn[0])
        return
    if is_summary(value):
        shape = value.shape if isinstance(value, Entries) else (D,) if isinstance(value, Gram) else (D, 3)
        found = value.loss(np.ones(shape)) if turn % 3 else value.merge(value).weight
    elif turn % 3 and not isinstance(value, MatrixCompleter):
        found = value.predict(drawn[0][:3])
    else:
        found = value.coef_
    assert np.isfinite(found).all(), "what was read is not finite"


def content(value):
    with lock_of(value):
        return encode(value)


class Run:
    """Threads on one object."""

    def __init__(self, value, drawn, calls):
        self.value, self.drawn, self.calls = value, drawn, calls
        self.errors = []
        self.start = threading.Barrier(N_THREADS)

    def work(self, place):
        try:
            self.start.wait()
            for turn in range(self.calls):
                k = turn * N_THREADS + place
                learn(self.value, tuple(part[k : k + 1] for part in self.drawn))
                if turn % 20 == place:
                    read(self.value, self.drawn, turn // 20)
        except BaseException:
            self.errors.append(traceback.format_exc())

    def go(self):
        threads = [threading.Thread(target=self.work, args=(place,), daemon=True) for place in range(N_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.errors, self.errors[0]


def check_kind(name, calls):
    """Threads on one kind of object, compared with a serial run."""
    make, draw = kinds()[name]
    calls = max(calls // 10, 20) if name.split(",")[0] in SLOW else calls
    n = N_THREADS * calls
    drawn = draw(n)
    first = make()
    learn(first, tuple(part[:1] for part in drawn))  # so that every thread finds a fitted model
    run = Run(first, drawn, calls)
    run.go()
    assert count(first) == n + 1, f"{count(first)} samples are counted, not {n + 1}"
    found = moments(first)
    if found is None:
        return n
    serial = make()
    learn(serial, tuple(part[:1] for part in drawn))
    learn(serial, drawn)
    tolerance = 1e-5 if "float32" in name else 1e-12
    expected = moments(serial)
    if getattr(getattr(first, "summary_", first), "forgets", False):  # which rows are old depends on who comes first
        found, expected = found[-1:], expected[-1:]
    for ours, theirs in zip(found, expected, strict=True):
        scale = float(np.abs(theirs).max()) or 1.0
        assert np.abs(ours - theirs).max() <= tolerance * scale, "the moments are not those of a serial run"
    return n


def check_merging(calls):
    """Two summaries that threads merge in both orders, and subtract, while others add rows to them."""
    X, y = rows(400)
    one, two = Gram(D).absorb(X, y), Gram(D).absorb(X[:100], y[:100])
    errors = []

    def work(place):
        a, b = (one, two) if place % 2 else (two, one)
        try:
            for turn in range(calls):
                if place < 4:
                    merged = a.merge(b)
                    assert merged.n_samples >= 500
                    assert np.isfinite(merged.subtract(two.copy() if turn % 2 else b.empty()).weight)
                else:
                    a.absorb(X[turn % 400 : turn % 400 + 1], y[turn % 400 : turn % 400 + 1])
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=work, args=(place,), daemon=True) for place in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    assert one.n_samples + two.n_samples == 500 + 4 * calls
    return N_THREADS * calls


def check_fork(calls):
    """Children that are forked while a thread holds the lock can use the object."""
    X, y = rows(64)
    model, held, leave = SparseRegressor().partial_fit(X, y), threading.Event(), threading.Event()

    def hold():
        with lock_of(model), lock_of(model.summary_):
            held.set()
            leave.wait()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    held.wait()
    for _ in range(min(calls, 20)):
        child = os.fork()
        if child == 0:
            try:
                model.partial_fit(X, y)
                os._exit(0 if model.n_samples_seen_ == 128 else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0, "the child of a fork fails"
    leave.set()
    thread.join()
    return min(calls, 20)


SPECIAL = {"merging in opposite order": check_merging, "fork while locked": check_fork}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, help="of each thread: 60, or 10,000 with --long")
    parser.add_argument("--only", help="one kind, in this process")
    parser.add_argument("--long", action="store_true", help=f"kept in {RESULTS.name}")
    options = parser.parse_args()
    options.calls = options.calls or (10_000 if options.long else 60)
    if options.only is not None:
        warnings.simplefilter("ignore")
        sys.setswitchinterval(SWITCH)
        special = SPECIAL.get(options.only)
        print(special(options.calls) if special else check_kind(options.only, options.calls))
        return 0
    result, faults = {}, 0
    for name in (*kinds(), *SPECIAL):
        start = time.perf_counter()
        command = [sys.executable, __file__, "--only", name, "--calls", str(options.calls)]
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=60 + options.calls * 0.2, check=False
            )
            fault = "" if ended.returncode == 0 else f"status {ended.returncode}: {ended.stderr.strip()[-600:]}"
        except subprocess.TimeoutExpired:
            fault = "it does not come to an end"
        n = 0 if fault else int(ended.stdout)
        result[name] = {"calls": n, "seconds": round(time.perf_counter() - start, 1), "fault": fault}
        faults += bool(fault)
        print(f"{name}: {fault or f'{n} calls'}", flush=True)
    if options.long:
        RESULTS.parent.mkdir(exist_ok=True)
        found = {"threads": N_THREADS, "calls of each": options.calls, "faults": faults, "kinds": result}
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
