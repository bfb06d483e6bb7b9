"""Coefficients of many responses, by rank."""

from dataclasses import dataclass

import numpy as np

from thresher._utils.arrays import Floats
from thresher.selection.criteria import Criterion
from thresher.selection.family import Family
from thresher.selection.noise_edge import NoiseEdge
from thresher.solvers.reduced_rank import ReducedRankPath, reduced_rank_path
from thresher.summaries.multiresponse import MultiResponse


@dataclass(frozen=True)
class ResponseRanks(Family):
    r"""Linear models of q responses on p features, by the rank of their coefficients.

    What is minimised is the sum of squares over all n q observed numbers, so the likelihood that goes with it is that
    of equal, independent noise, :math:`n q \log(\mathrm{RSS} / (n q))`, and losses here are per number. A rank has
    r (p' + q - r) parameters where p' is the rank of X, or the parameters that a ridge leaves for each response. Noise
    of other kinds changes what a rank can gain from it, not what is estimated: along a direction v of the responses it
    has variance :math:`v^\top \Sigma v`, so a rank along v gains up to
    :math:`(\sqrt{p' v^\top \Sigma v} + \sqrt{\operatorname{tr} \Sigma})^2`, with the residual covariance
    :math:`\Sigma` of least squares where there are rows enough to estimate it. For equal noise that is
    :math:`\sigma^2 (\sqrt{p'} + \sqrt q)^2`.
    """

    centred: bool = True
    fallback = NoiseEdge()

    def path(
        self, summary: MultiResponse, n_most: int | None = None, criterion: Criterion | None = None
    ) -> ReducedRankPath:
        """Candidates of all ranks that the rows can carry; up to `n_most`, if given."""
        return reduced_rank_path(summary, self.centred, n_most)

    def loss_elsewhere(self, path: ReducedRankPath, summary: MultiResponse) -> Floats:
        """Half the mean squared error of every candidate on the rows of another summary, per number."""
        coefs = [path.coef(r) for r in path.sizes]
        return np.array([summary.loss(coef, path.intercept(coef)) for coef in coefs]) / summary.n_responses
