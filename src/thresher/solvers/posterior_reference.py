"""The chain of `posterior`, line by line, on the rows themselves: the readable truth.

The compiled chain is tested to equal this one, draw by draw, from the same random numbers. It needs O(n d) for every
coefficient.
"""

from math import sqrt

import numpy as np

from thresher._utils.arrays import Floats


class Chain:
    """A chain of models b, and sums over its draws; columns and y have sum of squares n.

    The prior is b_j ~ pi_0 (zero) + sum_k pi_k N(0, sigma^2 tau_k^2) with share_k = n tau_k^2 / (1 + n tau_k^2), pi ~
    Dirichlet(concentration) and p(sigma^2) proportional to 1 / sigma^2. A share of zero stands for b_j = 0.
    """

    def __init__(
        self, X: Floats, y: Floats, shares: Floats, concentration: Floats, freedom: float, rng: np.random.Generator
    ) -> None:
        self.X, self.y, self.rng = X, y, rng
        self.n, self.d = X.shape
        self.share, self.concentration, self.freedom = np.array([0.0, *shares]), concentration, freedom
        self.b, self.origin = np.zeros(self.d), np.zeros(self.d, np.intp)
        self.variance = float(y @ y) / freedom
        self.mean, self.square, self.inclusion = np.zeros(self.d), np.zeros(self.d), np.zeros(self.d)

    def run(self, n_sweeps: int, n_moves: int) -> None:
        """Some sweeps, all of which count."""
        for _ in range(n_sweeps):
            counts = np.bincount(self.origin, minlength=len(self.share))
            pi = np.array([self.rng.standard_gamma(shape) for shape in self.concentration + counts])
            pi /= pi.sum()
            for j in range(self.d):
                self.draw(j, pi)
            n_active = np.count_nonzero(self.origin)
            for _ in range(n_moves if n_active else 0):
                self.move(np.flatnonzero(self.origin)[int(self.rng.random() * n_active)])
            self.draw_variance()

    def without(self, j: int) -> Floats:
        """What all columns have in common with the residuals of all features but j, over n."""
        others = np.where(np.arange(self.d) == j, 0.0, self.b)
        left: Floats = self.X.T @ (self.y - self.X @ others) / self.n
        return left

    def draw(self, j: int, pi: Floats) -> None:
        """b_j given all others: z is normal about b_j with variance sigma^2 / n, so about 0 with sigma^2 (tau^2 + 1/n).

        That is sigma^2 / n / (1 - share).
        """
        z = self.without(j)[j]
        logs = 0.5 * np.log1p(-self.share) - 0.5 * self.n * z**2 * (1.0 - self.share) / self.variance
        weights = pi * np.exp(logs - logs.max())
        weights /= weights.sum()
        within = self.variance * self.share / self.n
        self.inclusion[j] += weights[1:].sum()
        self.mean[j] += weights @ (self.share * z)
        self.square[j] += weights @ ((self.share * z) ** 2 + within)
        k = int(np.searchsorted(np.cumsum(weights), self.rng.random(), side="right"))
        self.put(j, k, z)

    def put(self, j: int, k: int, z: float) -> None:
        """Draw b_j from its distribution given that it comes from scale k."""
        self.origin[j], self.b[j] = k, 0.0
        if k:
            share = self.share[k]
            self.b[j] = share * z + sqrt(self.variance * share / self.n) * self.rng.standard_normal()

    def move(self, j: int) -> None:
        """The place of a coefficient given its scale and all others, among all that are zero."""
        k, z = self.origin[j], self.without(j)
        self.origin[j], self.b[j] = 0, 0.0
        logs = np.where(self.origin == 0, 0.5 * self.n * z**2 * self.share[k] / self.variance, -np.inf)
        weights = np.exp(logs - logs.max())
        place = int(np.searchsorted(np.cumsum(weights), self.rng.random() * weights.sum(), side="right"))
        self.put(place, k, z[place])

    def draw_variance(self) -> None:
        """sigma^2 given b: both the residuals and b_j / tau_j are normal with variance sigma^2."""
        residual, active = self.y - self.X @ self.b, self.origin > 0
        share = self.share[self.origin[active]]
        total = residual @ residual + self.n * (self.b[active] ** 2 * (1.0 - share) / share).sum()
        self.variance = total / self.rng.chisquare(self.freedom + np.count_nonzero(active))
