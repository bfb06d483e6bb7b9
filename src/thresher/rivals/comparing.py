"""Methods beside each other, on the same rows."""

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from itertools import pairwise
from numbers import Integral
from os import PathLike, fsdecode
from pathlib import Path
from typing import Any

import joblib

from thresher._checks import check_positive_integer
from thresher._progress import Progress
from thresher._threads import one_blas_thread
from thresher._warnings import warn_caller
from thresher.rivals._comparison import Comparison, Record
from thresher.rivals._fingerprints import settings_of
from thresher.rivals._runs import Failure, Outcome, Plan, run
from thresher.rivals._saved_records import SavedRecords


class FailedRunsError(RuntimeError):
    """Some methods raised. What the others found is in `comparison`."""

    def __init__(self, failed: Sequence[Outcome], comparison: Comparison, n_runs: int, path: Path | None) -> None:
        where = "in the attribute comparison of this error" + ("" if path is None else f" and in {path}")
        each = [f"{run.method!r}, seed {run.seed}: {run.failure.error}" for run in failed if run.failure]
        super().__init__("\n".join([f"{len(failed)} of {n_runs} runs failed; the others are {where}.", *each]))
        self.comparison = comparison
        if failed[0].failure:
            self.add_note(f"The first failure:\n{failed[0].failure.trace}")


