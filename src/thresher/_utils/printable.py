"""Texts from outside, such as names of columns, made safe to print: on a terminal, in a page, in a picture."""

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
