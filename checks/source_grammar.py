"""Files with rows, drawn from a grammar: good ones, odd ones and damaged ones, and what a simple reader makes of them.

A case is a file, how it is to be read, and what is in it by a reader that knows nothing of pyarrow: Python's csv and
json, numpy.load, and polars for Parquet.
"""

import contextlib
import csv
import gzip
import io
import json
import random
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

# What is a missing value in CSV, from pyarrow's documentation.
NULLS = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA"}
NULLS |= {"NULL", "NaN", "n/a", "nan", "null"}
TRUE, FALSE = {"1", "true", "True", "TRUE"}, {"0", "false", "False", "FALSE"}
NAMES = ["a", "b b", "c,d", 'e"f', "gé", "$h$", "i=j", "k\tl", "0", "_m"]
TEXTS = ["red", "blue", "green", "o'brien", "ü", "a b", "x=y", 'q"r', "p,q", "[{", "\\n", "日本"]
ODD_NUMBERS = ["1_000", "0x10", "1e999", "-1e999", "inf", "-Infinity", "١٢", "--1", "1.2.3", "1,5", "1e", ".", "+"]
ODD_NUMBERS += ["1e200", "1e-400", "0" * 400 + "1", "1" * 400, "4.9e-324", "1.7976931348623157e308", "+5", "5.", ".5"]
ODD_CELLS = [*ODD_NUMBERS, *sorted(NULLS), *TEXTS, "a\nb", " 3", "3 ", "1 2", "1E5", "2020-01-01"]
BYTES = [b"\0", b"\xff", b"\n", b"\r", b'"', b",", b";", b"\xef\xbb\xbf", b"{", b"}", b"[", b"\\", b" ", b"\t", b"9"]


@dataclass
class Case:
    """A file and what is in it.

    Attributes
    ----------
    name : str
        With the suffix that tells the format.
    content : bytes
    clean : bool
        Whether it must be read; what is odd may be refused instead.
    expected : list of (names, rows)
        What readers may find, each a list of names and of rows (dictionaries); none if it cannot be read.
    how : dict
        Keywords of open_source.
    target, missing : str
    sample : int
        How many of the rows are the first ones, which determine levels and means.
    """

    name: str
    content: bytes
    clean: bool
    expected: list[tuple[list[str], list[dict[str, Any]]]]
    how: dict[str, Any] = field(default_factory=dict)
    target: str = "y"
    missing: str = "error"
    sample: int = 10**9


def draw(seed: int) -> Case:
    """The case of this number."""
    rng = random.Random(seed)
    kind = rng.choices([draw_csv, draw_json, draw_numpy, draw_parquet], [45, 25, 15, 15])[0]
    case = kind(rng)
    case.missing = rng.choice(["error", "skip", "mean"])
    return case


def number(rng):
    """A number as anybody writes it."""
    match rng.randrange(5):
        case 0:
            return str(rng.randrange(-1000, 1000))
        case 1:
            return repr(rng.gauss(0.0, 1.0))
        case 2:
            return repr(rng.uniform(-1.0, 1.0) * 10.0 ** rng.randrange(-30, 30))
        case 3:
            return f"{rng.uniform(-1e6, 1e6):.{rng.randrange(0, 25)}f}"
    return f"{rng.uniform(-10, 10):.{rng.randrange(0, 20)}e}"


def table(rng):
    """Names, the kind of each column, and cells as texts; an empty text is a missing value."""
    names = rng.sample(NAMES, rng.randint(1, 4))
    names.insert(rng.randint(0, len(names)), "y")
    kinds = {name: rng.choices(["number", "text", "truth"], [6, 2, 1])[0] for name in names}
    kinds["y"] = "number"
    gaps = rng.choice([0.0, 0.0, 0.1])
    rows = []
    for _ in range(rng.choice([1, 2, 3, 5, 9, 30])):
        row = {}
        for name, kind in kinds.items():
            text = {"number": number, "text": lambda r: r.choice(TEXTS), "truth": lambda r: r.choice(["true", "false"])}
            row[name] = "" if rng.random() < gaps else text[kind](rng)
        rows.append(row)
    return names, kinds, rows


