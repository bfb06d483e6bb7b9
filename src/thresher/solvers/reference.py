"""`SparseRegressor(selection="ebic")`, line by line, on the rows themselves: the readable truth.

When to choose, forward selection, backward elimination, swaps, the extended BIC and least squares, with NumPy's `lstsq`
for every support: that estimator is tested to equal this file. It needs all rows, and O(n d s^3) for every feature.
"""

from collections.abc import Iterator
from math import comb, log

import numpy as np

from thresher._utils.arrays import Floats

Support = frozenset[int]

# A residual sum of squares below this share of that of no features is zero.
PERFECT = 1e-12
# A feature is collinear with others if it has less than this share of its sum of squares of its own.
OWN_SHARE = 1e-10
# A change has to lower the residual sum of squares by this share; less may be rounding.
TELLING = 1e-9
# Forward selection goes on for so many features, and a quarter of those at the best size, beyond the best size.
BEYOND = 6


def estimate(X: Floats, y: Floats, centred: bool = True, block: int = 128) -> tuple[Floats, float]:
    """Coefficients and intercept after all rows: least squares on the support that was chosen last."""
    support: Support = frozenset()
    for n in selection_counts(len(y), block):
        support = select(X[:n], y[:n], centred)
    return least_squares(X, y, support, centred)


def selection_counts(n_rows: int, block: int) -> Iterator[int]:
    """The row counts at which the support is chosen, with a fold after every `block` rows.

    At the first fold with 5 % more rows, and at the latest when there are 10 % more, in the first block 20 %.
    """
    n = 1
    while n <= n_rows:
        yield n
        wanted = n + -(-n // 20)
        n = min(-(-wanted // block) * block, n + 1 + n // (5 if n < block else 10))


def least_squares(X: Floats, y: Floats, support: Support, centred: bool) -> tuple[Floats, float]:
    """The coefficients of all features, zero outside the support, and the intercept."""
    Z, v = about_mean(X, y, centred)
    members = sorted(support)
    coef = np.zeros(X.shape[1])
    coef[members] = np.linalg.lstsq(Z[:, members], v, rcond=None)[0]
    return coef, float(y.mean() - X.mean(axis=0) @ coef) if centred else 0.0


def about_mean(X: Floats, y: Floats, centred: bool) -> tuple[Floats, Floats]:
    """The rows less their means, if there is an intercept."""
    return (X - X.mean(axis=0), y - y.mean()) if centred else (X, y)


def select(X: Floats, y: Floats, centred: bool) -> Support:
    """The support with the least extended BIC that the search finds."""
    n, d = X.shape
    room = (n - 1 - centred) / (log(max(d, 3)) * max(log(log(max(n, 3))), 1.0))
    return Search(*about_mean(X, y, centred), n_most=max(min(d, int(room)), 0)).run()


class Search:
    """Forward selection, then swaps and backward elimination at the best size until that stays the best."""

    def __init__(self, Z: Floats, v: Floats, n_most: int) -> None:
        self.Z, self.v, self.n_most = Z, v, n_most
        self.total = float(v @ v)
        self.found: dict[int, Support] = {}  # the best support of each size

    def run(self) -> Support:
        """The support with the least criterion; of those that have it, the smallest."""
        self.forward(frozenset())
        tried: set[Support] = set()
        while True:
            best = min(self.found.values(), key=lambda support: (self.criterion(support), len(support)))
            if not best or best in tried:
                return best
            swapped = self.swap(best)
            tried |= {best, swapped}
            self.note(swapped)
            self.backward(swapped)
            if swapped != best:
                self.forward(swapped)

    def note(self, support: Support) -> float:
        """Remember a support that is better than what is known of its size; the criterion of that size."""
        known = self.found.get(len(support))
        if known is None or self.rss(support) < self.rss(known) * (1.0 - TELLING):
            self.found[len(support)] = support
        return self.criterion(self.found[len(support)])

    def forward(self, support: Support) -> None:
        """Add features, each time the one that lowers the loss most, until that has not paid for a while."""
        best, n_best = self.note(support), len(support)
        while self.rss(support) > PERFECT * self.total and len(support) < self.n_most:
            candidates = [support | {j} for j in self.independent(support)]
            if not candidates:
                return
            support = min(candidates, key=self.rss)
            value = self.note(support)
            if value < best:
                best, n_best = value, len(support)
            if len(support) >= n_best + n_best // 4 + BEYOND:
                return

    def backward(self, support: Support) -> None:
        """Remove features, each time the one that raises the loss least, until that does not pay."""
        best = self.note(support)
        while support:
            support = min((support - {j} for j in support), key=self.rss)
            value = self.note(support)
            if value >= best:
                return
            best = value

    def swap(self, support: Support) -> Support:
        """Exchange one member for one other feature, the pair that lowers the loss most, until none lowers it."""
        while self.rss(support) > PERFECT * self.total:
            others = [(support - {i}) | {j} for i in support for j in self.independent(support)]
            better = min(others, key=self.rss, default=support)
            if not self.rss(better) < self.rss(support) * (1.0 - TELLING):
                return support
            support = better
        return support

    def independent(self, support: Support) -> list[int]:
        """The features that have something of their own beside the members."""
        members = sorted(support)
        left = self.Z - self.Z[:, members] @ np.linalg.lstsq(self.Z[:, members], self.Z, rcond=None)[0]
        own = (left**2).sum(axis=0) > OWN_SHARE * (self.Z**2).sum(axis=0)
        return [j for j in range(self.Z.shape[1]) if own[j] and j not in support]

    def rss(self, support: Support) -> float:
        """The residual sum of squares of least squares on a support."""
        members = sorted(support)
        left = self.v - self.Z[:, members] @ np.linalg.lstsq(self.Z[:, members], self.v, rcond=None)[0]
        return float(left @ left)

    def criterion(self, support: Support) -> float:
        """The extended BIC (Chen and Chen, 2008), with gamma 0.2 above what consistency asks for."""
        n, d = self.Z.shape
        gamma = 0.2 + (max(1.0 - log(n) / (2.0 * log(d)), 0.0) if d > 1 else 0.0)
        left = max(self.rss(support), PERFECT * self.total, np.finfo(np.float64).tiny)
        return float(n * log(left) + len(support) * log(n) + 2.0 * gamma * log(comb(d, len(support))))
