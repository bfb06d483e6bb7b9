"""The result of a comparison: a record for every method, seed and row count, with medians, a table and a picture."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from thresher._utils.arrays import Floats
from thresher.baselines._comparison_display import ComparisonDisplay


class Record(NamedTuple):
    """One method after `t` rows of one seed. Fields are explained in `compare`."""

    method: str
    seed: int
    t: int
    mse: float
    prediction_error: float
    nonzeros: int
    precision: float
    recall: float
    seconds: float
    bytes: int
    diverged: bool


METRICS = ("mse", "prediction_error", "nonzeros", "precision", "recall", "seconds", "bytes")
LARGER_IS_BETTER = ("precision", "recall")


class Comparison(tuple[Record, ...]):
    """Records of methods on the same rows, as `compare` gives them: a sequence, by method, seed and row count.

    ``print(comparison)`` shows medians over seeds at the last row count, the smallest error first, those that diverged
    last, and ``pandas.DataFrame(comparison.to_dict())`` holds everything.

    Parameters
    ----------
    records : iterable of Record

    Attributes
    ----------
    methods, seeds, checkpoints : tuple
        What there are records of: names and seeds in the order they came in, row counts in increasing order.

    Examples
    --------
    >>> from functools import partial
    >>> from thresher import SparseRegressor
    >>> from thresher.baselines import IHT, compare
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> stream = partial(SparseLinearStream, n_features=30, n_active=3, signal=1.0)
    >>> found = compare([SparseRegressor(), IHT(3)], stream, checkpoints=[200, 1000], seeds=[0, 1], n_jobs=1)
    >>> found.methods, found.seeds, found.checkpoints
    (('SparseRegressor', 'IHT'), (0, 1), (200, 1000))
    >>> found.median("nonzeros")["IHT"]
    array([3., 3.])
    """

    def __init__(self, _: Iterable[Record]) -> None:
        self.methods = tuple(dict.fromkeys(record.method for record in self))
        self.seeds = tuple(dict.fromkeys(record.seed for record in self))
        self.checkpoints = tuple(sorted({record.t for record in self}))

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists, for ``pandas.DataFrame`` or ``polars.DataFrame``."""
        return {name: [getattr(record, name) for record in self] for name in Record._fields}

    def median(self, metric: str = "mse") -> dict[str, Floats]:
        """Medians over seeds, an array over `checkpoints` for each method; NaN where there is nothing.

        Parameters
        ----------
        metric : {"mse", "prediction_error", "nonzeros", "precision", "recall", "seconds", "bytes"}
        """
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}")
        values: dict[tuple[str, int], list[float]] = {}
        for record in self:
            value = float(getattr(record, metric))
            if not np.isnan(value):
                values.setdefault((record.method, record.t), []).append(value)
        return {
            method: np.array([median(values.get((method, t), [np.nan])) for t in self.checkpoints])
            for method in self.methods
        }

    def best(self, metric: str = "mse") -> str:
        """The method whose median at the last row count is best: largest for precision and recall, else smallest.

        One that diverged is best only if all did.
        """
        first = self._best_first(metric)[:1]
        if not first or np.isnan(self.median(metric)[first[0]][-1]):
            raise ValueError(f"No method has a {metric} at the last row count. Choose another metric.")
        return first[0]

    def plot(self, metric: str = "mse", *, highlight: Sequence[str] | None = None, ax: Any = None) -> ComparisonDisplay:
        """Draw medians over seeds against row counts, a line for each method.

        Parameters
        ----------
        metric : str, default="mse"
            As in `median`.
        highlight : sequence of str, optional
            Methods in colour; the others are grey. By default all, or the best if there are more than colours.
        ax : matplotlib axes, optional
            Of a figure with ``layout="constrained"``, so that names have room beside the axes.
        """
        medians = self.median(metric)
        names = {method: method + self._divergence(method, ", diverged{}") for method in self.methods}
        unknown = [name for name in highlight or () if name not in names]
        if unknown:
            raise ValueError(f"There is no method {unknown[0]!r}; there are {', '.join(map(repr, names))}")
        return ComparisonDisplay(
            self.checkpoints,
            {names[method]: medians[method] for method in self.methods},
            metric=metric,
            highlight=[names[method] for method in (self._best_first(metric) if highlight is None else highlight)],
            diverged=[names[method] for method in self.methods if self._divergence(method)],
        ).plot(ax=ax)

    def to_markdown(self) -> str:
        """The table of medians at the last row count, in Markdown."""
        header, *rows = self._table()
        rule = ["---", *("---:" for _ in header[1:])]
        escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *escaped))

    def __repr__(self) -> str:
        if not self:
            return "Comparison of nothing"
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        title = f"Medians over {len(self.seeds)} seed(s) after {self.checkpoints[-1]:,} rows"
        lines = [
            "  ".join([name.ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells, widths[1:], strict=True))]).rstrip()
            for name, *cells in table
        ]
        return "\n".join([title, *lines])

    def _table(self) -> list[list[str]]:
        """A header and rows of cells, the smallest error first, without columns about which nothing is known."""
        last = {metric: {m: v[-1] for m, v in self.median(metric).items()} for metric in METRICS}
        shown = [metric for metric in METRICS if not np.isnan(list(last[metric].values())).all()]
        order = "mse" if "mse" in shown else "prediction_error"
        header = ["method", *(metric.replace("_", " ") for metric in shown)]
        rows = []
        for method in self._best_first(order):
            name = " ".join(method.split()) + self._divergence(method)  # on one line
            rows.append([name, *(_cell(metric, last[metric][method]) for metric in shown)])
        return [header, *rows]

    def _best_first(self, metric: str) -> list[str]:
        """Methods in order of their medians at the last row count; then those that diverged."""
        sign = -1.0 if metric in LARGER_IS_BETTER else 1.0
        last = {method: sign * float(values[-1]) for method, values in self.median(metric).items()}
        return sorted(self.methods, key=lambda m: (bool(self._divergence(m)), bool(np.isnan(last[m])), last[m]))

    def _divergence(self, method: str, text: str = " (diverged{})") -> str:
        """Whether and how often a method diverged, in words, or nothing."""
        at_end = [record.diverged for record in self if (record.method, record.t) == (method, self.checkpoints[-1])]
        if not any(at_end):
            return ""
        return text.format("" if all(at_end) else f" {sum(at_end)} of {len(at_end)}")


def _cell(metric: str, value: float) -> str:
    if np.isnan(value):
        return "-"
    if metric == "bytes":
        return f"{value:,.0f}"
    return f"{value:.3g}" if metric != "nonzeros" else f"{value:g}"
