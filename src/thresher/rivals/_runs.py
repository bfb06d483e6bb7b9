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
from numba.core import event
from sklearn.base import clone

from thresher._threads import one_blas_thread
from thresher.rivals._comparison import Record
from thresher.rivals._fingerprints import digest

# Rows in a call of partial_fit, and drawn at once.
BLOCK = 256


class Plan(NamedTuple):
    """What is the same for all runs of a comparison."""

    stream: Callable[..., Any]
    checkpoints: tuple[int, ...]
    n_test: int

    def draw(self, seed: int) -> "_Rows":
        return _Rows(self.stream(seed=seed), self.checkpoints, self.n_test)


class _Rows:
    """The rows of one seed, to be taken once: test rows, then blocks up to the last checkpoint.

    Blocks are drawn whole, also the last one, so that rows do not depend on the checkpoints.
    """

    def __init__(self, source: Any, checkpoints: tuple[int, ...], n_test: int) -> None:
        if not hasattr(source, "draw"):
            raise TypeError(f"stream(seed=...) returned a {type(source).__name__}; it must have a method draw(n).")
        self._source, self._checkpoints = source, checkpoints
        self.truth = deepcopy(getattr(source, "coef", None))  # drawing may change the stream's own
        self.X_test: Any = None
        self.y_test: Any = None
        if n_test:
            self.X_test, self.y_test = self._draw(n_test, n_test)
        self._first = X, y = self._block(0)
        self.digest = digest(self.truth, self.X_test, self.y_test, X[:1], y[:1])

    def pieces(self) -> Iterator[tuple[Any, Any, int]]:
        """Rows, responses and how many there were with these; blocks are cut where a checkpoint is due."""
        last = self._checkpoints[-1]
        for start in range(0, last, BLOCK):
            # A method that works in place must not spoil what a stream has at hand for others.
            X, y = deepcopy(self._block(start) if start else self._first)
            stop = min(start + BLOCK, last)
            inside = [t for t in self._checkpoints if start < t < stop]
            for a, b in pairwise([start, *inside, stop]):
                yield X[a - start : b - start], y[a - start : b - start], b

    def _block(self, start: int) -> tuple[Any, Any]:
        return self._draw(BLOCK, min(BLOCK, self._checkpoints[-1] - start))

    def _draw(self, n: int, n_due: int) -> tuple[Any, Any]:
        X, y = self._source.draw(n)
        if not n_due <= len(y) <= n or X.shape[0] != len(y):
            raise ValueError(
                f"The stream gave {len(y)} rows where {n_due} were due. Use earlier checkpoints or fewer test rows."
            )
        return X, y


class Failure(NamedTuple):
    error: str
    trace: str


class Outcome(NamedTuple):
    method: str
    seed: int
    data: str
    records: tuple[Record, ...]
    warned: tuple[tuple[str, type[Warning]], ...]
    failure: Failure | None


def run(name: str, method: Any, settings: str, seed: int, plan: Plan) -> Outcome:
    """All rows of a seed, learned by one method; once more if code was loaded meanwhile, which is not learning."""
    with one_blas_thread():
        outcome, loaded = _attempt(name, method, settings, seed, plan)
        if loaded and outcome.failure is None:
            outcome, _ = _attempt(name, method, settings, seed, plan)
    return outcome


def _attempt(name: str, method: Any, settings: str, seed: int, plan: Plan) -> tuple[Outcome, bool]:
    """A run, and whether modules were imported, or functions compiled or loaded, while it learned."""
    rows = plan.draw(seed)
    records: list[Record] = []
    warned: dict[str, type[Warning]] = {}
    failures: list[Failure] = []
    seconds, loaded = 0.0, False
    model: Any = None
    with _noted(failures):
        model = _fresh(method, seed)
    with event.install_recorder("numba:compiler_lock") as compiler:
        for X, y, t in rows.pieces():
            if failures:
                break
            with _noted(failures), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                code = len(sys.modules), len(compiler.buffer)
                start = time.perf_counter()
                model.partial_fit(X, y)
                seconds += time.perf_counter() - start
                loaded |= code != (len(sys.modules), len(compiler.buffer))
                if t in plan.checkpoints:
                    measured = _measure(model, rows, is_last=t == plan.checkpoints[-1])
                    records.append(
                        Record(name, seed, t, **measured, seconds=seconds, settings=settings, data=rows.digest)
                    )
            warned.update({str(w.message): w.category for w in caught})
    failure = failures[0] if failures else None
    return Outcome(name, seed, rows.digest, tuple(records), tuple(warned.items()), failure), loaded


@contextmanager
def _noted(failures: list[Failure]) -> Iterator[None]:
    """Note what a method raises. Faults of the stream lie outside: they concern all methods."""
    try:
        yield
    except Exception as error:
        failures.append(Failure(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))))


def _fresh(method: Any, seed: int) -> Any:
    model = clone(method)
    parameters = model.get_params(deep=True)
    # Pickle writes an object once. Equal strings of a program are one object, those from another process are not.
    changes: dict[str, Any] = {name: sys.intern(value) for name, value in parameters.items() if type(value) is str}
    if "random_state" in parameters and parameters["random_state"] is None:
        changes["random_state"] = seed
    return model.set_params(**changes)


def _measure(model: Any, rows: _Rows, is_last: bool) -> dict[str, Any]:
    nan = float("nan")
    mse = precision = recall = error = nan
    truth = None if rows.truth is None else np.ravel(rows.truth)
    known = is_last or hasattr(model, "coef_")  # what was never shown is no linear model
    coef = np.ravel(model.coef_) if known else np.zeros(0 if truth is None else truth.size)
    with np.errstate(all="ignore"):
        if truth is not None:
            if truth.shape != coef.shape:
                raise ValueError(f"coef_ has {coef.size} entries and the coef of the stream has {truth.size}.")
            mse = _or_infinite(((coef - truth) ** 2).sum())
            common, n_chosen, n_true = (
                int(np.count_nonzero(which)) for which in ((coef != 0.0) & (truth != 0.0), coef, truth)
            )
            precision = common / n_chosen if n_chosen else 1.0
            recall = common / n_true if n_true else 1.0
        if rows.y_test is not None:
            predicted = np.ravel(model.predict(rows.X_test)) if known else 0.0
            error = _or_infinite(np.mean((predicted - np.ravel(rows.y_test)) ** 2))
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
    """An error, infinite where there is no telling: medians pass over NaN, which stands for nothing to compare with."""
    return float("inf") if np.isnan(error) else float(error)


class _Pickler(pickle.Pickler):
    """Pickle that takes what nobody can import, such as a lambda for a step size, by its name."""

    def persistent_id(self, value: Any) -> str | None:
        if isinstance(value, FunctionType | type) and ("<" in value.__qualname__ or value.__module__ == "__main__"):
            return sys.intern(value.__qualname__)
        return None


def _pickled_size(model: Any) -> int:
    file = io.BytesIO()
    _Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(model)
    return file.tell()
