"""Pictures of a sparse model: how its coefficients moved, what was kept when, why this size, and how sure it is.

Each is a scikit-learn style display: ``Display.from_estimator(model)`` draws at once, ``Display(...).plot(ax=ax)``
draws given data. They need matplotlib: ``pip install 'thresher[plot]'``.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import Floats
from thresher._utils.printable import printable

INK, MUTED = "#1f2a36", "#9aa5b1"
BLUE = "#2166ac"
# Colours that differ in lightness and hue also for colour-blind readers; more features than colours are drawn muted.
COLOURS = ("#2166ac", "#d6604d", "#1b7837", "#762a83", "#b8860b", "#0f8b8d", "#8c510a", "#c51b7d")


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib; install it with: pip install 'thresher[plot]'") from error
    return plt


def _names(estimator: Any, features: NDArray[np.intp]) -> list[str]:
    names = getattr(estimator, "feature_names_in_", None)
    return [f"{j}" if names is None else printable(str(names[j])) for j in features]


def _apart(heights: list[float], gap: float, low: float, high: float) -> Floats:
    """Increasing heights, moved as little as possible (in squares) to leave gaps and to stay in bounds if they can."""
    steps: Floats = gap * np.arange(len(heights), dtype=np.float64)
    if not heights:
        return steps
    result: Floats = steps + isotonic_regression(heights - steps, y_min=low, y_max=max(low, high - steps[-1]))
    return result


class _Display:
    """What the displays share: axes of their own or given ones, without clutter."""

    height: ClassVar[float] = 3.6

    def _axes(self, ax: Any, xlabel: str, ylabel: str) -> Any:
        plt = _pyplot()
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, self.height), layout="constrained")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.set_xlabel(xlabel)
        ax.set_ylabel(ylabel)
        self.ax_, self.figure_ = ax, ax.figure
        return ax


class CoefficientsDisplay(_Display):
    """Coefficients as rows came in.

    Parameters
    ----------
    n_samples : array-like of shape (m,)
        Row counts.
    coef : array-like of shape (m, k)
        Coefficients of some features at each.
    names : list of str
        Their names.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.plotting.displays import CoefficientsDisplay
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> model = SparseRegressor().partial_fit(*SparseLinearStream(30, 3, signal=1.0).draw(500))
    >>> CoefficientsDisplay.from_estimator(model, n_features=3).names
    ['0', '1', '2']
    """

    def __init__(self, n_samples: ArrayLike, coef: ArrayLike, names: list[str]) -> None:
        self.n_samples = np.asarray(n_samples)
        self.coef = np.asarray(coef, float)
        self.names = names

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_features: int = 12, ax: Any = None) -> Self:
        """Draw a fitted `SparseRegressor`, from its history.

        Parameters
        ----------
        estimator : SparseRegressor
        n_features : int, default=12
            How many features to draw: the largest now, in units of their column scales, then the largest ever.
        ax : matplotlib axes, optional
        """
        check_is_fitted(estimator, "summary_")
        scale = np.sqrt(estimator.summary_.variance())
        latest = estimator.coef_
        now, ever = scale * np.abs(latest), np.zeros(len(scale))
        for record in estimator.selection_history_:
            size = scale[record.support] * np.abs(record.values)
            ever[record.support] = np.maximum(ever[record.support], size)
        order = np.lexsort((-ever, -now))
        features = np.sort(order[: min(n_features, int(np.count_nonzero(now + ever)))])
        counts = [m.n_samples for m in estimator.selection_history_]
        coef = np.zeros((len(counts), len(features)))
        for row, record in zip(coef, estimator.selection_history_, strict=True):
            _, mine, theirs = np.intersect1d(features, record.support, return_indices=True)
            row[mine] = record.values[theirs]
        if not counts or counts[-1] < estimator.n_samples_seen_:
            counts, coef = [*counts, estimator.n_samples_seen_], np.vstack([coef, latest[features]])
        return cls(counts, coef, _names(estimator, features)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        ax = self._axes(ax, "rows", "coefficient")
        ax.axhline(0.0, color=MUTED, linewidth=0.8)
        order = np.argsort(-np.abs(self.coef[-1]), kind="stable")
        self.lines_ = []
        for place, k in enumerate(order):
            colour = COLOURS[place] if place < len(COLOURS) else MUTED
            self.lines_ += ax.plot(self.n_samples, self.coef[:, k], color=colour, linewidth=1.4, label=self.names[k])
        if len(self.n_samples) > 1 and self.n_samples[-1] > 50 * max(self.n_samples[0], 1):
            ax.set_xscale("log")
        # The first few rows can throw coefficients anywhere; they must not set the scale.
        late = np.abs(self.coef[len(self.coef) // 2 :])
        largest = 1.5 * float(late.max(initial=0.0)) or 1.0
        ax.set_ylim(max(ax.get_ylim()[0], -largest), min(ax.get_ylim()[1], largest))
        self._label_ends(ax, order)
        return self

    def _label_ends(self, ax: Any, order: NDArray[np.intp]) -> None:
        """Names at the right-hand ends, moved apart where they would overlap."""
        low, high = ax.get_ylim()
        ends = sorted((float(self.coef[-1, k]), place, int(k)) for place, k in enumerate(order[: len(COLOURS)]))
        ends = [end for end in ends if end[0] != 0.0]
        heights = _apart([value for value, _, _ in ends], (high - low) / 20.0, low, high)
        for height, (_, place, k) in zip(heights, ends, strict=True):
            ax.annotate(
                self.names[k],
                (self.n_samples[-1], height),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=COLOURS[place],
                annotation_clip=False,
                parse_math=False,
            )


class SupportDisplay(_Display):
    """Which features were kept when: a bar for each feature from the row where it came to the row where it left.

    Parameters
    ----------
    n_samples : array-like of shape (m,)
        Row counts.
    kept : array-like of bool, shape (m, k)
        Whether each feature was kept at each.
    names : list of str
        Their names.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    def __init__(self, n_samples: ArrayLike, kept: ArrayLike, names: list[str]) -> None:
        self.n_samples = np.asarray(n_samples)
        self.kept = np.asarray(kept, bool)
        self.names = names

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_features: int = 30, ax: Any = None) -> Self:
        """Draw a fitted `SparseRegressor`: the features that were kept for the most rows."""
        check_is_fitted(estimator, "summary_")
        counts = [*(m.n_samples for m in estimator.selection_history_), estimator.n_samples_seen_]
        supports = [*(m.support for m in estimator.selection_history_), estimator.support_]
        rows = np.zeros(estimator.n_features_in_)
        for span, support in zip(np.diff([0, *counts]), supports, strict=True):
            rows[support] += span
        rows[estimator.support_] += 1  # also one that has only just come
        features = np.argsort(-rows, kind="stable")[: min(n_features, int(np.count_nonzero(rows)))]
        kept = np.array([np.isin(features, support) for support in supports]).reshape(len(counts), -1)
        return cls(counts, kept, _names(estimator, features)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        self.height = max(2.0, 0.9 + 0.17 * len(self.names))  # type: ignore[misc]
        ax = self._axes(ax, "rows", "feature")
        edges = np.concatenate([self.n_samples, self.n_samples[-1:]])
        for k in range(len(self.names)):
            colour = BLUE if self.kept[-1, k] else MUTED
            # From each place where it came to the next where it left: one bar, without seams.
            turns = np.flatnonzero(np.diff(np.concatenate([[0], self.kept[:, k].astype(int), [0]])))
            spans = [(edges[i], edges[j] - edges[i]) for i, j in zip(turns[::2], turns[1::2], strict=True)]
            ax.broken_barh(spans, (k - 0.35, 0.7), color=colour, linewidth=0)
        ax.set_yticks(range(len(self.names)), self.names, fontsize=7, parse_math=False)
        ax.invert_yaxis()
        ax.set_title("kept now (blue) and earlier (grey)", fontsize=9, color=INK, loc="left")
        return self


class CriterionDisplay(_Display):
    """The criterion over sizes, and the size chosen.

    Parameters
    ----------
    selection : Selection
        As in ``model.selection_``.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    line_ : matplotlib line
    """

    LABELS: ClassVar[dict[str, str]] = {
        "ebic": "extended BIC",
        "posterior": "mean squared distance from the posterior mean",
        "cv": "cross-validated mean squared error",
        "noise_edge": "misfit and price of ranks",
    }

    def __init__(self, selection: Any) -> None:
        self.selection = selection

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the last choice of a model with ``sparsity="auto"`` or ``rank="auto"``."""
        if not hasattr(estimator, "selection_"):
            raise ValueError("Nothing was chosen: the size was given, or the model has not seen rows. Use 'auto'.")
        return cls(estimator.selection_).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        chosen = self.selection
        ax = self._axes(ax, "size", self.LABELS.get(chosen.method, "criterion"))
        sizes, criterion = chosen.sizes, chosen.criterion
        if chosen.standard_error is not None:
            spread = chosen.standard_error
            ax.fill_between(sizes, criterion - spread, criterion + spread, color=BLUE, alpha=0.15, linewidth=0)
        (self.line_,) = ax.plot(sizes, criterion, color=BLUE, marker="o", markersize=3, linewidth=1.2)
        at = int(np.searchsorted(sizes, chosen.chosen))
        ax.plot(sizes[at], criterion[at], "o", color=COLOURS[1], markersize=7)
        ax.annotate(
            f"{chosen.chosen}, after {chosen.n_samples:,} rows",
            (sizes[at], criterion[at]),
            xytext=(6, 14),
            textcoords="offset points",
            ha="left",
            color=COLOURS[1],
        )
        return self


class IntervalsDisplay(_Display):
    """Coefficients with their confidence intervals.

    Parameters
    ----------
    intervals : Intervals
        As ``model.confidence_intervals()`` gives them.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    """

    def __init__(self, intervals: Any) -> None:
        self.intervals = intervals

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **how: Any) -> Self:
        """Draw the intervals of a fitted `SparseRegressor`; keywords go to ``confidence_intervals``."""
        return cls(estimator.confidence_intervals(**how)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        found = self.intervals
        self.height = max(1.8, 0.9 + 0.22 * len(found))  # type: ignore[misc]
        ax = self._axes(ax, "coefficient", "feature")
        ax.axvline(0.0, color=MUTED, linewidth=0.8)
        places = np.arange(len(found))
        known = np.isfinite(found.standard_error)
        error = np.array([found.estimate - found.lower, found.upper - found.estimate])[:, known]
        ax.errorbar(found.estimate[known], places[known], xerr=error, fmt="o", color=BLUE, markersize=4, linewidth=1.4)
        ax.plot(found.estimate[~known], places[~known], "o", color=MUTED, markersize=4)
        names = (
            [str(j) for j in found.features] if found.names is None else [printable(str(name)) for name in found.names]
        )
        labels = [name if sure else f"{name} (unknown)" for name, sure in zip(names, known, strict=True)]
        ax.set_yticks(places, labels, fontsize=8, parse_math=False)
        ax.invert_yaxis()
        ax.set_title(f"{100 * found.level:g} % intervals, {found.method}", fontsize=9, color=INK, loc="left")
        return self
