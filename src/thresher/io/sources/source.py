"""Where rows come from: a file, many files as if they were one, or a pipe."""

import glob
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from thresher.io.sources.choices import FORMATS, SUFFIXES
from thresher.io.sources.partitions import Partitions, partition_values
from thresher.io.sources.source_error import NoRowsError, SourceError
from thresher.io.sources.table_file import Kinds, TableFile

TEXTUAL = ("csv", "tsv", "jsonl")


class Source:
    """One table from one or more files of the same kind, read from top to bottom.

    Attributes
    ----------
    name : str
    columns : list of str
        Names of all columns; the same in all files, in any order.
    n_rows : int or None
        If that is known without reading everything.
    levels : dict of str to tuple of str
        What is in columns that are in the names of directories.
    texts : set of str
        Which of these have other values than numbers.
    decimal : str
        The decimal point of numbers that are texts.
    n_replaced : int
        How often the file that is followed was replaced by a new one.
    """

    def __init__(
        self,
        name: str,
        files: list[str],
        open_file: Callable[[str], TableFile],
        partitions: Partitions,
        decimal: str = ".",
    ) -> None:
        self.levels, self.texts, self.decimal = partitions.levels, partitions.texts, decimal
        self.name, self._files, self._open = name, files, open_file
        self._first: tuple[str, TableFile] | None = None
        self.columns: list[str] = []
        self.n_rows: int | None = 0
        for path in files:  # all headers, before any row is used
            file = open_file(path)
            try:
                columns = file.columns
            except NoRowsError:
                if len(files) == 1:
                    raise
                continue
            if self._first is None:
                self._first, self.columns = (path, file), columns
            elif not file.loose:
                _check_same(file, self.columns, self._first[1])
            self.n_rows = None if self.n_rows is None or file.n_rows is None else self.n_rows + file.n_rows
        if self._first is None:
            raise NoRowsError(f"{name} has no rows.")
        self._current, self._n_done = self._first[1], 0
        self.n_replaced = 0

    @property
    def fraction(self) -> float | None:
        """How much was read so far, between zero and one, as far as one can tell."""
        inside = self._current.fraction
        return None if inside is None else min((self._n_done + inside) / len(self._files), 1.0)

    @property
    def unterminated(self) -> bool:
        """Whether the table given last is a line without its end, at the end of the last file."""
        return self._current.unterminated and self._n_done == len(self._files) - 1

    @property
    def waiting(self) -> bool:
        """Whether everything was read that is there, and more may come."""
        return self._current.waiting

    @property
    def rereadable(self) -> bool:
        """Whether rows can be read more than once."""
        return all(Path(file).is_file() for file in self._files)

    def restart(self) -> None:
        """Begin again with the first row, also if somebody still waits for more."""
        for file in (self._current, *(self._first or ())[1:]):
            file.restart()

    def reads(self, path: Path) -> bool:
        """Whether this is one of the files."""
        return any(file != "-" and path.exists() and path.samefile(file) for file in self._files)

    def sample(self, texts: Sequence[str] = ()) -> Any:
        """The first rows as an Arrow table, with the types that they seem to have; `texts` stay as they are."""
        assert self._first is not None
        first, file = self._first
        for path in self._files[self._files.index(first) :]:
            try:
                return (file if path == first else self._open(path)).sample(texts)
            except NoRowsError:
                continue
        raise NoRowsError(f"{self.name} has no rows.")

    def tables(self, kinds: Kinds) -> Iterator[tuple[Any, TableFile, int]]:
        """All rows in order, once: Arrow tables, each with its file and the number of its first row there."""
        self._n_done = 0
        for path in self._files:
            first = self._first is not None and path == self._first[0]
            file: TableFile | None = self._first[1] if self._first and first else self._open(path)  # a pipe opens once
            while file is not None:
                self._current, row = file, 1
                with suppress(NoRowsError):
                    for table in file.tables(kinds):
                        yield table, file, row
                        row += table.num_rows
                file = self._successor(file)
            self._n_done += 1

    def _successor(self, file: TableFile) -> TableFile | None:
        """The file that took the place of one that was followed."""
        new = file.replaced_by()
        if new is not None:
            warnings.warn(f"{file.name} was replaced by a new file, which is followed from now on.", stacklevel=2)
            if not new.loose:
                _check_same(new, self.columns, file)
            self.n_replaced += 1
        return new

    def check_column(self, column: str, option: str) -> None:
        """Raise unless there is such a column, with near names if there are any."""
        if column not in self.columns:
            lower = {name.lower(): name for name in reversed(self.columns)}
            near = [lower[name] for name in get_close_matches(column.lower(), lower, 3, 0.5)]
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {_some(self.columns)}."
            raise SourceError(f"{self.name} has no column {column!r} for {option}; {hint}")


