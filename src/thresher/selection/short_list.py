"""Choosing a short list of features that predicts as well as the posterior mean, up to the error of that."""

from dataclasses import dataclass
from math import log
from numbers import Real
from typing import ClassVar

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher._utils.tolerances import PERFECT
from thresher.io.schema import Array, Count, Either, Is, Number, Schema
from thresher.selection.criteria import Criterion, Selection
from thresher.selection.ebic import Ebic
from thresher.solvers.feature_basis import FeatureBasis
from thresher.solvers.least_squares import least_squares
from thresher.solvers.posterior import Posterior
from thresher.summaries.gram import Gram

# No ridge beyond this multiple of a column's sum of squares.
LARGEST_RIDGE = 1e6


@dataclass(frozen=True, eq=False)
class ShortList:
    """Features that were chosen by a posterior, and how much to shrink them.

    Attributes
    ----------
    support : ndarray of int
        The features, ascending.
    ridge : ndarray
        For each, the precision of its prior in units of the noise: a penalty on the square of its coefficient.
    criterion_support : ndarray of int
        What the criterion chose from the same rows.
    inclusion_probabilities : ndarray of shape (n_features,)
        Of all features.
    selection : Selection
        The choice.
    """

    _schema = Schema(
        support=Array("support", dtype="i8", least=0, ascending=True, shared=True),
        ridge=Array("support", least=0.0, shared=True),
        criterion_support=Array("criterion", dtype="i8", least=0, ascending=True, shared=True),
        inclusion_probabilities=Array("features", least=0.0, most=1.0 + 1e-9),
        selection=Is(Selection, shared=True),
    )
    support: Integers
    ridge: Floats
    criterion_support: Integers
    inclusion_probabilities: Floats
    selection: Selection

    def fits(self, n_features: int) -> bool:
        """Whether it can be a list of so many features; columns may have come in since."""
        last = max(self.support.max(initial=-1), self.criterion_support.max(initial=-1))
        return last < n_features and len(self.inclusion_probabilities) <= n_features

    def followed(self, criterion_support: Integers) -> tuple[Integers, Floats]:
        """The features and their ridge after the criterion has chosen again, from more rows.

        Features that the criterion has dropped since leave the list. Those that it chooses join it, without a ridge:
        with more rows the list would be longer, and it is not known by which others.
        """
        left = np.setdiff1d(self.criterion_support, criterion_support, assume_unique=True)
        stay = np.setdiff1d(self.support, left, assume_unique=True)
        support = np.union1d(stay, criterion_support)
        ridge = np.zeros(len(support))
        ridge[np.searchsorted(support, stay)] = self.ridge[np.searchsorted(self.support, stay)]
        return support, ridge


