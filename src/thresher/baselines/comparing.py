"""Methods beside each other, on the same rows."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from numbers import Integral
from typing import Any

import joblib

from thresher._utils.checks import check_positive_integer
from thresher._utils.run_progress import Progress
from thresher._utils.warnings import warn_caller
from thresher.baselines._comparison import Comparison
from thresher.baselines._runs import Outcome, Plan, run


class FailedRunsError(RuntimeError):
    """Some methods raised an error. The records of the others are in `comparison`.

    Examples
    --------
    >>> from functools import partial
    >>> from thresher.baselines import IHT, FailedRunsError, compare
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> stream = partial(SparseLinearStream, n_features=30, n_active=3, signal=1.0)
    >>> try:
    ...     compare({"good": IHT(3), "bad": IHT(-1)}, stream, checkpoints=[200], seeds=[0], n_jobs=1)
    ... except FailedRunsError as error:
    ...     print(error.comparison.methods)
    ('good',)
    """

    def __init__(self, failed: Sequence[Outcome], comparison: Comparison, n_runs: int) -> None:
        each = [f"{run.method!r}, seed {run.seed}: {run.failure.error}" for run in failed if run.failure]
        title = f"{len(failed)} of {n_runs} runs failed; the attribute comparison of this error has the others."
        super().__init__("\n".join([title, *each]))
        self.comparison = comparison
        if failed[0].failure:
            self.add_note(f"The first failure:\n{failed[0].failure.trace}")


def compare(
    methods: Mapping[str, Any] | Iterable[Any],
    stream: Callable[..., Any],
    checkpoints: Iterable[int],
    seeds: Iterable[int],
    *,
    n_test: int = 1000,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Run methods on the same streams, and measure error, support, time and memory at given row counts.

    Each method starts from nothing for each seed. It learns the rows of that seed in blocks of at most 256, cut at the
    row counts, and finishes before the next method begins. Rows are drawn again for each run, so memory does not grow
    with their number. Drawing rows is not timed. BLAS has one thread.

    Parameters
    ----------
    methods : mapping of str to estimator, or list of estimators
        Anything with ``partial_fit``, ``predict``, ``coef_`` and ``get_params``: those of this package, of
        ``thresher.baselines``, or scikit-learn's. They are copied, not fitted. Estimators in a list are named after
        their classes. A ``random_state`` of None is set to the seed.
    stream : callable
        Called as ``stream(seed=seed)``. Returns an object with ``draw(n)``, which gives the next n rows as (X, y), and
        with ``coef`` if the truth is known; ``coef`` is read before rows are drawn. The same seed must give the same
        rows.
    checkpoints : iterable of int
        Row counts at which to measure, increasing.
    seeds : iterable of int
        Such as ``range(10)``.
    n_test : int, default=1000
        The first rows of each seed are kept for `prediction_error`; no method learns from them. May be 0.
    n_jobs : int, optional
        Processes, each with one run at a time. By default as many as there are cores or runs. Runs compete for memory
        bandwidth, so use 1 to measure seconds.
    progress : bool, optional
        Whether to show progress; by default on a terminal. A bar needs rich (``pip install 'thresher[cli]'``); there
        are plain lines without it.

    Returns
    -------
    Comparison
        A sequence of records with the fields

        - method, seed, t: after t rows;
        - mse: squared distance of ``coef_`` from the truth, infinite if not finite; NaN without a truth;
        - prediction_error: mean squared error of ``predict`` on the test rows, infinite if not finite; NaN without
          test rows;
        - nonzeros: the number of nonzero coefficients;
        - precision, recall: the part of the nonzero coefficients that are nonzero in truth, and the part of the true
          ones that were found; 1 if there are none; NaN without a truth;
        - seconds: spent in ``partial_fit`` so far; a run in which modules were imported is run again;
        - bytes: of the pickled estimator;
        - diverged: whether ``diverged_at_`` is not None, ``diverged_`` is true, or coefficients are not finite.

        All fields but seconds and bytes are the same, bit for bit, in one process and in several.

    Raises
    ------
    FailedRunsError
        If a method raised, after all other runs are finished. An error of the stream is raised at once.

    Examples
    --------
    >>> from functools import partial
    >>> from thresher import SparseRegressor
    >>> from thresher.baselines import DualAveraging, compare
    >>> from thresher.io.sources.synthetic import SparseLinearStream
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
    plan = Plan(stream, counts, int(n_test))
    tasks = [(name, named[name], seed, plan) for seed in numbers for name in named]
    n_jobs = min(joblib.cpu_count(), len(tasks)) if n_jobs is None else n_jobs
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", backend="loky")
    outcomes: dict[tuple[str, int], Outcome] = {}
    first_rows: dict[int, float] = {}
    told: set[tuple[str, str]] = set()
    with (
        Progress(0, len(tasks), progress) as shown,
        closing(parallel(joblib.delayed(run)(*task) for task in tasks)) as finished,
    ):
        for outcome in finished:
            if outcome.first_response != first_rows.setdefault(outcome.seed, outcome.first_response):
                raise ValueError(
                    f"stream(seed={outcome.seed}) gave other rows when it was called again. It must draw from the "
                    "seed alone."
                )
            outcomes[outcome.method, outcome.seed] = outcome
            shown.advance(f"{outcome.method}, seed {outcome.seed}")
            _show_warnings(outcome, told)
    ordered = [outcomes[name, seed] for name in named for seed in numbers]
    comparison = Comparison(record for outcome in ordered if not outcome.failure for record in outcome.records)
    failed = [outcome for outcome in ordered if outcome.failure]
    if failed:
        raise FailedRunsError(failed, comparison, len(tasks))
    return comparison


def _show_warnings(outcome: Outcome, told: set[tuple[str, str]]) -> None:
    """Show each kind of warning of a method once; texts that differ in numbers only are of one kind."""
    for text, category in outcome.warned:
        kind = outcome.method, re.sub(r"[\d.e+-]+", "#", text)
        if kind not in told:
            told.add(kind)
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


def _check_checkpoints(checkpoints: Iterable[int]) -> tuple[int, ...]:
    counts = tuple(check_positive_integer(t, "Each of checkpoints") for t in checkpoints)
    if not counts or any(a >= b for a, b in pairwise(counts)):
        raise ValueError(f"checkpoints must be increasing row counts, at least one; got {list(counts)}")
    return counts


def _check_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    listed = list(seeds)
    if not all(isinstance(seed, Integral) and not isinstance(seed, bool) for seed in listed):
        raise ValueError(f"seeds must be integers, got {listed!r}")
    numbers = tuple(int(seed) for seed in listed)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"seeds must be different integers, at least one; got {list(numbers)}")
    return numbers