def compare(
    methods: Mapping[str, Any] | Iterable[Any],
    stream: Callable[..., Any],
    checkpoints: Iterable[int],
    seeds: Iterable[int],
    *,
    output: str | bytes | PathLike[str] | None = None,
    n_test: int = 1000,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Run methods on the same streams, and measure error, support, time and memory at given row counts.

    Each method starts afresh for each seed and takes the rows of that seed in blocks of at most 256, cut where a row
    count is due. It runs to the end before the next one begins, so that no method finds the caches filled by another
    and what is finished is finished. Rows are drawn anew for each run, so memory does not grow with their number;
    neither drawing nor copying is timed. BLAS has one thread.

    Parameters
    ----------
    methods : mapping of str to estimator, or list of estimators
        Anything with ``partial_fit``, ``predict``, ``coef_`` and ``get_params``: those of this package, of
        ``thresher.rivals``, or scikit-learn's. They are copied, not fitted; names in a list are those of the classes.
        A ``random_state`` of None is set to the seed.
    stream : callable
        Called as ``stream(seed=seed)``; returns an object with ``draw(n)``, giving the next n rows as (X, y), or what
        is left if it ends, and, if the truth is known, ``coef``, which is read once, before rows are drawn. The same
        seed must give the same rows. They are drawn 256 at a time.
    checkpoints : iterable of int
        Row counts at which to measure, increasing.
    seeds : iterable of int
        Such as ``range(10)``.
    output : path, optional
        A file that each run (a method with a seed) is appended to when it is finished. If it exists, only runs that are
        missing are computed: an interrupted comparison goes on where it was, and methods, seeds and row
        counts can be added later. One line of JSON per record. For a new row count a run starts over, and what the
        file has of it stays, with the seconds of that time. One comparison at a time can write to a file (where the
        system has locks). Parameters must tell what they hold: numbers, texts, arrays, functions and containers of
        these do, and objects whose repr does.
    n_test : int, default=1000
        The first rows of each seed, which no method learns from, are kept for `prediction_error`. May be 0.
    n_jobs : int, optional
        Processes, each with a run at a time. By default as many as there are cores or runs. Runs compete
        for memory bandwidth, so take 1 if seconds are the point. If a process dies, the runs that are left have a
        process each, one after the other.
    progress : bool, optional
        Whether to show progress; by default on a terminal. A bar needs rich (``pip install 'thresher[demo]'``); there
        are plain lines without it.

    Returns
    -------
    Comparison
        A sequence of records with the fields

        - method, seed, t: after t rows;
        - mse: squared distance of ``coef_`` from the truth, infinite if not finite; NaN without a truth;
        - prediction_error: mean squared error of ``predict`` on the test rows, infinite if there is no telling; NaN
          without them;
        - nonzeros: the number of nonzero coefficients;
        - precision, recall: the part of the nonzero coefficients that are nonzero in truth, and the part of the
          latter that were found; 1 where there are none to be right about; NaN without a truth;
        - seconds: spent in ``partial_fit`` so far; a run in which modules were imported, or functions compiled by
          numba or loaded from its cache, is run again;
        - bytes: of the pickled estimator, which is what has to be kept to go on;
        - diverged: whether ``diverged_at_`` is not None, ``diverged_`` is true, or coefficients are not finite;
        - settings: class and parameters; data: a digest of the truth, the test rows and the first row after them.

        A method without ``coef_`` before the last row count counts as zero so far. All but seconds are the same, bit
        for bit, whatever was resumed or ran in parallel.

    Raises
    ------
    FailedRunsError
        If a method raised or its process died, after all other runs are finished. What the stream raises is raised
        at once.

    Examples
    --------
    >>> from functools import partial
    >>> from thresher import SparseRegressor
    >>> from thresher.rivals import DualAveraging, compare
    >>> from thresher.streams.synthetic import SparseLinearStream
    >>> found = compare(
    ...     {"thresher": SparseRegressor(), "l1-RDA": DualAveraging(penalty=0.2)},
    ...     partial(SparseLinearStream, n_features=50, n_active=3, signal=1.0),
    ...     checkpoints=[100, 1000],
    ...     seeds=range(3),
    ...     n_jobs=1,
    ... )
    >>> found.best()
    'thresher'
    >>> len(found)  # methods, seeds, row counts
    12
    """
    named = _check_methods(methods)
    counts = _check_checkpoints(checkpoints)
    numbers = _check_seeds(seeds)
    if isinstance(n_test, bool) or not isinstance(n_test, Integral) or n_test < 0:
        raise ValueError(f"n_test must be an integer of at least 0, got {n_test!r}")
    path = None if output is None else Path(fsdecode(output))
    settings = _describe(named, path)
    plan = Plan(stream, counts, int(n_test))
    found: dict[tuple[str, int, int], Record] = {}
    digests: dict[int, str] = {}
    saved = None if path is None else SavedRecords(path)
    try:
        if saved is not None and path is not None:
            digests = _check_saved(saved.records, path, settings, numbers, plan)
            found = {(r.method, r.seed, r.t): r for r in saved.records}
        runs = [(name, seed) for seed in numbers for name in named]
        missing = [run for run in runs if not all((*run, t) in found for t in counts)]
        failed: list[Outcome] = []
        seen: set[tuple[str, str]] = set()
        tasks = [(name, named[name], settings[name], seed, plan) for name, seed in missing]
        with (
            Progress(len(runs) - len(missing), len(runs), progress) as shown,
            closing(_outcomes(tasks, n_jobs)) as outcomes,
        ):
            for outcome in outcomes:
                if outcome.failure is None:
                    if outcome.data != digests.setdefault(outcome.seed, outcome.data):
                        raise ValueError(
                            f"stream(seed={outcome.seed}) gave other rows when it was called again. "
                            "Let it draw from the seed alone."
                        )
                    fresh = {(r.method, r.seed, r.t): r for r in outcome.records}
                    fresh = {key: record for key, record in fresh.items() if key not in found}
                    if saved is not None:
                        saved.append(fresh.values())
                    found |= fresh
                else:
                    failed.append(outcome)
                shown.advance(f"{outcome.method}, seed {outcome.seed}")
                _show_warnings(outcome, seen)
    finally:
        if saved is not None:
            saved.close()
    keys = ((name, seed, t) for name in named for seed in numbers for t in counts)
    comparison = Comparison(found[key] for key in keys if key in found)
    if failed:
        raise FailedRunsError(failed, comparison, len(runs), path)
    return comparison


# -- all runs ------------------------------------------------------------------------------------------------


def _outcomes(tasks: list[tuple[Any, ...]], n_jobs: int | None) -> Iterator[Outcome]:
    """Runs as they finish."""
    if n_jobs is None:
        n_jobs = max(1, min(joblib.cpu_count(), len(tasks)))
    if n_jobs != 1:
        _check_sendable(tasks)
    left = {(task[0], task[3]): task for task in tasks}
    try:
        for outcome in _in_processes(tasks, n_jobs):
            del left[outcome.method, outcome.seed]
            yield outcome
    except BrokenProcessPool:  # which takes down all runs under way, whichever was to blame
        for (name, seed), task in left.items():
            try:
                yield from _in_processes([task], 2)
            except BrokenProcessPool:
                error = "its process died, perhaps for want of memory"
                yield Outcome(name, seed, "", (), (), Failure(error, error))


def _in_processes(tasks: list[tuple[Any, ...]], n_jobs: int) -> Iterator[Outcome]:
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", backend="loky")
    with closing(parallel(joblib.delayed(run)(*task) for task in tasks)) as outcomes:
        yield from outcomes


def _check_sendable(tasks: list[tuple[Any, ...]]) -> None:
    """A run that cannot be sent to a process would take down the others."""
    for name, task in {task[0]: task for task in tasks}.items():
        try:
            pickle.dumps(joblib.wrap_non_picklable_objects(task))  # as joblib does
        except Exception as error:
            raise TypeError(f"{name!r} or stream cannot be sent to another process ({error}). Use n_jobs=1.") from error


def _show_warnings(outcome: Outcome, seen: set[tuple[str, str]]) -> None:
    """Tell each kind of warning of a method once; row numbers and the like make no other kind."""
    for text, category in outcome.warned:
        kind = outcome.method, re.sub(r"[\d.e+-]+", "#", text)
        if kind not in seen:
            seen.add(kind)
            warn_caller(f"{outcome.method!r}, seed {outcome.seed}: {text}", category)


# -- what is given -------------------------------------------------------------------------------------------


def _check_methods(methods: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    if isinstance(methods, Mapping):
        named = dict(methods)
    else:
        listed = list(methods)
        named = {type(method).__name__: method for method in listed}
        if len(named) < len(listed):
            raise ValueError("Two methods are of the same class; pass a mapping that names them: {'name': method, ...}")
    if not named:
        raise ValueError("There are no methods; pass at least one.")
    for name, method in named.items():
        if not isinstance(name, str):
            raise TypeError(f"Names of methods must be strings, got {name!r}")
        if isinstance(method, type):
            raise TypeError(f"{name!r} is a class; pass an estimator, such as {method.__name__}().")
        lacks = [what for what in ("partial_fit", "predict", "get_params") if not hasattr(method, what)]
        if lacks:
            raise TypeError(f"{name!r} has no {lacks[0]}; pass an estimator that learns from streams.")
    return named


def _describe(methods: Mapping[str, Any], path: Path | None) -> dict[str, str]:
    """Settings of the methods, which in a file must tell them from others."""
    settings = {name: settings_of(method) for name, method in methods.items()}
    for name, (_, untold) in settings.items():
        if untold and path is not None:
            raise ValueError(
                f"{untold[0]} of {name!r} does not tell what it holds, so {path} could not tell it from another. "
                "Give its class a __repr__ that does, as dataclasses have, or use no output."
            )
    return {name: text for name, (text, _) in settings.items()}


def _check_checkpoints(checkpoints: Iterable[int]) -> tuple[int, ...]:
    counts = tuple(check_positive_integer(t, "Each of checkpoints") for t in _listed(checkpoints, "checkpoints"))
    if not counts or any(a >= b for a, b in pairwise(counts)):
        raise ValueError(f"checkpoints must be increasing row counts, at least one; got {list(counts)}")
    return counts


def _check_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    listed = _listed(seeds, "seeds")
    if not all(isinstance(seed, Integral) and not isinstance(seed, bool) for seed in listed):
        raise ValueError(f"seeds must be integers, got {listed!r}")
    numbers = tuple(int(seed) for seed in listed)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"seeds must be different integers, at least one; got {list(numbers)}")
    return numbers


def _listed(values: Any, name: str) -> list[Any]:
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence, got {values!r}; pass [{values!r}] or a range.")
    return list(values)


def _check_saved(
    records: Sequence[Record], path: Path, settings: Mapping[str, str], seeds: Sequence[int], plan: Plan
) -> dict[int, str]:
    """Digests of the rows of the seeds in a file, all of whose records must be of these settings and rows."""
    for record in records:
        here = settings.get(record.method, record.settings)
        if record.settings != here:
            raise ValueError(
                f"{path} holds {record.method!r} with other settings.\n  there: {record.settings}\n  here:  {here}\n"
                "Give the method another name, or use another file."
            )
    there = {record.seed: record.data for record in records if record.seed in seeds}
    with one_blas_thread():
        here_too = {seed: plan.draw(seed).digest for seed in there}
    for record in records:
        if here_too.get(record.seed, record.data) != record.data:
            raise ValueError(
                f"{path} holds seed {record.seed} with other rows: stream or n_test are not the same. Use another file."
            )
    return here_too
