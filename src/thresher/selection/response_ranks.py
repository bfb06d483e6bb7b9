"""Coefficients of many responses, by rank: reduced-rank regression in closed form."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from thresher._utils.threads import blas_threads_for
from thresher._utils.tolerances import PERFECT
from thresher.online.dense import DenseRounds
from thresher.online.responses import ROWS_PER_FEATURE, ResponseRounds
from thresher.selection.criteria import Criterion
from thresher.selection.family import RoundsFamily
from thresher.selection.noise_edge import NoiseEdge
from thresher.solvers.path import Path
from thresher.solvers.rank_path import LARGEST_SHARE, RowRankPath, freedom_of, noise_edge
from thresher.sparsity.groups import Groups
from thresher.sparsity.rank import Rank
from thresher.summaries.multiresponse import MultiResponse

Floats = NDArray[np.float64]

# Features are collinear if a scaled one keeps less than this standard deviation beside the others, or if the
# correlation matrix has eigenvalues below this one.
OWN_DEVIATION, OWN_EIGENVALUE = 1e-6, 1e-10


@dataclass(frozen=True)
class ResponseRanks(RoundsFamily):
    r"""Linear models of q responses on p features, by the rank of their coefficients.

    ``path`` is reduced-rank regression (Izenman, 1975): least squares, whose fitted values are projected on their
    leading singular directions. One decomposition gives every rank: O(p^3 + p q^2) time.

    What is minimised is the sum of squares over all n q observed numbers, so the likelihood that goes with it is that
    of equal, independent noise, :math:`n q \log(\mathrm{RSS} / (n q))`, and losses here are per number. A rank has
    r (p' + q - r) parameters where p' is the rank of X. Noise of other kinds changes what a rank can gain from it, not
    what is estimated: along a direction v of the responses it has variance :math:`v^\top \Sigma v`, so a rank along v
    gains up to :math:`(\sqrt{p' v^\top \Sigma v} + \sqrt{\operatorname{tr} \Sigma})^2`, with the residual covariance
    :math:`\Sigma` of least squares where there are rows enough to estimate it. For equal noise that is
    :math:`\sigma^2 (\sqrt{p'} + \sqrt q)^2`.
    """

    centred: bool = True
    standardized: bool = True
    memorable: ClassVar[bool] = False

    def path(
        self, summary: MultiResponse, n_most: int | None = None, criterion: Criterion | None = None
    ) -> RowRankPath:
        """Candidates of all ranks that the rows can carry; up to `n_most`, if given."""
        with blas_threads_for(len(summary.state.scatter)):
            return self._path(summary, n_most)

    def _path(self, summary: MultiResponse, n_most: int | None) -> RowRankPath:
        p, q, weight = summary.n_features, summary.n_responses, summary.weight
        joint = summary.joint_moments(self.centred)
        half, back = self._whitened(joint[:p, :p], joint[:p, p:])
        n_own = len(half)
        left, values, right = np.linalg.svd(half, full_matrices=False)
        of_y = joint[p:, p:]
        total = float(np.trace(of_y))
        n = min(p, q)
        ranks = np.arange(1, n + 1)
        freedom = freedom_of(ranks, n_own, q)
        if n_most is None:
            n = max(int(np.sum((freedom <= LARGEST_SHARE * weight * q) & (ranks <= n_own))), 1)
        n = min(n, n_most or n)
        falls = np.zeros(max(n, len(values)))
        falls[: len(values)] = np.cumsum(values**2)
        falls[len(values) :] = falls[len(values) - 1] if len(values) else 0.0
        noise = np.full(n, noise_edge(n_own, q))
        of_noise = of_y - half.T @ half
        spread = float(np.trace(of_noise)) / q
        if weight - self.centred - n_own > q and spread * q > PERFECT * total:
            along = np.sum((right @ of_noise) * right, axis=1).clip(0.0)
            known = min(n, len(along))
            noise[:known] = (np.sqrt(n_own * along[:known] / spread) + np.sqrt(q)) ** 2
        loadings = back(left)
        return RowRankPath(
            sizes=ranks[:n],
            loss=np.maximum(total - falls[:n], 0.0) / (2.0 * weight * q),
            freedom=freedom[:n],
            log_models=np.zeros(n),
            weight=weight * q,
            noise=noise,
            factors=tuple((loadings[:, :r] * values[:r], right[:r]) for r in range(1, n + 1)),
            zero=total / (2.0 * weight * q),
            mean_x=summary.mean_x,
            mean_y=summary.mean_y,
            centred=self.centred,
        )

    @staticmethod
    def _whitened(matrix: Floats, vectors: Floats) -> tuple[Floats, Any]:
        """H with H'H the moments of the fitted values of least squares, and the map from H back to coefficients.

        H has a row for each direction that X really has. Where features are collinear, the coefficients are the
        shortest in units of the scales.
        """
        features = np.flatnonzero(np.diagonal(matrix) > 0.0)
        unit = 1.0 / np.sqrt(np.diagonal(matrix)[features])
        scaled = matrix[np.ix_(features, features)] * unit[:, None] * unit
        pulls = unit[:, None] * vectors[features]

        def spread_out(solution: Floats) -> Floats:
            coef = np.zeros((len(matrix), solution.shape[1]))
            coef[features] = unit[:, None] * solution
            return coef

        try:
            factor = np.linalg.cholesky(scaled)
        except np.linalg.LinAlgError:
            factor = np.zeros((1, 1))
        if not len(features) or np.min(np.diagonal(factor)) >= OWN_DEVIATION:
            half = scipy.linalg.solve_triangular(factor, pulls, lower=True) if len(features) else pulls
            return half, lambda rows: spread_out(scipy.linalg.solve_triangular(factor.T, rows))
        values, vectors = np.linalg.eigh(scaled)
        own = values > OWN_EIGENVALUE * values[-1]
        root = vectors[:, own] / np.sqrt(values[own])
        return root.T @ pulls, lambda rows: spread_out(root @ rows)

    def largest(self, summary: MultiResponse) -> int:
        """The largest rank that there is."""
        return min(summary.n_features, summary.n_responses)

    def fallback(self) -> NoiseEdge:
        """The criterion that chooses while there is nothing to hold out."""
        return NoiseEdge()

    def new_rounds(self, summary: MultiResponse, size: int) -> DenseRounds:
        """Rounds at a rank."""
        rank = min(size, summary.n_features, summary.n_responses)
        return ResponseRounds(summary, Rank(rank), self.centred, self.standardized)

    def start(self, rounds: DenseRounds, path: Path, size: int) -> None:
        """Let rounds go on from a candidate, unless there are about as many rows as features.

        Then least squares, even the shortest, is all variance. Rounds from an earlier estimate stop well short of it.
        """
        p, q = rounds.coef.shape
        if not 0.5 < path.weight / (p * q) < ROWS_PER_FEATURE:
            rounds.start_from(path.coef(size))

    def loss(self, summary: MultiResponse, coef: Floats) -> float:
        """Half the mean squared residual of an estimate, per number."""
        return summary.loss(coef, None if self.centred else 0.0) / summary.n_responses

    def loss_elsewhere(self, path: Path, summary: MultiResponse) -> Floats:
        """Half the mean squared error of every candidate on the rows of another summary, per number."""
        assert isinstance(path, RowRankPath)
        losses = [summary.loss(path.coef(r), path.intercept(r)) for r in path.sizes]
        return np.array(losses) / summary.n_responses


@dataclass(frozen=True)
class ResponseRows(ResponseRanks):
    """Linear models of q responses on few of p features, the same ones for all. There is no path."""

    def path(
        self, summary: MultiResponse, n_most: int | None = None, criterion: Criterion | None = None
    ) -> RowRankPath:
        """An error."""
        raise ValueError("row_sparsity keeps features, not ranks; a path of ranks needs row_sparsity=None.")

    def new_rounds(self, summary: MultiResponse, size: int) -> DenseRounds:
        """Rounds with `size` features."""
        groups = Groups(np.arange(summary.n_features), size)
        return DenseRounds(summary, groups, self.centred, self.standardized)
