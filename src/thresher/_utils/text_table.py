"""Tables as people see them: aligned text on a terminal, data frames for everything else."""

from collections.abc import Mapping, Sequence
from typing import Any

# Lines of a long table: those at the beginning and at the end.
FIRST, LAST = 12, 8


def text_table(heads: Sequence[str], lines: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Cells in columns that are as wide as they need to be; of a long table, the beginning and the end.

    Parameters
    ----------
    heads : sequence of str
    lines : sequence of sequences of str
        As many cells as there are heads.
    left : sequence of int
        Columns that are aligned at the left.

    Examples
    --------
    >>> from thresher._utils.text_table import text_table
    >>> print(text_table(["name", "size"], [["a", "1"], ["bcdef", "20"]]))
    name   size
    a         1
    bcdef    20
    """
    shown = list(lines) if len(lines) <= FIRST + LAST + 1 else [*lines[:FIRST], ["..."] * len(heads), *lines[-LAST:]]
    table = [list(heads), *map(list, shown)]
    widths = [max(len(line[k]) for line in table) for k in range(len(heads))]
    cells = [
        [
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in table
    ]
    return "\n".join("  ".join(line).rstrip() for line in cells)


def data_frame(columns: Mapping[str, Any], index: str) -> Any:
    """The columns as a pandas data frame, indexed by one of them."""
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install pandas") from error
    return pandas.DataFrame(columns).set_index(index)