def damage(rng, content):
    """Some bytes changed, inserted, removed, or the end cut off."""
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(len(content) + 1)
        match rng.randrange(5):
            case 0:
                content[place:place] = rng.choice(BYTES)
            case 1:
                del content[place : place + rng.choice([1, 1, 2, 10])]
            case 2 if content:
                content[place % len(content)] = rng.randrange(256)
            case 3 if content:
                content[place % len(content)] ^= 1 << rng.randrange(8)
            case 4 if rng.random() < 0.3:
                del content[place:]
    return bytes(content)


# -- CSV -------------------------------------------------------------------------------------------------------------


def draw_csv(rng):
    """A CSV file, from what spreadsheets write to what goes wrong on the way."""
    names, _, rows = table(rng)
    delimiter, end = rng.choice(",,,;\t|"), rng.choice(["\n", "\n", "\r\n"])
    clean = rng.random() < 0.5

    def cell(text):
        if rng.random() < 0.1 or any(c in text for c in delimiter + '"\r\n'):
            return '"' + text.replace('"', '""') + '"'
        return text

    if not clean and rng.random() < 0.5:
        row = rng.choice(rows)
        row[rng.choice(names)] = rng.choice(
            [*ODD_NUMBERS, *ODD_NUMBERS, *NULLS, *TEXTS, "a\nb", " 3", "3 ", "2020-01-01"]
        )
    lines = [delimiter.join(map(cell, names)), *(delimiter.join(cell(row[name]) for name in names) for row in rows)]
    if rng.random() < 0.1:
        lines.insert(rng.randint(1, len(lines)), "")
    if not clean and rng.random() < 0.3:
        place = rng.randrange(len(lines))
        lines[place] = rng.choice(
            [lines[place] + delimiter, lines[place].replace(delimiter, "", 1), '"' + lines[place]]
        )
    text = end.join(lines) + (end if rng.random() < 0.8 else "")
    content = (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + text.encode()
    if not clean and rng.random() < 0.6:
        content = text.encode("utf-16-le") if rng.random() < 0.05 else damage(rng, content)
    name, how = "t.csv", {} if delimiter == "," else {"delimiter": delimiter}
    if delimiter == "\t" and rng.random() < 0.5:
        name, how = "t.tsv", {}
    packed = rng.random() < 0.1
    case = Case(name + ".gz" * packed, gzip.compress(content, 1) if packed else content, clean, [], how)
    with contextlib.suppress(ValueError):
        case.expected = [read_csv(content, delimiter, strict=False)]
        case.sample = len(read_csv(whole_lines(content), delimiter, strict=False)[1])
        case.expected = [read_csv(content, delimiter, strict=True)]
    return case


def read_csv(content, delimiter, strict):
    """Names and rows by Python's csv, line by line; ValueError if there is no telling.

    Not to be strict means that a text may follow a closing quote.
    """
    text = content.decode().removeprefix("\ufeff").lstrip("\r\n")
    first, _, rest = text.partition("\n")
    try:
        names = [name.strip() for name in next(csv.reader([first.rstrip("\r")], delimiter=delimiter, strict=True))]
        rows = [row for row in csv.reader(io.StringIO(rest, newline=""), delimiter=delimiter, strict=strict) if row]
    except (csv.Error, StopIteration) as error:
        raise ValueError(str(error)) from error
    if len(set(names)) < len(names) or any(len(row) != len(names) for row in rows):
        raise ValueError("fields")
    if any("\n" in cell for row in rows for cell in row):
        raise ValueError("one row on several lines")
    return names, [dict(zip(names, row, strict=True)) for row in rows]


def whole_lines(content):
    """All but a last line without its end, which is not among the first rows."""
    return content[: content.rfind(b"\n") + 1]


# -- JSON lines ------------------------------------------------------------------------------------------------------


def draw_json(rng):
    """JSON lines, with keys in any order, some of them absent."""
    names, kinds, rows = table(rng)
    clean = rng.random() < 0.5
    lines = []
    for row in rows:
        parts = []
        for name in rng.sample(names, len(names)) if rng.random() < 0.3 else names:
            text = row[name]
            if text == "":
                if rng.random() < 0.5:
                    parts.append(f"{json.dumps(name)}: null")
                continue
            value = json.dumps(text, ensure_ascii=rng.random() < 0.5) if kinds[name] == "text" else text
            parts.append(f"{json.dumps(name)}:{' ' * rng.randrange(2)}{value}")
        lines.append("{" + ", ".join(parts) + "}")
    if not clean:
        place = rng.randrange(len(lines))
        deep = rng.choice([10, 70, 3000])
        odd = ["null", "3", lines[place] * 2, lines[place] + ",", "[1]", lines[place].replace(":", ": NaN,", 1)]
        odd += [
            '{"z": ' + "[" * deep + "]" * deep + ', "y": 1}',
            '{"y": "x"}',
            '{"y": 1e999}',
            '{"y": 1, "y": 2}',
            "{}",
        ]
        odd += [lines[place].replace("}", f', "z": {rng.choice(ODD_NUMBERS)}}}', 1), '{"y": 12345678901234567890123}']
        if rng.random() < 0.6:
            lines[place] = rng.choice(odd)
    text = "\n".join(lines) + ("\n" if rng.random() < 0.8 else "")
    content = (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + text.encode()
    if not clean and rng.random() < 0.5:
        content = damage(rng, content)
    packed = rng.random() < 0.1
    name = rng.choice(["t.jsonl", "t.ndjson"])
    case = Case(name + ".gz" * packed, gzip.compress(content, 1) if packed else content, clean, [])
    with contextlib.suppress(ValueError, RecursionError):
        case.expected, case.sample = [read_json(content)], len(read_json(whole_lines(content))[1])
    return case


def read_json(content):
    """Names and rows by Python's json, line by line."""
    rows = []
    for line in content.decode().removeprefix("\ufeff").split("\n"):
        if line.strip(" \t\r"):
            pairs = json.loads(line, object_pairs_hook=tuple, parse_int=float)
            if line.strip(" \t\r")[0] != "{" or len(dict(pairs)) < len(pairs):
                raise ValueError("no object, or a key twice")
            rows.append(dict(pairs))
    return list(dict.fromkeys(name for row in rows for name in row)), rows


# -- NumPy -----------------------------------------------------------------------------------------------------------


def draw_numpy(rng):
    """A matrix, a structured array, or X and y."""
    n, d, clean = rng.choice([1, 2, 5, 40]), rng.randint(2, 5), rng.random() < 0.5
    kinds = ["<f8", "<f8", "<f4", ">f8", "<f2", "|i1", "<i4", "<u8", "|b1", ">i2"]
    random_numbers = np.random.default_rng(rng.randrange(2**32))
    values = random_numbers.standard_normal((n, d)) * rng.choice([1.0, 10.0])
    if rng.random() < 0.2:
        values[random_numbers.random((n, d)) < 0.1] = np.nan
    kind = rng.choice(kinds)
    with np.errstate(invalid="ignore"):
        X = values.astype(kind) if np.dtype(kind).kind == "f" else np.nan_to_num(values).astype(kind)
    file, named = io.BytesIO(), False
    match rng.randrange(3):
        case 0:
            name = "t.npy"
            order = np.asfortranarray(X) if not clean and rng.random() < 0.2 else X
            np.save(file, order)
        case 1:
            name, named = "t.npy", True
            columns = [f"c{j}" for j in range(d - 1)] + ["y"]
            np.save(file, np.rec.fromarrays(list(X.T), names=columns))
        case _:
            name = "t.npz"
            arrays = {"X": X[:, 1:], "y": X[:, 0]}
            (np.savez if rng.random() < 0.5 else np.savez_compressed)(file, **arrays)
    content = file.getvalue() if clean else damage(rng, file.getvalue())
    case = Case(name, content, clean, [], target="y" if name == "t.npz" or named else str(d - 1))
    with contextlib.suppress(Exception):  # whatever numpy says
        case.expected = [read_numpy(content, name)]
    return case


def read_numpy(content, name):
    """Names and rows by numpy.load."""
    parts = {"X": content}
    if name == "t.npz":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {part: archive.read(f"{part}.npy") for part in ("X", "y")}
    parts = {part: np.load(io.BytesIO(one), allow_pickle=False) for part, one in parts.items()}
    X = parts["X"]
    if X.dtype.names:
        columns = {field: X[field].astype(float) for field in X.dtype.names}
    else:
        columns = {str(j): X[:, j].astype(float) for j in range(X.shape[1])}
    columns |= {"y": parts["y"].astype(float)} if "y" in parts else {}
    rows = [dict(zip(columns, map(float, row), strict=True)) for row in zip(*columns.values(), strict=True)]
    return list(columns), rows


# -- Parquet ---------------------------------------------------------------------------------------------------------


def draw_parquet(rng):
    """A table of several types, written by pyarrow or polars."""
    names, kinds, rows = table(rng)
    clean = rng.random() < 0.5
    columns = {}
    for name in names:
        texts = [row[name] or None for row in rows]
        match kinds[name]:
            case "text":
                values = pa.array(texts, pa.string())
                columns[name] = values.dictionary_encode() if rng.random() < 0.3 else values
            case "truth":
                columns[name] = pa.array([None if text is None else text == "true" for text in texts], pa.bool_())
            case _:
                kind = rng.choice([pa.float64(), pa.float64(), pa.float32(), pa.int32(), pa.uint8(), pa.int64()])
                numbers = [None if text is None else float(text) for text in texts]
                if not pa.types.is_floating(kind):
                    numbers = [None if value is None else int(abs(value) % 200) for value in numbers]
                columns[name] = pa.array(numbers, kind)
                if pa.types.is_floating(kind) and rng.random() < 0.1:
                    columns[name] = pa.array([float("nan") if value is None else value for value in numbers], kind)
    whole = pa.table(columns)
    file = io.BytesIO()
    if rng.random() < (0.3 if clean else 0.03):
        pl.from_arrow(whole).write_parquet(file)
    else:
        version, page = rng.choice(["1.0", "2.4", "2.6"]), rng.choice(["1.0", "2.0"])
        packing = rng.choice(["none", "snappy", "zstd", "gzip"])
        pq.write_table(
            whole, file, row_group_size=rng.choice([1, 3, 100]), version=version, data_page_version=page,
            compression=packing, write_page_checksum=True, use_dictionary=rng.random() < 0.5,
        )  # fmt: skip
    expected = [(names, [{name: _plain(value) for name, value in row.items()} for row in whole.to_pylist()])]
    content = file.getvalue()
    return Case("t.parquet", content if clean else damage(rng, content), clean, expected)


READ_PARQUET = """
import json, sys
import polars
frame = polars.read_parquet(sys.argv[1])
kinds = (bool, int, float, str, type(None))
rows = [{name: value if isinstance(value, kinds) else [] for name, value in row.items()} for row in frame.to_dicts()]
print(json.dumps([frame.columns, rows]))
"""


def read_parquet(path):
    """Names and rows by polars, if it can read them; in a process of its own, which may die of it."""
    command = [sys.executable, "-c", READ_PARQUET, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    if done.returncode:
        return []
    names, rows = json.loads(done.stdout)
    return [(names, [{name: _plain(value) for name, value in row.items()} for row in rows])]


def _plain(value):
    """A number, a text, a truth value or None."""
    if isinstance(value, bool | str) or value is None:
        return value
    try:
        value = float(value)
    except (TypeError, ValueError, OverflowError):
        return object()  # something that equals nothing
    return None if value != value else value


def write(case, directory):
    """Put the case where it can be read."""
    path = Path(directory) / case.name
    path.write_bytes(case.content)
    return path
