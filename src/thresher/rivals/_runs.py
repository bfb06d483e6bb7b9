"""One method on the rows of one seed."""

import io
import pickle
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from itertools import pairwise
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from thresher._threads import one_blas_thread
from thresher.rivals._comparison import Record
from thresher.rivals._fingerprints import digest

# Rows in a call of partial_fit, and drawn at once.
BLOCK = 256
# Rows of a seed are kept for the next method if they take no more than this.
KEPT_BYTES = 2**28


class Plan(NamedTuple):
    """What is the same for all runs of a comparison, which `token` tells from others."""

    stream: Callable[..., Any]
    checkpoints: tuple[int, ...]
    n_test: int
    token: str

    def draw(self, seed: int) -> "_Rows":
        return _Rows(self.stream(seed=seed), self.checkpoints, self.n_test)


class _Rows:
    """The rows of one seed: test rows, then blocks up to the last checkpoint."""

    def __init__(self, source: Any, checkpoints: tuple[int, ...], n_test: int) -> None:
        if not hasattr(source, "draw"):
            raise TypeError(f"stream(seed=...) returned a {type(source).__name__}; it must have a method draw(n).")
        self._source, self._checkpoints = source, checkpoints
        self._kept: list[tuple[Any, Any]] = []
        self.all_kept = False
        self.truth = getattr(source, "coef", None)
        self.X_test: Any = None
        self.y_test: Any = None
        if n_test:
            self.X_test, self.y_test = self._draw(n_test)
        self.first = self._draw(min(BLOCK, checkpoints[-1]))
        X, y = self.first
        self.digest = digest(self.truth, self.X_test, self.y_test, X[:1], y[:1])

    def pieces(self) -> Iterator[tuple[Any, Any, int]]:
        """Rows, responses and how many there were with these; blocks are cut where a checkpoint is due."""
        start = 0
        for kept in self._kept if self.all_kept else self._blocks():
            X, y = deepcopy(kept)  # a method that works in place spoils nothing for others
            stop = start + len(y)
            inside = [t for t in self._checkpoints if start < t < stop]
            for a, b in pairwise([start, *inside, stop]):
                yield (X, y, b) if (a, b) == (start, stop) else (X[a - start : b - start], y[a - start : b - start], b)
            start = stop

    def _blocks(self) -> Iterator[tuple[Any, Any]]:
        """Draw, and keep everything if it is not too much."""
        last, row_bytes = self._checkpoints[-1], getattr(self.first[0], "nbytes", np.inf) / len(self.first[1])
        keep = last * row_bytes <= KEPT_BYTES
        for start in range(0, last, BLOCK):
            block = self._draw(min(BLOCK, last - start)) if start else self.first
            if keep:
                self._kept.append(block)
            yield block
        self.all_kept = keep

    def _draw(self, n: int) -> tuple[Any, Any]:
        X, y = self._source.draw(n)
        if len(y) != n or X.shape[0] != n:
            raise ValueError(
                f"The stream gave {len(y)} rows where {n} were due. Use earlier checkpoints or fewer test rows."
            )
        return X, y


# The rows that this process drew last, for the next method.
_recent: dict[tuple[str, int], _Rows] = {}


def _rows_of(plan: Plan, seed: int) -> _Rows:
    rows = _recent.get((plan.token, seed))
    if rows is None or not rows.all_kept:
        _recent.clear()  # before memory is taken again
        rows = _recent[plan.token, seed] = plan.draw(seed)
    return rows


def forget_rows() -> None:
    """Let go of the rows that this process holds."""
    _recent.clear()


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
    """All rows of a seed, learned by one method."""
    with one_blas_thread():
        rows = _rows_of(plan, seed)
        records: list[Record] = []
        warned: dict[str, type[Warning]] = {}
        failure = None
        seconds = 0.0
        _warm_up(method, settings, rows)
        model = _fresh(method, seed)
        for X, y, t in rows.pieces():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    start = time.perf_counter()
                    model.partial_fit(X, y)
                    seconds += time.perf_counter() - start
                    measured = _measure(model, rows) if t in plan.checkpoints else None
                except Exception as error:
                    failure = Failure(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))
                    break
            warned.update({str(w.message): w.category for w in caught})
            if measured:
                records.append(Record(name, seed, t, **measured, seconds=seconds, settings=settings, data=rows.digest))
    return Outcome(name, seed, rows.digest, tuple(records), tuple(warned.items()), failure)


def _fresh(method: Any, seed: int) -> Any:
    model = clone(method)
    parameters = model.get_params(deep=True)
    # Pickle writes an object once. Equal strings of a program are one object, those from another process are not.
    changes: dict[str, Any] = {name: sys.intern(value) for name, value in parameters.items() if type(value) is str}
    if "random_state" in parameters and parameters["random_state"] is None:
        changes["random_state"] = seed
    return model.set_params(**changes)


def _measure(model: Any, rows: _Rows) -> dict[str, Any]:
    nan = float("nan")
    coef = np.ravel(model.coef_)
    mse = precision = recall = error = nan
    with np.errstate(all="ignore"):
        if rows.truth is not None:
            truth = np.ravel(rows.truth)
            if truth.shape != coef.shape:
                raise ValueError(f"coef_ has {coef.size} entries and the coef of the stream has {truth.size}.")
            mse = float(((coef - truth) ** 2).sum())
            common, n_chosen, n_true = (
                int(np.count_nonzero(which)) for which in ((coef != 0.0) & (truth != 0.0), coef, truth)
            )
            precision = common / n_chosen if n_chosen else 1.0
            recall = common / n_true if n_true else 1.0
            if np.isnan(mse):
                mse = float("inf")
        if rows.y_test is not None:
            error = float(np.mean((np.ravel(model.predict(rows.X_test)) - np.ravel(rows.y_test)) ** 2))
    return {
        "mse": mse,
        "prediction_error": error,
        "nonzeros": int(np.count_nonzero(coef)),
        "precision": precision,
        "recall": recall,
        "bytes": _pickled_size(model),
        "diverged": getattr(model, "diverged_at_", None) is not None or not bool(np.isfinite(coef).all()),
    }


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


_warm: set[str] = set()


def _warm_up(method: Any, settings: str, rows: _Rows) -> None:
    """Let compiled code be loaded, once in a process, by a copy that is thrown away."""
    if settings in _warm:
        return
    _warm.add(settings)
    X, y = deepcopy(rows.first)
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(method)
        for i in range(0, len(y), BLOCK // 2):  # the second call may take another path than the first
            model.partial_fit(X[i : i + BLOCK // 2], y[i : i + BLOCK // 2])
