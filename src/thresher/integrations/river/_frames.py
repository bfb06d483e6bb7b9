"""Data frames of any kind that river takes, as numbers."""

from collections.abc import Collection
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from river.utils.dataframe import into_frame, to_numpy

from thresher._utils.arrays import Floats
from thresher.integrations.river._features import Name, check_number


def named_numbers(X: Any, wanted: Collection[Name] | None = None) -> tuple[Any, list[Name], Floats]:
    """A frame as narwhals has it, and the names and values of its columns, or of the wanted ones among them.

    What is not a number raises an error that names the column.
    """
    frame = into_frame(X)
    places = [j for j, name in enumerate(frame.columns) if wanted is None or name in wanted]
    kinds = list(frame.schema.values())
    names: list[Name] = [frame.columns[j] for j in places]
    for j, name in zip(places, names, strict=True):
        if not (kinds[j].is_numeric() or kinds[j] == nw.Boolean):
            for value in frame[:, j].to_list():  # numbers may come as objects
                check_number(name, value)
    if not names:
        return frame, names, np.empty((len(frame), 0))
    return frame, names, to_numpy(frame if wanted is None else frame[:, places])
