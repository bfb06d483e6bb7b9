"""Which features matter, averaged over all sparse models: the posterior of a spike-and-slab prior, from a summary."""

from dataclasses import dataclass, replace
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from thresher._utils.arrays import Floats, Integers
from thresher._utils.checks import check_features, check_positive_integer, check_summary
from thresher._utils.tolerances import PERFECT, TINY
from thresher.solvers._posterior import Chain, Columns
from thresher.solvers.forward_backward import Penalty
from thresher.solvers.least_squares import least_squares
from thresher.solvers.subsets import Subsets
from thresher.summaries.gram import Gram
from thresher.summaries.moments import Moments

# Their differences tell the Monte Carlo error.
N_CHAINS = 4
# Sweeps of each chain after which the Monte Carlo error is looked at.
BATCH = 10
# Draws of a chain at the most.
MOST_DRAWS = 200
# Coefficients that are drawn a new place after every sweep.
MOVES = 4
# Scales of the prior: n tau^2 / (1 + n tau^2). Then come 1 - 1/4, 1 - 1/16, ..., the last of which is still exact.
SMALL_SHARES, LAST_POWER = (1 / 16, 1 / 8, 1 / 4, 1 / 2), 26
# Sum of the Dirichlet parameters of all scales; that of zero is the root of the number of features.
NONZERO = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """What is known of the coefficients of a sparse linear model.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        Posterior mean of the coefficients.
    intercept : float
        The intercept that belongs to it.
    intercept_deviation : float
        Posterior standard deviation of the intercept; zero if there is none.
    inclusion_probabilities : ndarray of shape (n_features,)
        Probability that a coefficient is not zero; zero for constant columns.
    standard_deviation : ndarray of shape (n_features,)
        Posterior standard deviation of the coefficients.
    noise_variance : float
        Posterior mean of the variance of the noise.
    risk : float
        Expected squared error of the fitted values, mean over the rows seen: how far the truth is from the posterior
        mean. `prediction_risk` is that of new rows.
    monte_carlo_error : float
        The part of it that more draws would remove: expected squared difference, mean over the rows, between these
        fitted values and those of infinitely many draws.
    n_draws : int
        Draws of all chains.
    """

    coef: Floats
    intercept: float
    intercept_deviation: float
    inclusion_probabilities: Floats
    standard_deviation: Floats
    noise_variance: float
    risk: float
    monte_carlo_error: float
    n_draws: int

    def __repr__(self) -> str:
        likely = np.flatnonzero(self.inclusion_probabilities > 0.5)
        shown = f"[{', '.join(map(str, likely[:10]))}{', ...' if len(likely) > 10 else ''}]"
        return f"Posterior(n_features={len(self.coef)}, likely={shown}, noise_variance={self.noise_variance:.4g})"

    def prediction_risk(self, summary: Gram, fit_intercept: bool = True) -> float:
        """Expected squared error of the posterior mean on a new row, beyond the noise.

        `risk` is about the rows seen, which the coefficients were fitted to; on new rows the error is larger. The
        covariance of new rows is estimated by that of the rows seen, shrunk towards the one of independent columns as
        far as the number of rows asks for (OAS). O(d^2) time and O(d) memory.

        Parameters
        ----------
        summary : Gram
            The summary that this is the posterior of.
        fit_intercept : bool, default=True
            Whether the model has an intercept, whose error counts too.

        References
        ----------
        Y. Chen, A. Wiesel, Y. C. Eldar and A. O. Hero (2010). Shrinkage algorithms for MMSE covariance estimation. IEEE
        Transactions on Signal Processing 58(10), 5016-5029.
        """
        check_summary(summary, Gram)
        if summary.n_features != len(self.coef):
            raise ValueError(f"the summary has {summary.n_features} features, the posterior {len(self.coef)}")
        moments = summary.moments(bool(fit_intercept))
        n = max(moments.weight, 1.0)
        # With independent columns, errors of the coefficients add up.
        apart = float(moments.squares @ self.standard_deviation**2) / n
        share = _towards_independence(moments)
        intercept = self.noise_variance / n if fit_intercept else 0.0
        return (1.0 - share) * self.risk + share * apart + intercept

    def among(self, features: Integers, n_features: int) -> "Posterior":
        """The same where these are some of more features, and the others are zero."""
        coef, inclusion, deviation = np.zeros((3, n_features))
        coef[features], inclusion[features] = self.coef, self.inclusion_probabilities
        deviation[features] = self.standard_deviation
        return replace(self, coef=coef, inclusion_probabilities=inclusion, standard_deviation=deviation)

    def intervals(self, level: float = 0.95) -> Floats:
        """Credible intervals of all coefficients, of shape (n_features, 2).

        From a point mass at zero and a normal distribution, with the probability, mean and variance of the posterior.
        An interval that is zero at both ends says that the coefficient is zero with at least that probability.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}")
        some = np.maximum(self.inclusion_probabilities, TINY)
        mean = self.coef / some
        spread = np.sqrt(np.maximum((self.standard_deviation**2 + self.coef**2) / some - mean**2, 0.0))
        tails = np.array([0.5 * (1.0 - level), 0.5 * (1.0 + level)])[:, None]
        with np.errstate(invalid="ignore"):  # quantiles that lie beyond zero are not numbers
            below, above = (mean + spread * ndtri(share) for share in (tails / some, 1.0 - (1.0 - tails) / some))
        result: Floats = np.where(below < 0.0, below, np.where(above > 0.0, above, 0.0)).T
        return result


def posterior(
    summary: Gram,
    *,
    fit_intercept: bool = True,
    tolerance: float = 0.03,
    burn_in: int = 20,
    start: Any = None,
    random_state: int | None = 0,
) -> Posterior:
    r"""The posterior of a sparse linear model, averaged over models by Gibbs sampling.

    With columns in units of their standard deviations,

    .. math:: y \sim N(b_0 + X b, \sigma^2), \quad b_j \sim \pi_0 \delta_0 + \sum_k \pi_k N(0, \sigma^2 \tau_k^2), \quad
              \pi \sim \mathrm{Dirichlet}(\sqrt d, 2/K, \dots, 2/K), \quad p(\sigma^2) \propto 1 / \sigma^2

    with scales :math:`\tau_k` from a quarter of the standard error of a coefficient to twice the largest coefficient.
    A sweep draws every coefficient given all others, then draws new places for some, so that similar columns change
    places. Four chains begin at a model that a search finds. They go on until the Monte Carlo error is below 3 % of the
    risk, or for 200 draws each; it is estimated from the differences between the chains.

    A sweep costs O(d) and O(d) for every coefficient that is not zero: some milliseconds in all for 200 features, some
    tens for 1000. Memory is O(d) beyond the summary. The same summary and `random_state` give the same result.

    Parameters
    ----------
    summary : Gram
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    tolerance : float, default=0.03
        The largest Monte Carlo error, as a share of the risk.
    burn_in : int, default=20
        Sweeps of each chain before its draws count.
    start : array-like of int, optional
        Features of the model at which the chains begin. By default a model found by forward selection, backward
        elimination and swaps.
    random_state : int or None, default=0
        Seed of the draws; None draws one.

    Returns
    -------
    Posterior

    References
    ----------
    E. I. George and R. E. McCulloch (1993). Variable selection via Gibbs sampling. JASA 88(423), 881-889.

    Y. Kim, W. Wang, P. Carbonetto and M. Stephens (2024). A flexible empirical Bayes approach to multiple linear
    regression, and connections with penalized regression. JMLR 25, 1-59: the prior.

    Examples
    --------
    >>> import numpy as np
    >>> import thresher
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 30))
    >>> y = X[:, 3] - X[:, 5] + rng.standard_normal(100)
    >>> result = thresher.posterior(thresher.Gram(30).absorb(X, y))
    >>> np.flatnonzero(result.inclusion_probabilities > 0.5)
    array([3, 5])
    """
    check_summary(summary, Gram)
    if not tolerance > 0.0:
        raise ValueError(f"tolerance must be positive, got {tolerance!r}")
    check_positive_integer(burn_in, "burn_in")
    centred, d = bool(fit_intercept), summary.n_features
    moments = summary.moments(centred)
    n, usable = moments.weight, moments.squares > TINY * max(moments.weight, 1.0)
    freedom = n - centred
    # With less than one degree of freedom there is no noise level: nothing is known.
    if not usable.any() or not moments.total > TINY * max(n, 1.0) or not freedom >= 1.0:
        nothing = np.zeros(d)
        return Posterior(nothing, summary.mean_y if centred else 0.0, 0.0, nothing, nothing, 0.0, 0.0, 0.0, 0)
    scale = np.sqrt(np.divide(n, moments.squares, out=np.zeros(d), where=usable))
    unit = scale / sqrt(n / moments.total)  # of a coefficient
    begin = np.zeros(d)
    support = _first_support(summary, moments, centred) if start is None else check_features(start, d)
    support = support[usable[support]]
    begin[support] = least_squares(summary, support, centred).values / unit[support]
    columns = Columns(moments, scale, sqrt(n / moments.total))
    begun = _chains(columns, begin, freedom, unit * summary.mean_x, np.random.SeedSequence(random_state))
    chains = _run(begun, columns, tolerance, burn_in)
    return _pooled(summary, chains, unit, columns, centred)


def _towards_independence(moments: Moments) -> float:
    """How far to shrink the correlations of all columns to zero: ``sklearn.covariance.OAS`` of standardised columns."""
    usable = np.flatnonzero(moments.squares > TINY * max(moments.weight, 1.0))
    scale, d, squares = np.sqrt(moments.squares[usable]), len(usable), 0.0
    for j, root in zip(usable.tolist(), scale, strict=True):
        squares += float(np.sum((moments.column(j)[usable] / (root * scale)) ** 2))
    beyond = (moments.weight + 1.0) * (squares - d)
    return min((squares + d**2) / beyond, 1.0) if beyond > 0.0 else 1.0


def _first_support(summary: Gram, moments: Moments, centred: bool) -> Integers:
    """A model to begin with: the least n log(RSS) + 2 k log d that a search finds."""
    subsets = Subsets(centred)
    most = subsets.most(summary)
    penalty = Penalty(2.0 * log(max(moments.n_features, 2)), np.zeros(most + 1))
    return subsets.search(summary, penalty, most).best.support


def _chains(
    columns: Columns, begin: Floats, freedom: float, direction: Floats, seeds: np.random.SeedSequence
) -> list[Chain]:
    """Chains that begin at this model: among columns that are nearly collinear, none would find it from zero."""
    n, d, least = columns.weight, len(begin), PERFECT * columns.weight
    first = columns.residual(begin, least) / max(freedom - np.count_nonzero(begin), 1.0)
    # Coefficients of nearly collinear columns may be much larger than correlations.
    largest = 2.0 * n * float(max(np.max((columns.products / n) ** 2), np.max(begin**2))) / first
    powers = min(max(ceil(log(1.0 + largest, 4.0)), 2), LAST_POWER)
    shares = np.array([*SMALL_SHARES, *(1.0 - 0.25**m for m in range(1, powers + 1))])
    prior = np.array([sqrt(d), *[NONZERO / len(shares)] * len(shares)])
    return [
        Chain(columns, shares, prior, freedom, least, begin, np.random.default_rng(seed), direction)
        for seed in seeds.spawn(N_CHAINS)
    ]


def _run(chains: list[Chain], columns: Columns, tolerance: float, burn_in: int) -> list[Chain]:
    """Let the chains go on until they agree; an interrupt falls between batches of sweeps."""
    for chain in chains:
        chain.run(burn_in, MOVES, False)
    while True:
        for chain in chains:
            chain.run(BATCH, MOVES, True)
        risk, error = _risk_and_error(chains, columns)
        if error <= tolerance * risk or chains[0].n_draws >= MOST_DRAWS:
            return chains


def _risk_and_error(chains: list[Chain], columns: Columns) -> tuple[float, float]:
    """Mean squared distance, in fitted values, of draws from their mean, and of that mean from where it will end.

    The products with G are known from the draws: G b = c - r.
    """
    n, n_chains = columns.weight, len(chains)
    coef = np.array([chain.drawn / chain.n_draws for chain in chains])
    left = np.array([chain.drawn_left / chain.n_draws for chain in chains])
    mean, mean_left = coef.mean(axis=0), left.mean(axis=0)
    explained = sum(chain.explained / chain.n_draws for chain in chains) / n_chains
    risk = (explained - float(mean @ (columns.products - mean_left))) / n
    error = -float(((coef - mean) * (left - mean_left)).sum()) / (n_chains * (n_chains - 1) * n)
    return max(risk, 0.0), max(error, 0.0)


def _pooled(summary: Gram, chains: list[Chain], unit: Floats, columns: Columns, centred: bool) -> Posterior:
    """What all draws say, in the units of the data."""
    n_draws = sum(chain.n_draws for chain in chains)
    mean, square, inclusion = (
        sum(getattr(chain, name) for chain in chains) / n_draws for name in ("mean", "square", "inclusion")
    )
    coef = unit * mean
    variance = summary.response_variance(centred)  # of y; in the units of the chains it is one
    risk, error = _risk_and_error(chains, columns)
    noise = variance * sum(chain.noise for chain in chains) / n_draws
    # Given b, the intercept is normal about mean_y - mean_x'b, with variance sigma^2 / n.
    levels = np.array([chain.level for chain in chains])
    swing = float(sum(chain.swing for chain in chains) / n_draws + levels.var())
    return Posterior(
        coef=coef,
        intercept=summary.best_intercept(coef) if centred else 0.0,
        intercept_deviation=sqrt(noise / columns.weight + swing) if centred else 0.0,
        inclusion_probabilities=inclusion,
        standard_deviation=unit * np.sqrt(np.maximum(square - mean**2, 0.0)),
        noise_variance=noise,
        risk=variance * risk,
        monte_carlo_error=variance * error,
        n_draws=n_draws,
    )
