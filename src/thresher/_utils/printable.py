"""Texts to print: numbers of things, and texts from outside made safe for a terminal, a page or a picture."""

import unicodedata

# Control characters, those that change the direction of text, halves of characters, and ends of lines and paragraphs.
UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printable(text: str) -> str:
    r"""The text, with escapes in place of characters that would do something instead of being seen.

    Examples
    --------
    >>> from thresher._utils.printable import printable
    >>> print(printable("x\x1b[31m\n"))
    x\x1b[31m\n
    """
    if text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in UNSAFE else character
        for character in text
    )


def counted(n: float, noun: str, form: str = "") -> str:
    """A number of things: a whole one, unless it is less than one; the noun in the singular or the plural.

    Examples
    --------
    >>> from thresher._utils.printable import counted
    >>> counted(577.077, "row"), counted(1, "row"), counted(0.25, "row"), counted(4000, "row", ",")
    ('577 rows', '1 row', '0.25 rows', '4,000 rows')
    """
    number = format(round(n), form) if n == 0.0 or round(n) else f"{n:.2g}"
    return f"{number} {noun}{'' if number == '1' else 's'}"
