"""How results are drawn: medians over seeds with bands, the same colour for a method in every figure."""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.item import Line, Panel

INK, MUTED = "#1f2a36", "#9aa5b1"
COLOURS = ("#2166ac", "#d6604d", "#1b7837", "#762a83", "#b8860b", "#0f8b8d", "#8c510a", "#c51b7d")
STYLES = {
    "OHT K=1": ("#d6604d", "-"),
    "OHT K=5": ("#2166ac", "-"),
    "OHT K=10": ("#1b7837", "-"),
    "OHT K=20": ("#762a83", "-"),
    "OS_LASSO K=1": ("#b8860b", "-"),
    "OS_LASSO K=20": ("#8c510a", "-"),
    "l1 subgradient K=5": ("#b8860b", "-"),
    "l1 proximal K=5": ("#8c510a", "-"),
    "default": (INK, "--"),
    "oracle": (MUTED, ":"),
}
NAMES = {"default": "thresher's default"}
PANEL_SIZE = (4.6, 3.9)
# The same results give the same file: no date, no random names.
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "thresher", "font.family": "sans-serif", "font.size": 9}


def save(panels: Sequence[Panel], title: str, stem: Path) -> None:
    """All panels of an item, two in a row, as PNG and SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    n_rows, n_columns = -(-len(panels) // 2), min(2, len(panels))
    with matplotlib.rc_context(SETTINGS):
        figure = Figure((PANEL_SIZE[0] * n_columns, PANEL_SIZE[1] * n_rows))
        axes = np.ravel(figure.subplots(n_rows, n_columns, squeeze=False))
        figure.subplots_adjust(
            left=0.15 / n_columns,
            right=1.0 - 0.05 / n_columns,
            top=1.0 - 0.14 / n_rows,
            bottom=0.31 / n_rows,
            wspace=0.22,
            hspace=0.75,
        )
        for ax in axes[len(panels) :]:
            ax.remove()
        for ax, panel in zip(axes, panels, strict=False):
            draw(ax, panel)
        figure.suptitle(title)
        stem.with_suffix(".svg").write_bytes(_svg(figure))
        figure.savefig(stem.with_suffix(".png"), dpi=100, metadata={"Software": None})


def as_svg(panel: Panel) -> bytes:
    """One panel as an SVG file."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure = Figure(PANEL_SIZE)
        draw(figure.subplots(), panel)
        figure.subplots_adjust(left=0.15, right=0.95, top=0.92, bottom=0.31)
        return _svg(figure)


def _svg(figure: Any) -> bytes:
    """A figure as SVG, with paths rounded to a hundredth of a point."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r' d="[^"]*"', _rounded, file.getvalue()).encode()


def _rounded(path: re.Match[str]) -> str:
    return re.sub(r"(\.\d\d)\d+", r"\1", path[0])


def draw(ax: Any, panel: Panel) -> None:
    """Medians over seeds, bands from the lower to the upper quartile, and a legend below."""
    others = iter(COLOURS)
    for label, line in panel.lines.items():
        colour, style = STYLES.get(label) or (next(others), "-")
        low, middle, high = np.quantile(line.errors, [0.25, 0.5, 0.75], axis=0)
        ax.plot(line.x, middle, style, color=colour, linewidth=1.5, label=NAMES.get(label, label))
        ax.fill_between(line.x, low, high, color=colour, alpha=0.15, linewidth=0)
        printed = (panel.printed or {}).get(label)
        if printed is not None:
            ax.plot(line.x, printed, "o", color=colour, markersize=4, fillstyle="none")
    if panel.printed:
        ax.plot([], [], "o", color=INK, markersize=4, fillstyle="none", label="printed in the paper")
    ax.set_yscale("log")
    _label_ticks(ax.yaxis, ax.get_ylim())
    if panel.log_x:
        ax.set_xscale("log")
        _label_ticks(ax.xaxis, ax.get_xlim())
    if panel.guide is not None:
        _draw_guide(ax, panel.guide, next(iter(panel.lines.values())))
    ax.set_xlabel(panel.xlabel)
    ax.set_ylabel("squared error")
    ax.set_title(panel.title, fontsize=10)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, frameon=False, fontsize=8)


def _label_ticks(axis: Any, limits: tuple[float, float]) -> None:
    """Plain numbers at powers of ten, and at twice and five times them if there are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    few = limits[1] < 100.0 * limits[0]
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw_guide(ax: Any, slope: float, line: Line) -> None:
    """A straight line of that slope above the last part of a line."""
    x = np.array([line.x[-1] / 30.0, line.x[-1]])
    y = 3.0 * line.medians[-1] * (x / x[-1]) ** slope
    ax.plot(x, y, "-.", color=MUTED, linewidth=1.0, label=f"slope {slope:g}")
