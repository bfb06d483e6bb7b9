"""Pictures of how a sparse model came about while rows streamed in.

After ``fit``, which learns all rows at once, there is no history; the pictures then show the one model there is.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import ArrayLike, Floats, Integers
from thresher._utils.printable import printable
from thresher.plotting._style import Display, feature_names, shortened, standard_scale

AT_ONCE = "The model learned all rows at once, so there is one estimate; partial_fit gives a history."


def traced(history: Any, latest: Floats, scale: Floats, n_features: int) -> tuple[Integers, Floats]:
    """Features to draw, the largest now, then the largest ever, and their coefficients in each record of a history."""
    now, ever = scale * np.abs(latest), np.zeros(len(scale))
    for record in history:
        size = scale[record.support] * np.abs(record.values)
        ever[record.support] = np.maximum(ever[record.support], size)
    order = np.lexsort((-ever, -now))
    features = np.sort(order[: min(n_features, int(np.count_nonzero(now + ever)))])
    coef = np.zeros((len(history), len(features)))
    for row, record in zip(coef, history, strict=True):
        _, mine, theirs = np.intersect1d(features, record.support, return_indices=True)
        row[mine] = record.values[theirs]
    return features, coef


class CoefficientsDisplay(Display):
    """Coefficients as rows came in.

    Parameters
    ----------
    n_samples : array-like of shape (m,)
        Row counts.
    coef : array-like of shape (m, k)
        Coefficients of some features at each.
    names : sequence of str
        Their names.
    standardized : bool, default=False
        Whether coefficients are in standard deviations of the response per one of the feature.
    changes : sequence of int, optional
        Row counts at which drift was detected.
    target : str, default="y"
        What the response is called.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines
        In the order of `names`.

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> from thresher.plotting import CoefficientsDisplay
    >>> model = SparseRegressor().partial_fit(*SparseLinearStream(30, 3, signal=1.0).draw(500))
    >>> CoefficientsDisplay.from_estimator(model, n_features=3).names
    ['x0', 'x1', 'x2']
    """

    def __init__(
        self,
        n_samples: ArrayLike,
        coef: ArrayLike,
        names: Sequence[str],
        standardized: bool = False,
        changes: Sequence[int] = (),
        target: str = "y",
    ) -> None:
        self.n_samples = np.asarray(n_samples)
        self.coef = np.asarray(coef, float)
        self.names = list(names)
        self.standardized, self.changes, self.target = standardized, list(changes), target

    # The first share of the rows can throw coefficients anywhere, so it does not set the scale.
    early: ClassVar[float] = 0.1
    title: ClassVar[str] = "Coefficients as rows came in"
    caption: ClassVar[str] = "Zero: the feature is not in the model. Early values may lie beyond the edge."

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, standardized: bool = True, n_features: int = 12, target: str = "y", ax: Any = None
    ) -> Self:
        """Draw a fitted sparse model, from its history.

        From where drift was detected on, coefficients are those in use, which follow recent rows.

        Parameters
        ----------
        estimator : SparseRegressor or OnlineHardThresholding
        standardized : bool, default=True
            Draw effects in standard deviations (those of all rows so far), which can be compared.
        n_features : int, default=12
            How many features to draw: the largest now, in units of their column scales, then the largest ever.
        target : str, default="y"
            What the response is called.
        ax : matplotlib axes, optional
        """
        check_is_fitted(estimator, "summary_")
        scale, latest, history = standard_scale(estimator), estimator.coef_, list(estimator.selection_history_)
        drift: Any = getattr(estimator, "drift_history_", ())
        changes = drift.changes if drift else []
        if changes:
            history = [*(record for record in history if record.n_samples < drift[0].n_samples), *drift]
        n = estimator.n_samples_seen_
        if getattr(estimator, "drift_detected_", False):
            history = [record for record in history if record.n_samples < n]
            changes = changes if changes and drift[-1].detected else [*changes, n]
        features, coef = traced(history, latest, scale, n_features)
        counts = [record.n_samples for record in history]
        if not counts or counts[-1] < n:
            counts, coef = [*counts, n], np.vstack([coef, latest[features]])
        unit = scale[features] if standardized else 1.0
        names = feature_names(estimator, features)
        return cls(counts, coef * unit, names, standardized, changes, target).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        once = len(self.n_samples) < 2
        caption = AT_ONCE if once else self.caption
        if self.changes and not once:
            caption += " Vertical line: drift was detected, so coefficients follow recent rows."
        ylabel = "standardised coefficient" if self.standardized else self.unit_label(self.target)
        ax = self._axes(ax, "rows seen", ylabel, self.title, caption)
        ax.axhline(0.0, color=self.palette_.muted, linewidth=0.8)
        order = np.argsort(-np.abs(self.coef[-1]), kind="stable")
        drawn, ends = {}, []
        for place, k in enumerate(order):
            style = self._line_style(place) | ({"marker": "o", "markersize": 6} if once else {})
            (drawn[int(k)],) = ax.plot(self.n_samples, self.coef[:, k], label=self.names[k], **style)
            if self.coef[-1, k] != 0.0 and place < len(self.palette_.lines):
                ends.append((float(self.coef[-1, k]), self.names[k], style["color"]))
        self.lines_ = [drawn[k] for k in sorted(drawn)]
        for n in () if once else self.changes:
            ax.axvline(n, color=self.palette_.contrast, linewidth=1.0, linestyle="--")
        if not once and self.n_samples[-1] > 50 * max(self.n_samples[0], 1):
            ax.set_xscale("log")
        if once:
            ax.set_xticks(self.n_samples, [f"{n:,}" for n in self.n_samples])
        late = np.abs(self.coef[self.n_samples >= self.early * self.n_samples[-1]])
        largest = 1.5 * float(late.max(initial=0.0)) or 1.0
        ax.set_ylim(max(ax.get_ylim()[0], -largest), min(ax.get_ylim()[1], largest))
        self._label_ends(float(self.n_samples[-1]), ends)
        return self


class SupportDisplay(Display):
    """Which features were kept when: a bar for each feature from the row where it entered to where it left.

    Parameters
    ----------
    n_samples : array-like of shape (m,)
        Row counts.
    kept : array-like of bool, shape (m, k)
        Whether each feature was kept at each.
    names : sequence of str
        Their names.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> from thresher.plotting import SupportDisplay
    >>> model = SparseRegressor().partial_fit(*SparseLinearStream(30, 3, signal=1.0, seed=4).draw(500))
    >>> sorted(SupportDisplay.from_estimator(model, n_features=3).names)
    ['x0', 'x1', 'x2']
    """

    def __init__(self, n_samples: ArrayLike, kept: ArrayLike, names: Sequence[str]) -> None:
        self.n_samples = np.asarray(n_samples)
        self.kept = np.asarray(kept, bool)
        self.names = list(names)

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_features: int = 25, ax: Any = None) -> Self:
        """Draw a fitted sparse model: the features that were kept for the most rows."""
        check_is_fitted(estimator, "summary_")
        history = estimator.selection_history_
        counts = [*(record.n_samples for record in history), estimator.n_samples_seen_]
        supports = [*(record.support for record in history), estimator.support_]
        rows = np.zeros(estimator.n_features_in_)
        for span, support in zip(np.diff([0, *counts]), supports, strict=True):
            rows[support] += span
        rows[estimator.support_] += 1  # also one that has only just come
        features = np.argsort(-rows, kind="stable")[: min(n_features, int(np.count_nonzero(rows)))]
        kept = np.array([np.isin(features, support) for support in supports]).reshape(len(counts), -1)
        return cls(counts, kept, feature_names(estimator, features)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        once = len(np.unique(self.n_samples)) < 2
        caption = AT_ONCE if once else "Filled: in the model now. Hollow: in the model earlier, and left out since."
        height = max(2.0, 1.35 + 0.22 * len(self.names))
        ax = self._axes(ax, "rows seen", "", "Features in the model over time", caption, height)
        colours = self.palette_
        edges = np.concatenate([self.n_samples, self.n_samples[-1:]])
        if once:
            edges = np.array([0, *edges[1:]])
        for k in range(len(self.names)):
            style = {"facecolor": colours.accent, "linewidth": 0}
            if not self.kept[-1, k]:
                style = {"facecolor": "none", "edgecolor": colours.muted, "linewidth": 1.0}
            # From each place where it entered to the next where it left: one bar, without seams.
            turns = np.flatnonzero(np.diff(np.concatenate([[0], self.kept[:, k].astype(int), [0]])))
            spans = [(edges[i], edges[j] - edges[i]) for i, j in zip(turns[::2], turns[1::2], strict=True)]
            ax.broken_barh(spans, (k - 0.31, 0.62), **style)
        self._name_rows(self.names)
        ax.set_xlim(0, None)
        return self


class PrequentialDisplay(Display):
    """The error on rows that were predicted before they were learned, as rows came in.

    Parameters
    ----------
    history : ErrorHistory
        As in ``model.prequential_history_``.
    noise, spread : float
        Standard deviations of the response about the model, and about its mean, on the rows that were learned.
    n_samples : int
        Rows seen.
    target : str, default="y"
        What the response is called.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    line_ : matplotlib line, or None if there is no history

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> from thresher.plotting import PrequentialDisplay
    >>> model = SparseRegressor().partial_fit(*SparseLinearStream(30, 3, signal=1.0).draw(2000))
    >>> int(PrequentialDisplay.from_estimator(model).history.n_samples[-1])
    1920
    """

    def __init__(self, history: Any, noise: float, spread: float, n_samples: int, target: str = "y") -> None:
        self.history, self.noise, self.spread, self.n_samples = history, noise, spread, n_samples
        self.target = target

    @classmethod
    def from_estimator(cls, estimator: Any, *, target: str = "y", ax: Any = None) -> Self:
        """Draw a fitted sparse model, of a response that is called `target`."""
        check_is_fitted(estimator, "summary_")
        spread = float(np.sqrt(estimator.summary_.response_variance(estimator._family.centred)))
        noise = float("nan")
        # The noise is that about the model of all rows, which is not in use once drift was detected.
        if not getattr(estimator, "drift_detected_", False):
            with suppress(ValueError):  # too few rows to tell
                noise = float(np.sqrt(estimator.noise_variance()))
        return cls(estimator.prequential_history_, noise, spread, estimator.n_samples_seen_, target).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        history, there = self.history, len(self.history) > 0
        caption = (
            "Root mean squared error on rows that were predicted before the model learned from them. Lower is better."
            if there
            else "The model learned all rows at once: none was predicted before. The lines are errors on those rows."
        )
        units = f"error (units of {shortened(printable(self.target))})"
        ax = self._axes(ax, "rows seen", units, "How well new rows were predicted", caption)
        colours = self.palette_
        first = history.n_samples[0] - history.n_predicted[0] if there else 0
        flat: list[tuple[float, str, str, Any]] = [(self.spread, "predicting the mean", colours.muted, (0, (6, 2)))]
        flat += [(self.noise, "noise of the model", colours.contrast, (0, (1.5, 1.5)))]
        for value, _, colour, dashes in flat:
            if np.isfinite(value):
                ax.plot([first, self.n_samples], [value, value], color=colour, linestyle=dashes, linewidth=1.3)
        self.line_ = None
        if there:
            edges = np.array([first, *history.n_samples])
            (self.line_,) = ax.plot(
                edges, np.append(history.error, history.error[-1:]), color=colours.accent, drawstyle="steps-post"
            )
        ends = [(value, text, colour) for value, text, colour, _ in flat if np.isfinite(value)]
        known = history.error[np.isfinite(history.error)] if there else np.zeros(0)
        top = max([self.spread, *(value for value, *_ in ends), *known[len(known) // 4 :]], default=1.0)
        ax.set_ylim(0.0, 1.15 * top if 0.0 < top < np.inf else 1.0)
        if len(known):
            ends.append((float(min(known[-1], 1.1 * top)), "the model", colours.accent))
        self._label_ends(float(self.n_samples), ends)
        return self
