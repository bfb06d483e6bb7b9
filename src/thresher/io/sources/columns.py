"""Columns of a table as numbers: which is the response, which are features, and what texts stand for."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher._utils.arrow import is_numeric, seconds_of_timestamps
from thresher._utils.checks import LARGEST
from thresher.io.schema import Dict, Flag, Number, Schema, Text, Tuple
from thresher.io.sources.source import Source
from thresher.io.sources.source_error import SourceError
from thresher.io.sources.table_file import REMEDY, Kinds, TableFile, is_number

# A column with more different texts than this is more likely a name or a comment.
MOST_LEVELS = 200
NUMBER = pa.float64()
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")


class Rows(NamedTuple):
    """Numbers, with NaN where a value is missing; rows by columns."""

    X: Floats
    y: Floats | None
    weights: Floats | None
    n_unknown: int  # texts that are not among the levels
    times: Floats | None = None  # in seconds


@dataclass(frozen=True)
class Columns:
    """How rows of a table become numbers, fixed once and for all.

    Attributes
    ----------
    target : str or None
        The response; None if rows are only to be predicted.
    weight : str or None
        The weights of rows, if they have any.
    features : tuple of str
        The columns that explain, in order.
    levels : dict of str to tuple of str
        For those with texts: the texts known, each of which becomes a column of zeros and ones. All zeros stand for
        any other text.
    truths : tuple of str
        Columns of true and false, which become ones and zeros.
    means : tuple of float
        Of each column of X, in the first rows; NaN if all values were missing there.
    time : str or None
        The times of rows, if they count.
    dates : bool
        Whether they are dates and times, not numbers of seconds.
    """

    _schema = Schema(
        lambda columns: len(columns.features) > 0 and len(set(columns.names)) == len(columns.names),
        lambda columns: set(columns.levels) <= set(columns.features) and all(columns.levels.values()),
        lambda columns: len(columns.means) in (0, len(columns.names)),
        lambda columns: columns.time not in columns.features or not (columns.dates or columns.time in columns.levels),
        target=Text() | None,
        weight=Text() | None,
        features=Tuple(each=Text()),
        levels=Dict(Tuple(each=Text()), keys=Text()),
        truths=Tuple(each=Text()),
        means=Tuple(each=Number(nan=True)),
        time=Text() | None,
        dates=Flag(),
    )
    target: str | None
    weight: str | None
    features: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]
    truths: tuple[str, ...]
    means: tuple[float, ...] = ()
    time: str | None = None
    dates: bool = False

    @classmethod
    def choose(
        cls,
        source: Source,
        target: str,
        weight: str | None = None,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        categories: Mapping[str, Sequence[str] | None] | None = None,
        time: str | None = None,
    ) -> "Columns":
        """Fix the columns from the first rows of a source.

        Parameters
        ----------
        source : Source
        target, weight : str
        features : sequence of str, optional
            By default all other columns.
        drop : sequence of str
            Columns to leave out.
        categories : mapping of str to sequence of str, or to None
            Columns of texts and their levels; None takes those in the first rows, as for all other columns of texts.
        time : str, optional
            The times of rows: numbers of seconds, or dates and times. It is no feature unless `features` has it,
            which takes numbers.
        """
        asked = dict(categories or {})
        roles = [("--target", [target]), ("--weight", [weight] if weight else []), ("--features", list(features or ()))]
        roles.append(("--time-column", [time] if time else []))
        for option, names in [*roles, ("--drop", list(drop)), ("--categories", list(asked))]:
            for name in names:
                source.check_column(name, option)
        left_out = {target, weight, *drop, *([] if features is not None and time in features else [time])}
        chosen = [name for name in (source.columns if features is None else features) if name not in left_out]
        if not chosen:
            raise SourceError(f"{source.name} has no columns left to explain {target!r} with.")
        sample, levels, truths = _readable(source.sample(list(asked)), source.name), {}, []
        # If they are not numbers of seconds, they are dates and times, or cannot be times.
        dates = time is not None and not is_numeric(sample.schema.field(time).type, booleans=False)
        if time in chosen and (dates or time in asked):
            raise SourceError(
                f"{source.name}: column {time!r} has the times, and is a feature only if it has numbers; leave it out "
                "of --features."
            )
        for name in dict.fromkeys(chosen):
            kind = "text" if name in asked or name in source.texts else _kind(sample, name, source)
            if kind == "truth":
                truths.append(name)
            if kind == "text":
                levels[name] = _levels(sample, name, asked.get(name), source)
        for name in filter(None, (target, weight)):
            kind = _kind(sample, name, source)
            if kind == "text":
                raise SourceError(f"{source.name}: column {name!r} has texts, and numbers are needed there.")
            if kind == "truth":
                truths.append(name)
        plain = cls(target, weight, tuple(dict.fromkeys(chosen)), levels, tuple(truths), time=time, dates=dates)
        twice = [name for name, count in Counter(plain.names).items() if count > 1]
        if twice:
            raise SourceError(f"{source.name}: {twice[0]!r} is both a column and a level of one; rename the column.")
        return replace(plain, means=plain._means(sample, source.name))

    def _means(self, sample: Any, where: str) -> tuple[float, ...]:
        means: list[float] = []
        for name in self.features:
            column = sample.column(name)
            if name in self.levels:
                places = _places(_texts(column, name, where), self.levels[name])
                present = max(int((places != -2).sum()), 1)
                means += [float((places == k).sum()) / present for k in range(len(self.levels[name]))]
                continue
            try:
                values = _decoded(column).cast(NUMBER, safe=False).drop_null().to_numpy()
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # no number; reading will say where
                values = np.zeros(0)
            values = values[np.abs(values) <= LARGEST[np.dtype(np.float64)]]  # neither NaN nor what will be refused
            means.append(float(values.mean()) if len(values) else float("nan"))
        return tuple(means)

    @property
    def names(self) -> list[str]:
        """Names of the columns of X."""
        return [
            name if level is None else f"{name}={level}"
            for name in self.features
            for level in self.levels.get(name, (None,))
        ]

    @property
    def groups(self) -> list[str]:
        """The column of the table that each column of X comes from."""
        return [name for name in self.features for _ in self.levels.get(name, (None,))]

    @property
    def kinds(self) -> Kinds:
        """What to read."""
        names = [*self.features, *filter(None, (self.weight, self.target, self.time))]
        texts = {*self.levels, *([self.time] if self.dates else [])}
        return {name: "text" if name in texts else "truth" if name in self.truths else "number" for name in names}

    def without_target(self) -> "Columns":
        """The same for rows that are only to be predicted."""
        return replace(self, target=None, weight=None, time=None, dates=False)

    def using(self, names: Iterable[str]) -> "Columns":
        """Only the columns behind these columns of X, with all levels of each; the first one if there are none."""
        wanted = {*names}
        behind = {column for name, column in zip(self.names, self.groups, strict=True) if name in wanted}
        behind = behind or {self.features[0]}
        means = zip(self.means, self.groups, strict=True) if self.means else ()
        return replace(
            self,
            features=tuple(name for name in self.features if name in behind),
            levels={name: levels for name, levels in self.levels.items() if name in behind},
            means=tuple(mean for mean, column in means if column in behind),
        )

    def check(self, source: Source) -> None:
        """Raise if the source lacks a column."""
        for name in self.kinds:
            role = "--target" if name == self.target else "a feature of the model"
            source.check_column(name, role)

    def rows(self, batch: Any, file: TableFile, first_row: int) -> Rows:
        """The numbers of an Arrow record batch. A value that is not a number is an error."""
        plain = [name for name in self.features if name not in self.levels]
        X = _matrix(batch, plain, file, first_row)
        n_unknown = 0
        if self.levels:
            places = np.cumsum([0, *(len(self.levels.get(name, " ")) for name in self.features)])
            numbers, X = X, np.zeros((batch.num_rows, places[-1]))
            X[:, [place for name, place in zip(self.features, places, strict=False) if name in plain]] = numbers
            for name, place in zip(self.features, places, strict=False):
                if name in self.levels:
                    levels = self.levels[name]
                    texts = _texts(batch.column(name), name, f"{file.name}, row {first_row}")
                    n_unknown += _one_hot(_places(texts, levels), X[:, place : place + len(levels)])
        y, weights = (
            None if name is None else np.ascontiguousarray(_matrix(batch, [name], file, first_row)[:, 0])
            for name in (self.target, self.weight)
        )
        if weights is not None and (bad := weights < 0.0).any():
            raise file.error(f"the weight in column {self.weight!r} is negative.", first_row + int(bad.argmax()))
        times = None
        if self.time is not None:
            if self.dates:
                times = _seconds(batch.column(self.time), self.time, file, first_row)
            else:
                times = np.ascontiguousarray(_matrix(batch, [self.time], file, first_row)[:, 0])
        return Rows(X, y, weights, n_unknown, times)


def _seconds(column: Any, name: str, file: TableFile, first_row: int) -> Floats:
    """Dates and times, or texts that are such, as seconds; NaN where there is none."""
    column = _decoded(column)
    if _is_text(column.type):
        column = _timestamps(column.cast(pa.string()), name, file, first_row)
    try:
        return seconds_of_timestamps(column)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise file.error(
            f"column {name!r} has values of the type {column.type}, and times are seconds, dates or timestamps.",
            first_row,
        ) from None


def _timestamps(texts: Any, name: str, file: TableFile, first_row: int) -> Any:
    """Texts such as 2026-01-31 12:00:00, all with an offset or all without."""
    kinds = pa.timestamp("us"), pa.timestamp("us", "UTC")
    for kind in kinds:
        with suppress(pa.ArrowInvalid):
            return texts.cast(kind)
    row = max(next(row for row, text in enumerate(texts) if not _is_of(text, kind)) for kind in kinds)
    raise file.error(
        f"column {name!r} has {texts[row].as_py()!r}, and times are like 2026-01-31 12:00:00; if some have an offset, "
        "all must.",
        first_row + row,
    )


def _is_of(value: Any, kind: Any) -> bool:
    try:
        value.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _matrix(batch: Any, names: list[str], file: TableFile, first_row: int) -> Floats:
    """Columns as numbers, rows by columns, with NaN where a value is missing."""
    if not names:
        return np.zeros((batch.num_rows, 0))
    columns = []
    for name in names:
        column = batch.column(name)
        if column.type != NUMBER:
            try:
                column = _decoded(column).cast(NUMBER, safe=False)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise _not_a_number(column, name, file, first_row) from error
        columns.append(column)
    X: Floats = pa.RecordBatch.from_arrays(columns, names).to_tensor(null_to_nan=True).to_numpy()
    limit = LARGEST[np.dtype(np.float64)]
    if not (X.max() <= limit and X.min() >= -limit):
        bad = np.abs(X) > limit  # NaN is not
        if bad.any():
            row, j = (int(place) for place in np.argwhere(bad)[0])
            raise file.error(
                f"column {names[j]!r} has the value {X[row, j]:g}, which is too large; fix or rescale it.",
                first_row + row,
            )
    return X


def _not_a_number(column: Any, name: str, file: TableFile, first_row: int) -> SourceError:
    for row, value in enumerate(column):
        try:
            value.cast(NUMBER, safe=False)
        except pa.ArrowInvalid:
            fault = f"column {name!r} has {value.as_py()!r} where a number belongs; {REMEDY}"
            return file.error(fault, first_row + row)
        except pa.ArrowNotImplementedError:
            break
    return file.error(f"column {name!r} has values of the type {column.type} where numbers belong.", first_row)


def _decoded(column: Any) -> Any:
    """A column of values, if it is one of places in a dictionary."""
    if not pa.types.is_dictionary(column.type):
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    values = [_plain(chunk.dictionary).take(chunk.indices) for chunk in chunks]
    return pa.chunked_array(values) if isinstance(column, pa.ChunkedArray) else values[0]


def _plain(values: Any) -> Any:
    """Values of a dictionary, for which more is implemented if they are plain texts."""
    return values.cast(pa.string()) if _is_text(values.type) else values


def _texts(column: Any, name: str, where: str) -> Any:
    """A column as texts."""
    try:
        return _decoded(column).cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SourceError(f"{where}: column {name!r} has values of the type {column.type}, not texts.") from error


def _places(texts: Any, levels: tuple[str, ...]) -> NDArray[np.int32]:
    """The number of each text among the levels; -1 if it is not among them, -2 if there is none."""
    found = pc.fill_null(pc.index_in(texts, pa.array(levels, pa.string()), skip_nulls=True), -1)
    places: NDArray[np.int32] = pc.if_else(pc.is_null(texts), pa.scalar(-2, pa.int32()), found).to_numpy()
    return places


def _one_hot(places: NDArray[np.int32], out: Floats) -> int:
    """Ones where a text is one of the levels, NaN where there is none; how many texts are not among them."""
    known = np.flatnonzero(places >= 0)
    out[known, places[known]] = 1.0
    out[places == -2] = np.nan
    return int((places == -1).sum())


def _readable(sample: Any, where: str) -> Any:
    """The sample, if its texts are texts."""
    for name in sample.column_names:
        try:
            sample.column(name).validate(full=True)
        except pa.ArrowInvalid as error:
            raise SourceError(f"{where}: column {name!r} is not text in UTF-8; convert it first.") from error
    return sample


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _kind(sample: Any, name: str, source: Source) -> str:
    kind, where = sample.schema.field(name).type, source.name
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return "truth"
    if is_numeric(kind) or pa.types.is_null(kind):
        return "number"
    if _is_text(kind):
        return _kind_of_texts(sample.column(name), name, source)
    if pa.types.is_binary(kind):
        raise SourceError(f"{where}: column {name!r} is not text in UTF-8; convert it first.")
    raise SourceError(f"{where}: column {name!r} has values of the type {kind}; leave it out with --drop {name}.")


def _kind_of_texts(column: Any, name: str, source: Source) -> str:
    """Numbers if most texts are numbers, so that the others are mistakes, which are reported where they stand."""
    texts = _decoded(column).drop_null().slice(0, 10_000).to_pylist()
    n_numbers = sum(is_number(text.replace(source.decimal, ".")) for text in texts)
    if texts and 2 * n_numbers >= len(texts):
        return "number"
    commas = [text for text in texts if DECIMAL_COMMA.fullmatch(text)]
    if commas and 2 * (n_numbers + len(commas)) >= len(texts):
        raise SourceError(
            f"{source.name}: column {name!r} has numbers with decimal commas, such as {commas[0]!r}; read CSV with "
            f"--decimal ',', write them with points elsewhere, or make it a category with --categories {name}."
        )
    return "text"


def _levels(sample: Any, name: str, given: Sequence[str] | None, source: Source) -> tuple[str, ...]:
    where = source.name
    if given is not None:
        if len(set(given)) != len(given) or not given:
            raise SourceError(f"--categories {name}: each level is needed once, got {list(given)}.")
        return tuple(given)
    found = source.levels.get(name) or sorted(set(_texts(sample.column(name), name, where).drop_null().to_pylist()))
    if len(found) > MOST_LEVELS:
        raise SourceError(
            f"{where}: column {name!r} has {len(found)} different texts in its first rows; leave it out with "
            f"--drop {name}, or name the levels that count with --categories {name}=LEVEL,LEVEL."
        )
    if not found:
        raise SourceError(
            f"{where}: column {name!r} has no texts in its first rows; give --categories {name}=LEVEL,LEVEL."
        )
    return tuple(found)
