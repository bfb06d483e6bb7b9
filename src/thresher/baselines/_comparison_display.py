"""The picture of a comparison."""

from collections.abc import Collection
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from thresher.plotting._style import Display, apart


class ComparisonDisplay(Display):
    """A measure of several methods as rows came in, on logarithmic scales, each named where its line ends.

    Parameters
    ----------
    checkpoints : array-like of shape (m,)
        Row counts.
    curves : dict of str to array-like of shape (m,)
        Values of each method.
    metric : str, default="mse"
        What they are, for the axis.
    highlight : list of str, optional
        Methods to draw in colour, the most important first; others, and more than there are colours, are grey.
    diverged : collection of str, default=()
        Methods to draw with dashes. They do not set the scale, nor do errors beyond 1000 times the median.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : dict of str to matplotlib line
    """

    LABELS: ClassVar[dict[str, str]] = {
        "mse": "squared error of the coefficients",
        "prediction_error": "mean squared prediction error",
        "nonzeros": "nonzero coefficients",
        "seconds": "seconds of learning",
        "bytes": "bytes of state",
    }
    SCALES: ClassVar[dict[str, str]] = {"precision": "linear", "recall": "linear", "nonzeros": "symlog"}

    def __init__(
        self,
        checkpoints: ArrayLike,
        curves: dict[str, Any],
        *,
        metric: str = "mse",
        highlight: list[str] | None = None,
        diverged: Collection[str] = (),
    ) -> None:
        self.checkpoints = np.asarray(checkpoints)
        self.curves = {name: np.asarray(values, float) for name, values in curves.items()}
        self.metric = metric
        self.highlight = list(curves) if highlight is None else highlight
        self.diverged = diverged

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        label = self.LABELS.get(self.metric, self.metric)
        height = max(3.6, 1.2 + 0.17 * len(self.curves))
        ax = self._axes(ax, "rows seen", f"{label}, median", "Methods as rows came in", "", height)
        colours = self.palette_.lines
        ax.set_xscale("log")
        ax.set_yscale(self.SCALES.get(self.metric, "log"))
        chosen = self.highlight[: len(colours)]
        coloured = [name for name in self.curves if name in chosen]  # a method keeps its colour from plot to plot
        self.lines_ = {}
        for name, values in self.curves.items():
            colour = colours[coloured.index(name)] if name in chosen else self.palette_.muted
            (self.lines_[name],) = ax.plot(
                self.checkpoints,
                values,
                color=colour,
                linestyle="--" if name in self.diverged else "-",
                linewidth=1.6 if name in chosen else 1.0,
                marker="o",
                markersize=3,
                zorder=3 if name in chosen else 2,
                label=name,
            )
        self._set_limits(ax)
        self._label_curves(ax)
        return self

    def _set_limits(self, ax: Any) -> None:
        """Let no method that went astray set the scale: others would be squeezed into a line."""
        if self.metric in ("precision", "recall"):
            ax.set_ylim(-0.03, 1.03)
            return
        well = [values for name, values in self.curves.items() if name not in self.diverged] or self.curves.values()
        values = np.concatenate([*well, np.zeros(0)])
        values = values[np.isfinite(values) & (values > 0.0)]
        if self.metric in ("mse", "prediction_error") and values.size:
            values = values[values <= 1e3 * np.median(values)]
        if values.size:
            low = 0.0 if self.metric == "nonzeros" else values.min() / 1.4
            ax.set_ylim(low, 1.6 * max(values.max(), float(self.metric == "nonzeros")))

    def _label_curves(self, ax: Any) -> None:
        """Names beside the last values, moved apart where they would overlap; an arrow if they are off the scale."""
        ends = []
        for name, values in self.curves.items():
            known = np.flatnonzero(~np.isnan(values))
            if known.size:
                x, y = self._place(ax, self.checkpoints[known[-1]], values[known[-1]])
                ends.append((min(max(y, 0.0), 1.0), x, name, name + " \N{UPWARDS ARROW}" if y > 1.0 else name))
        ends.sort(key=lambda end: end[0])
        gap = 10.5 / 72.0 * self.figure_.dpi / ax.get_window_extent().height
        heights = apart([end[0] for end in ends], gap, 0.0, 1.0)
        for height, (y, x, name, text) in zip(heights, ends, strict=True):
            colour = self.lines_[name].get_color()
            at_side = {"transform": ax.transAxes, "clip_on": False, "color": colour}
            ax.plot([x, 1.01, 1.04], [y, y, height], linewidth=0.6, alpha=0.7, label="_thread", **at_side)
            weight = "bold" if name in self.highlight[:1] else "normal"
            ax.text(1.05, height, text, va="center", fontsize=8, fontweight=weight, parse_math=False, **at_side)

    def _place(self, ax: Any, count: float, value: float) -> tuple[float, float]:
        """Where a value is in units of the axes; above the top if infinite, at the bottom if it has no logarithm."""
        if np.isinf(value):
            return 1.0, np.inf
        if value <= 0.0 and self.metric not in self.SCALES:
            return 1.0, 0.0
        x, y = (ax.transScale + ax.transLimits).transform((count, value))
        return float(x), float(y)
