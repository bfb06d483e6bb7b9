"""A cell is run: rows go to all its methods block by block, and errors are recorded at the times asked for."""

from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.bank import Bank
from reproduction.cells import Cell, Method
from reproduction.l1_steps import L1Steps, cone_ratio
from reproduction.lockstep import Lockstep
from reproduction.os_lassos import OSLassos
from thresher import LowRankRegressor, Rank, SparseRegressor
from thresher._utils.threads import one_blas_thread
from thresher.io.sources.synthetic import LowRankStream, SparseLinearStream
from thresher.online.dense import SINGLE_FROM, DenseRounds
from thresher.online.sparse import SparseRounds
from thresher.solvers.subsets import Subsets
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]

# Rows are drawn in blocks of this size, whatever the times at which errors are wanted: rows must not depend on those.
BLOCK = 256


class Result(NamedTuple):
    """The squared error of one method of a cell after so many rows."""

    cell: str
    seed: int
    method: str
    t: int
    mse: float


class Learner(NamedTuple):
    """A method at work: what it does with new rows of its own accord, and its coefficients."""

    method: Method
    learn: Callable[[Floats, Floats], object] | None
    coef: Callable[[], Floats]


def run_cell(cell: Cell) -> list[Result]:
    """Run all methods of a cell on its rows."""
    return run_together([cell])[0]


def run_together(cells: Sequence[Cell]) -> list[list[Result]]:
    """Run cells that see the same rows.

    All methods of Algorithm 1 share one summary, so the moments are folded once however many there are; those of
    matrices also share their products with the moments. Memory does not grow with the number of rows.
    """
    parameters = dict(cells[0].design)
    stream = LowRankStream if parameters.pop("matrix") else SparseLinearStream
    source = _drawn(stream, parameters, cells[0].data_seed)
    shared = _Shared(source.coef)
    learners = [[shared.learner(method) for method in cell.methods] for cell in cells]
    results: list[list[Result]] = [[] for _ in cells]
    n_rows, n_seen = max(cell.n_rows for cell in cells), 0
    stops = sorted({t for cell in cells for method in cell.methods for t in method.times})
    with one_blas_thread():
        while n_seen < n_rows:
            X, y = source.draw(BLOCK)
            start = 0
            while start < BLOCK and n_seen < n_rows:
                stop = min(start + min(t for t in stops if t > n_seen) - n_seen, BLOCK)
                shared.absorb(X[start:stop].reshape(stop - start, -1), y[start:stop])
                for method, learn, _ in chain.from_iterable(learners):
                    if learn and n_seen < method.times[-1]:
                        learn(X[start:stop], y[start:stop])
                n_seen += stop - start
                start = stop
                for cell, found, methods in zip(cells, results, learners, strict=True):
                    for method, _, coef in methods:
                        if n_seen in method.times:
                            measure = cone_ratio if method.measure == "cone" else _squared_error
                            value = measure(coef(), source.coef)
                            found.append(Result(cell.name, cell.seed, method.label, n_seen, value))
    return results


def _drawn(stream: Any, parameters: dict[str, Any], seed: int) -> Any:
    """A stream; with `exactly`, the first whose truth has so many nonzero coefficients."""
    exactly = parameters.pop("exactly", None)
    for number in count(seed):
        source = stream(**parameters, seed=number)
        if exactly is None or np.count_nonzero(source.coef) == exactly:
            return source
    raise AssertionError("counting does not end")


def _squared_error(coef: Floats, truth: Floats) -> float:
    return float(((coef - truth) ** 2).sum())


class _Shared:
    """What methods share that see the same rows: the Gram, and the rounds of Algorithm 1 on it."""

    def __init__(self, truth: Floats) -> None:
        self._truth = truth
        self._gram = Gram(truth.size, hold_rows=truth.ndim == 2)
        # Lockstep can only pay where products take longer than the calls between them.
        together = truth.ndim == 2 and truth.size >= SINGLE_FROM
        self._rounds: Bank | Lockstep = Lockstep(self._gram) if together else Bank(self._gram)
        self._l1: dict[tuple[Any, ...], L1Steps] = {}
        self._os_lassos: dict[tuple[Any, ...], OSLassos] = {}

    def absorb(self, X: Floats, y: Floats) -> None:
        """Add rows to the Gram, with the rounds of all methods of Algorithm 1."""
        if not self._l1:
            self._rounds.absorb(X, y)
            return
        for i in range(len(y)):
            self._rounds.absorb(X[i : i + 1], y[i : i + 1])
            for steps in self._l1.values():
                steps.round()

    def learner(self, method: Method) -> Learner:
        """Set up a method."""
        if method.kind == "oht":
            return Learner(method, None, self._algorithm_1(method))
        if method.kind == "l1":
            settings = method.update, method.n_steps, method.step_size, method.t0
            steps = self._l1.setdefault(settings, L1Steps(self._gram, *settings))
            return Learner(method, None, lambda: steps.coef)
        if method.kind == "offline":
            return Learner(method, None, lambda: _best_subset(self._gram, method.size))
        if method.kind == "oracle":
            return Learner(method, None, lambda: _oracle(self._gram, self._truth))
        if method.kind == "os_lasso":
            return self._os_lasso(method)
        model = SparseRegressor() if self._truth.ndim == 1 else LowRankRegressor()
        return Learner(method, model.partial_fit, lambda: model.coef_)

    def _os_lasso(self, method: Method) -> Learner:
        settings = method.t0, method.step_size, method.times
        is_first = settings not in self._os_lassos
        models = self._os_lassos.setdefault(settings, OSLassos(method.t0, method.step_size))
        models.add(method.n_steps)
        return Learner(method, models.partial_fit if is_first else None, lambda: models.coef(method.n_steps))

    def _algorithm_1(self, method: Method) -> Callable[[], Floats]:
        settings = method.step_size, method.n_steps, method.t0
        if isinstance(self._rounds, Bank) and self._truth.ndim == 1:
            sparse = SparseRounds(self._gram, method.size, False, False)
            self._rounds.add(sparse, *settings)
            return lambda: sparse.coef
        dense = DenseRounds(self._gram, Rank(method.size, self._truth.shape), False, False)
        self._rounds.add(dense, *settings)
        return lambda: dense.coef


def _best_subset(gram: Gram, size: int) -> Floats:
    """Least squares on the best subset of this size that forward selection, elimination and swaps find."""
    coef = np.zeros(gram.n_features)
    columns, values = Subsets(centred=False).best(gram, size)
    coef[columns] = values
    return coef


def _oracle(gram: Gram, truth: Floats) -> Floats:
    """Least squares on the true support; for matrices, over the tangent space of the truth among those of its rank."""
    if not truth.any():
        return np.zeros_like(truth)
    coef = np.zeros(truth.size)
    if truth.ndim == 1:
        support = np.flatnonzero(truth)
        coef[support] = np.linalg.lstsq(*gram.normal_equations(support, centred=False), rcond=None)[0]
        return coef
    moments, products = gram.normal_equations(np.arange(truth.size), centred=False)
    basis = _tangents(truth)
    coef = basis @ np.linalg.lstsq(basis.T @ moments @ basis, basis.T @ products, rcond=None)[0]
    return coef.reshape(truth.shape)


def _tangents(truth: Floats) -> Floats:
    """An orthonormal basis of all U A' + B V', U and V being the singular vectors of the truth; one column each."""
    r = int(np.linalg.matrix_rank(truth))
    u, _, vt = np.linalg.svd(truth)
    both = [np.outer(u[:, i], vt[j]).ravel() for i in range(len(u)) for j in range(len(vt)) if i < r or j < r]
    return np.array(both).T
