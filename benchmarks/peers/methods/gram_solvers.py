"""Batch solvers called every round on accumulated X'X and X'y: what people write by hand today."""

import numpy as np
from learner import Learner, Method, rescaled
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dger
from sklearn.linear_model import orthogonal_mp_gram
from sklearn.linear_model._cd_fast import enet_coordinate_descent_gram

BLOCK = 100


class OnGram(Learner):
    """X'X and X'y, a rank-one update per row, and a solver after each.

    The solution of a convex problem does not depend on where the solver starts, so rows may be skipped in between. With
    the concave penalty it may; after many rows it hardly does.
    """

    can_skip = True

    def __init__(self, d, solve, real=False, **setting):
        self.solve, self.setting, self.real = solve, setting, real
        self.products, self.response = np.zeros((d, d), order="F"), np.zeros(d)
        self.n, self.sums, self.total, self.square = 0, np.zeros(d), 0.0, 0.0
        self.inner = np.zeros(d)
        self.coef = np.zeros(d)

    def skip(self, X, y):
        self.products += X.T @ X
        self._absorb_vectors(X, y)

    def learn(self, X, y):
        for i in range(len(y)):
            self.products = dger(1.0, X[i], X[i], a=self.products, overwrite_a=True)
            self._absorb_vectors(X[i : i + 1], y[i : i + 1])
            self._round()

    def learn_block(self, X, y):
        self.skip(X, y)
        self._round()

    def _absorb_vectors(self, X, y):
        self.n += len(y)
        self.response += y @ X
        self.square += y @ y
        if self.real:
            self.sums += X.sum(axis=0)
            self.total += y.sum()

    def _round(self):
        if not self.real:
            self.inner = self.coef = self.solve(
                self.products, self.response, self.square, self.n, self.inner, **self.setting
            )
            return
        # Centred and scaled: correlations times n.
        means, mean = self.sums / self.n, self.total / self.n
        scales = np.sqrt(np.maximum(self.products.diagonal() / self.n - means**2, 0.0))
        flat = scales <= 1e-9 * (1.0 + np.abs(means))
        scales[flat] = 1.0
        scale = np.sqrt(max(self.square / self.n - mean**2, 0.0)) or 1.0
        products = (self.products - self.n * np.outer(means, means)) / np.outer(scales, scales)
        response = (self.response - self.n * mean * means) / (scales * scale)
        products[flat], products[:, flat], response[flat] = 0.0, 0.0, 0.0
        products[flat, flat] = self.n
        products = np.asfortranarray(products)
        self.inner = self.solve(products, response, float(self.n), self.n, self.inner, **self.setting)
        self.coef, self.intercept = rescaled(self.inner, 0.0, means, scales, mean, scale)


class InBlocks(OnGram):
    """The same with one update and one solve for every block of rows, so that it is current after each of these."""

    can_skip = False

    def learn(self, X, y):
        for start in range(0, len(y), BLOCK):
            self.learn_block(X[start : start + BLOCK], y[start : start + BLOCK])


def penalty(c, d, n):
    """C sqrt(log(d) / n), the rate of the theory; c is tuned."""
    return c * np.sqrt(np.log(d) / n)


def lasso(products, response, square, n, start, c):
    """scikit-learn's coordinate descent, warm-started, to its default tolerance."""
    w = start.copy()
    enet_coordinate_descent_gram(
        w,
        n * penalty(c, len(w), n),
        0.0,
        products.T,  # symmetric, and contiguous as C has it
        response,
        np.array([np.sqrt(square)]),
        1000,
        1e-4,
        np.random.RandomState(0),
        False,
        False,
        True,
    )
    return w


def least_squares(products, response, support):
    """Least squares on a support; None if it is not determined."""
    try:
        return cho_solve(cho_factor(products[np.ix_(support, support)]), response[support])
    except LinAlgError:
        return None


class LassoThenLeastSquares:
    """The lasso, warm-started from itself, and least squares on its support."""

    def __init__(self):
        self.start = None

    def __call__(self, products, response, square, n, start, c):
        self.start = lasso(products, response, square, n, start if self.start is None else self.start, c)
        support, w = np.flatnonzero(self.start), np.zeros_like(start)
        refit = least_squares(products, response, support) if 0 < len(support) < n else None
        if refit is None:
            return self.start
        w[support] = refit
        return w


def pursuit(products, response, square, n, start, s):
    """Orthogonal matching pursuit."""
    if n < 2:
        return start
    return orthogonal_mp_gram(products, response, n_nonzero_coefs=int(min(s, n - 1, len(start))))


class ConcavePenalty:
    """skglm's coordinate descent with the minimax concave penalty, warm-started."""

    def __init__(self):
        self.penalty = None

    def __call__(self, products, response, square, n, start, c, gamma):
        from skglm.penalties import MCPenalty
        from skglm.solvers.gram_cd import _gram_cd_epoch
        from skglm.utils.jit_compilation import compiled_clone

        if self.penalty is None:
            self.penalty = compiled_clone(MCPenalty(1.0, gamma))
        # n times the penalty is the penalty with n alpha and gamma / n, which saves dividing the products by n.
        self.penalty.alpha, self.penalty.gamma = n * penalty(c, len(start), n), gamma / n
        w, support = start.copy(), np.flatnonzero(start)
        grad = products[:, support] @ w[support] - response
        for _ in range(100):
            if _gram_cd_epoch(products, w, grad, self.penalty, False).max() <= 1e-4 * n:
                break
        return w

    def __getstate__(self):
        return {"penalty": None}


PENALTIES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)


def in_blocks(name, solver):
    return Method(
        f"{name}, in blocks",
        lambda d, **k: InBlocks(d, solver(), **k),
        estimates="block",
        like=name,
        note=f"a solve per {BLOCK} rows",
    )


REAL = {"c": (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)}
METHODS = [
    Method("lasso on a Gram", lambda d, **k: OnGram(d, lasso, **k), {"c": PENALTIES}, real_grid=REAL),
    Method(
        "lasso on a Gram + refit",
        lambda d, **k: OnGram(d, LassoThenLeastSquares(), **k),
        {"c": PENALTIES},
        real_grid=REAL,
    ),
    Method(
        "OMP on a Gram",
        lambda d, **k: OnGram(d, pursuit, **k),
        {"s": (5, 8, 10, 12, 15, 20, 30, 60)},
        real_grid={"s": (5, 10, 20, 40, 80)},
    ),
    Method(
        "MCP on a Gram (skglm)",
        lambda d, **k: OnGram(d, ConcavePenalty(), **k),
        {"c": PENALTIES, "gamma": (1.2, 1.5, 2.0, 3.0)},
        real_grid=REAL | {"gamma": (3.0,)},
    ),
    in_blocks("lasso on a Gram", lambda: lasso),
    in_blocks("lasso on a Gram + refit", LassoThenLeastSquares),
    in_blocks("OMP on a Gram", lambda: pursuit),
    in_blocks("MCP on a Gram (skglm)", ConcavePenalty),
]
