"""Rows from Arrow tables: y, the weights and the features are columns that are named."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Self

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.arrow import Table, is_table
from thresher._utils.feature_names import column_of
from thresher._utils.locks import lock_of, locked
from thresher._utils.threads import blas_threads_for
from thresher._utils.warnings import warn_caller
from thresher.estimators._base import StreamingRows
from thresher.online.samples import Rows
from thresher.selection.criteria import Chooser
from thresher.summaries._tables import are_names, column_name, refuse_names

Names = str | Sequence[str]
# Frames that scikit-learn knows. It wants their columns to be those of the fit, and says so otherwise.
FRAMES = ("pandas", "polars")


class TableRows(StreamingRows):
    """An estimator that learns from rows, which may be those of an Arrow table."""

    n_features_in_: int
    _chooser: Chooser | None

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, features: Sequence[str] | None = None, times: Any = None
    ) -> Self:
        """Learn from more rows.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n, n_features), or Arrow table
            An Arrow table is any object with ``__arrow_c_stream__``: pyarrow tables and readers, polars and pandas
            frames, DuckDB relations, scans of Delta and Iceberg tables. Its rows are read some at a time.
        y : array-like of shape (n,), or str
            Responses; the name of their column if X is an Arrow table.
        sample_weight : array-like of shape (n,), or str, optional
            Non-negative; a weight of two counts a row twice. The name of the column if X is an Arrow table.
        features : list of str, optional
            Columns of an Arrow table: numbers, categories, or single levels such as ``"colour=red"``. By default those
            of the last call; in the first one, all other columns of numbers, and all levels of columns with an Arrow
            dictionary. A warning names the columns of other types, which are left out.
        times : array-like of shape (n,), or str, optional
            When each row was, for models that forget by the clock: numbers of seconds, or dates and times. They must
            not go back. The name of the column if X is an Arrow table.

        Returns
        -------
        self
        """
        if not are_names(y):
            refuse_names(sample_weight, features, times)
            return self._partial_fit(X, y, sample_weight, times=times)
        return self._learn_table(X, y, sample_weight, features, times)

    @locked
    def _learn_table(self, X: Any, y: Names, sample_weight: Any, features: Sequence[str] | None, times: Any) -> Self:
        table = self._table(X, y, sample_weight, features, times)
        with blas_threads_for(len(table.names)):
            return self._learn_blocks(self._blocks(table), lambda rows: self._learn_block(rows, table))

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, features: Sequence[str] | None = None, times: Any = None
    ) -> Self:
        """Forget everything, then learn from these rows, all at once.

        Parameters and return value are those of ``partial_fit``.
        """
        if not are_names(y):
            refuse_names(sample_weight, features, times)
            return self._fit(X, y, sample_weight, times=times)
        with lock_of(self), self._unchanged_by_failure():
            self._check_parameters()
            names = column_name(sample_weight, "sample_weight"), column_name(times, "times")
            table = Table(X, y, names[0], features, self._storage(), features is not None, names[1])
            table.warn_of_unused()
            blocks = self._blocks(table)
            first = self._with_responses(next(blocks), reset=True)
            self._name_features(table)
            self._start(self._new_summary(first))
            chooser, summary = self._chooser, self._new_summary(first)
            with blas_threads_for(len(table.names)):
                for rows in chain((first,), (self._with_responses(rows, reset=False) for rows in blocks)):
                    summary.absorb_checked(rows.X, rows.y, rows.weights, summary.check_times(rows.times, len(rows)))
                    if chooser is not None and chooser.needs_rows:
                        chooser.absorb(summary, rows)
            if summary.weight == 0.0:
                raise ValueError("All sample weights are zero; at least one must be positive.")
            self.__dict__.pop("_warned_of_weights", None)
            self._start(summary)
            self._chooser = chooser
            if rows.weights is not None:
                self._warn_of_weights(rows.weights, 2)
            return self._settle()

    # -- what a subclass provides ------------------------------------------------------------------------

    @abstractmethod
    def _learn(self, rows: Rows, names: Any = None) -> None:
        """``partial_fit`` on rows that were checked."""

    @abstractmethod
    def _storage(self) -> np.dtype[Any]:
        """How co-moments of a new summary are stored."""

    def _with_responses(self, rows: Rows, reset: bool) -> Rows:
        """Rows of a table with responses as the summary wants them. Sets (`reset`) or checks what is known of them."""
        if rows.y.ndim != 1:
            raise ValueError(
                f"y names {rows.y.shape[1]} columns; {type(self).__name__} has one response: give the name itself, or "
                "use a ReducedRankRegressor."
            )
        return rows

    # -- tables ------------------------------------------------------------------------------------------

    def _table(self, X: Any, y: Names, sample_weight: Any, features: Sequence[str] | None, times: Any) -> Table:
        """The table with the columns that the model knows, if it knows any."""
        fitted = hasattr(self, "summary_")
        names = getattr(self, "feature_names_in_", None) if fitted else None
        asked = features if features is not None or names is None else [str(name) for name in names]
        storage = self.summary_.dtype if fitted else self._storage()
        weight, time = column_name(sample_weight, "sample_weight"), column_name(times, "times")
        table = Table(X, y, weight, asked, storage, features is not None, time)
        if names is not None and table.names != list(names):
            raise ValueError(
                f"The features {_difference(table.names, list(names))} differ from those of the model; they must stay."
            )
        if fitted and len(table.names) != self.n_features_in_:
            raise ValueError(f"The table has {len(table.names)} features and the model has {self.n_features_in_}.")
        table.warn_of_unused()
        return table

    @staticmethod
    def _blocks(table: Table) -> Iterator[Rows]:
        return (Rows(block.X, block.y, block.weights, block.times) for block in table if block.y is not None)

    def _learn_block(self, rows: Rows, table: Table) -> None:
        first = not hasattr(self, "summary_")
        named = first or hasattr(self, "feature_names_in_")
        with self._unchanged_by_failure(Exception):
            self._check_parameters()
            rows = self._with_responses(rows, reset=first)
            if first:
                self._name_features(table)
            self._learn(rows, np.array(table.names, object) if named else None)

    def _name_features(self, table: Table) -> None:
        self.n_features_in_ = len(table.names)
        self.feature_names_in_ = np.array(table.names, object)
        self._columns_by_name = True

    def _predicted_by_name(self, X: Any) -> bool:
        """Whether X is a table whose columns are to be found by their names."""
        if not is_table(X):
            return False
        if type(X).__module__.split(".")[0] not in FRAMES or "_columns_by_name" in self.__dict__:
            return True
        # A model that `thresher fit` made has features such as "area=north", and the frame a column "area".
        names, columns = getattr(self, "feature_names_in_", ()), {*map(str, X.columns)}
        others = [str(name) for name in names if str(name) not in columns]
        return bool(others) and all(column_of(name, columns) is not None for name in others)

    def _table_to_predict(self, X: Any) -> Iterator[Floats]:
        """The rows of a table, some at a time, with the columns of the model."""
        names = getattr(self, "feature_names_in_", None)
        table = Table(X, features=None if names is None else [str(name) for name in names], lenient=True)
        if len(table.names) != self.n_features_in_:
            raise ValueError(f"The table has {len(table.names)} features and the model has {self.n_features_in_}.")
        for block in table:
            yield block.X
        if table.n_unknown:
            warn_caller(
                f"{table.n_unknown} values have levels that the model does not know; all their columns are zero.",
                UserWarning,
            )


def _difference(given: list[str], known: list[str]) -> str:
    differ = [name for name in given if name not in known] or [name for name in known if name not in given] or given
    return ", ".join(map(repr, differ[:5]))
