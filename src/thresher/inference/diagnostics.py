"""What can go wrong with a sparse fit, read off the second moments: too few rows, twins, constants, conditioning."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import ArrayLike, Floats, Integers
from thresher._utils.checks import check_coef, check_positive_integer
from thresher._utils.feature_names import name_of
from thresher._utils.printable import counted
from thresher.inference.categories import find_categories, reference_levels
from thresher.inference.correlations import Correlations
from thresher.inference.intervals import noise_variance, residual_sum
from thresher.inference.robust import error_ratios
from thresher.inference.sparse_eigenvalues import SparseEigenvalues, sparse_eigenvalues
from thresher.online.residual_moments import ResidualMoments
from thresher.summaries.gram import Gram

# Beyond this width, diagnose leaves conditioning to those who ask for it by name: it takes a d x d temporary.
LARGEST_CONDITION = 5000
# Columns that share 90 % of their variance are close enough to stand in for each other.
TWIN_CORRELATION = 0.95
# A swap is told from chance if it costs this much in twice the log-likelihood: the 95 % point of chi-square, 1 degree.
MEASURABLE = 3.84
# Condition indices, the roots of these, of 10 and of 30 are where Belsley, Kuh and Welsch (1980) see weak and strong
# dependencies between columns.
NOTABLE_CONDITION, BAD_CONDITION = 100.0, 900.0
MOST_NAMED = 5
# A fit has diverged if its residual sum of squares is so many times that of no model at all. Steps that are too long
# multiply errors with every row, so it passes any limit soon.
DIVERGED = 100.0
# Standard errors that allow for noise that varies are larger than the usual ones by more than this, if it does.
VARYING = 1.25

__all__ = ["Diagnosis", "Finding", "SparseEigenvalues", "diagnose", "sparse_eigenvalues"]

Severity = Literal["ok", "note", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """One thing looked at: a key to test for, how bad it is, a sentence with what to do, and the numbers behind it."""

    key: str
    severity: Severity
    sentence: str
    numbers: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """What :func:`diagnose` found. Prints as text, shows as a table in notebooks; `to_dict` for machines."""

    findings: tuple[Finding, ...]

    def __getitem__(self, key: str) -> Finding:
        for finding in self.findings:
            if finding.key == key:
                return finding
        raise KeyError(f"{key!r}; there are {', '.join(finding.key for finding in self.findings)}")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that call for action."""
        return tuple(finding for finding in self.findings if finding.severity in ("warning", "error"))

    def to_dict(self) -> dict[str, Any]:
        """By key: severity, sentence and numbers, all of them plain values."""
        return {
            finding.key: {"severity": finding.severity, "sentence": finding.sentence, "numbers": dict(finding.numbers)}
            for finding in self.findings
        }

    def __str__(self) -> str:
        return "\n".join(f"{finding.severity:7}  {finding.key}: {finding.sentence}" for finding in self.findings)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(finding.severity)}</td><td>{escape(finding.key)}</td>"
            f'<td style="text-align:left">{escape(finding.sentence)}</td></tr>'
            for finding in self.findings
        )
        return f"<table><thead><tr><th></th><th>looked at</th><th>found</th></tr></thead><tbody>{rows}</tbody></table>"


