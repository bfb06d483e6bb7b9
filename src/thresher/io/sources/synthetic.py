"""Samples drawn from a known sparse or low-rank model, block by block."""

from collections.abc import Iterator, Sequence

import numpy as np

from thresher._utils.arrays import Floats


class SparseLinearStream:
    r"""An endless stream of rows :math:`y = x^\top\theta^* + \epsilon` with Gaussian x and noise.

    The designs of the paper's Section 5: the first `n_active` coefficients are normal with standard deviation
    `signal`, the others zero, and x has covariance :math:`\rho^{|j-k|}` (independent columns if
    `correlation` is 0), or eigenvalues `spectrum` (then ones) in a random basis. Deterministic given the seed and the
    sizes of the draws; other sizes give the same rows, up to rounding in products with `coef` and with the basis.

    Parameters
    ----------
    n_features, n_active : int
    correlation : float, default=0.0
    signal, noise : float
        Standard deviations of the active coefficients and of the noise.
    seed : int
    threshold : float, default=0.0
        Coefficients smaller than this are set to zero.
    spectrum : sequence of float, default=()
        Leading eigenvalues of the covariance of x.
    tail : float, optional
        Degrees of freedom of Student's t for the noise; Gaussian if not given.

    Examples
    --------
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> stream = SparseLinearStream(n_features=100, n_active=3, seed=1)
    >>> [X.shape for X, y in stream.blocks(250, block=100)]
    [(100, 100), (100, 100), (50, 100)]
    """

    def __init__(
        self,
        n_features: int = 1000,
        n_active: int = 15,
        correlation: float = 0.0,
        signal: float = 0.2,
        noise: float = 1.0,
        seed: int = 0,
        threshold: float = 0.0,
        spectrum: Sequence[float] = (),
        tail: float | None = None,
    ) -> None:
        coefficients, self._rows, self._noise = (
            np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)
        )
        self.coef = np.zeros(n_features)
        self.coef[:n_active] = signal * coefficients.standard_normal(n_active)
        self.coef[np.abs(self.coef) < threshold] = 0.0
        self.correlation = correlation
        self.noise = noise
        self.tail = tail
        self._roots, self._basis = np.sqrt(spectrum) - 1.0, np.zeros((0, n_features))
        if len(spectrum):
            self._basis = np.linalg.qr(coefficients.standard_normal((n_features, len(spectrum))))[0].T

    def draw(self, n_rows: int) -> tuple[Floats, Floats]:
        """The next rows."""
        X = self._rows.standard_normal((n_rows, len(self.coef)))
        if len(self._roots):
            X += ((X @ self._basis.T) * self._roots) @ self._basis
        if self.correlation:
            fresh = np.sqrt(1.0 - self.correlation**2)
            for j in range(1, X.shape[1]):
                X[:, j] = self.correlation * X[:, j - 1] + fresh * X[:, j]
        error = self._noise.standard_normal(n_rows) if self.tail is None else self._noise.standard_t(self.tail, n_rows)
        return X, X @ self.coef + self.noise * error

    def blocks(self, n_rows: int, block: int = 256) -> Iterator[tuple[Floats, Floats]]:
        """The next `n_rows` rows in pieces of at most `block`."""
        for start in range(0, n_rows, block):
            yield self.draw(min(block, n_rows - start))


class LowRankStream:
    r"""An endless stream of samples :math:`y = \langle X, \Theta^* \rangle + \epsilon` with Gaussian X and noise.

    The design of the paper's Section 5.2: :math:`\Theta^*` is the best approximation of rank `rank` to a matrix
    of independent normal entries with standard deviation `signal`, and X has standard normal entries. The paper
    states a signal of 1; its Table 1 agrees with 0.2. Deterministic given the seed and the sizes of the draws; other
    sizes give the same samples, with responses that differ by rounding.

    Parameters
    ----------
    shape : tuple of int
    rank : int
    signal, noise : float
        Standard deviations of the entries that are approximated, and of the noise.
    seed : int

    Examples
    --------
    >>> from thresher.io.sources.synthetic import LowRankStream
    >>> X, y = LowRankStream((6, 4), rank=2, seed=1).draw(100)
    >>> X.shape, y.shape
    ((100, 6, 4), (100,))
    """

    def __init__(
        self,
        shape: tuple[int, int] = (50, 50),
        rank: int = 5,
        signal: float = 0.2,
        noise: float = 1.0,
        seed: int = 0,
    ) -> None:
        coefficients, self._samples, self._noise = (
            np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)
        )
        u, s, vt = np.linalg.svd(signal * coefficients.standard_normal(shape), full_matrices=False)
        self.coef: Floats = (u[:, :rank] * s[:rank]) @ vt[:rank]
        self.noise = noise

    def draw(self, n_samples: int) -> tuple[Floats, Floats]:
        """The next samples."""
        X = self._samples.standard_normal((n_samples, *self.coef.shape))
        y = X.reshape(n_samples, -1) @ self.coef.reshape(-1)
        return X, y + self.noise * self._noise.standard_normal(n_samples)
