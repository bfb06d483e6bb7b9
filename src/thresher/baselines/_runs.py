"""One method on the rows of one seed."""

import io
import pickle
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import pairwise
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from thresher._utils.threads import one_blas_thread
from thresher.baselines._comparison import Record

# Most rows in a call of partial_fit.
BLOCK = 256


class Plan(NamedTuple):
    """What is the same for all runs of a comparison."""

    stream: Callable[..., Any]
    checkpoints: tuple[int, ...]
    n_test: int


class _Rows:
    """The rows of one seed, to be drawn once: test rows, then blocks up to the last checkpoint."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self._source, self._checkpoints = plan.stream(seed=seed), plan.checkpoints
        if not hasattr(self._source, "draw"):
            kind = type(self._source).__name__
            raise TypeError(f"stream(seed=...) returned a {kind}; it must have a method draw(n).")
        self.truth = deepcopy(getattr(self._source, "coef", None))  # drawing may change the stream's own
        test: tuple[Any, Any] = self._draw(plan.n_test) if plan.n_test else (None, None)
        self.X_test, self.y_test = test

    def blocks(self) -> Iterator[tuple[Any, Any, int]]:
        """Rows, responses and how many there were with these; blocks are cut at the checkpoints."""
        last = self._checkpoints[-1]
        for start, stop in pairwise(sorted({*range(0, last, BLOCK), *self._checkpoints})):
            X, y = deepcopy(self._draw(stop - start))  # a method that works in place must not change the stream
            if start == 0:
                self.first_response = float(np.ravel(y)[0])
            yield X, y, stop

    def _draw(self, n: int) -> tuple[Any, Any]:
        X, y = self._source.draw(n)
        if not len(y) == X.shape[0] == n:
            raise ValueError(f"The stream gave {len(y)} rows, not {n}. Use earlier checkpoints or fewer test rows.")
        return X, y


class Failure(NamedTuple):
    error: str
    trace: str


class Outcome(NamedTuple):
    method: str
    seed: int
    first_response: float  # tells whether all methods have the same rows
    records: tuple[Record, ...]
    warned: tuple[tuple[str, type[Warning]], ...]
    failure: Failure | None


def run(name: str, method: Any, seed: int, plan: Plan) -> Outcome:
    """All rows of a seed, learned by one method; a second time if that imported modules, which is not learning."""
    with one_blas_thread():
        outcome, loaded = _attempt(name, method, seed, plan)
        if loaded and outcome.failure is None:
            outcome, _ = _attempt(name, method, seed, plan)
    return outcome


def _attempt(name: str, method: Any, seed: int, plan: Plan) -> tuple[Outcome, bool]:
    """A run, and whether modules were imported while it learned."""
    rows = _Rows(plan, seed)
    records: list[Record] = []
    warned: dict[str, type[Warning]] = {}
    failures: list[Failure] = []
    seconds, loaded = 0.0, False
    model: Any = None
    with _noted(failures):
        model = _fresh(method, seed)
    for X, y, t in rows.blocks():
        if failures:
            break
        with _noted(failures), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            n_modules = len(sys.modules)
            start = time.perf_counter()
            model.partial_fit(X, y)
            seconds += time.perf_counter() - start
            loaded |= n_modules != len(sys.modules)
            if t in plan.checkpoints:
                records.append(Record(name, seed, t, **_measure(model, rows), seconds=seconds))
        warned.update({str(w.message): w.category for w in caught})
    failure = failures[0] if failures else None
    return Outcome(name, seed, rows.first_response, tuple(records), tuple(warned.items()), failure), loaded


@contextmanager
def _noted(failures: list[Failure]) -> Iterator[None]:
    """Note what a method raises. Errors of the stream are raised outside: they concern all methods."""
    try:
        yield
    except Exception as error:
        failures.append(Failure(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))))


def _fresh(method: Any, seed: int) -> Any:
    model = clone(method)
    unseeded = model.get_params(deep=True).get("random_state", seed) is None
    return model.set_params(random_state=seed) if unseeded else model


def _measure(model: Any, rows: _Rows) -> dict[str, Any]:
    nan = float("nan")
    mse = precision = recall = error = nan
    coef = np.ravel(model.coef_)
    with np.errstate(all="ignore"):
        if rows.truth is not None:
            truth = np.ravel(rows.truth)
            if truth.shape != coef.shape:
                raise ValueError(f"coef_ has {coef.size} entries and the coef of the stream has {truth.size}.")
            mse = _or_infinite(((coef - truth) ** 2).sum())
            common, n_chosen, n_true = (
                int(np.count_nonzero(which)) for which in ((coef != 0.0) & (truth != 0.0), coef, truth)
            )
            precision = common / n_chosen if n_chosen else 1.0
            recall = common / n_true if n_true else 1.0
        if rows.y_test is not None:
            error = _or_infinite(np.mean((np.ravel(model.predict(rows.X_test)) - np.ravel(rows.y_test)) ** 2))
    return {
        "mse": mse,
        "prediction_error": error,
        "nonzeros": int(np.count_nonzero(coef)),
        "precision": precision,
        "recall": recall,
        "bytes": _pickled_size(model),
        "diverged": getattr(model, "diverged_at_", None) is not None
        or bool(getattr(model, "diverged_", False))
        or not bool(np.isfinite(coef).all()),
    }


def _or_infinite(error: Any) -> float:
    """An error, infinite if it is not a number: medians leave out NaN, which stands for nothing to compare with."""
    return float("inf") if np.isnan(error) else float(error)


class _Pickler(pickle.Pickler):
    """Pickle that takes what cannot be imported, such as a lambda for a step size, by its name."""

    def persistent_id(self, value: Any) -> str | None:
        if isinstance(value, FunctionType | type) and ("<" in value.__qualname__ or value.__module__ == "__main__"):
            return value.__qualname__
        return None


def _pickled_size(model: Any) -> int:
    file = io.BytesIO()
    _Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(model)
    return file.tell()
