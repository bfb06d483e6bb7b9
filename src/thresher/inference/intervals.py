"""How sure the coefficients are: noise level and confidence intervals from second moments alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from thresher._utils.arrays import ArrayLike, Floats, Integers, read_only
from thresher._utils.checks import check_coef, check_features
from thresher._utils.feature_names import name_of
from thresher._utils.printable import counted, printable
from thresher._utils.text_table import data_frame
from thresher._utils.threads import one_blas_thread
from thresher._utils.tolerances import OWN_SHARE
from thresher.inference.categories import find_categories, reference_levels
from thresher.inference.correlations import Correlations
from thresher.inference.nodewise import relaxed_nodewise
from thresher.solvers.posterior import Posterior
from thresher.summaries.gram import Gram


def residual_sum(summary: Gram, coef: ArrayLike, centred: bool = True) -> float:
    """How far a linear model is from all rows so far: its residual sum of squares.

    Equivalent to ``(w * (y - X @ coef - intercept) ** 2).sum()`` over the rows, with the best intercept if
    `centred` and none otherwise. One product with the co-moments, O(d s) for s nonzero coefficients.

    Examples
    --------
    >>> from thresher import Gram
    >>> summary = Gram(1).absorb([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
    >>> residual_sum(summary, [2.5])
    1.5
    """
    return 2.0 * summary.weight * summary.loss(coef, None if centred else 0.0)


def noise_variance(summary: Gram, coef: ArrayLike, centred: bool = True) -> float:
    r"""How noisy the response is about a linear model: :math:`\hat\sigma^2 = \mathrm{RSS} / (n - s - 1)`.

    n is the total weight, so weights count as repeats of a row; s is the number of nonzero coefficients; the one is
    for the intercept and left out if not `centred`. Unbiased for least squares on a support that was chosen
    without looking at these rows; a support chosen from them makes it slightly too small, features that were
    missed make it too large. With less than one degree of freedom it is unknown: ValueError. Cost as for
    :func:`residual_sum`.

    Examples
    --------
    >>> from thresher import Gram
    >>> summary = Gram(1).absorb([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
    >>> noise_variance(summary, [2.5])
    1.5
    """
    freedom = _degrees_of_freedom(summary, int(np.count_nonzero(check_coef(coef, summary.n_features))), centred)
    return residual_sum(summary, coef, centred) / freedom


def _degrees_of_freedom(summary: Gram, n_coefficients: int, centred: bool) -> float:
    freedom = summary.weight - n_coefficients - centred
    if not freedom >= 1.0:
        intercept = " and an intercept" if centred else ""
        raise ValueError(
            f"Rows of total weight {summary.weight:g} leave less than one degree of freedom for the noise beside "
            f"{counted(n_coefficients, 'coefficient')}{intercept}: wait for {n_coefficients + centred + 1} rows or a "
            "total weight of as many, or keep fewer features."
        )
    return freedom


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Confidence intervals for some coefficients, one at a time, as a table.

    Each covers its coefficient with probability `level` on its own; that all of them do at once is less likely.

    Parameters
    ----------
    features : array of shape (k,)
        Columns the coefficients belong to.
    names : tuple of str, or None
        Their names.
    estimate, standard_error, lower, upper : arrays of shape (k,)
        An infinite standard error says that the rows cannot tell the column from a combination of others.
    level : float
        Nominal coverage.
    method : str
        "posterior", "debiased" or "split".
    degrees_of_freedom : float
        Those of the noise level, and of the t quantile; with "posterior", beside the features that are more likely in
        the model than not.
    """

    features: Integers
    names: tuple[str, ...] | None
    estimate: Floats
    standard_error: Floats
    lower: Floats
    upper: Floats
    level: float
    method: str
    degrees_of_freedom: float

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        labels = [str(j) for j in self.features] if self.names is None else [printable(name) for name in self.names]
        columns = (self.estimate, self.standard_error, self.lower, self.upper)
        heads = ("feature", "estimate", "std. error", "lower", "upper")
        cells = [labels, *([f"{value:.4g}" for value in column] for column in columns)]
        widths = [max(len(head), *map(len, column), 0) for head, column in zip(heads, cells, strict=True)]
        lines = [heads, *zip(*cells, strict=True)]
        table = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        title = f"{100 * self.level:g} % intervals, {self.method}, {self.degrees_of_freedom:g} degrees of freedom"
        return "\n".join([title, *table])

    def only(self, features: ArrayLike) -> "Intervals":
        """The same for some of the features, in this order."""
        places = {int(j): place for place, j in enumerate(self.features)}
        wanted = [int(j) for j in np.atleast_1d(np.asarray(features))]
        missing = [j for j in wanted if j not in places]
        if missing:
            raise ValueError(f"There is no interval for feature {missing[0]}; there are for {self.features.tolist()}.")
        rows = np.array([places[j] for j in wanted], np.intp)
        return replace(
            self,
            features=self.features[rows],
            names=None if self.names is None else tuple(self.names[row] for row in rows),
            **{name: getattr(self, name)[rows] for name in ("estimate", "standard_error", "lower", "upper")},
        )

    def widened(self, factor: Floats) -> "Intervals":
        """The same with standard errors, and what lies on either side of the estimates, times these factors.

        An interval that is a single point, as of a coefficient that is very likely zero, stays where it is.
        """
        sides = np.where(self.lower == self.upper, 1.0, factor)
        return replace(
            self,
            standard_error=read_only(self.standard_error * factor),
            lower=read_only(np.where(sides == 1.0, self.lower, self.estimate - (self.estimate - self.lower) * sides)),
            upper=read_only(np.where(sides == 1.0, self.upper, self.estimate + (self.upper - self.estimate) * sides)),
        )

    def to_frame(self) -> Any:
        """The rows of the table as a pandas data frame, indexed by name; x0, x1, ... if features have none."""
        names = [f"x{j}" for j in self.features] if self.names is None else list(self.names)
        columns = {name: getattr(self, name) for name in ("estimate", "standard_error", "lower", "upper")}
        return data_frame({"name": names, "feature": self.features, **columns}, "name")

    def to_dict(self) -> dict[str, Any]:
        """The same as lists and numbers, for JSON."""
        columns = ("features", "estimate", "standard_error", "lower", "upper")
        return {
            **{name: getattr(self, name).tolist() for name in columns},
            "names": None if self.names is None else list(self.names),
            "level": self.level,
            "method": self.method,
            "degrees_of_freedom": self.degrees_of_freedom,
        }


def make_intervals(
    features: Integers,
    names: Sequence[str] | None,
    estimate: Floats,
    error: Floats,
    level: float,
    method: str,
    freedom: float,
) -> Intervals:
    """Intervals from estimates and standard errors; infinite degrees of freedom stand for normal quantiles."""
    if names is not None and len(names) != len(features):
        raise ValueError(f"There are {len(names)} names for {len(features)} features; pass one for each.")
    margin = stats.t.ppf(0.5 + 0.5 * level, freedom) * error
    return Intervals(
        features=features,
        names=None if names is None else tuple(str(name) for name in names),
        estimate=read_only(estimate),
        standard_error=read_only(error),
        lower=read_only(estimate - margin),
        upper=read_only(estimate + margin),
        level=float(level),
        method=method,
        degrees_of_freedom=float(freedom),
    )


def check_level(level: float) -> None:
    """Raise unless this is a nominal coverage."""
    if not isinstance(level, Real) or not 0.0 < level < 1.0:
        raise ValueError(f"level is {level!r}; pass a share between 0 and 1, such as 0.95. Columns go to `features`.")


def _require_variation(
    varies: NDArray[np.bool_], features: Integers, centred: bool, names: Sequence[str] | None
) -> None:
    still = np.flatnonzero(~varies[features])
    if len(still):
        what = "constant" if centred else "zero in every row"
        name = name_of(int(features[still[0]]), None) if names is None else printable(str(names[still[0]]))
        raise ValueError(
            f"Column {name} is {what} ({counted(len(still), 'such column')} in all), so nothing can be said about its "
            "coefficient: leave it out, or wait for rows in which it varies."
        )


def posterior_intervals(
    summary: Gram,
    posterior: Posterior,
    features: Integers,
    level: float = 0.95,
    centred: bool = True,
    *,
    names: Sequence[str] | None = None,
) -> Intervals:
    """Credible intervals of some coefficients, averaged over models.

    Each has the stated probability under the posterior of :func:`thresher.posterior`. That the same rows chose which
    features to look at does not matter to it: intervals of kept features reach closer to zero than those of least
    squares on the support. O(1) for each feature.

    Parameters
    ----------
    summary : Gram
        All rows so far.
    posterior : Posterior
        Of the same rows.
    features : array of int
        Columns whose coefficients are wanted.
    level : float, default=0.95
        Probability of each interval.
    centred : bool, default=True
        Whether the model has an intercept.
    names : sequence of str, optional
        Names for `features`.

    Returns
    -------
    Intervals
        The estimates are posterior means, the standard errors posterior standard deviations.
    """
    check_level(level)
    likely = int(np.count_nonzero(posterior.inclusion_probabilities > 0.5))
    freedom = _degrees_of_freedom(summary, likely, centred)
    _require_variation(summary.variance(centred) > 0.0, features, centred, names)
    lower, upper = posterior.intervals(level)[features].T
    return Intervals(
        features=features,
        names=None if names is None else tuple(str(name) for name in names),
        estimate=read_only(posterior.coef[features]),
        standard_error=read_only(posterior.standard_deviation[features]),
        lower=read_only(lower.copy()),
        upper=read_only(upper.copy()),
        level=float(level),
        method="posterior",
        degrees_of_freedom=freedom,
    )


def split_intervals(
    later: Gram,
    level: float = 0.95,
    centred: bool = True,
    *,
    features: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Intervals:
    """Exact intervals for a support that was frozen before these rows came.

    Choose a support S, freeze it, and let time pass: with the summary then and now, the later rows alone are
    ``later = now.select(S).subtract(then.select(S))``, and these are the textbook intervals of least squares
    of y on S over the later rows. Equivalent to ``statsmodels.OLS(y, X[:, S]).fit().conf_int()`` there. O(s^3).

    Parameters
    ----------
    later : Gram
        The summary of rows that had no part in choosing its columns.
    level : float, default=0.95
        Nominal coverage of each interval.
    centred : bool, default=True
        Whether the model has an intercept.
    features : array-like of int, optional
        What the columns of `later` are to be called: S. Defaults to 0, 1, ...
    names : sequence of str, optional
        Names for them.

    Returns
    -------
    Intervals
        Columns that are linear combinations of others over the later rows get infinite intervals.

    Notes
    -----
    Covered at exactly `level`, for normal noise of one variance at any number of rows (for other such noise: at many
    rows), is the coefficient of the best linear prediction *from these columns*; that is the true coefficient
    if S misses nothing correlated with S. Not covered: a support chosen with the help of any of the later rows,
    and noise whose variance depends on x. Sandwich errors, which would allow that, need fourth moments, which a Gram
    does not hold.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import Gram
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 50))
    >>> y = X[:, 7] + 0.1 * rng.standard_normal(300)
    >>> summary, support = Gram(50).absorb(X[:100], y[:100]), [7, 9]
    >>> frozen = summary.select(support)
    >>> later = summary.absorb(X[100:], y[100:]).select(support).subtract(frozen)
    >>> split_intervals(later, features=support)
    95 % intervals, split, 197 degrees of freedom
    feature  estimate  std. error      lower  upper
          7     1.006    0.006915     0.9923   1.02
          9  0.003426    0.006376  -0.009148  0.016
    """
    check_level(level)
    k = later.n_features
    own = np.arange(k, dtype=np.intp)
    labels = own if features is None else np.asarray(features, np.intp).reshape(-1)
    if len(labels) != k:
        raise ValueError(f"features has {len(labels)} entries; `later` has {k} columns, so pass as many.")
    _degrees_of_freedom(later, k, centred)
    correlations = Correlations(later, centred)
    _require_variation(correlations.varies, own, centred, names or [name_of(int(j), None) for j in labels])
    scale = correlations.scale
    values, vectors = np.linalg.eigh(correlations.rows(own))
    solid = values > OWN_SHARE[later.dtype]
    # cov(coef) = sigma^2 / n R^-1 in units of the scales; directions without variance make their columns unknown.
    inverse = np.where(solid, 1.0 / np.where(solid, values, 1.0), 0.0)
    toward = -later.gradient(np.zeros(k), None if centred else 0.0) / scale
    coef = vectors @ (inverse * (vectors.T @ toward)) / scale
    freedom = _degrees_of_freedom(later, int(solid.sum()), centred)
    variance = residual_sum(later, coef, centred) / freedom
    error = np.sqrt(variance / later.weight * ((vectors**2) @ inverse)) / scale
    error[(vectors[:, ~solid] ** 2 > OWN_SHARE[later.dtype]).any(axis=1)] = np.inf
    return make_intervals(labels, names, coef, error, level, "split", freedom)


def debiased_intervals(
    summary: Gram,
    coef: ArrayLike,
    features: ArrayLike,
    level: float = 0.95,
    centred: bool = True,
    *,
    names: Sequence[str] | None = None,
) -> Intervals:
    r"""Intervals for any coefficients, kept or not, from the same rows that chose the support.

    With G and v the (co)moments of x with x and y per unit of weight, the estimate of a coefficient is

    .. math:: \hat\theta_j + M_j^\top (v - G \hat\theta), \qquad
              \mathrm{se}_j^2 = \hat\sigma^2 M_j^\top G M_j / n,

    where row :math:`M_j` of an approximate inverse of G comes from a sparse regression of column j on the others,
    computed from G. Equivalent to regressing y - X_other coef_other on what is left of column j after the others
    have explained what they can, so neither that the support was chosen from the rows nor that column j was left out
    of it biases the estimate.

    Parameters
    ----------
    summary : Gram
        All rows so far.
    coef : array-like of shape (d,)
        A sparse estimate, best least squares on its support.
    features : array-like of int
        Columns whose coefficients are wanted.
    level : float, default=0.95
        Nominal coverage of each interval.
    centred : bool, default=True
        Whether the model has an intercept.
    names : sequence of str, optional
        Names for `features`.

    Returns
    -------
    Intervals
        A column that is a linear combination of others, such as one of two twins, gets an infinite interval about its
        entry of `coef`: the rows cannot tell which of them matters. Nearly collinear columns get intervals as wide as
        the rows demand.

    Notes
    -----
    *Covered*, as n grows with s log d = o(sqrt(n)): every true coefficient of a linear model with s nonzero ones
    and noise of one variance, if each column asked for is explained by few others. *Not covered*: noise whose
    variance depends on x (the estimators widen intervals of kept features for that, from the residuals of predictions),
    all intervals at once, the best of many intervals, and a true model that is not sparse.

    The regressions are scaled lassos at the universal penalty sqrt(2 log(d) / n), so there is nothing to tune. Two
    groups of columns go free of penalty: the support of `coef`, and in a second pass the columns picked in the first.
    The bias of the estimate is a sum over columns k of (G M_j)_k times the error of coef_k; it vanishes for free
    columns and is held to the penalty for others. So what is left comes from features that neither
    regression saw, the idea of double selection. With a penalty on every column, a feature whose twin
    was kept in its place would get a narrow interval about the wrong value.

    Adjacent columns of zeros and ones that add up to one in every row are levels of one category, and collinear with
    an intercept. Their coefficients are differences from a reference level, the most frequent one that is not kept.

    For each feature, O(d m^2) with m free columns and about d m in memory; no d x d temporary.

    References
    ----------
    C.-H. Zhang and S. S. Zhang (2014). Confidence intervals for low dimensional parameters in high dimensional linear
    models. JRSS B 76(1), 217-242. S. van de Geer, P. Bühlmann, Y. Ritov and R. Dezeure (2014). On asymptotically
    optimal confidence regions and tests for high-dimensional models. Annals of Statistics 42(3), 1166-1202. T. Sun and
    C.-H. Zhang (2012). Scaled sparse linear regression. Biometrika 99(4), 879-898. A. Belloni, V. Chernozhukov and
    C. Hansen (2014). Inference on treatment effects after selection among high-dimensional controls. Review of
    Economic Studies 81(2), 608-650.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import Gram
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 50))
    >>> y = X[:, 7] + 0.1 * X[:, 8] + rng.standard_normal(400)
    >>> coef = np.zeros(50)
    >>> coef[7] = X[:, 7] @ y / (X[:, 7] @ X[:, 7])
    >>> debiased_intervals(Gram(50).absorb(X, y), coef, [7, 8])
    95 % intervals, debiased, 398 degrees of freedom
    feature  estimate  std. error     lower   upper
          7    0.9389     0.05148    0.8377    1.04
          8    0.1048     0.04963  0.007226  0.2024
    """
    check_level(level)
    index = check_features(features, summary.n_features)
    theta = check_coef(coef, summary.n_features)
    support = np.flatnonzero(theta)
    freedom = _degrees_of_freedom(summary, len(support), centred)
    correlations = Correlations(summary, centred)
    _require_variation(correlations.varies, index, centred, names)
    scale, sigma = correlations.scale, np.sqrt(residual_sum(summary, theta, centred) / freedom)
    left_over = -summary.gradient(theta, None if centred else 0.0)  # v - G theta
    kept = support[correlations.varies[support]]
    estimate, error = theta[index], np.full(len(index), np.inf)
    categories = find_categories(summary)
    with one_blas_thread():
        for place, j in enumerate(index):
            references = reference_levels(summary, categories, centred, np.append(kept, j))
            residual = relaxed_nodewise(correlations, int(j), kept[kept != j], summary.weight, references)
            others, own = residual.others, residual.products[j]
            share = own - residual.weights @ residual.products[others]  # M'GM up to own^2: the residual's mean square
            if not min(share, own) > OWN_SHARE[summary.dtype]:
                continue
            along = left_over[j] / scale[j] - residual.weights @ (left_over[others] / scale[others])
            estimate[place] += along / own / scale[j]
            error[place] = sigma * np.sqrt(share / summary.weight) / own / scale[j]
    return make_intervals(index, names, estimate, error, level, "debiased", freedom)
