"""Pictures of a sparse model as it stands: how strong, how sure, in what order, and why so many.

Each is a scikit-learn style display: ``Display.from_estimator(model)`` draws at once, ``Display(...).plot(ax=ax)``
draws given data. All work after ``fit`` and while rows stream in. They need matplotlib: ``pip install
'thresher[plot]'``.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import ArrayLike, Floats, Integers
from thresher._utils.printable import printable
from thresher.plotting._style import Display, feature_names, standard_scale


class IntervalsDisplay(Display):
    """Coefficients with their intervals, the largest first.

    Parameters
    ----------
    estimate : array-like of shape (k,)
        Coefficients.
    lower, upper : array-like of shape (k,), or None
        The ends of their intervals. Infinite ends say that the rows do not identify a coefficient. None: there are no
        intervals, since the coefficients follow recent rows.
    names : sequence of str
        The features.
    level : float
        Nominal coverage of each interval.
    method : str
        Which intervals they are.
    standardized : bool, default=False
        Whether coefficients are in standard deviations of the response per one of the feature.
    target : str, default="y"
        What the response is called.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> from thresher.plotting import IntervalsDisplay
    >>> model = SparseRegressor().fit(*SparseLinearStream(30, 3, signal=1.0, seed=4).draw(500))
    >>> IntervalsDisplay.from_estimator(model).names
    ['x1', 'x2', 'x0']
    """

    def __init__(
        self,
        estimate: ArrayLike,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        names: Sequence[str],
        level: float = 0.95,
        method: str = "posterior",
        standardized: bool = False,
        target: str = "y",
    ) -> None:
        self.estimate = np.asarray(estimate, float)
        self.lower, self.upper = (None if one is None else np.asarray(one, float) for one in (lower, upper))
        self.names = list(names)
        self.level, self.method, self.standardized, self.target = level, method, standardized, target

    # What bars are, by the method of the intervals.
    BARS: ClassVar[dict[str, str]] = {
        "posterior": "Bars are posterior means",
        "debiased": "Bars are debiased estimates",
        "split": "Bars are least squares on the later rows",
    }

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        standardized: bool = True,
        n_features: int = 25,
        target: str = "y",
        ax: Any = None,
        **how: Any,
    ) -> Self:
        """Draw the intervals of a fitted sparse model.

        Once drift was detected, the coefficients in use are drawn, those that follow recent rows, without intervals.

        Parameters
        ----------
        estimator : SparseRegressor or OnlineHardThresholding
        standardized : bool, default=True
            Draw effects in standard deviations, which can be compared. False draws coefficients as they are.
        n_features : int, default=25
            The most features to draw, those with the largest effects.
        target : str, default="y"
            What the response is called.
        ax : matplotlib axes, optional
        **how
            Those of ``confidence_intervals``; `method` is ``"posterior"`` by default, ``"debiased"`` with groups.
        """
        check_is_fitted(estimator, "summary_")
        how = {"method": "posterior" if estimator._family.groups is None else "debiased", "level": 0.95} | how
        features, values = cls._drawn(estimator, how)
        scale = standard_scale(estimator)[features]
        order = np.argsort(-np.abs(values[0]) * scale, kind="stable")[:n_features]
        unit = scale[order] if standardized else 1.0
        names = feature_names(estimator, features[order])
        estimate, lower, upper = (None if one is None else unit * one[order] for one in values)
        assert estimate is not None
        return cls(estimate, lower, upper, names, how["level"], how["method"], standardized, target).plot(ax=ax)

    @staticmethod
    def _drawn(estimator: Any, how: dict[str, Any]) -> tuple[Integers, tuple[Floats, Floats | None, Floats | None]]:
        """Features, and their coefficients with the ends of their intervals: None while recent rows are followed."""
        if getattr(estimator, "drift_detected_", False):
            wanted = how.get("features")
            features = estimator.support_ if wanted is None else estimator._feature_numbers(wanted)
            return features, (estimator.coef_[features], None, None)
        try:
            estimator.noise_variance()
        except ValueError:  # too few rows for any interval
            features = estimator.support_
            unknown = np.full(len(features), np.nan)
            return features, (estimator._sparse_coef[features], unknown, unknown)
        found = estimator.confidence_intervals(**how)
        return found.features, (found.estimate, found.lower, found.upper)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        if self.lower is None or self.upper is None:
            return self._plot_without_intervals(ax)
        share, bars = f"{100 * self.level:g} %", self.BARS.get(self.method, "Bars are estimates")
        caption = (
            f"{bars}, lines are {share} intervals ({self.method}). Hollow bars: the interval includes zero, so the "
            "sign is not known."
        )
        known = np.isfinite(self.lower) & np.isfinite(self.upper)
        sure = known & ((self.lower > 0.0) | (self.upper < 0.0))
        ax = self._draw_bars(ax, "Effects of the features, and how sure they are", caption, sure)
        for place in np.flatnonzero(known):
            ends = [self.lower[place], self.upper[place]]
            ax.plot(ends, [place, place], "|-", color=self.palette_.ink, linewidth=1.3, markersize=6)
        self._name_rows([name if told else f"{name} (?)" for name, told in zip(self.names, known, strict=True)])
        if not known.all():
            ax.set_xlabel(f"{ax.get_xlabel()}\n(?) the rows do not tell how sure this is")
        return self

    def _plot_without_intervals(self, ax: Any) -> Self:
        caption = (
            "The stream has changed, so bars are coefficients that follow recent rows. They have no intervals: set "
            "half_life or window to get them."
        )
        self._draw_bars(ax, "Effects of the features in recent rows", caption, np.ones(len(self.names), bool))
        self._name_rows(self.names)
        return self

    def _draw_bars(self, ax: Any, title: str, caption: str, filled: NDArray[np.bool_]) -> Any:
        """A bar for each coefficient, on axes with a title."""
        xlabel = self.standardized_label(self.target) if self.standardized else self.unit_label(self.target)
        ax = self._axes(ax, xlabel, "", title, caption, max(2.0, 1.35 + 0.24 * len(self.names)))
        ax.axvline(0.0, color=self.palette_.muted, linewidth=0.8)
        for place, value in enumerate(self.estimate):
            colour = self.palette_.accent if value >= 0.0 else self.palette_.contrast
            ax.barh(place, value, 0.6, facecolor=(colour, 0.45) if filled[place] else "none", edgecolor=colour)
        return ax


class InclusionDisplay(Display):
    """The probability that each feature matters.

    Parameters
    ----------
    probabilities : array-like of shape (k,)
        Between zero and one, the largest first.
    kept : array-like of bool, shape (k,)
        Whether the model keeps each feature.
    names : sequence of str

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> from thresher.plotting import InclusionDisplay
    >>> model = SparseRegressor().fit(*SparseLinearStream(30, 3, signal=1.0, seed=4).draw(500))
    >>> InclusionDisplay.from_estimator(model, n_features=5).kept.tolist()
    [True, True, True, False, False]
    """

    def __init__(self, probabilities: ArrayLike, kept: ArrayLike, names: Sequence[str]) -> None:
        self.probabilities, self.kept, self.names = (
            np.asarray(probabilities, float),
            np.asarray(kept, bool),
            list(names),
        )

    @classmethod
    def from_estimator(cls, estimator: Any, *, n_features: int = 20, ax: Any = None) -> Self:
        """Draw the features of a fitted sparse model that are most likely to matter, by the posterior of all rows.

        Parameters
        ----------
        estimator : SparseRegressor or OnlineHardThresholding
            Without groups, which the posterior does not know.
        n_features : int, default=20
        ax : matplotlib axes, optional
        """
        check_is_fitted(estimator, "summary_")
        if estimator._family.groups is not None:
            raise ValueError("There are no inclusion probabilities with groups: the posterior does not know groups.")
        probabilities = estimator._sample_against_references().inclusion_probabilities
        kept = np.zeros(len(probabilities), bool)
        kept[estimator.support_] = True
        order = np.lexsort((~kept, -probabilities))[:n_features]
        return cls(probabilities[order], kept[order], feature_names(estimator, order)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        caption = "Filled bars: features in the model. Hollow bars: the most likely of those that it leaves out."
        height = max(2.0, 1.35 + 0.24 * len(self.names))
        ax = self._axes(ax, "probability that the feature matters", "", "Which features matter", caption, height)
        colours = self.palette_
        for place, (value, kept) in enumerate(zip(self.probabilities, self.kept, strict=True)):
            face = colours.accent if kept else "none"
            ax.barh(place, value, 0.62, facecolor=face, edgecolor=colours.accent if kept else colours.muted)
            ax.annotate(
                f"{value:.2f}" if value < 0.995 else ">0.99",
                (value, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=colours.ink,
            )
        ax.set_xlim(0.0, 1.1)
        ax.set_xticks(np.linspace(0.0, 1.0, 6))
        self._name_rows(self.names)
        return self


class PathDisplay(Display):
    """The models of every size: which feature enters when, and how coefficients change.

    Parameters
    ----------
    sizes : array-like of shape (m,)
    coef : array-like of shape (m, k)
        Coefficients of some features in the model of each size, in standard deviations.
    names : sequence of str
        Their names.
    chosen : int
        The size of the model.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> from thresher.plotting import PathDisplay
    >>> model = SparseRegressor().fit(*SparseLinearStream(30, 3, signal=1.0, seed=4).draw(500))
    >>> PathDisplay.from_estimator(model, max_sparsity=5).names
    ['x1', 'x2', 'x0', 'x19', 'x24']
    """

    def __init__(self, sizes: ArrayLike, coef: ArrayLike, names: Sequence[str], chosen: int) -> None:
        self.sizes, self.coef, self.names, self.chosen = np.asarray(sizes), np.asarray(coef, float), list(names), chosen

    @classmethod
    def from_estimator(cls, estimator: Any, *, max_sparsity: int | None = None, ax: Any = None) -> Self:
        """Draw ``estimator.path(max_sparsity)``; features are named in the order in which they enter.

        Parameters
        ----------
        estimator : SparseRegressor or OnlineHardThresholding
        max_sparsity : int, optional
            The largest size. By default the path ends when larger models are clearly worse by the extended BIC.
        ax : matplotlib axes, optional
        """
        path = estimator.path(max_sparsity)
        coef = np.asarray(path.coef) * standard_scale(estimator)
        first = np.argmax(coef != 0.0, axis=0)
        used = np.flatnonzero((coef != 0.0).any(axis=0))
        order = used[np.lexsort((-np.abs(coef[-1, used]), first[used]))]
        return cls(path.sizes, coef[:, order], feature_names(estimator, order), estimator.sparsity_).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        caption = (
            "From left to right models have one feature more. A dot marks where a feature enters. The vertical line is "
            "the size of the model."
        )
        ax = self._axes(ax, "features in the model", "standardised coefficient", "Models of every size", caption, 4.2)
        colours = self.palette_
        ax.axhline(0.0, color=colours.muted, linewidth=0.8)
        self.lines_, ends = [], []
        for k, name in enumerate(self.names):
            style, values = self._line_style(k), self.coef[:, k]
            inside = np.flatnonzero(values)
            start = max(int(inside[0]) - 1, 0)
            self.lines_ += ax.plot(self.sizes[start:], values[start:], label=name, **style)
            ax.plot(self.sizes[inside[0]], values[inside[0]], "o", color=style["color"], markersize=4.5)
            if values[-1] != 0.0 and (k < len(colours.lines) or self.sizes[inside[0]] <= self.chosen):
                ends.append((float(values[-1]), name, style["color"] if k < len(colours.lines) else colours.muted))
        if self.chosen in self.sizes:
            late = 4 * self.chosen > 3 * self.sizes[-1]  # names stand at the right
            ax.axvline(self.chosen, color=colours.ink, linewidth=0.9, linestyle=(0, (2, 2)))
            ax.annotate(
                f"{self.chosen} kept",
                (self.chosen, 0.0),
                xycoords=("data", "axes fraction"),
                xytext=(-4 if late else 4, 4),
                textcoords="offset points",
                ha="right" if late else "left",
                fontsize=8,
                color=colours.ink,
            )
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.margins(x=0.02)
        self._label_ends(float(self.sizes[-1]), ends[:16])
        return self


class CriterionDisplay(Display):
    """The criterion over sizes, and the size chosen.

    Parameters
    ----------
    selection : Selection
        As in ``model.selection_``.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    line_ : matplotlib line

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> from thresher.plotting import CriterionDisplay
    >>> model = SparseRegressor(selection="ebic").fit(*SparseLinearStream(30, 3, signal=1.0, seed=4).draw(500))
    >>> CriterionDisplay.from_estimator(model).selection.chosen
    3
    """

    LABELS: ClassVar[dict[str, tuple[str, str]]] = {
        "ebic": ("extended BIC", "The size with the least criterion is chosen."),
        "posterior": (
            "distance from the posterior mean",
            "Mean squared distance of fitted values. The shortest list that is close enough is chosen.",
        ),
        "cv": ("cross-validated mean squared error", "The band is one standard error. The least error is chosen."),
        "noise_edge": ("misfit and price of ranks", "The rank with the least criterion is chosen."),
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
        label, caption = self.LABELS.get(chosen.method, (printable(chosen.method), "The least is chosen."))
        ax = self._axes(ax, "size", label, "Why this size", caption)
        colours, sizes, criterion = self.palette_, chosen.sizes, chosen.criterion
        if chosen.standard_error is not None:
            spread = chosen.standard_error
            band = {"color": colours.accent, "alpha": 0.18, "linewidth": 0}
            ax.fill_between(sizes, criterion - spread, criterion + spread, **band)
        (self.line_,) = ax.plot(sizes, criterion, color=colours.accent, marker="o", markersize=3, linewidth=1.2)
        at = int(np.searchsorted(sizes, chosen.chosen))
        ax.plot(sizes[at], criterion[at], "D", color=colours.contrast, markersize=7)
        ax.annotate(
            f"{chosen.chosen}, after {chosen.n_samples:,} rows",
            (sizes[at], criterion[at]),
            xytext=(0, -9),
            textcoords="offset points",
            ha="center" if 0 < at < len(sizes) - 1 else "right" if at else "left",
            va="top",
            color=colours.contrast,
        )
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.margins(y=0.15)
        return self
