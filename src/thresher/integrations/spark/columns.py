"""Columns of a Spark data frame: which exist, which have numbers, and how they are handed to Python."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, BooleanType, NumericType, StringType

from thresher._utils.feature_names import column_of, some_of, warn_of_unused
from thresher.integrations._partials import TO_USE, Plan

NUMBERS = (NumericType, BooleanType)


class Columns:
    """Names and types of the columns of a data frame, asked for once: Spark makes them again at every call."""

    def __init__(self, df: Any) -> None:
        if not hasattr(df, "mapInArrow"):
            raise TypeError(f"df is a {type(df).__module__}.{type(df).__name__}; pass a Spark data frame.")
        fields = df.schema.fields
        self.names = [field.name for field in fields]
        self._types = {field.name: field.dataType for field in fields}
        self._counts = Counter(self.names)

    def require(self, name: str) -> None:
        """Raise unless there is one column of this name."""
        if self._counts[name] != 1:
            fault = "no column" if name not in self._counts else "more than one column"
            raise ValueError(f"The data frame has {fault} {name!r}; it has {some_of(self.names)}.")

    def require_number(self, name: str) -> None:
        """Raise unless there is one column of this name, and it has numbers."""
        self.require(name)
        if not isinstance(self._types[name], NUMBERS):
            raise ValueError(f"Column {name!r} has the type {self._type(name)}, and numbers are needed there.")

    def is_text(self, name: str) -> bool:
        """Whether a column has texts."""
        return isinstance(self._types[name], StringType)

    def features(self, asked: Sequence[str] | str | None, left_out: Sequence[str] = ()) -> Any:
        """Features with names that exist and types that fit: a list, or the name of a column of vectors."""
        if asked is None:
            others = {*left_out}
            fits = {name: isinstance(self._types[name], NUMBERS) for name in self.names if name not in others}
            warn_of_unused([name for name, numeric in fits.items() if not numeric], TO_USE)
            return [name for name in self.names if fits.get(name)]
        if isinstance(asked, str):
            self.require(asked)
            kind = self._types[asked]
            if isinstance(kind, NUMBERS):
                return [asked]
            of_numbers = isinstance(kind, ArrayType) and isinstance(kind.elementType, NUMBERS)
            if not (_is_vector(kind) or of_numbers):
                raise ValueError(f"Column {asked!r} has the type {self._type(asked)}, not vectors or numbers.")
            return asked
        for name in asked:
            column, level = self.level_of(name)
            if level is None:
                self.require_number(name)
            elif not self.is_text(column):
                raise ValueError(f"Column {column!r} has no levels: its type is {self._type(column)}.")
        return list(asked)

    def level_of(self, feature: str) -> tuple[str, str | None]:
        """The column behind a feature, and the level if it is one, such as "colour=red"."""
        if feature in self._counts or (column := column_of(feature, self._counts)) is None:
            self.require(feature)
            return feature, None
        return column, feature[len(column) + 1 :]

    def as_array(self, name: str) -> Any:
        """A column of vectors or arrays as arrays of doubles."""
        column = sql.col(quoted(name))
        if not _is_vector(self._types[name]):
            return column.cast("array<double>")
        from pyspark.ml.functions import vector_to_array

        return vector_to_array(column)

    def as_read(self, name: str) -> Any:
        """A column of numbers as doubles, of texts as it is."""
        column = sql.col(quoted(name))
        return column if self.is_text(name) else column.cast("double")

    def _type(self, name: str) -> str:
        return str(self._types[name].simpleString())


def selected(df: Any, columns: Columns, plan: Plan) -> tuple[Any, list[str]]:
    """The columns that a plan reads, vectors as arrays, numbered because names may have dots; and their names."""
    if isinstance(plan.features, str):
        names = plan.columns
        chosen = [columns.as_array(names[0]), *(columns.as_read(name) for name in names[1:])]
    else:
        names = list(dict.fromkeys(columns.level_of(name)[0] for name in plan.columns))
        chosen = [columns.as_read(name) for name in names]
    return df.select(*[column.alias(f"c{number}") for number, column in enumerate(chosen)]), names


def quoted(name: str) -> str:
    """A name with dots or other characters, as Spark wants it."""
    return "`" + name.replace("`", "``") + "`"


def _is_vector(kind: Any) -> bool:
    return type(kind).__name__ == "VectorUDT"