@dataclass(frozen=True)
class PosteriorSelection(Criterion):
    r"""Choose the shortest list of features whose fitted values are close to those of the posterior mean.

    With the posterior mean :math:`m` and its risk, the expected :math:`\Vert X (\beta - m) \Vert^2 / n`, find a short
    list S with

    .. math:: \min_{\mathrm{supp}(b) \subseteq S} \tfrac1n \Vert X (m - b) \Vert^2
        \le \mathrm{within} \cdot \mathrm{risk}

    by forward selection towards :math:`X m` instead of y, and then backward elimination as long as the inequality
    holds. The risk falls like 1/n, so there is no floor under the error. Coefficients are the minimiser b. They are
    ridge regression with a penalty for each feature, which stands for its prior; so they can be computed again when
    there are more rows.

    Where the list is what the extended BIC chooses, and the t statistics of all its features are beyond doubt, nothing
    is shrunk: coefficients are least squares. Before the first posterior of a stream `Ebic` chooses.

    Beyond the posterior (``thresher.posterior``), a list of s features costs O(d^2 + d s^2) in time and O(d s) in
    memory.

    Parameters
    ----------
    within : float, default=0.25
        How far the fitted values may be from those of the posterior mean: their mean squared distance, as a share of
        the risk. A smaller share makes a longer list, which predicts more like the posterior mean.
    random_state : int, default=0
        Seed of the posterior. `SparseRegressor` puts its own in its place.

    References
    ----------
    P. R. Hahn and C. M. Carvalho (2015). Decoupling shrinkage and selection in Bayesian linear models: a posterior
    summary perspective. Journal of the American Statistical Association 110(509), 435-448.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import PosteriorSelection, SparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 40))
    >>> y = X[:, :12] @ (0.8 ** np.arange(12)) + rng.standard_normal(60)
    >>> lists = [SparseRegressor(selection=PosteriorSelection(within=share)).fit(X, y) for share in (1.0, 0.25, 0.05)]
    >>> sizes = [model.sparsity_ for model in lists]
    >>> sizes[0] < sizes[1] < sizes[2]
    True
    """

    _schema = Schema(within=Either(Number(least=0.0), Count(1)), random_state=Count())
    within: float = 0.25
    random_state: int = 0
    name: ClassVar[str] = "ebic"

    def __post_init__(self) -> None:
        if not (isinstance(self.within, Real) and 0.0 < self.within < np.inf):
            raise ValueError(f"within must be a positive number, got {self.within!r}")

    def penalty(self, weight: float, freedom: Floats, log_models: Floats) -> Floats:
        """What each candidate costs, by the extended BIC."""
        return Ebic().penalty(weight, freedom, log_models)

    def short_list(self, summary: Gram, posterior: Posterior, criterion_support: Integers, centred: bool) -> ShortList:
        """The list that this posterior asks for."""
        moments = summary.moments(centred)
        basis = FeatureBasis(moments.toward(posterior.coef))
        distances = [basis.residual]
        enough = max(self.within * posterior.risk * moments.weight, PERFECT * basis.residual)
        while basis.residual > enough and basis.add_best():
            distances.append(basis.residual)
        needed = None
        for units, distance in basis.eliminated():  # those that later ones have made superfluous
            if distance > enough:
                break
            needed, distances = units, [*distances[: len(units)], distance]
        basis = basis if needed is None else basis.restarted(needed)
        support = np.array(sorted(basis.order), np.intp)
        values = basis.coefficients()
        criterion = np.maximum(distances, 0.0) / moments.weight
        return ShortList(
            support=support,
            ridge=self._ridge(summary, posterior, support, values, criterion_support, centred),
            criterion_support=criterion_support,
            inclusion_probabilities=posterior.inclusion_probabilities,
            selection=Selection(
                "posterior", np.arange(len(criterion)), criterion, None, len(support), summary.n_samples
            ),
        )

    @staticmethod
    def _ridge(
        summary: Gram,
        posterior: Posterior,
        support: Integers,
        values: Floats,
        criterion_support: Integers,
        centred: bool,
    ) -> Floats:
        """The ridge with which these coefficients solve the normal equations; none where nothing needs shrinking."""
        matrix, vector, _ = summary.equations(support, centred)
        plain = least_squares(summary, support, centred).values
        if len(support) and np.array_equal(support, criterion_support):
            # The squares of d t statistics of noise reach 2 log(d).
            beyond = 4.0 * log(max(summary.n_features, 2)) * posterior.noise_variance
            if np.all(plain**2 > beyond * np.diagonal(np.linalg.pinv(matrix, hermitian=True))):
                return np.zeros(len(support))
        pull = np.divide(vector - matrix @ values, values, out=np.zeros(len(support)), where=values != 0.0)
        ridge = np.clip(pull, 0.0, LARGEST_RIDGE * np.diagonal(matrix))
        if np.any(pull < 0.0):
            # No ridge gives exactly these coefficients, and among nearly collinear features not even close ones.
            shrunk = least_squares(summary, support, centred, ridge).values
            farther, closer = ((b - values) @ matrix @ (b - values) for b in (shrunk, plain))
            if closer < farther:
                return np.zeros(len(support))
        return ridge