def open_source(
    where: str,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    decimal: str = ".",
    follow: bool = False,
) -> Source:
    r"""Rows of a file, a directory, a pattern such as ``"data/*.parquet"``, or the standard input (``"-"``).

    Parameters
    ----------
    where : str
    format : {"csv", "tsv", "jsonl", "parquet", "arrow", "numpy"}, optional
        By default told from the suffix; .gz may follow that of a text format. The standard input is CSV.
    delimiter : str, optional
        Between fields of a CSV file, by default a comma.
    header : bool, default=True
        Whether the first line of a CSV file has the names of the columns.
    decimal : {".", ","}, default="."
        The decimal point of numbers in a CSV file.
    follow : bool, default=False
        Whether to wait for more at the end of a text file, and to hand on lines of a pipe as they come.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from thresher.io.sources.source import open_source
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     _ = Path(directory, "a.csv").write_text("x,y\n1,2\n3,4\n")
    ...     source = open_source(directory)
    ...     [table["y"].to_pylist() for table, _, _ in source.tables({"y": "number"})]
    [[2.0, 4.0]]
    """
    if format is not None and format not in FORMATS:
        raise SourceError(f"There is no format {format!r}; use one of {', '.join(FORMATS)}.")
    if where == "-":
        name, files, kind = "the standard input", ["-"], format or "csv"
    else:
        name, files = where, _find(where, format)
        kinds = {format or _format_of(path) for path in files}
        if len(kinds) > 1:
            raise SourceError(f"{where} has files of different kinds ({', '.join(sorted(kinds))}); give a pattern.")
        (kind,) = kinds
    if kind not in TEXTUAL and (follow or where == "-"):
        how = "followed" if follow else "read from the standard input"
        raise SourceError(f"{name} is of the format {kind}, which cannot be {how}; CSV and JSON lines can.")
    if follow and len(files) > 1:
        raise SourceError(f"{name} has {len(files)} files; only one can be followed.")
    if follow and files[0].lower().endswith(".gz"):
        raise SourceError(
            f"{name} is compressed, which cannot be followed; pipe it through gunzip, or wait for its end."
        )
    partitions = Partitions({path: partition_values(path, _n_fixed(where)) for path in files})

    def open_file(path: str) -> TableFile:
        file = _open_file(path, kind, delimiter, header, decimal, follow)
        return partitions.of(path, file) if partitions else file

    return Source(name, files, open_file, partitions, decimal)


def _n_fixed(where: str) -> int:
    """How many parts of the paths are the same whatever files there are: directories below may be columns."""
    parts = Path(where).parts
    if Path(where).exists():  # a file has no directories below it
        return len(parts)
    return next((k for k, part in enumerate(parts) if glob.has_magic(part)), len(parts))


def _open_file(path: str, kind: str, delimiter: str | None, header: bool, decimal: str, follow: bool) -> TableFile:
    # Each reader imports a part of pyarrow that takes a while.
    where: Any = Path(path)
    if path == "-":
        if sys.stdin is None:
            raise SourceError("The standard input is closed.")
        path, where = "the standard input", open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115
    elif not where.is_file():  # a named pipe, which can be read only once
        where = where.open("rb", buffering=0)
    if kind in ("csv", "tsv"):
        from thresher.io.sources.csv_file import CsvFile

        return CsvFile(where, path, delimiter or ("\t" if kind == "tsv" else ","), header, decimal, follow)
    if kind == "jsonl":
        from thresher.io.sources.json_file import JsonFile

        return JsonFile(where, path, follow)
    if kind == "parquet":
        from thresher.io.sources.parquet_file import ParquetFile

        return ParquetFile(where, path)
    if kind == "arrow":
        from thresher.io.sources.arrow_file import ArrowFile

        return ArrowFile(where, path)
    from thresher.io.sources.numpy_file import NumpyFile

    return NumpyFile(where, path)


def _find(where: str, format: str | None) -> list[str]:
    """The files meant, by name."""
    path = Path(where)
    if path.is_dir():
        found = [file for file in path.rglob("*") if file.is_file() and not _is_hidden(file.relative_to(path))]
        if format is None:
            found = [file for file in found if _suffix(str(file)) in SUFFIXES]
        files = sorted(map(str, found))
        if not files:
            raise SourceError(f"{where} has no files with rows; known are {', '.join(SUFFIXES)}.")
        return files
    if path.exists():
        return [where]
    files = sorted(file for file in glob.glob(where, recursive=True) if Path(file).is_file())
    if not files:
        raise SourceError(f"{where} does not exist, and no file matches it.")
    return files


def _is_hidden(path: Path) -> bool:
    """Whether other programs left it there for themselves."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _suffix(path: str) -> str:
    return Path(path.lower().removesuffix(".gz")).suffix


def _format_of(path: str) -> str:
    known = SUFFIXES.get(_suffix(path))
    if known is None or (path.lower().endswith(".gz") and known not in TEXTUAL):
        raise SourceError(f"{path} could be anything; give --format ({', '.join(FORMATS)}).")
    return known


def _check_same(other: TableFile, columns: list[str], first: TableFile) -> None:
    missing = [name for name in columns if name not in other.columns]
    extra = [name for name in other.columns if name not in columns]
    if missing or extra:
        fault = f"lacks the column {missing[0]!r}" if missing else f"has the column {extra[0]!r} in addition"
        raise other.error(f"{fault}, compared with {first.name}; all files must have the same columns.")


def _some(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
