"""A fitted sparse model as the table that statisticians know."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from html import escape
from typing import Any

import numpy as np
from scipy import stats

from thresher._utils.arrays import Floats, Integers
from thresher._utils.printable import printable
from thresher._utils.tolerances import OWN_SHARE
from thresher.inference.categories import find_categories, reference_levels
from thresher.inference.diagnostics import Finding
from thresher.inference.intervals import Intervals, noise_variance
from thresher.solvers.posterior import Posterior
from thresher.summaries.gram import Gram


@dataclass(frozen=True)
class Term:
    """A row of the table: a kept feature, or the intercept.

    Attributes
    ----------
    name : str
    coef : float
        In the units of the data.
    standard_error, lower, upper : float or None
        Of the interval; None if there is none, and then `note` says why: the rows do not identify the coefficient, or
        the posterior says that it is zero.
    inclusion : float or None
        The probability that the feature belongs to the model, if the model has one.
    standardized : float or None
        By how many standard deviations the response changes when the feature changes by one of its own.
    note : str
        What the reader has to know about this row.
    """

    name: str
    coef: float
    standard_error: float | None
    lower: float | None
    upper: float | None
    inclusion: float | None
    standardized: float | None
    note: str = ""


@dataclass(frozen=True)
class ModelSummary:
    """What ``model.summary()`` returns. Prints as text, shows as HTML in notebooks.

    Attributes
    ----------
    title : str
        The class of the model.
    n_samples, n_features : int
        Rows seen and columns to choose from.
    selection : str or None
        How the size was chosen; None if it was given.
    criterion : float or None
        What was minimised to choose it.
    r2 : float or None
        Share of the variance of the response that the model explains, on the rows it was fitted to.
    prequential_r2 : float or None
        The same on rows that were predicted before the model learned from them.
    prequential_n_samples : int
        How many rows that were.
    n_kept : int
        Features in the model.
    noise : float or None
        Standard deviation of the response about the model; None with less than one degree of freedom.
    level : float
        Nominal coverage of the intervals.
    intervals : str
        Which intervals they are.
    terms : tuple of Term
        The intercept, if there is one, and the kept features, those with the largest standardised coefficient first.
    findings : tuple of Finding
        The diagnosis.
    n_effective : float or None
        How many rows count, if the model forgets or follows recent rows.
    follows_recent : bool
        Whether the stream has changed, so that the coefficients follow recent rows. Then there are no intervals,
        probabilities, R2 and noise: those of all rows would describe another model.
    """

    title: str
    n_samples: int
    n_features: int
    selection: str | None
    criterion: float | None
    r2: float | None
    prequential_r2: float | None
    prequential_n_samples: int
    n_kept: int
    noise: float | None
    level: float
    intervals: str
    terms: tuple[Term, ...]
    findings: tuple[Finding, ...]
    n_effective: float | None = None
    follows_recent: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The same as dictionaries, lists and plain values."""
        return asdict(self)

    def to_frame(self) -> Any:
        """The rows of the table as a pandas data frame, indexed by name."""
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        columns = [field.name for field in fields(Term)]
        frame = pandas.DataFrame([asdict(term) for term in self.terms], columns=columns).set_index("name")
        return frame.drop(columns="note") if not any(term.note for term in self.terms) else frame

    def facts(self) -> dict[str, str]:
        """What stands above the table, as text."""
        chosen = f", chosen by {self.selection}" if self.selection else ""
        counted = "" if self.n_effective is None else f", of which {self.n_effective:,.0f} count"
        facts = {"Rows": f"{self.n_samples:,}{counted}", "Features": f"{self.n_kept} of {self.n_features:,}{chosen}"}
        if self.r2 is not None:
            facts["R2"] = _fixed(self.r2, ".4f")
        if self.prequential_r2 is not None:
            facts["Prequential R2"] = f"{_fixed(self.prequential_r2, '.4f')} on {self.prequential_n_samples:,} rows"
        if self.noise is not None:
            facts["Noise"] = f"{self.noise:.4g} (standard deviation)"
        elif not self.follows_recent:
            facts["Noise"] = "unknown: less than one degree of freedom"
        if self.criterion is not None:
            facts["Criterion"] = f"{self.criterion:.6g}"
        return facts

    def heads(self) -> tuple[str, ...]:
        """The heads of the columns."""
        tail = 50.0 * (1.0 - self.level)
        ends = () if self.follows_recent else ("std. error", f"{tail:g} %", f"{100.0 - tail:g} %")
        probability = ("P(in model)",) if any(term.inclusion is not None for term in self.terms) else ()
        marks = ("",) if any(term.note for term in self.terms) else ()
        return ("feature", "coef", *ends, *probability, "std. coef", *marks)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The cells of each row, as text."""
        probability, noted = any(term.inclusion is not None for term in self.terms), any(self.notes())
        for term in self.terms:
            inclusion = (_number(term.inclusion, ".3f"),) if probability else ()
            shown = () if self.follows_recent else (term.standard_error, term.lower, term.upper)
            ends = (_number(value, ".4g") for value in shown)
            mark = ("*" if term.note else "",) if noted else ()
            standardized = "" if term.standardized is None else _fixed(term.standardized, "+.3f")
            yield (printable(term.name), f"{term.coef:.5g}", *ends, *inclusion, standardized, *mark)

    def kind(self) -> str:
        """Which intervals the table has, as text."""
        if self.follows_recent:
            return "No intervals: the coefficients follow recent rows. Set half_life or window to get them."
        return f"{100 * self.level:g} % intervals: {self.intervals}"

    def centre(self) -> str:
        """What intervals are about, if some do not include the coefficient beside them; else nothing."""
        ends = [(term.coef, term.lower, term.upper) for term in self.terms]
        if all(low is None or high is None or low <= coef <= high for coef, low, high in ends):
            return ""
        what = {"posterior": "posterior means, which average over models", "debiased": "debiased estimates"}
        return f"Intervals belong to {what[self.intervals]}, not to coef, so some do not include coef."

    def notes(self) -> list[str]:
        """What has to be said about single rows, each thing once."""
        found: dict[str, list[str]] = {}
        for term in self.terms:
            if term.note:
                found.setdefault(term.note, []).append(printable(term.name))
        return [f"* {_some(names)}: {note}" for note, names in found.items()]

    def __str__(self) -> str:
        facts = [f"{name}: {value}" for name, value in self.facts().items()]
        lines = [self.heads(), *self.rows()]
        widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        table = ["  ".join(map(str.rjust, line, widths)) for line in lines]
        table = [line[0].ljust(widths[0]) + text[widths[0] :] for line, text in zip(lines, table, strict=True)]
        rule = "-" * len(table[0])
        kind = [line for line in (self.kind(), self.centre()) if line]
        findings = [f"{finding.severity:7}  {finding.key}: {finding.sentence}" for finding in self.findings]
        return "\n".join(
            [printable(self.title), *facts, rule, table[0], rule, *table[1:], rule, *kind, *self.notes(), *findings]
        )

    def _repr_html_(self) -> str:
        facts = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in self.facts().items())
        notes = "".join(f"<p>{escape(note)}</p>" for note in (self.centre(), *self.notes()) if note)
        findings = "".join(f"<li>{escape(f.severity)}: {escape(f.sentence)}</li>" for f in self.findings)
        kind = escape(self.kind())
        head = f"<h3>{escape(self.title)}</h3><table>{facts}</table>"
        return f"{head}{self.html_table()}<p>{kind}</p>{notes}<ul>{findings}</ul>"

    def html_table(self) -> str:
        """The rows as an HTML table."""
        heads = "".join(f"<th>{escape(head)}</th>" for head in self.heads())
        rows = "\n".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
            for name, *cells in self.rows()
        )
        return f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"


INTERCEPT = "(intercept)"
# Names in a note at the most.
MOST_NAMED = 12


def _fixed(value: float, how: str) -> str:
    """With decimals, or with an exponent where a model that diverged would fill the line."""
    return format(value, how if abs(value) < 1e6 else how.replace("f", "g"))


def _some(names: list[str]) -> str:
    """The names, or some of many: rows have a mark as well."""
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"


def _number(value: float | None, how: str) -> str:
    return "" if value is None else format(value, how)


def terms_of(
    summary: Gram,
    coef: Floats,
    intercept: float,
    centred: bool,
    intervals: Intervals | None,
    names: Sequence[str],
    posterior: Posterior | None = None,
) -> tuple[Term, ...]:
    """The rows of the table; intervals of the kept features may be missing where the rows are too few.

    With a posterior, inclusion probabilities and the interval of the intercept are those of it.
    """
    kept, standardized = _by_size(summary, coef, centred)
    found = {} if intervals is None else {int(j): place for place, j in enumerate(intervals.features)}
    compared = _compared_with(summary, centred, kept)
    level = 0.95 if intervals is None else intervals.level
    first = (
        _likely_intercept(summary, coef, intercept, posterior, level)
        if posterior is not None
        else intercept_term(summary, coef, intercept, level)
    )
    terms = [first] if centred else []
    for j, size in zip(kept.tolist(), standardized, strict=True):
        error = lower = upper = None
        note = "too few rows for an interval."
        if intervals is not None and j in found:
            place = found[j]
            error, lower, upper = (
                float(values[place]) for values in (intervals.standard_error, intervals.lower, intervals.upper)
            )
            note = f"compared with {printable(names[compared[j]])}." if j in compared else ""
            if not math.isfinite(error):
                error = lower = upper = None
                note = "a linear combination of other columns, so the rows do not identify its coefficient."
            elif lower == upper:  # a single point, which no estimate is in
                error = lower = upper = None
                note = f"zero with a probability of {100 * level:g} % or more by the posterior, so without an interval."
        probability = None if posterior is None else float(posterior.inclusion_probabilities[j])
        terms.append(Term(names[j], float(coef[j]), error, lower, upper, probability, size, note))
    return tuple(terms)


def terms_in_use(
    summary: Gram, coef: Floats, intercept: float, centred: bool, names: Sequence[str]
) -> tuple[Term, ...]:
    """The rows of the table for coefficients that no interval belongs to."""
    first = [Term(INTERCEPT, intercept, None, None, None, None, None)] if centred else []
    kept, standardized = _by_size(summary, coef, centred)
    pairs = zip(kept.tolist(), standardized, strict=True)
    return (*first, *(Term(names[j], float(coef[j]), None, None, None, None, size) for j, size in pairs))


def _by_size(summary: Gram, coef: Floats, centred: bool) -> tuple[Integers, list[float | None]]:
    """The features with a coefficient, the largest standardised one first, and these; None if y does not vary."""
    spread = math.sqrt(summary.response_variance(centred))
    effects = coef * np.sqrt(summary.variance(centred))
    kept = np.flatnonzero(coef)
    kept = kept[np.argsort(-np.abs(effects[kept]), kind="stable")]
    return kept, [float(effects[j] / spread) if spread > 0.0 else None for j in kept]


def _compared_with(summary: Gram, centred: bool, kept: Integers) -> dict[int, int]:
    """For the kept levels of categories, the reference level that their coefficients are differences from."""
    categories = find_categories(summary)
    references = reference_levels(summary, categories, centred, kept)
    return {
        int(j): int(level)
        for levels in categories
        for level in references[np.isin(references, levels)]
        for j in levels[np.isin(levels, kept)]
    }


def _likely_intercept(summary: Gram, coef: Floats, intercept: float, posterior: Posterior, level: float) -> Term:
    """The intercept with its credible interval, which allows for features that the model has left out."""
    freedom = max(summary.weight - np.count_nonzero(coef) - 1.0, 1.0)
    error = posterior.intercept_deviation
    margin = float(stats.t.ppf(0.5 + 0.5 * level, freedom)) * error
    return Term(INTERCEPT, intercept, error, posterior.intercept - margin, posterior.intercept + margin, None, None)


def intercept_term(summary: Gram, coef: Floats, intercept: float, level: float) -> Term:
    """The intercept, with the standard error of least squares on the support."""
    support: Integers = np.flatnonzero(coef)
    try:
        variance = noise_variance(summary, coef)
    except ValueError:
        return Term(INTERCEPT, intercept, None, None, None, None, None, "too few rows for an interval.")
    matrix, _, sums = summary.equations(support, True)
    scale = np.sqrt(np.diagonal(matrix))
    unit = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
    # var(intercept) = sigma^2 (1 / n + m' C^-1 m), with the means m and the co-moments C of the support
    mean, correlations = unit * sums.mean_x, unit[:, None] * matrix * unit
    along = np.linalg.lstsq(correlations, mean, rcond=OWN_SHARE[summary.dtype])[0] if len(mean) else mean
    error = math.sqrt(variance * (1.0 / summary.weight + float(mean @ along)))
    margin = float(stats.t.ppf(0.5 + 0.5 * level, summary.weight - len(support) - 1.0)) * error
    return Term(INTERCEPT, intercept, error, intercept - margin, intercept + margin, None, None)
