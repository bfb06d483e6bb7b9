"""Matrices of low rank: three problems, our estimators, and what one would write or call instead."""

import numpy as np
from learner import Learner, Method
from methods.ours import AtCheckpoints, Streamed
from methods.refits import Refit
from sklearn.linear_model import Ridge

from thresher import Entries, Gram, LowRankRegressor, MatrixCompleter, MultiResponse, ReducedRankRegressor
from thresher.io.sources.synthetic import LowRankStream

SHAPE, RANK = (30, 30), 3
N_FEATURES, N_RESPONSES, RESPONSES_RANK = 200, 20, 4
SIDE, COMPLETION_RANK = 200, 5


# -- the problems: rows, responses and the true matrix ------------------------------------------------------


def sensing(seed):
    """Y = <X, Theta> + noise, as in the paper's Section 5.2, 30 x 30 of rank 3."""
    stream = LowRankStream(SHAPE, rank=RANK, seed=seed)
    X, y = stream.draw(10_000)
    return X.reshape(len(y), -1), y, stream.coef


def responses(seed):
    """20 responses that depend on 200 features through a matrix of rank 4, noise 1."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((N_FEATURES, RESPONSES_RANK)) @ rng.standard_normal((RESPONSES_RANK, N_RESPONSES))
    B /= np.sqrt(N_FEATURES)
    X = rng.standard_normal((10_000, N_FEATURES))
    return X, X @ B + rng.standard_normal((10_000, N_RESPONSES)), B


def completion(seed):
    """60 % of the entries of a 200 x 200 matrix of rank 5, in random order, with noise 0.5."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((SIDE, COMPLETION_RANK)) @ rng.standard_normal((COMPLETION_RANK, SIDE))
    cells = rng.permutation(SIDE * SIDE)[: int(0.6 * SIDE * SIDE)]
    entries = np.column_stack(np.divmod(cells, SIDE))
    return entries, truth[entries[:, 0], entries[:, 1]] + 0.5 * rng.standard_normal(len(cells)), truth


# -- plain NumPy ---------------------------------------------------------------------------------------------


def truncated(matrix, rank):
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    return (u[:, :rank] * s[:rank]) @ vt[:rank]


class AlgorithmOne(Learner):
    """Algorithm 1 with a full SVD per step. Rows are skipped through a `twin` whose iterates are the same, if any."""

    def __init__(self, shape, rank, eta, twin=None, feed=None, n_steps=5, n_warmup=100):
        self.shape, self.rank, self.eta, self.n_steps, self.n_warmup = shape, rank, eta, n_steps, n_warmup
        self.twin, self.feed, self.can_skip = twin, feed, twin is not None
        self.products = self.response = None
        self.n, self.coef = 0, np.zeros(shape)

    def _absorb(self, X, y):
        products, response = X.T @ X, X.T @ y
        first = self.products is None
        self.products = products if first else self.products + products
        self.response = response if first else self.response + response
        self.n += len(y)

    def skip(self, X, y):
        self.twin.partial_fit(*self.feed(X), y)
        self._absorb(X, y)
        self.coef = self.twin.coef_.copy()

    def learn(self, X, y):
        for i in range(len(y)):
            self._absorb(X[i : i + 1], y[i : i + 1])
            if self.n > self.n_warmup:
                for _ in range(self.n_steps):
                    estimate = self.coef.reshape(self.response.shape)
                    gradient = (self.products @ estimate - self.response) / self.n
                    self.coef = truncated(self.coef - self.eta * gradient.reshape(self.shape), self.rank)

    def catch_up(self, X, y):
        if self.twin is None:
            return 0.0
        self.twin.partial_fit(*self.feed(X), y)
        return float(np.abs(self.twin.coef_ - self.coef).max())

    def state_bytes(self):
        return self.products.nbytes + self.response.nbytes + self.coef.nbytes


class NumpyCompletion(Learner):
    """Algorithm 1 on entries, a round of one step with a full SVD after every `block` of them."""

    def __init__(self, rank, eta, block=500):
        self.rank, self.eta, self.block = rank, eta, block
        self.counts, self.sums = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
        self.coef = np.zeros((SIDE, SIDE))

    def learn(self, X, y):
        for start in range(0, len(y), self.block):
            rows = slice(start, start + self.block)
            np.add.at(self.counts, tuple(X[rows].T), 1.0)
            np.add.at(self.sums, tuple(X[rows].T), y[rows])
            # In units of an entry: a step of one is SVD imputation's.
            self.coef = truncated(self.coef - self.eta * (self.counts * self.coef - self.sums), self.rank)


# -- batch ---------------------------------------------------------------------------------------------------


def shrunk(matrix, amount):
    """Soft thresholding of the singular values."""
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    return (u * np.maximum(s - amount, 0.0)) @ vt


def nuclear_norm(shape, c):
    """Nuclear-norm penalised least squares by accelerated proximal steps, to a relative change of 1e-5."""

    def fit(X, y):
        n = len(y)
        products, response = X.T @ X / n, X.T @ y / n
        step = 1.0 / np.linalg.eigvalsh(products)[-1]
        amount = step * c * np.sqrt(sum(shape) / n)
        coef = point = np.zeros(shape)
        momentum = 1.0
        for _ in range(1000):
            gradient = (products @ point.reshape(response.shape) - response).reshape(shape)
            before, coef = coef, shrunk(point - step * gradient, amount)
            previous, momentum = momentum, 0.5 + np.sqrt(0.25 + momentum**2)
            point = coef + (previous - 1.0) / momentum * (coef - before)
            if np.linalg.norm(coef - before) <= 1e-5 * np.linalg.norm(before):
                break
        return coef, 0.0

    return fit


