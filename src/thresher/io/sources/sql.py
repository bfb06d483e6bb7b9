"""Rows of a query: DuckDB runs filters, joins and expressions, and hands the rows over in order."""

import json
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from thresher.io.sources.partitions import Partitions
from thresher.io.sources.source import Source
from thresher.io.sources.source_error import SourceError
from thresher.io.sources.table_file import SAMPLE, StoredFile

ROWS = 16384
NAME = "the query"


def import_duckdb() -> Any:
    """The module duckdb, or an error that says how to get it."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError("Queries need DuckDB; install it with: pip install 'thresher[duckdb]'") from error
    return duckdb


def read_sql(query: str, database: Any = None, batch_rows: int = ROWS) -> Any:
    """The rows of a query, run by DuckDB in this process, as an Arrow stream in memory that does not grow.

    Parameters
    ----------
    query : str
        One SELECT. Files are tables: ``SELECT * FROM 'data/**/*.parquet'``.
    database : path-like or duckdb.DuckDBPyConnection, optional
        A database file, which is opened for reading, or a connection. By default an empty database in memory.
    batch_rows : int, default=16384
        Rows that are handed over at a time.

    Returns
    -------
    pyarrow.RecordBatchReader
        For ``fit``, ``partial_fit``, ``predict`` and ``Gram.absorb``, with y as the name of a column.

    Examples
    --------
    >>> from thresher import SparseRegressor, read_sql
    >>> query = "SELECT sin(i) AS a, cos(i) AS b, 2 * sin(i) + 1 AS y FROM range(1000) t(i)"
    >>> SparseRegressor(1).fit(read_sql(query), y="y").get_feature_names_out()
    array(['a'], dtype=object)
    """
    connection = _connected(database)
    try:
        return _relation(connection, query).to_arrow_reader(batch_rows)
    except import_duckdb().Error as error:
        raise _fault(error) from error


def open_sql(query: str, database: str | os.PathLike[str] | None = None) -> "SqlSource":
    """The rows of a query as a source, which is read from top to bottom."""
    return SqlSource(query, database)


class SqlSource(Source):
    """The rows of a query, as those of one file.

    Attributes
    ----------
    ordered : bool
        Whether the query says in which order rows come: without, they may come in another one the next time.
    """

    def __init__(self, query: str, database: str | os.PathLike[str] | None = None) -> None:
        self._database = database
        super().__init__(NAME, [query], lambda text: SqlTable(text, database), Partitions({}))
        self.ordered = is_ordered(query)

    @property
    def rereadable(self) -> bool:
        """Whether rows can be read more than once: the query runs again."""
        return True

    def reads(self, path: Path) -> bool:
        """Whether this is the database."""
        return self._database is not None and path.exists() and path.samefile(self._database)


class SqlTable(StoredFile):
    """The result of a query. It runs once, for the first rows and for all that follow."""

    def __init__(self, query: str, database: str | os.PathLike[str] | None) -> None:
        self.name = NAME
        self._query, self._duckdb = query, import_duckdb()
        self._connection = _connected(database)
        try:
            self._columns = self.check_names(list(_relation(self._connection, query).columns))
        except self._duckdb.Error as error:
            raise _fault(error) from error
        self._running: tuple[list[Any], Iterator[Any]] | None = None

    def sample(self, texts: Sequence[str] = ()) -> Any:
        """The first rows."""
        if self._running is None:
            tables, first = self._run(), []
            for table in tables:
                first.append(table)
                if sum(one.num_rows for one in first) >= SAMPLE:
                    break
            if not first:
                raise self.no_rows("has no rows.")
            self._running = first, tables
        return pa.concat_tables(self._running[0])

    def _tables(self, columns: list[str]) -> Iterator[Any]:
        running, self._running = self._running, None
        yield from self._run() if running is None else chain(*running)

    def _run(self) -> Iterator[Any]:
        try:
            for batch in _relation(self._connection, self._query).to_arrow_reader(ROWS):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])
        except (self._duckdb.Error, pa.ArrowException, OSError) as error:
            raise _fault(error) from error


def is_ordered(query: str) -> bool:
    """Whether the outermost SELECT has an ORDER BY."""
    parsed = _parsed(query)
    return any(modifier["type"] == "ORDER_MODIFIER" for modifier in parsed["node"]["modifiers"])


def _parsed(query: str) -> Any:
    """The statement as DuckDB understands it, if it is one SELECT."""
    ((text,),) = import_duckdb().connect().execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()
    parsed = json.loads(text)
    if parsed.get("error"):
        raise SourceError(f"{NAME} cannot be used: {parsed['error_message']}")
    if len(parsed["statements"]) != 1:
        raise SourceError(f"{NAME} has {len(parsed['statements'])} statements; give one SELECT.")
    return parsed["statements"][0]


def _relation(connection: Any, query: str) -> Any:
    _parsed(query)  # nothing but a SELECT may run
    relation = connection.sql(query)
    if relation is None:
        raise SourceError(f"{NAME} returns no rows; give a SELECT.")
    return relation


def _connected(database: Any) -> Any:
    duckdb = import_duckdb()
    if database is not None and not isinstance(database, str | os.PathLike):
        return database
    if database is not None and not Path(database).is_file():
        raise SourceError(f"{database} does not exist.")
    try:
        found = duckdb.connect() if database is None else duckdb.connect(os.fspath(database), read_only=True)
    except duckdb.Error as error:
        raise SourceError(f"{database} cannot be opened: {error}") from error
    found.execute("SET enable_progress_bar = false")  # it would stand between the lines of the standard output
    return found


def _fault(error: Exception) -> SourceError:
    """What DuckDB says, in one line."""
    return SourceError(f"{NAME} failed: {' '.join(str(error).split())}")
