"""How all pictures look: colours that everybody can tell apart, on light and dark paper, and titles that explain."""

import textwrap
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from thresher._utils.arrays import Floats
from thresher._utils.feature_names import name_of
from thresher._utils.printable import printable

# Inches of a picture; letters of a caption per inch of the axes; letters of a name beside the axes.
WIDTH, CAPTION, NAME = 6.4, 17.0, 28
# Lines differ in dashes as well, so that they can be told apart without colours.
DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))


class Palette(NamedTuple):
    """Colours for one kind of paper. Those of lines are Okabe and Ito's, adjusted in lightness to the paper."""

    ink: str
    muted: str
    faint: str
    accent: str
    contrast: str
    lines: tuple[str, ...]


LIGHT = Palette(
    ink="#1f2a36",
    muted="#6b7783",
    faint="#d5dbe1",
    accent="#0072b2",
    contrast="#b34700",
    lines=("#0072b2", "#b34700", "#007a59", "#a3507d", "#8a6500", "#00677d", "#4d4d4d", "#7a3e9d"),
)
DARK = Palette(
    ink="#e6eaee",
    muted="#a3adb8",
    faint="#45505c",
    accent="#5cb8f0",
    contrast="#ff9a5c",
    lines=("#5cb8f0", "#ff9a5c", "#3ecf9f", "#e9a3c9", "#e6b84c", "#9fd3f5", "#c9c9c9", "#c6a0e8"),
)


def pyplot() -> Any:
    """The module matplotlib.pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Pictures need matplotlib; install it with: pip install 'thresher[plot]'") from error
    return plt


def feature_names(estimator: Any, features: NDArray[np.intp]) -> list[str]:
    """Names that are safe to draw; x0, x1, ... if the model has none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [printable(name_of(j, names)) for j in features]


def shortened(name: str) -> str:
    """A name that fits beside a picture."""
    return name if len(name) <= NAME else f"{name[: NAME - 1]}\N{HORIZONTAL ELLIPSIS}"


def standard_scale(estimator: Any) -> Floats:
    """What turns coefficients into standard deviations of the response per standard deviation of the feature."""
    summary, centred = estimator.summary_, estimator._family.centred
    spread = np.sqrt(summary.response_variance(centred))
    result: Floats = np.sqrt(summary.variance(centred)) / (spread if spread > 0.0 else 1.0)
    return result


def apart(heights: Sequence[float], gap: float, low: float, high: float) -> Floats:
    """Increasing heights, moved as little as possible (in squares) to leave gaps and to stay in bounds if they can."""
    steps: Floats = gap * np.arange(len(heights), dtype=np.float64)
    if not len(heights):
        return steps
    result: Floats = steps + isotonic_regression(heights - steps, y_min=low, y_max=max(low, high - steps[-1]))
    return result


class Display:
    """What the displays share: axes of their own or given ones, without clutter, with a title and a caption."""

    height: ClassVar[float] = 3.8

    @staticmethod
    def standardized_label(target: str) -> str:
        """What the axis of standardised coefficients means."""
        name = shortened(printable(target))
        spread = "of y, per" if name == "y" else "of it, per"
        return f"effect on {name} (standard deviations {spread} one of the feature)"

    @staticmethod
    def unit_label(target: str) -> str:
        """What the axis of coefficients means."""
        return f"coefficient (units of {shortened(printable(target))} per unit of the feature)"

    def _axes(self, ax: Any, xlabel: str, ylabel: str, title: str, caption: str, height: float | None = None) -> Any:
        """Axes to draw on; the colours are in `palette_`."""
        plt = pyplot()
        if ax is None:
            _, ax = plt.subplots(figsize=(WIDTH, height or self.height), layout="constrained")
        from matplotlib.colors import to_rgb

        papers = [face for face in (ax.get_facecolor(), ax.figure.get_facecolor()) if face[3] > 0.0]
        self.palette_ = colours = DARK if papers and np.dot(to_rgb(papers[0]), (0.3, 0.6, 0.1)) < 0.45 else LIGHT
        for side, spine in ax.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(colours.muted)
        ax.tick_params(colors=colours.muted, labelcolor=colours.ink)
        ax.set_xlabel(xlabel, color=colours.ink, parse_math=False)
        ax.set_ylabel(ylabel, color=colours.ink, parse_math=False)
        room = CAPTION * ax.get_window_extent().width / ax.figure.dpi
        lines = textwrap.wrap(caption, max(int(room if ylabel else 0.85 * room), 30))  # names take room at the left
        ax.set_title(title, loc="left", color=colours.ink, fontsize=11, fontweight="bold", pad=8 + 11 * len(lines))
        if lines:
            self.caption_ = ax.annotate(
                "\n".join(lines),
                (0.0, 1.0),
                xycoords="axes fraction",
                xytext=(0, 5),
                textcoords="offset points",
                va="bottom",
                fontsize=8,
                color=colours.muted,
                linespacing=1.3,
            )
        self.ax_, self.figure_, self.wanted_height_ = ax, ax.figure, height or self.height
        return ax

    def _line_style(self, place: int) -> dict[str, Any]:
        """How to draw the line of a feature: the most important eight are coloured, in dashes of their own."""
        colours = self.palette_.lines
        if place >= len(colours):
            return {"color": self.palette_.faint, "linewidth": 1.0, "zorder": 1}
        return {"color": colours[place], "linestyle": DASHES[place % len(DASHES)], "linewidth": 1.6, "zorder": 2}

    def _label_ends(self, x: float, ends: Sequence[tuple[float, str, str]]) -> None:
        """Names at the right-hand ends of lines, given as (height, name, colour), moved apart where they overlap."""
        low, high = self.ax_.get_ylim()
        ends = sorted(ends, key=lambda end: end[0])
        gap = (high - low) / max(5.2 * self.ax_.get_window_extent().height / self.ax_.figure.dpi, 8.0)
        for height, (_, name, colour) in zip(apart([end[0] for end in ends], gap, low, high), ends, strict=True):
            self.ax_.annotate(
                shortened(name),
                (x, height),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=colour,
                annotation_clip=False,
                parse_math=False,
            )

    def _name_rows(self, names: Sequence[str]) -> None:
        """Names of features at the left, from the top down."""
        self.ax_.set_yticks(range(len(names)), [shortened(name) for name in names], fontsize=8, parse_math=False)
        self.ax_.set_ylim(len(names) - 0.4, -0.6)
        self.ax_.spines["left"].set_visible(False)
        self.ax_.tick_params(axis="y", length=0)
