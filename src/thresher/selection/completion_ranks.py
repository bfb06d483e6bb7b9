"""Partly observed matrices, by rank: alternating least squares from each candidate to the next."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher._utils.threads import one_blas_thread
from thresher.io.schema import Flag, Schema
from thresher.online._entry_round import fit_offsets, squared_residuals
from thresher.online.completion import EntriesRounds
from thresher.selection.criteria import Criterion
from thresher.selection.family import RoundsFamily
from thresher.selection.noise_edge import NoiseEdge
from thresher.solvers.path import Path
from thresher.solvers.rank_path import FactoredPath, climb
from thresher.sparsity.rank import Rank
from thresher.summaries.entries import Entries

# Sweeps for one rank at the most, and power iterations for the direction in which a rank is added.
MOST_SWEEPS, N_POWER = 60, 8
# A ridge is at least this share of an observation, for rows with fewer observations than ranks.
RIDGE = 1e-9
# The noise is not taken to be more than so many times what is left of it in the residuals.
MOST_HIDDEN = 4.0


@dataclass(frozen=True, eq=False)
class CompletionPath(FactoredPath):
    """Matrices of rank 1, 2, ... with the offsets of rows and columns beside each."""

    offsets: tuple[tuple[Floats, Floats], ...]


@dataclass(frozen=True)
class CompletionRanks(RoundsFamily):
    """Partly observed matrices, by rank.

    ``path`` goes up from rank one by alternating least squares: given the column factors, the factors of each row solve
    r equations, and the other way round, with a ridge that follows the noise. A sweep is a product of the d1 x d2
    counts with r^2 / 2 columns, and a few sweeps do what takes very many projected steps. Rows and columns of which
    nothing was observed have no parameters.
    """

    _schema = Schema(offsets=Flag(), growing=Flag())
    offsets: bool = False
    growing: bool = False
    memorable = False
    fallback = NoiseEdge()

    def path(self, summary: Entries, n_most: int | None = None, criterion: Criterion | None = None) -> CompletionPath:
        """Candidates from rank one until they are not worth their price; up to `n_most` exactly, if given."""
        with one_blas_thread():
            fit = _Alternating(summary, self.offsets)
            shape = d1, d2 = fit.counts.shape
            n_offsets = (d1 + d2 - 1.0) * self.offsets
            prices = NoiseEdge().prices
            path = climb(fit.grow, fit.sweep, fit.loss(), summary.weight, shape, prices, n_most, MOST_SWEEPS, n_offsets)
            factors, offsets = zip(*fit.finished(), strict=True)
        return CompletionPath(**path, factors=factors, offsets=offsets)

    def largest(self, summary: Entries) -> int:
        """The largest rank that there is."""
        return min(summary.shape)

    def size_of(self, coef: Floats) -> int:
        """The rank of a matrix, at least one."""
        return max(Rank(1).measure(coef), 1)

    def new_rounds(self, summary: Entries, size: int) -> EntriesRounds:
        """Rounds at a rank."""
        return EntriesRounds(summary, size, self.offsets, self.growing)

    def fits(self, rounds: EntriesRounds, size: int) -> bool:
        """Whether these are rounds at this rank."""
        return type(rounds) is EntriesRounds and (rounds.rank, rounds.offsets, rounds.growing) == (
            size,
            self.offsets,
            self.growing,
        )

    def start(self, rounds: EntriesRounds, path: Path, size: int) -> None:
        """Let rounds go on from a candidate and its offsets, if they have not come as far."""
        assert isinstance(path, CompletionPath)
        if path.loss[size - 1] < rounds.loss():
            rounds.start_from(path.coef(size), *path.offsets[size - 1])

    def loss_elsewhere(self, path: Path, summary: Any) -> Floats:
        """Half the mean squared error of every candidate on the rows of another summary."""
        raise ValueError("Observations cannot be held out of a completion; use selection='noise_edge' or 'ebic'.")


class _Alternating:
    """A fit left @ right, and offsets, of the rows and columns of which something was observed."""

    def __init__(self, summary: Entries, offsets: bool) -> None:
        self.summary = summary
        self.with_offsets = offsets
        self.seen = tuple(np.flatnonzero(summary.counts.any(axis=axis)) for axis in (1, 0))
        grid = np.ix_(*self.seen)
        self.counts, self.sums = summary.counts[grid], summary.sums[grid]
        d1, d2 = self.counts.shape
        self.left, self.right = np.zeros((d1, 0)), np.zeros((0, d2))
        self.theta, self.rows, self.cols = np.zeros((d1, d2)), np.zeros(d1), np.zeros(d2)
        self.ridge = 1.0
        self._found: list[tuple[tuple[Floats, Floats], tuple[Floats, Floats]]] = []
        self._fit_offsets()

    def _fit_offsets(self) -> None:
        if self.with_offsets:
            fit_offsets(self.counts, self.sums, self.theta, self.rows, self.cols)

    def loss(self) -> float:
        """Half the mean squared residual."""
        total = squared_residuals(self.counts, self.sums, self.theta, self.rows, self.cols, self.summary.sum_squares)
        return max(float(total), 0.0) / (2.0 * self.summary.weight)

    def grow(self, rank: int) -> None:
        """Open the direction of the columns along which the residuals are largest."""
        if rank > 1:
            self._keep()
        rest = self._rest() - self.counts * self.theta
        rest /= np.abs(rest).max() or 1.0
        direction = rest[np.argmax(np.square(rest).sum(axis=1))]
        for _ in range(N_POWER):
            direction = (rest @ direction) @ rest
            direction = direction / (float(np.linalg.norm(direction)) or 1.0)
        self.right = np.linalg.qr(np.column_stack([self.right.T, direction]))[0].T

    def sweep(self) -> float:
        """Least squares for the rows, then for the columns, then for the offsets. Returns the loss."""
        rest = self._rest()
        self.left = np.linalg.qr(_solved(self.counts, rest, np.linalg.qr(self.right.T)[0], self.ridge))[0]
        self.right = _solved(self.counts.T, rest.T, self.left, self.ridge).T
        self.theta = self.left @ self.right
        self._fit_offsets()
        loss = self.loss()
        self._measure_ridge(loss)
        return loss

    def _measure_ridge(self, loss: float) -> None:
        """Ratio of the variance of the noise to that of the matrix, about: what each sweep shrinks the next one by.

        Without it, rows with few observations get enormous factors. As the fit becomes perfect it vanishes.
        """
        (d1, d2), weight, r = self.counts.shape, self.summary.weight, self.left.shape[1]
        left_over = max(1.0 - r * (d1 + d2 - r) / weight, 1.0 / MOST_HIDDEN)
        size = float(np.square(self.right).sum()) / (d1 * d2)
        unit = min(1.0, weight / np.count_nonzero(self.counts))
        self.ridge = min(2.0 * loss / left_over / size, 1.0 / RIDGE) * unit * r if size > 0.0 else 1.0

    def _rest(self) -> Floats:
        if not self.with_offsets:
            return self.sums
        return self.sums - self.counts * (self.rows[:, None] + self.cols)

    def _keep(self) -> None:
        (d1, d2), r = self.summary.shape, self.left.shape[1]
        left, right, rows, cols = np.zeros((d1, r)), np.zeros((r, d2)), np.zeros(d1), np.zeros(d2)
        left[self.seen[0]], right[:, self.seen[1]] = self.left, self.right
        rows[self.seen[0]], cols[self.seen[1]] = self.rows, self.cols
        self._found.append(((left, right), (rows, cols)))

    def finished(self) -> list[tuple[tuple[Floats, Floats], tuple[Floats, Floats]]]:
        """Factors and offsets of every candidate."""
        self._keep()
        return self._found


def _solved(counts: Floats, rest: Floats, basis: Floats, ridge: float) -> Floats:
    """For every row i, z with sum over j of (counts_ij + ridge / d) (basis_j . z) basis_j = sum of rest_ij basis_j.

    The basis has d rows and orthonormal columns. A ridge counts like so many observations of zero, spread over d.
    """
    r = basis.shape[1]
    upper, lower = np.triu_indices(r)
    products = counts @ (basis[:, upper] * basis[:, lower])
    matrices = np.empty((len(counts), r, r))
    matrices[:, upper, lower], matrices[:, lower, upper] = products, products
    diagonal = np.arange(r)
    matrices[:, diagonal, diagonal] += max(ridge, RIDGE * float(counts.max())) / len(basis)
    solution: NDArray[Any] = np.linalg.solve(matrices, (rest @ basis)[:, :, None])
    return solution[:, :, 0]