def ridge_then_rank(alpha, rank):
    """Multi-output ridge, projected to the directions of its fitted values: reduced-rank regression."""

    def fit(X, y):
        coef = Ridge(alpha=alpha, fit_intercept=False).fit(X, y).coef_.T
        directions = np.linalg.svd(X @ coef, full_matrices=False)[2][:rank]
        return coef @ directions.T @ directions, 0.0

    return fit


def imputation(project, n_iterations=500, tol=1e-5):
    """Fill, project, fill with the projection, and so on."""

    def fit(X, y):
        observed, data = np.zeros((SIDE, SIDE), bool), np.zeros((SIDE, SIDE))
        observed[tuple(X.T)], data[tuple(X.T)] = True, y
        coef = np.zeros((SIDE, SIDE))
        for _ in range(n_iterations):
            before, coef = coef, project(np.where(observed, data, coef))
            if np.linalg.norm(coef - before) <= tol * np.linalg.norm(before):
                break
        return coef, 0.0

    return fit


# -- which methods for which problem -------------------------------------------------------------------------


def as_matrices(X):
    return (X.reshape(len(X), *SHAPE),)


def as_entries(X):
    return X[:, 0], X[:, 1]


def transposed(coef):
    return coef.T


def numpy_sensing(d, rank, eta):
    twin = LowRankRegressor(rank, step_size=eta, n_warmup=100)
    return AlgorithmOne(SHAPE, rank, eta, twin, as_matrices)


def numpy_responses(d, rank, eta):
    return AlgorithmOne((N_FEATURES, N_RESPONSES), rank, eta)


FIRST, ROWS = (300, 1000, 3000, 10_000), (4000, 8000, 12_000, 24_000)
PENALTIES = (0.3, 0.5, 0.7, 1.0, 1.4)
PROBLEMS = {
    "sensing 30 x 30, rank 3": (
        sensing,
        FIRST,
        [
            Method(
                "thresher",
                lambda d: Streamed(LowRankRegressor(), feed=as_matrices),
                note="LowRankRegressor()",
            ),
            Method(
                "thresher refit",
                lambda d: AtCheckpoints(LowRankRegressor(shape=SHAPE), Gram(d)),
                estimates="checkpoint",
                note="LowRankRegressor().fit_summary(gram)",
            ),
            Method("Algorithm 1, NumPy", numpy_sensing, {"rank": (3, 4, 6), "eta": (0.001, 0.003, 0.01, 0.03)}),
            Method(
                "nuclear norm refit",
                lambda d, c: Refit(d, nuclear_norm(SHAPE, c)),
                {"c": PENALTIES},
                "checkpoint",
            ),
        ],
    ),
    "20 responses, 200 features, rank 4": (
        responses,
        FIRST,
        [
            Method(
                "thresher",
                lambda d: Streamed(ReducedRankRegressor(fit_intercept=False), orient=transposed),
                note="ReducedRankRegressor()",
            ),
            Method(
                "thresher refit",
                lambda d: AtCheckpoints(
                    ReducedRankRegressor(fit_intercept=False), MultiResponse(d, N_RESPONSES), orient=transposed
                ),
                estimates="checkpoint",
                note="ReducedRankRegressor().fit_summary(summary)",
            ),
            Method("Algorithm 1, NumPy", numpy_responses, {"rank": (4, 5, 8), "eta": (0.003, 0.01, 0.03, 0.1)}),
            Method(
                "nuclear norm refit",
                lambda d, c: Refit(d, nuclear_norm((N_FEATURES, N_RESPONSES), c)),
                {"c": PENALTIES},
                "checkpoint",
            ),
            Method(
                "ridge, reduced rank, refit",
                lambda d, alpha, rank: Refit(d, ridge_then_rank(alpha, rank)),
                {"alpha": (0.1, 1.0, 10.0, 100.0), "rank": (3, 4, 5, 8)},
                "checkpoint",
                note="scikit-learn",
            ),
        ],
    ),
    "completion 200 x 200, rank 5": (
        completion,
        ROWS,
        [
            Method(
                "thresher",
                lambda d: Streamed(MatrixCompleter(shape=(SIDE, SIDE)), feed=as_entries),
                note="MatrixCompleter()",
            ),
            Method(
                "thresher refit",
                lambda d: AtCheckpoints(MatrixCompleter(), Entries((SIDE, SIDE)), feed=as_entries),
                estimates="checkpoint",
                note="MatrixCompleter().fit_summary(entries)",
            ),
            Method(
                "Algorithm 1, NumPy",
                lambda d, rank, eta: NumpyCompletion(rank, eta),
                {"rank": (3, 4, 5, 6), "eta": (1.0, 1.5, 1.9)},
                "block",
                note="a step after every 500 entries",
            ),
            Method(
                "SVD imputation refit",
                lambda d, rank: Refit(d, imputation(lambda filled: truncated(filled, rank))),
                {"rank": (4, 5, 6)},
                "checkpoint",
            ),
            Method(
                "nuclear norm refit",
                lambda d, c: Refit(d, imputation(lambda filled: shrunk(filled, c))),
                {"c": (2.0, 4.0, 8.0, 16.0)},
                "checkpoint",
                note="soft imputation",
            ),
        ],
    ),
}