def diagnose(
    summary: Gram,
    coef: ArrayLike,
    sparsity: int,
    centred: bool = True,
    names: Sequence[str] | None = None,
    recent_supports: Sequence[tuple[int, ArrayLike]] | None = None,
    residuals: ResidualMoments | None = None,
    size_is_given: bool = True,
) -> Diagnosis:
    """Whether a sparse fit can be trusted, and what to do if not.

    Looks at the number of rows, the conditioning of 2s columns at a time, columns that could stand in for kept ones,
    constant columns, the noise level and, if given, recent supports. Equivalent to what one would do
    with all rows in memory: correlations, refits with one column swapped, residuals.

    Parameters
    ----------
    summary : Gram
        All rows so far.
    coef : array-like of shape (d,)
        The fit.
    sparsity : int
        Number s of features it may keep.
    centred : bool, default=True
        Whether the model has an intercept.
    names : sequence of str, optional
        Names of all d columns.
    recent_supports : sequence of (row count, support), optional
        Recent supports, and after how many rows they were chosen.
    residuals : ResidualMoments, optional
        Moments weighted by squared residuals, which show whether the noise varies with the features.
    size_is_given : bool, default=True
        Whether `sparsity` was given by the user, who could give another.

    Returns
    -------
    Diagnosis
        With findings "rows", "condition", "twins", "constant" and "noise", and "support" if there are supports of
        different row counts or nothing is kept. Before the first row, only "rows". If the fit has diverged, only
        "diverged", an error, since nothing else can be trusted.

    Notes
    -----
    Conditioning costs one d x d temporary and O(d^3), and is left out beyond 5000 columns; the others O(d s), and
    O(s^3) for every near-twin.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import Gram
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 20))
    >>> X[:, 5] = X[:, 3]
    >>> coef = np.zeros(20)
    >>> coef[3] = 1.0
    >>> found = diagnose(Gram(20).absorb(X, X[:, 3] + 0.5 * rng.standard_normal(500)), coef, sparsity=1)
    >>> print(found["twins"].sentence)  # doctest: +NORMALIZE_WHITESPACE
    Could be swapped at no measurable cost: x3 for x5 (correlation 1, residual sum of squares +0 %).
    The rows do not say which of the two matters; choose by what the columns mean.
    """
    s = check_positive_integer(sparsity, "sparsity")
    theta = check_coef(coef, summary.n_features)
    if names is not None and len(names) != summary.n_features:
        raise ValueError(f"There are {len(names)} names for {summary.n_features} columns; pass one for each.")
    if summary.weight == 0.0:
        sentence = "No rows with positive weight yet: absorb some."
        return Diagnosis((Finding("rows", "warning", sentence, {"weight": 0.0}),))
    diverged = _diverged(summary, theta, centred)
    if diverged is not None:
        return Diagnosis((diverged,))
    correlations = Correlations(summary, centred)
    labels = _Labels(names)
    findings = [
        _rows(summary, s, size_is_given),
        _condition(summary, s, centred, correlations.varies, np.flatnonzero(theta), size_is_given),
        _twins(summary, np.flatnonzero((theta != 0.0) & correlations.varies), centred, correlations, labels),
        _constant(correlations.varies, centred, labels),
        _noise(summary, theta, centred, residuals, labels),
    ]
    if not theta.any() or len({int(t) for t, _ in recent_supports or ()}) > 1:  # rows learned at once have no history
        findings.append(_support(theta, recent_supports, labels))
    return Diagnosis(tuple(findings))


