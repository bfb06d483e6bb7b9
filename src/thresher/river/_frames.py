"""Data frames of any kind that river takes, as numbers."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from river.utils.dataframe import into_frame, to_numpy

from thresher.river._columns import Name, check_number

Floats = NDArray[np.float64]


def named_numbers(X: Any) -> tuple[Any, list[Name], Floats]:
    """A frame as narwhals has it, the names of its columns and their values; an error names what is not a number."""
    frame = into_frame(X)
    names: list[Name] = list(frame.columns)
    for j, kind in enumerate(frame.schema.values()):
        if not (kind.is_numeric() or kind == nw.Boolean):
            for value in frame[:, j].to_list():  # numbers may come as objects
                check_number(names[j], value)
    return frame, names, to_numpy(frame)
