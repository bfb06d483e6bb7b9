"""Records of a stream that print as a table and make a data frame."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher._utils.feature_names import name_of
from thresher._utils.printable import printable
from thresher._utils.text_table import data_frame, text_table


class Moment(Protocol):
    """What every record tells: rows until then, places of the nonzero coefficients, and these."""

    @property
    def n_samples(self) -> int: ...

    @property
    def support(self) -> Integers: ...

    @property
    def values(self) -> Floats: ...


R = TypeVar("R", bound=Moment)


class Records(list[R]):
    """Records of a stream, the oldest first. A list that prints as a table.

    Parameters
    ----------
    records : iterable of records
    names : sequence of str, optional
        The names of the features.
    """

    # What else a record tells: the head of the column, the attribute, and its format.
    _columns: ClassVar[tuple[tuple[str, str, str], ...]]

    def __init__(self, records: Iterable[R] = (), names: Sequence[str] | None = None) -> None:
        super().__init__(records)
        self.names = names

    def __repr__(self) -> str:
        lines, before = [], np.zeros(0, np.intp)
        for record in self:
            came, left = np.setdiff1d(record.support, before), np.setdiff1d(before, record.support)
            cells = [format(getattr(record, name), form) for _, name, form in self._columns]
            lines.append([str(record.n_samples), *cells, self._listed(came), self._listed(left)])
            before = record.support
        heads = ["rows", *(head for head, _, _ in self._columns), "came", "left"]
        n = len(heads)
        if not any(came or left for *_, came, left in lines):  # no supports are kept of matrices
            return text_table(heads[: n - 2], [line[: n - 2] for line in lines], ())
        return text_table(heads, lines, (n - 2, n - 1))

    def _listed(self, features: Integers) -> str:
        shown = " ".join(printable(name_of(j, self.names)) for j in features[:6])
        return shown if len(features) <= 6 else f"{shown} and {len(features) - 6} more"

    def to_frame(self) -> Any:
        """A pandas data frame, indexed by rows, with a column of coefficients for every feature that ever had one."""
        used = np.unique(np.concatenate([np.zeros(0, np.intp), *(record.support for record in self)]))
        coef = np.zeros((len(self), len(used)))
        for line, record in zip(coef, self, strict=True):
            line[np.searchsorted(used, record.support)] = record.values
        told = ["n_samples", *(name for _, name, _ in self._columns)]
        columns: dict[str, Any] = {name: [getattr(record, name) for record in self] for name in told}
        return data_frame(columns | {name_of(j, self.names): coef[:, k] for k, j in enumerate(used)}, "n_samples")
