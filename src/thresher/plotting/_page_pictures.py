"""Pictures inside a page, which follow its light or dark style."""

import io
from typing import Any

from thresher._utils.page import picture
from thresher.plotting._style import DARK, LIGHT

SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "thresher", "font.family": "sans-serif", "font.size": 9}
# Inches, small enough for letters to be readable on a phone; pixels per inch.
WIDTH, PIXELS = 5.2, 96


def bar(value: float, low: float, high: float, known: bool, filled: bool | None = None) -> str:
    """A bar from zero with a line from `low` to `high`, all between -1 and 1.

    The bar is hollow instead of filled if zero is between the ends, or they are not known; `filled` overrides that.
    """
    sure = known and (low > 0.0 or high < 0.0) if filled is None else filled
    side = "up" if value >= 0.0 else "down"
    parts = [
        '<line class="zero" x1="0" x2="0" y1="0" y2="20"/>',
        f'<rect class="{side}{"" if sure else " unsure"}" x="{100 * min(value, 0.0):.2f}" y="4" '
        f'width="{100 * abs(value):.2f}" height="12"/>',
    ]
    if known:
        ends = 100 * low, 100 * high
        parts.append(f'<line x1="{ends[0]:.2f}" x2="{ends[1]:.2f}" y1="10" y2="10"/>')
        parts += [f'<line x1="{end:.2f}" x2="{end:.2f}" y1="6.5" y2="13.5"/>' for end in ends]
    inside = "".join(parts)
    return f'<svg class="bar" viewBox="-100 0 200 20" preserveAspectRatio="none" aria-hidden="true">{inside}</svg>'


def figure(model: Any, display: Any, alt: str, **how: Any) -> str:
    """A display of a model as a picture of the page."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        drawn = Figure((WIDTH, 4.2), layout="constrained", facecolor="none")
        axes = drawn.subplots(subplot_kw={"facecolor": "none"})
        height = display.from_estimator(model, ax=axes, **how).wanted_height_
        drawn.set_size_inches(WIDTH, height)
        file = io.BytesIO()
        drawn.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, facecolor="none")
    svg = file.getvalue().replace(b"</defs>", _dark_style().encode() + b"</defs>", 1)
    return f"<figure>{picture(svg, alt, int(PIXELS * WIDTH), int(PIXELS * height))}</figure>"


def _dark_style() -> str:
    """Other colours where the page is dark, but not on paper."""
    pairs = dict(zip(LIGHT.lines, DARK.lines, strict=True))
    pairs |= dict(zip(LIGHT[:-1], DARK[:-1], strict=True))
    pairs |= {"#000000": DARK.ink}
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{dark} !important}}'
        for light, dark in pairs.items()
        for what in ("fill", "stroke")
    )
    return f"<style>@media screen and (prefers-color-scheme: dark){{{rules}}}</style>"
