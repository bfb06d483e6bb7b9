"""A cell is run: rows go to all its methods block by block, and errors are noted at the times asked for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thresher._threads import one_blas_thread
from thresher.estimators.low_rank_regressor import LowRankRegressor
from thresher.estimators.sparse_regressor import SparseRegressor
from thresher.paper.cells import Cell, Method
from thresher.rivals.os_lasso import OSLasso
from thresher.rounds.bank import Bank
from thresher.rounds.dense import DenseRounds
from thresher.rounds.sparse import SparseRounds
from thresher.sparsity.rank import Rank
from thresher.streams.synthetic import LowRankStream, SparseLinearStream
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]

# Rows that are drawn at once, wherever errors are wanted: rows must not depend on that.
BLOCK = 256


class Result(NamedTuple):
    """The squared error of one method of a cell after so many rows."""

    cell: str
    seed: int
    method: str
    t: int
    mse: float


def run_cell(cell: Cell) -> list[Result]:
    """Run all methods of a cell on its rows.

    Those of Algorithm 1 share one summary (`Bank`), so the moments are folded once however many there are. Memory does
    not grow with the number of rows.
    """
    parameters = dict(cell.design)
    stream: Any = LowRankStream if parameters.pop("matrix") else SparseLinearStream
    source = stream(**parameters, seed=cell.data_seed)
    truth = source.coef
    bank = Bank(Gram(truth.size, hold_rows=truth.ndim == 2))
    learners = {method: _learner(method, bank, truth) for method in cell.methods}
    results, n_seen, stops = [], 0, sorted({t for method in cell.methods for t in method.times})
    with one_blas_thread():
        while n_seen < cell.n_rows:
            X, y = source.draw(BLOCK)
            rows, start = X.reshape(BLOCK, -1), 0
            while start < BLOCK and n_seen < cell.n_rows:
                stop = min(start + min(t for t in stops if t > n_seen) - n_seen, BLOCK)
                bank.absorb(rows[start:stop], y[start:stop])
                for learn, _ in learners.values():
                    learn(X[start:stop], y[start:stop])
                n_seen += stop - start
                start = stop
                for method, (_, coef) in learners.items():
                    if n_seen in method.times:
                        error = float(((coef(n_seen) - truth) ** 2).sum())
                        results.append(Result(cell.name, cell.seed, method.label, n_seen, error))
    return results


def _learner(
    method: Method, bank: Bank, truth: Floats
) -> tuple[Callable[[Floats, Floats], object], Callable[[int], Floats]]:
    """What a method does with new rows beyond those of the bank, and how to get its coefficients after t rows."""
    shape = truth.shape
    if method.kind == "oht":
        bank.add(
            (lambda gram: DenseRounds(gram, Rank(method.size, shape), False, False))
            if truth.ndim == 2
            else (lambda gram: SparseRounds(gram, method.size, False, False)),
            method.step_size,
            method.n_steps,
            method.t0,
        )
        rounds = bank.members[-1].rounds
        return _nothing, lambda t: rounds.coef.reshape(shape)
    if method.kind == "oracle":
        return _nothing, lambda t: _oracle(bank.gram, truth, t)
    model: Any
    if method.kind == "os_lasso":
        model = OSLasso(method.t0, n_steps=method.n_steps, step_size=method.step_size)
    else:
        model = SparseRegressor(n_warmup=method.t0) if truth.ndim == 1 else LowRankRegressor(n_warmup=method.t0)
    return model.partial_fit, lambda t: model.coef_


def _nothing(X: Floats, y: Floats) -> None:
    pass


def _oracle(gram: Gram, truth: Floats, t: int) -> Floats:
    """Least squares on the true support; for matrices, an error of the size that knowing the rank leaves.

    r (d1 + d2 - r) free parameters cost as many times sigma^2 / t, with sigma = 1.
    """
    if truth.ndim == 2:
        r, (d1, d2) = int(np.linalg.matrix_rank(truth)), truth.shape
        excess = np.zeros_like(truth)
        excess[0, 0] = np.sqrt(r * (d1 + d2 - r) / t)
        return truth + excess
    coef, support = np.zeros_like(truth), np.flatnonzero(truth)
    coef[support] = np.linalg.lstsq(*gram.normal_equations(support, centred=False), rcond=None)[0]
    return coef
