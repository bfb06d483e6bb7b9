"""How results are drawn: medians over seeds with bands, one colour per method throughout."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.displays import MUTED

Floats = NDArray[np.float64]

COLOURS = {
    "OHT K=1": "#d6604d",
    "OHT K=5": "#2166ac",
    "OHT K=10": "#1b7837",
    "OHT K=20": "#762a83",
    "OS_LASSO K=1": "#b8860b",
    "OS_LASSO K=20": "#8c510a",
    "default": "#111111",
    "oracle": MUTED,
}
NAMES = {"default": "thresher's default", "oracle": "oracle"}


def curves(
    ax: Any, x: Sequence[int], lines: Mapping[str, Floats], xlabel: str, title: str, log_x: bool = False
) -> None:
    """Medians over seeds against x, with bands from the lower to the upper quartile; errors on a log scale."""
    for label, errors in lines.items():
        low, middle, high = np.quantile(errors, [0.25, 0.5, 0.75], axis=0)
        style = ":" if label == "oracle" else "--" if label == "default" else "-"
        colour = COLOURS[label]
        ax.plot(x, middle, style, color=colour, linewidth=1.5, label=NAMES.get(label, label))
        ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.set_yscale("log")
    if log_x:
        ax.set_xscale("log")
    ax.set_xlabel(xlabel)
    ax.set_title(title, fontsize=10)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def finish(figure: Any, axes: Sequence[Any], ylabel: str = "squared error") -> None:
    """A label for the errors and one legend for all axes, below them."""
    axes[0].set_ylabel(ylabel)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
