"""HTML pages that need nothing but themselves."""

import base64
import html
from importlib.resources import files

from thresher._utils.printable import printable


def page(title: str, body: str, style: str | None = None) -> str:
    """A whole page, with its style inside: that of reports, unless another is given."""
    style = files("thresher").joinpath("_page.css").read_text() if style is None else style
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def definitions(facts: dict[str, str]) -> str:
    """Names and what they stand for, beside each other."""
    return (
        '<dl class="facts">\n'
        + "\n".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in facts.items())
        + "\n</dl>"
    )


def picture(svg: bytes, alt: str, width: int, height: int) -> str:
    """A drawing, inside the page; width and height in pixels keep its place while it loads."""
    data = base64.b64encode(svg).decode()
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{text(alt)}" width="{width}" height="{height}">'


def text(value: str) -> str:
    """Text as it is, whatever is in it."""
    return html.escape(printable(value))
