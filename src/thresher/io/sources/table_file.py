"""What every kind of file with named columns offers."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from thresher.io.sources.source_error import NoRowsError, SourceError

# How each column is read.
Kinds = Mapping[str, str]
# What to do about a value that is not a number.
REMEDY = "fix it, or leave its column out with --drop, or make it a category with --categories."
# At least so many rows of a stored file, if there are as many, are its first rows.
SAMPLE = 16384
TYPES = {"number": pa.float64(), "text": pa.string(), "truth": pa.bool_()}


class TableFile(ABC):
    """Rows of one file, in order, some at a time, in memory that does not depend on how many there are.

    Attributes
    ----------
    name : str
        For messages.
    columns : list of str
        Names of all columns.
    n_rows : int or None
        If that is known without reading everything.
    fraction : float or None
        How much was read so far.
    """

    name: str
    n_rows: int | None = None
    _columns: list[str]
    _n_read: int = 0
    # Whether rows may lack columns.
    loose: bool = False

    @property
    def columns(self) -> list[str]:
        """Names of all columns, in order."""
        return self._columns

    @property
    def fraction(self) -> float | None:
        """How much was read so far, between zero and one."""
        return self._n_read / self.n_rows if self.n_rows else None

    @property
    def unterminated(self) -> bool:
        """Whether the table given last is a line without its end."""
        return False

    @property
    def waiting(self) -> bool:
        """Whether everything was read that is there, and more may come."""
        return False

    def restart(self) -> None:
        """Begin again with the first row, also if somebody still waits for more."""
        return

    def replaced_by(self) -> "TableFile | None":
        """The file that took the place of this one while it was read; None unless it was followed."""
        return None

    @abstractmethod
    def sample(self, texts: Sequence[str] = ()) -> Any:
        """The first rows as an Arrow table, with the types that they seem to have; `texts` stay as they are."""

    @abstractmethod
    def tables(self, kinds: Kinds) -> Iterator[Any]:
        """All rows as Arrow tables, with the columns of `kinds` as numbers or texts."""

    def error(self, message: str, row: int | None = None) -> SourceError:
        """What is wrong, in one line, and where; rows are counted from one, a header is none."""
        message = " ".join(message.splitlines())
        return SourceError(f"{self.name}, row {row}: {message}" if row is not None else f"{self.name} {message}")

    def no_rows(self, message: str) -> NoRowsError:
        """There is nothing here."""
        return NoRowsError(f"{self.name} {message}")

    def check_names(self, names: list[str]) -> list[str]:
        """The names, if each is there once."""
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise self.error(f"has more than one column named {twice[0]!r}; rename them.")
        if not names:
            raise self.error("has no columns.")
        return names

    def read_names(self, schema: Any) -> list[str]:
        """The names of columns of an Arrow schema."""
        try:
            return self.check_names(list(schema.names))
        except UnicodeDecodeError as error:
            raise self.error("has names that are not text in UTF-8; rename its columns.") from error


class StoredFile(TableFile):
    """A file that is read some columns at a time (`_tables`), as often as needed."""

    def sample(self, texts: Sequence[str] = ()) -> Any:
        """The first rows, however few of them come at a time."""
        found, n_rows = [], 0
        for table in self._tables(self._columns):
            found.append(table)
            n_rows += table.num_rows
            if n_rows >= SAMPLE:
                break
        if not n_rows:
            raise self.no_rows("has no rows.")
        return pa.concat_tables(found)

    def tables(self, kinds: Kinds) -> Iterator[Any]:
        """All rows, some at a time."""
        self._n_read = 0
        for table in self._tables(list(kinds)):
            self._n_read += table.num_rows
            yield table.select(list(kinds))

    @abstractmethod
    def _tables(self, columns: list[str]) -> Iterator[Any]:
        """All rows of these columns, from the first on, in any order of columns."""


def is_number(text: str) -> bool:
    """Whether a text is a number for all readers: Python takes 1_000 and digits of other scripts, too."""
    if not text.isascii() or "_" in text:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True