class _Labels:
    """What columns are called in sentences."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self._names = names

    def __call__(self, column: int) -> str:
        return name_of(column, None) if self._names is None else f"{str(self._names[column])!r}"

    def some(self, columns: Sequence[int] | Integers) -> str:
        """Up to five of them."""
        rest = len(columns) - MOST_NAMED
        return ", ".join(self(int(j)) for j in columns[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _diverged(summary: Gram, theta: Floats, centred: bool) -> Finding | None:
    total = residual_sum(summary, np.zeros(summary.n_features), centred)
    with np.errstate(over="ignore", invalid="ignore"):
        left = residual_sum(summary, theta, centred)
    if left <= DIVERGED * total or (not total > 0.0 and np.isfinite(left)):
        return None
    times = left / total if total > 0.0 and np.isfinite(left) else None
    worse = "" if times is None else f": its squared error is {times:.2g} times that of no model"
    sentence = (
        f"The fit has diverged{worse}. Steps were too long, so nothing here can be trusted. Use step_size='auto' or a "
        "smaller step, and fit again."
    )
    return Finding("diverged", "error", sentence, {"times": times})


def _rows(summary: Gram, s: int, size_is_given: bool) -> Finding:
    # Below 2 s log(d - s) rows no l1 method finds s features of a Gaussian design, above it does given strong enough
    # signals (Wainwright, 2009). With one more row per parameter, and half as much again before all is well.
    n, d = summary.weight, summary.n_features
    needed = 2.0 * s * np.log(max(d - s, 1)) + s + 1.0
    numbers = {"weight": n, "n_samples": summary.n_samples, "needed": float(needed)}
    facts = (
        f"{counted(n, 'row')} for {s} of {counted(d, 'feature')}, which takes about {needed:.0f} if signals are strong"
    )
    if n < needed:
        advice = "Wait for more rows or lower the sparsity" if size_is_given else "Wait for more rows"
        return Finding("rows", "warning", f"Too few: {facts}. {advice}.", numbers)
    if n < 1.5 * needed:
        return Finding("rows", "note", f"Just enough: {facts}. Expect the support to change with more rows.", numbers)
    return Finding("rows", "ok", f"Enough: {facts}.", numbers)


def _condition(
    summary: Gram, s: int, centred: bool, varies: NDArray[np.bool_], kept: Integers, size_is_given: bool
) -> Finding:
    if not varies.any():
        return Finding("condition", "warning", "No column varies, so nothing can be learned: check the rows.")
    if summary.n_features > LARGEST_CONDITION:
        sentence = f"Not looked at beyond {LARGEST_CONDITION} columns; sparse_eigenvalues(summary, {2 * s}) does."
        return Finding("condition", "ok", sentence)
    # All levels of a category are collinear by construction: the condition is that of a design with reference levels.
    references = reference_levels(summary, find_categories(summary), centred, kept)
    part = summary.select(np.setdiff1d(np.arange(summary.n_features), references)) if len(references) else summary
    bounds = sparse_eigenvalues(part, 2 * s, centred)
    low, high = bounds.condition
    numbers = {"k": bounds.k, "largest": bounds.largest, "smallest": bounds.smallest, "condition": bounds.condition}
    size = f"at least {low:.3g}" if high == np.inf else f"between {low:.3g} and {high:.3g}"
    facts = f"of {bounds.k} columns at a time, the condition number is {size}"
    if low > BAD_CONDITION:
        advice = (
            "some columns are nearly combinations of others. Drop or combine them, or read little into which is kept"
        )
        return Finding("condition", "warning", f"Bad: {facts}; {advice}.", numbers)
    if low > NOTABLE_CONDITION:
        advice = "correlated columns may be kept in place of the right ones"
        advice += ". A larger sparsity helps" if size_is_given else ""
        return Finding("condition", "note", f"Moderate: {facts}; {advice}.", numbers)
    if high > BAD_CONDITION:
        return Finding("condition", "note", f"Not known exactly: {facts}.", numbers)
    return Finding("condition", "ok", f"Good, as far as is known: {facts}.", numbers)


def _twins(summary: Gram, support: Integers, centred: bool, correlations: Correlations, labels: _Labels) -> Finding:
    if not len(support):
        return Finding("twins", "ok", "No feature is kept, so none has a twin.", {"outside": [], "inside": []})
    signed = correlations.rows(support)
    close = np.abs(signed)
    inside = [
        {"kept": int(support[a]), "twin": int(support[b]), "correlation": float(signed[a, support[b]])}
        for a, b in np.argwhere(np.triu(close[:, support] > TWIN_CORRELATION, 1))
    ]
    close[:, support] = 0.0
    outside = []
    now = _best_residual_sum(summary, support, centred)
    # Sums of squares are no better than this; two fits that are closer fit equally well.
    rounding = 1e-13 * residual_sum(summary, np.zeros(summary.n_features), centred)
    for place in np.flatnonzero(close.max(axis=1) > TWIN_CORRELATION):
        twin = int(np.argmax(close[place]))
        change = _best_residual_sum(summary, np.where(support == support[place], twin, support), centred) - now
        rise = change / max(now, rounding) if abs(change) > rounding else 0.0
        entry = {"kept": int(support[place]), "twin": twin, "correlation": float(signed[place, twin]), "rise": rise}
        # n log(RSS_swapped / RSS) is twice the difference in log-likelihood at the best noise levels.
        outside.append(
            {**entry, "interchangeable": bool(summary.weight * np.log1p(max(rise, -1.0 + 1e-12)) < MEASURABLE)}
        )
    numbers = {"outside": outside, "inside": inside}
    said = list(_twin_sentences(outside, inside, labels))
    if not said:
        sentence = f"No column correlates beyond {TWIN_CORRELATION:g} with a kept feature."
        return Finding("twins", "ok", sentence, numbers)
    serious = bool(inside) or any(entry["interchangeable"] for entry in outside)
    return Finding("twins", "warning" if serious else "note", " ".join(said), numbers)


def _twin_sentences(outside: list[dict[str, Any]], inside: list[dict[str, Any]], labels: _Labels) -> Iterator[str]:
    def listed(entries: list[dict[str, Any]], link: str, with_rise: bool) -> str:
        texts = []
        for entry in entries[:MOST_NAMED]:
            rise = f", residual sum of squares {100 * entry['rise']:+.2g} %" if with_rise else ""
            pair = f"{labels(entry['kept'])} {link} {labels(entry['twin'])}"
            texts.append(f"{pair} (correlation {entry['correlation']:.4g}{rise})")
        rest = len(entries) - MOST_NAMED
        return "; ".join(texts) + (f"; and {rest} more" if rest > 0 else "")

    free = [entry for entry in outside if entry["interchangeable"]]
    dear = [entry for entry in outside if not entry["interchangeable"]]
    if free:
        yield (
            f"Could be swapped at no measurable cost: {listed(free, 'for', True)}. "
            "The rows do not say which of the two matters; choose by what the columns mean."
        )
    if inside:
        yield (
            f"Nearly the same and both kept: {listed(inside, 'and', False)}. "
            "Only their joint effect is known; drop one, or read their coefficients together."
        )
    if dear:
        yield f"Have a near-twin that fits measurably worse: {listed(dear, 'over', True)}."


def _best_residual_sum(summary: Gram, features: Integers, centred: bool) -> float:
    """The residual sum of squares of least squares on these columns, which must vary."""
    part = summary.select(features)
    correlations = Correlations(part, centred)
    toward = -part.gradient(np.zeros(len(features)), None if centred else 0.0) / correlations.scale
    best = np.linalg.lstsq(correlations.rows(range(len(features))), toward, rcond=1e-12)[0]
    return residual_sum(part, best / correlations.scale, centred)


def _constant(varies: NDArray[np.bool_], centred: bool, labels: _Labels) -> Finding:
    still = np.flatnonzero(~varies)
    numbers = {"count": len(still), "columns": still[:MOST_NAMED].tolist()}
    what = "constant" if centred else "zero in every row"
    if not len(still):
        return Finding("constant", "ok", f"No column is {what}.", numbers)
    count = f"{len(still)} column is" if len(still) == 1 else f"{len(still)} columns are"
    advice = "Harmless, and never kept; check that this is what they should be."
    return Finding("constant", "note", f"{count} {what} so far: {labels.some(still)}. {advice}", numbers)


def _noise(summary: Gram, theta: Floats, centred: bool, residuals: ResidualMoments | None, labels: _Labels) -> Finding:
    total = residual_sum(summary, np.zeros(summary.n_features), centred)
    if not total > 0.0:
        what = "constant" if centred else "zero"
        return Finding("noise", "warning", f"The response is {what}, so there is nothing to explain: check y.")
    explained = 1.0 - residual_sum(summary, theta, centred) / total
    numbers = {"explained": explained, "noise": None}
    try:
        numbers["noise"] = float(np.sqrt(noise_variance(summary, theta, centred)))
    except ValueError as error:
        return Finding("noise", "warning", f"Unknown. {error}", numbers)
    facts = f"standard deviation {numbers['noise']:.4g}; the model explains {100 * explained:.3g} % of the variance"
    if explained < 0.0:
        advice = "That is worse than no model: the fit is out of date or its steps were too long. Fit again."
        return Finding("noise", "warning", f"{facts}. {advice}", numbers)
    ratios = None if residuals is None else error_ratios(summary, residuals, centred)
    if residuals is not None and ratios is not None and ratios.max() > VARYING:
        most, numbers["ratio"] = int(residuals.support[np.argmax(ratios)]), float(ratios.max())
        varies = (
            f"The noise varies with the features: the standard error of {labels(most)} is {ratios.max():.2g} times "
            "that of constant noise. Intervals allow for it; weights of one over the variance would do better."
        )
        return Finding("noise", "note", f"{facts}. {varies}", numbers)
    return Finding("noise", "ok", f"{facts}.", numbers)


def _support(theta: Floats, recent: Sequence[tuple[int, ArrayLike]] | None, labels: _Labels) -> Finding:
    kept = np.flatnonzero(theta)
    numbers: dict[str, Any] = {"kept": len(kept), "changes": None, "last_change": None, "unsettled": []}
    if not len(kept):
        advice = "Wait for more rows, or check that y depends on X at all."
        return Finding("support", "warning", f"The model keeps no feature and predicts a constant. {advice}", numbers)
    rounds = [(int(t), {int(j) for j in np.asarray(support).reshape(-1)}) for t, support in recent or ()]
    changes = [(t, before ^ after) for (_, before), (t, after) in pairwise(rounds)]
    changes = [(t, difference) for t, difference in changes if difference]
    unsettled = sorted(set().union(*(difference for _, difference in changes)))
    numbers |= {"changes": len(changes), "last_change": changes[-1][0] if changes else None, "unsettled": unsettled}
    if not changes:
        sentence = f"The {counted(len(kept), 'kept feature')} did not change over the recent rows."
        return Finding("support", "ok", sentence, numbers)
    often = "once" if len(changes) == 1 else f"{len(changes)} times"
    sentence = (
        f"Recently the support changed {often}, last at row {changes[-1][0]}; what came or went: "
        f"{labels.some(unsettled)}. Wait until it stays the same before relying on these."
    )
    return Finding("support", "note", sentence, numbers)
