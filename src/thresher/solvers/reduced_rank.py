r"""Regression of many responses with coefficients of low rank, in closed form.

With R = V diag(lambda) V' the correlations of the features and C = Z'Y the products of the standardised features Z with
the responses, ridge regression of strength k minimises |Y - Z B|^2 + k |B|^2. Restricted to rank r it is

    B = V diag(1 / (lambda + k)) V' C W W',

where the columns of W are the r leading right singular vectors of diag(lambda + k)^(-1/2) V' C. For k = 0 that is
reduced-rank regression (Izenman, 1975), otherwise reduced-rank ridge regression (Mukherjee and Zhu, 2011). One
decomposition gives all strengths.

The strength is chosen by generalised cross-validation (Golub, Heath and Wahba, 1979): it minimises RSS / (n q - df)^2.
With t = sum lambda / (lambda + k), a fit of rank r has r (t + q - r) parameters and one of full rank has q t. First the
strength is chosen at full rank, which gives W for all ranks. Then each rank gets a strength of its own, for the fewer
parameters there are, the less they need to shrink.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher._utils.threads import blas_threads_for
from thresher._utils.tolerances import OWN_SHARE, PERFECT
from thresher.solvers.rank_path import LARGEST_SHARE, RankPath, freedom_of
from thresher.summaries.multiresponse import MultiResponse

# With fewer rows than this for each independent feature there is a ridge. In simulations of rank 3 the error of least
# squares is 2.3 times that of the ridge with two rows for each feature, 1.2 times with ten and 1.1 times with twenty.
ROWS_PER_FEATURE = 10.0
# Strengths that are compared, in units of the largest eigenvalue: zero, and six to a decade.
STRENGTHS = np.concatenate([[0.0], np.logspace(-6, 3, 55)])
# Strengths whose criteria differ by less, relatively, are tied, and the least is taken.
TIED = 1e-6
# Features are collinear if their correlations have eigenvalues below this share of the largest.
OWN_EIGENVALUE = OWN_SHARE[np.dtype(np.float64)]


@dataclass(frozen=True, eq=False)
class ReducedRankPath(RankPath):
    """Coefficients of rank 1, 2, ... for q responses on p features.

    Attributes
    ----------
    strength : ndarray
        The strength of the ridge for each rank, for standardised features; zero is least squares.
    """

    strength: Floats
    eigenvalues: Floats
    basis: Floats  # p x (rank of X): eigenvectors, in the units of the data
    pulls: Floats  # (rank of X) x q: V' C
    directions: Floats  # orthonormal rows: W' for the largest rank
    mean_x: Floats
    mean_y: Floats
    centred: bool

    def coef(self, size: int) -> Floats:
        """The candidate of this rank, p x q."""
        leading = self.directions[:size]
        shrunk = (self.pulls @ leading.T) / (self.eigenvalues + self.strength[size - 1])[:, None]
        result: Floats = self.basis @ shrunk @ leading
        return result

    def intercept(self, coef: Floats) -> Floats:
        """The intercepts that go with some coefficients."""
        return self.mean_y - self.mean_x @ coef if self.centred else np.zeros_like(self.mean_y)


def reduced_rank_path(summary: MultiResponse, centred: bool = True, n_most: int | None = None) -> ReducedRankPath:
    """Reduced-rank regressions of all ranks that the rows can carry; of ranks up to `n_most`, if given.

    O(p^3 + p q^2). Features of no variance, and directions in which features are collinear, get no coefficients: where
    least squares is not unique, this is the shortest solution for standardised features.
    """
    with blas_threads_for(summary.n_features + summary.n_responses):
        return _path(summary, centred, n_most)


def _path(summary: MultiResponse, centred: bool, n_most: int | None) -> ReducedRankPath:
    p, q, weight = summary.n_features, summary.n_responses, summary.weight
    joint = summary.joint_moments(centred)
    of_y = joint[p:, p:]
    total = float(np.trace(of_y))
    eigenvalues, basis = _decomposed(joint[:p, :p])
    pulls = basis.T @ joint[:p, p:]
    n_own = len(eigenvalues)
    few = weight < ROWS_PER_FEATURE * n_own
    strengths = (STRENGTHS if few else STRENGTHS[:1]) * np.max(eigenvalues, initial=0.0)
    root = np.sqrt(total) or 1.0

    def choose(explained: Floats, ranks: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        """Strength, share of the squares that is left and t, for each rank; `explained` has (V' C W)^2 for each."""
        shrunk = eigenvalues + strengths[:, None]
        t = np.sum(eigenvalues / shrunk, axis=1)
        exact = 1.0 - (1.0 / eigenvalues) @ explained
        exact[exact <= PERFECT] = 0.0
        share = exact + ((strengths[:, None] / shrunk) ** 2 / eigenvalues) @ explained
        left = weight * q - centred * q - freedom_of(np.minimum(ranks, t[:, None]), t[:, None], q)
        with np.errstate(divide="ignore", invalid="ignore"):
            criterion = np.where(left > 0.0, np.log(share) - 2.0 * np.log(left), np.inf)
        perfect = (exact == 0.0) & (left[0] > 0.0)  # least squares needs no help
        best = np.where(perfect, 0, np.argmax(criterion <= criterion.min(axis=0) + TIED, axis=0))
        return strengths[best], share[best, np.arange(len(ranks))], t[best]

    first = choose(np.sum((pulls / root) ** 2, axis=1, keepdims=True), np.array([q]))[0]
    directions = np.linalg.svd(pulls / np.sqrt(eigenvalues + first)[:, None], full_matrices=False)[2]
    of_noise = of_y - (pulls.T / eigenvalues) @ pulls  # least squares leaves no signal in it
    spread = float(np.trace(of_noise)) / q
    along = np.ones(max(len(directions), 1))
    if weight - centred - n_own > q and spread * q > PERFECT * total:
        along = np.sum((directions @ of_noise) * directions, axis=1).clip(0.0) / spread

    ranks = np.arange(1, len(along) + 1)
    explained = np.zeros((n_own, len(ranks)))
    explained[:, : len(directions)] = np.cumsum((pulls @ directions.T / root) ** 2, axis=1)
    strength, share, t = choose(explained, ranks)
    freedom = freedom_of(np.minimum(ranks, t), t, q)
    fit = (freedom <= LARGEST_SHARE * weight * q).cumprod() if n_most is None else ranks <= n_most
    n = max(int(fit.sum()), 1)
    return ReducedRankPath(
        sizes=ranks[:n],
        loss=total * share[:n] / (2.0 * weight * q),
        freedom=freedom[:n],
        log_models=np.zeros(n),
        weight=weight * q,
        noise=((np.sqrt(t * along) + np.sqrt(q)) ** 2)[:n],
        zero=total / (2.0 * weight * q),
        strength=strength[:n],
        eigenvalues=eigenvalues,
        basis=basis,
        pulls=pulls,
        directions=directions[:n],
        mean_x=summary.mean_x,
        mean_y=summary.mean_y,
        centred=centred,
    )


def _decomposed(matrix: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues of the correlations that are not zero but for rounding, and their vectors over the scales."""
    scale = np.sqrt(np.diagonal(matrix))
    features = np.flatnonzero(scale > 0.0)
    unit = 1.0 / scale[features]
    values, vectors = np.linalg.eigh(matrix[np.ix_(features, features)] * unit[:, None] * unit)
    own = values > OWN_EIGENVALUE * np.max(values, initial=0.0)
    basis = np.zeros((len(matrix), int(own.sum())))
    basis[features] = unit[:, None] * vectors[:, own]
    return values[own], basis
