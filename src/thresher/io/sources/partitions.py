"""Columns that are in the names of directories, as Hive, Spark and pyarrow write them: year=2024/month=3/a.parquet."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from thresher.io.sources.table_file import Kinds, TableFile, is_number

# What stands for a missing value in the name of a directory.
NONE = "__HIVE_DEFAULT_PARTITION__"


def partition_values(path: str, n_fixed: int) -> dict[str, str | None]:
    """Names and values in the directories of a path, behind its first `n_fixed` parts."""
    found: dict[str, str | None] = {}
    for part in Path(path).parts[n_fixed:-1]:
        name, equals, value = part.partition("=")
        if name and equals:
            found[unquote(name)] = None if value == NONE else unquote(value)
    return found


class Partitions:
    """The values of all files of a source.

    Attributes
    ----------
    levels : dict of str to tuple of str
        All values there are, by column.
    texts : set of str
        The columns whose values are not all numbers.
    """

    def __init__(self, values: dict[str, dict[str, str | None]]) -> None:
        self._values = values
        every: dict[str, set[str]] = {}
        for one in values.values():
            for name, value in one.items():
                every.setdefault(name, set()).update(() if value is None else (value,))
        self.levels = {name: tuple(sorted(found)) for name, found in every.items()}
        self.texts = {name for name, found in every.items() if not all(map(is_number, found))}

    def __bool__(self) -> bool:
        return any(self._values.values())

    def of(self, path: str, file: TableFile) -> TableFile:
        """The file with the columns of its directories, unless it has them itself."""
        mine = {name: value for name, value in self._values[path].items() if name not in file.columns}
        return PartitionedFile(file, mine, self.texts) if mine else file


class PartitionedFile(TableFile):
    """A file, and columns that have the same value in all its rows."""

    def __init__(self, file: TableFile, values: dict[str, str | None], texts: set[str]) -> None:
        self._file, self._values, self._texts = file, values, texts
        self.name, self.n_rows, self.loose = file.name, file.n_rows, file.loose

    @property
    def columns(self) -> list[str]:
        """Names of all columns, those of the directories last."""
        return [*self._file.columns, *self._values]

    @property
    def fraction(self) -> float | None:
        """How much was read so far."""
        return self._file.fraction

    @property
    def unterminated(self) -> bool:
        """Whether the table given last is a line without its end."""
        return self._file.unterminated

    @property
    def waiting(self) -> bool:
        """Whether everything was read that is there, and more may come."""
        return self._file.waiting

    def restart(self) -> None:
        """Begin again with the first row, also if somebody still waits for more."""
        self._file.restart()

    def replaced_by(self) -> TableFile | None:
        """The file that took the place of this one while it was followed, if there is one."""
        new = self._file.replaced_by()
        return None if new is None else PartitionedFile(new, self._values, self._texts)

    def sample(self, texts: Sequence[str] = ()) -> Any:
        """The first rows."""
        inside = [name for name in texts if name not in self._values]
        return self._with(self._file.sample(inside), list(self._values), texts)

    def tables(self, kinds: Kinds) -> Iterator[Any]:
        """All rows, some at a time."""
        inside = {name: kind for name, kind in kinds.items() if name not in self._values}
        outside = [name for name in kinds if name in self._values]
        texts = [name for name in outside if kinds[name] == "text"]
        # A table without columns has no number of rows, so one is read if none is asked for.
        for table in self._file.tables(inside or {self._file.columns[0]: "text"}):
            yield self._with(table, outside, texts).select(list(kinds))

    def _with(self, table: Any, names: list[str], texts: Sequence[str]) -> Any:
        for name in names:
            value = self._values[name]
            if name in self._texts or name in texts:
                column = pa.array([value] * table.num_rows, pa.string())
            else:
                column = pa.array([None if value is None else float(value)] * table.num_rows, pa.float64())
            table = table.append_column(name, column)
        return table
