"""An item of the paper: the cells it runs, how they are shown, and what the paper claims about them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.cells import Cell
from reproduction.profiles import Profile
from reproduction.run_cell import Result

Floats = NDArray[np.float64]
Verdict = Literal["holds", "does not hold", "holds with a change"]
Source = Literal["text", "table", "ours"]


class Results:
    """Errors by cell, method and row count."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._errors: dict[tuple[str, str, int], list[float]] = {}
        for result in sorted(results, key=lambda r: r.seed):
            self._errors.setdefault((result.cell, result.method, result.t), []).append(result.mse)

    def errors(self, cell: str, method: str, t: int) -> Floats:
        """One per seed."""
        return np.array(self._errors[cell, method, t])

    def line(self, cell: str, method: str, times: Sequence[int], shift: int = 0) -> "Line":
        """Errors against times minus `shift`; times without an error are left out."""
        known = [t for t in times if (cell, method, t) in self._errors]
        return Line([t - shift for t in known], np.array([self.errors(cell, method, t) for t in known]).T)


class Line(NamedTuple):
    """Errors, seeds by points, against x."""

    x: Sequence[int]
    errors: Floats

    @property
    def medians(self) -> Floats:
        """Over seeds."""
        return np.asarray(np.median(self.errors, axis=0))


def level(x: Sequence[int], errors: Floats) -> Line:
    """A line of errors that do not depend on x."""
    return Line(x, np.tile(errors[:, None], len(x)))


@dataclass(frozen=True)
class Panel:
    """One coordinate system with errors of several methods, on a logarithmic scale.

    Parameters
    ----------
    title, xlabel : str
    lines : mapping
        By label.
    log_x : bool
    guide : float, optional
        Slope of a straight line to compare with, on logarithmic axes.
    printed : mapping
        By label: numbers that the paper prints, at the same x.
    """

    title: str
    xlabel: str
    lines: Mapping[str, Line]
    log_x: bool = False
    guide: float | None = None
    printed: Mapping[str, Sequence[float]] | None = None


@dataclass(frozen=True)
class Table:
    """Errors by method and column, next to those that the paper prints.

    Parameters
    ----------
    caption : str
    columns : sequence of str
    rows : mapping
        By method, an array of errors per column, one error per seed.
    printed : mapping
        By method, the paper's number per column; empty where the paper prints none.
    references : mapping
        Errors of methods that do not depend on the column.
    """

    caption: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[Floats]]
    printed: Mapping[str, Sequence[float]]
    references: Mapping[str, Floats]

    def as_panel(self, x: Sequence[int], xlabel: str) -> Panel:
        """The same as a picture; methods that do not depend on the column are level lines."""
        lines = {label: Line(x, np.array(errors).T) for label, errors in self.rows.items()}
        lines |= {label: level(x, errors) for label, errors in self.references.items()}
        return Panel(self.caption, xlabel, lines, printed=self.printed)


@dataclass(frozen=True)
class Claim:
    """A statement, and whether our results support it.

    Parameters
    ----------
    text : str
        In our words.
    verdict : {"holds", "does not hold", "holds with a change"}
        Computed from results; the evidence states the change.
    evidence, rule : str
        The numbers, and the condition they have to meet.
    source : {"text", "table", "ours"}
        Whether the paper states it, its printed numbers show it, or we add it.
    certain : bool
        Whether it could hardly fail: it follows from arithmetic, or leaves a large margin.
    """

    text: str
    verdict: Verdict
    evidence: str
    rule: str
    source: Source = "text"
    certain: bool = False


@dataclass(frozen=True)
class Item:
    """A figure or table of the paper.

    Parameters
    ----------
    name, title, about : str
    cells : callable
        Cells for a profile.
    panels, tables : callable
        What is shown, from results.
    claims : callable
        Verdicts from results.
    choices : tuple of str
        Our decisions where the paper does not say, or contradicts itself.
    """

    name: str
    title: str
    about: str
    cells: Callable[[Profile], list[Cell]]
    panels: Callable[[Results, Profile], list[Panel]]
    claims: Callable[[Results, Profile], list[Claim]]
    choices: tuple[str, ...] = ()
    tables: Callable[[Results, Profile], list[Table]] = lambda results, profile: []


def verdict(condition: bool) -> Verdict:
    """In words."""
    return "holds" if condition else "does not hold"


# "Most of the grid": what a statement that holds with a change must at least be true of.
MOST = 2.0 / 3.0


def partly(n_good: int, n: int) -> Verdict:
    """Judge a statement that is true in `n_good` of n cases: it holds in 90 %, with a change in two thirds or more."""
    if n_good >= 0.9 * n:
        return "holds"
    return "holds with a change" if n_good >= MOST * n - 1e-9 else "does not hold"


class Case(NamedTuple):
    """What was found in one of the cases that a statement is about."""

    verdict: Verdict
    evidence: str


def together(
    text: str,
    cases: Mapping[str, Case],
    rule: str,
    source: Source = "text",
    *,
    first_decides: bool = False,
    certain: bool = False,
) -> Claim:
    """A statement about several cases, counted once: it holds if it holds in all, with a change if in most of them.

    With `first_decides`, the first case is the paper's experiment and the others are other readings of its text: if it
    holds in the first alone, that is a change.
    """
    verdicts = [case.verdict for case in cases.values()]
    judged: Verdict = "does not hold"
    n_good = sum(one != "does not hold" for one in verdicts)
    if all(one == "holds" for one in verdicts):
        judged = "holds"
    elif n_good >= MOST * len(verdicts) - 1e-9 or (first_decides and verdicts[0] != "does not hold"):
        judged = "holds with a change"
    evidence = " ".join(f"{name}: {case.evidence}" for name, case in cases.items() if case.evidence)
    failed = [name for name, case in cases.items() if case.verdict == "does not hold"]
    if judged == "holds with a change" and failed:
        evidence += f" The change: not for {', '.join(failed)}."
    return Claim(text, judged, evidence, rule, source, certain)
