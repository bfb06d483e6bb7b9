"""Columns of a Spark data frame: which exist, which have numbers, and how they are handed to Python."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, BooleanType, NumericType, StringType

from thresher.integrations._partials import Plan

NUMBERS = (NumericType, BooleanType)


def read_columns(df: Any, features: Sequence[str] | str | None, left_out: Sequence[str] = ()) -> Any:
    """Features with names that exist and types that fit: a list, or the name of a column of vectors."""
    if features is None:
        return [
            field.name
            for field in df.schema.fields
            if isinstance(field.dataType, NUMBERS) and field.name not in left_out
        ]
    if isinstance(features, str):
        require(df, features)
        kind = df.schema[features].dataType
        if isinstance(kind, NUMBERS):
            return [features]
        if not (_is_vector(kind) or isinstance(kind, ArrayType)):
            raise ValueError(f"Column {features!r} has the type {kind.simpleString()}, not vectors or numbers.")
        return features
    for name in features:
        column, level = level_of(df, name)
        if level is None:
            require_number(df, name)
        elif not isinstance(df.schema[column].dataType, StringType):
            raise ValueError(f"Column {column!r} has no levels: its type is {_type(df, column)}.")
    return list(features)


def selected(df: Any, plan: Plan) -> tuple[Any, list[str]]:
    """The columns that a plan reads, vectors as arrays, numbered because names may have dots; and their names."""
    if isinstance(plan.features, str):
        names = plan.columns
        columns = [as_array(df, names[0]), *(_as_read(df, name) for name in names[1:])]
    else:
        names = list(dict.fromkeys(level_of(df, name)[0] for name in plan.columns))
        columns = [_as_read(df, name) for name in names]
    return df.select(*[column.alias(f"c{number}") for number, column in enumerate(columns)]), names


def as_array(df: Any, name: str) -> Any:
    """A column of vectors or arrays as arrays of doubles."""
    column = sql.col(quoted(name))
    if not _is_vector(df.schema[name].dataType):
        return column.cast("array<double>")
    from pyspark.ml.functions import vector_to_array

    return vector_to_array(column)


def level_of(df: Any, feature: str) -> tuple[str, str | None]:
    """The column behind a feature, and the level if it is one, such as "colour=red"."""
    if feature in df.columns:
        require(df, feature)
        return feature, None
    columns = [name for name in df.columns if feature.startswith(f"{name}=")]
    if not columns:
        require(df, feature)
    column = max(columns, key=len)
    return column, feature[len(column) + 1 :]


def require(df: Any, name: str) -> None:
    """Raise unless there is one column of this name."""
    if df.columns.count(name) != 1:
        fault = "no column" if name not in df.columns else "more than one column"
        raise ValueError(f"The data frame has {fault} {name!r}; it has {', '.join(map(repr, df.columns[:8]))}.")


def require_number(df: Any, name: str) -> None:
    """Raise unless a column has numbers."""
    if not isinstance(df.schema[name].dataType, NUMBERS):
        raise ValueError(f"Column {name!r} has the type {_type(df, name)}, and numbers are needed there.")


def quoted(name: str) -> str:
    """A name with dots or other characters, as Spark wants it."""
    return "`" + name.replace("`", "``") + "`"


def _as_read(df: Any, name: str) -> Any:
    column = sql.col(quoted(name))
    return column if isinstance(df.schema[name].dataType, StringType) else column.cast("double")


def _type(df: Any, name: str) -> str:
    return str(df.schema[name].dataType.simpleString())


def _is_vector(kind: Any) -> bool:
    return type(kind).__name__ == "VectorUDT"
