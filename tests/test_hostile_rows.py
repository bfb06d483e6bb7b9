"""Rows that are not what they seem: deep JSON, NaN, dictionaries, directories with values, decimal commas, UTF-16."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import thresher
from thresher import Entries, Gram, LowRankRegressor, OnlineHardThresholding, ReducedRankRegressor, SparseRegressor
from thresher.cli import main
from thresher.io.sources.batches import Batches
from thresher.io.sources.columns import Columns
from thresher.io.sources.source import open_source
from thresher.io.sources.source_error import SourceError


def read(path, missing="error", **choose):
    """Names, and all numbers, the response last."""
    source = open_source(str(path), decimal=choose.pop("decimal", "."), delimiter=choose.pop("delimiter", None))
    columns = Columns.choose(source, "y", **choose)
    return columns.names, np.concatenate([np.c_[b.X, b.y] for b in Batches(source, columns, missing)]).tolist()


# -- JSON ------------------------------------------------------------------------------------------------------------


DEEP = b'{"x": %s1%s, "y": 2}' % (b"[" * 10_000, b"]" * 10_000)


def test_json_that_is_nested_too_deeply_is_refused(tmp_path):
    """In a process of its own, which would die otherwise."""
    path, message = tmp_path / "t.jsonl", "t.jsonl, row 2: has objects or lists in each other more than 64 deep."
    path.write_bytes(b'{"x": 1, "y": 2}\n\n' + DEEP + b"\n")
    command = [sys.executable, "-m", "thresher", "fit", str(path), "-t", "y", "--drop", "x"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 3
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    path.write_bytes(b'{"x": 1, "y": 2}\n' + b'{"x":' * 10_000)
    with pytest.raises(SourceError, match=message):
        read(path)


def test_brackets_in_texts_are_not_nested(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"k": k, "y": 1} for k in ("[" * 500, '"' + "{[" * 500, "\\" + "]}" * 500, "a")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    names, _ = read(path)
    assert sorted(names) == sorted(f"k={row['k']}" for row in rows)
    path.write_text('{"k": "]]]]' + "]" * 500 + '", "v": ' + "[" * 200 + "]" * 200 + ', "y": 1}\n')
    with pytest.raises(SourceError, match="more than 64 deep"):
        read(path, drop=["v"])
    path.write_text('{"v": ' + "[" * 63 + "]" * 63 + ', "x": 3, "y": 1}\n')
    assert read(path, drop=["v"]) == (["x"], [[3, 1]])


def test_a_byte_order_mark_before_json(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(b'\xef\xbb\xbf{"x": 1, "y": 2}\n{"x": 3, "y": 4}\n')
    assert read(tmp_path / "t.jsonl") == (["x"], [[1, 2], [3, 4]])


@pytest.mark.parametrize("between", ["", " ", "\r", "\t "])
def test_two_objects_on_a_line_are_refused(tmp_path, between):
    good, path = '{"x": 1, "y": 2}', tmp_path / "t.jsonl"
    path.write_text(f"{good}\n\n{good}{between}{good}\n{good}\n")
    with pytest.raises(SourceError, match=r"t\.jsonl, row 2: is not one object; each line needs one"):
        read(path)
    path.write_text('{"x": 1, "y":\n{"z": 2}}\n')  # one object on two lines
    with pytest.raises(SourceError, match="row 1: is not one object"):
        read(path)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path, name, encoding):
    text = "x,y\n1,2\n" if name == "t.csv" else '{"x": 1, "y": 2}\n'
    (tmp_path / name).write_bytes(text.encode(encoding))
    order = "BE" if encoding.endswith("be") else "LE"
    with pytest.raises(SourceError, match=rf"{name} is UTF-16, not UTF-8; convert it, as in: iconv -f UTF-16{order}"):
        read(tmp_path / name)
    (tmp_path / name).write_bytes(text.encode().replace(b"2", b"\0"))
    with pytest.raises(SourceError, match=r"has zero bytes, so it is not text"):
        read(tmp_path / name)


# -- missing values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.npy", "t.npz", "t.parquet", "polars.parquet", "t.arrow"])
def test_nan_is_a_missing_value_from_the_first_row_on(tmp_path, name):
    values = np.array([[np.nan, 1.0, 1.0], [2.0, 2.0, 2.0], [6.0, np.nan, 3.0], [np.nan, 6.0, 4.0]])
    path, columns = tmp_path / name, dict(zip("aby", values.T, strict=True))
    match name:
        case "t.npy":
            np.save(path, np.rec.fromarrays(values.T, names="a,b,y"))
        case "t.npz":
            np.savez(path, X=values[:, :2], y=values[:, 2])
        case "t.parquet":
            pq.write_table(pa.table(columns), path)
        case "polars.parquet":
            pl.DataFrame(columns).write_parquet(path)
        case "t.arrow":
            with pa.ipc.new_file(path, pa.table(columns).schema) as writer:
                writer.write_table(pa.table(columns))
    _, found = read(path, "mean")
    np.testing.assert_allclose(found, [[4, 1, 1], [2, 2, 2], [6, 3, 3], [4, 6, 4]])


def test_masked_values_are_refused():
    X = np.random.default_rng(0).standard_normal((30, 4))
    y = X[:, 0]
    masked, y_masked = np.ma.array(X, mask=X > 2.0), np.ma.array(y, mask=y > 1.0)
    assert np.ma.is_masked(masked)
    assert np.ma.is_masked(y_masked)
    fitted = [SparseRegressor(2), OnlineHardThresholding(2), ReducedRankRegressor()]
    for learn in (*(one.partial_fit for one in fitted), SparseRegressor().fit, Gram(4).absorb):
        with pytest.raises(ValueError, match="X has masked values; drop such rows, or fill"):
            learn(masked, y)
        with pytest.raises(ValueError, match="y has masked values"):
            learn(X, y_masked)
        with pytest.raises(ValueError, match="sample_weight has masked values"):
            learn(X, y, np.ma.array(np.ones(30), mask=y > 1.0))
        learn(np.ma.array(X), y)  # nothing is masked
    for one in fitted:
        with pytest.raises(ValueError, match="X has masked values"):
            one.predict(masked)
    with pytest.raises(ValueError, match="X has masked values"):
        LowRankRegressor(1).partial_fit(masked.reshape(30, 2, 2), y)
    with pytest.raises(ValueError, match="values has masked values"):
        Entries((3, 3)).absorb([0, 1], [1, 2], np.ma.array([1.0, 2.0], mask=[True, False]))


# -- columns ---------------------------------------------------------------------------------------------------------


def test_dictionaries_of_all_sorts(tmp_path):
    """Columns of places in a dictionary, as polars and pandas have them."""
    texts = pl.DataFrame({"k": ["b", "a", "b"], "y": [1.0, 2.0, 3.0]})
    for kind in (pl.Enum(["a", "b", "c"]), pl.Categorical):
        frame = texts.with_columns(pl.col("k").cast(kind))
        frame.write_parquet(tmp_path / "t.parquet")
        frame.write_ipc(tmp_path / "t.arrow")
        for name in ("t.parquet", "t.arrow"):
            assert read(tmp_path / name) == (["k=a", "k=b"], [[0, 1, 1], [1, 0, 2], [0, 1, 3]])
    for values, names, X in (
        (pa.array([1.5, 2.5, 1.5]), ["k"], [[1.5], [2.5], [1.5]]),
        (pa.array(["7", "8", "7"]), ["k"], [[7], [8], [7]]),
        (pa.array([True, False, True]), ["k"], [[1], [0], [1]]),
        (pa.array(["u", "v", "u"], pa.string_view()), ["k=u", "k=v"], [[1, 0], [0, 1], [1, 0]]),
        (pa.array(["u", "v", "u"], pa.large_string()), ["k=u", "k=v"], [[1, 0], [0, 1], [1, 0]]),
    ):
        first = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), values[:2])
        other = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), values[1:])  # the same in another order
        table = pa.table({"k": pa.chunked_array([first, other]), "y": [1.0] * 6})
        with pa.ipc.new_stream(tmp_path / "t.arrows", table.schema) as writer:
            writer.write_table(table)
        assert read(tmp_path / "t.arrows") == (names, [[*row, 1] for row in X + X])


def test_directories_with_values_are_columns(tmp_path):
    table = pa.table(
        {
            "x": np.arange(8.0),
            "y": np.ones(8),
            "year": [2020, 2020, 2021, 2021] * 2,
            "city": ["Bern", "St. Gallen", "Oslo/N", "10"] * 2,
        }
    )
    how = pa.dataset.partitioning(pa.schema([("year", pa.int64()), ("city", pa.string())]), flavor="hive")
    pa.dataset.write_dataset(table, tmp_path / "d", format="parquet", partitioning=how)
    expected = {
        (x, year, *(float(city == level) for level in ("10", "Bern", "Oslo/N", "St. Gallen")), 1.0)
        for x, year, city in zip(
            table["x"].to_pylist(), table["year"].to_pylist(), table["city"].to_pylist(), strict=True
        )
    }
    for where in (tmp_path / "d", tmp_path / "d" / "*" / "*" / "*.parquet", tmp_path / "d" / "**" / "*.parquet"):
        names, rows = read(where)
        assert names == ["x", "year", "city=10", "city=Bern", "city=Oslo/N", "city=St. Gallen"]
        assert set(map(tuple, rows)) == expected
    assert read(tmp_path / "d", categories={"year": None}, features=["year"])[0] == ["year=2020", "year=2021"]
    (one,) = (tmp_path / "d" / "year=2020" / "city=Bern").iterdir()
    assert read(one)[0] == ["x"]  # a file alone has no directories
    os.makedirs(tmp_path / "d" / "year=2020" / "city=__HIVE_DEFAULT_PARTITION__")
    shutil.copy(one, tmp_path / "d" / "year=2020" / "city=__HIVE_DEFAULT_PARTITION__")
    with pytest.raises(SourceError, match="column 'city' has no value"):
        read(tmp_path / "d")
    shutil.copy(one, tmp_path / "d" / "year=2020")
    with pytest.raises(SourceError, match=r"column 'city' in addition|lacks the column 'city'"):
        read(tmp_path / "d")


def test_directories_with_values_predict_too(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for k in range(3):
        os.makedirs(f"d/k={k}")
        x = rng.standard_normal(50)
        text = "".join(f"{a},{a + 5.0 * k}\n" for a in x)
        Path(f"d/k={k}/a.csv").write_text("x,y\n" + text)
    assert main(["fit", "d", "-t", "y", "-m", "m", "--quiet"]) == 0
    assert sorted(thresher.load("m").get_feature_names_out()) == ["k", "x"]
    assert main(["predict", "m", "d", "-o", "p.csv", "--quiet"]) == 0
    predicted = np.loadtxt("p.csv", skiprows=1)
    y = np.concatenate([np.loadtxt(f"d/k={k}/a.csv", delimiter=",", skiprows=1)[:, 1] for k in range(3)])
    np.testing.assert_allclose(predicted, y, atol=1e-9)


def test_decimal_commas_are_noticed_and_read(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text('x;"y"\n1,5;2\n-2,25e1;3\n7;4,5\n')
    with pytest.raises(
        SourceError, match=r"column 'x' has numbers with decimal commas, such as '1,5'; .*--decimal ','"
    ):
        read("t.csv", delimiter=";")
    assert read("t.csv", delimiter=";", decimal=",") == (["x"], [[1.5, 2], [-22.5, 3], [7, 4.5]])
    assert read("t.csv", delimiter=";", decimal=",", categories={"x": None})[0] == ["x=-2,25e1", "x=1,5", "x=7"]
    fit = ["fit", "t.csv", "-t", "y", "--delimiter", ";", "-m", "m"]
    assert main(fit) == 3
    assert "decimal commas" in capfd.readouterr().err
    assert main([*fit, "--decimal", ","]) == 0
    assert thresher.load("m").summary_.mean_y == pytest.approx((2 + 3 + 4.5) / 3)
    Path("t.csv").write_text("x;y\n1,5;2\noops;3\n7,5;4\n")
    with pytest.raises(SourceError, match=r"row 2: column 'x' has 'oops' where a number belongs"):
        read("t.csv", delimiter=";", decimal=",")
    for options, message in (
        (["--decimal", "x"], "--decimal x: use"),
        (["--delimiter", ",", "--decimal", ","], "another"),
    ):
        assert main([*fit[:4], *options]) == 2
        assert message in capfd.readouterr().err


# -- the same rows twice ---------------------------------------------------------------------------------------------


def test_a_shard_is_not_counted_twice(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for k in range(3):
        Path(f"{k}.csv").write_text("x,y\n" + "".join(f"{i},{i * k}\n" for i in range(20)))
        assert main(["accumulate", f"{k}.csv", "-t", "y", "-o", f"s{k}", "--quiet"]) == 0
    shutil.copy("s1", "copy")
    shutil.copy("1.csv", "again.csv")
    assert main(["accumulate", "again.csv", "-t", "y", "-o", "again", "--quiet"]) == 0
    assert main(["merge", "s0", "s1", "-o", "both"]) == 0
    capfd.readouterr()
    for arguments, message in (
        (["s0", "s1", "copy"], "copy has the same rows as s1"),
        (["s1", "s0", "again"], "again has the same rows as s1"),
        (["both", "s2", "s1"], "s1 has the same rows as both"),
        (["s0", "s0"], "s0 has the same rows as s0"),
    ):
        assert main(["merge", *arguments, "-o", "all"]) == 2
        assert message in capfd.readouterr().err
        assert not Path("all").exists()
    assert main(["merge", "both", "s2", "-o", "three"]) == 0
    assert thresher.load("three").n_samples == 60
    assert main(["merge", "three", "copy", "-o", "all", "--allow-duplicates"]) == 0
    assert thresher.load("all").n_samples == 80


# -- names -----------------------------------------------------------------------------------------------------------

ODD = ["$a$", "$\\frac{", "b\x1b[31m\x07", "c\u202e\u2028d", "e\nf", "\\$", "_g"]


def test_odd_names_reach_neither_the_terminal_nor_the_parser_of_formulas(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((400, len(ODD)))
    y = X @ np.arange(1.0, len(ODD) + 1.0)
    table = pa.table([*X.T, y], [*ODD, "y\x1b]0;"])
    pq.write_table(table, "t.parquet")
    assert main(["fit", "t.parquet", "-t", "y\x1b]0;", "-m", "m"]) == 0
    assert main(["show", "m", "--html", "m.html", "--plot", "m.svg"]) == 0
    assert main(["diagnose", "m"]) == 0
    assert main(["fit", "t.parquet", "-t", "\x1bno"]) == 3
    assert main(["fit", "t.parquet", "-t", "$a$", "--drop", "\x1bno"]) == 3
    out, err = capfd.readouterr()
    assert not {character for character in out + err if ord(character) < 32 or character in "\u202e\u2028"} - {"\n"}
    assert "b\\x1b[31m\\x07" in out
    assert "e\\nf" in out
    page = Path("m.html").read_text()
    assert "<th>$a$</th>" in page
    assert "\x1b" not in page
    drawing = Path("m.svg").read_bytes()
    assert ElementTree.fromstring(drawing).tag.endswith("svg")


# -- what the fuzzer found -------------------------------------------------------------------------------------------


def test_damaged_headers_of_numpy_files_are_told_in_a_sentence(tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.rec.fromarrays(np.ones((2, 3)), names="a,y"))
    content = path.read_bytes()
    for damage in (
        (b"{'descr'", b"{'descr("),
        (b"'a'", b"'a\0"),
        (b"False", b"Fal(("),
        (b"(3,)", b"(3(("),
        (b"<f8", b"<f\xff"),
    ):
        assert damage[0] in content
        path.write_bytes(content.replace(*damage))
        with pytest.raises(SourceError, match=r"t\.npy is not a whole NumPy file"):
            read(path)


def test_a_damaged_page_of_parquet_is_noticed(tmp_path):
    path, marked = tmp_path / "t.parquet", 1234.5678
    table = pa.table({"x": [marked, 2.0, 3.0], "y": [1.0, 2.0, 3.0]})
    pq.write_table(
        table, path, write_page_checksum=True, compression="none", use_dictionary=False, write_statistics=False
    )
    content = path.read_bytes()
    there = np.array([marked]).tobytes()
    assert content.count(there) == 1
    path.write_bytes(content.replace(there, np.array([marked + 1.0]).tobytes()))
    with pytest.raises(SourceError, match=r"t\.parquet, row 1: cannot be read .*(checksum|CRC)"):
        read(path)
    path.write_bytes(content.replace(content[4:12], b"\xff" * 8))  # the header of a page
    with pytest.raises(SourceError, match=r"t\.parquet, row 1: cannot be read") as error:
        read(path)
    assert "\n" not in str(error.value)


def test_the_first_rows_do_not_end_with_a_row_group(tmp_path):
    """Dictionaries come row group by row group."""
    k = pa.array(["a", "b", "c", "d", None]).dictionary_encode()
    table = pa.table({"k": k, "x": [1.0, 3.0, 5.0, None, 2.0], "y": np.ones(5)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    names, rows = read(tmp_path / "t.parquet", "mean")
    assert names == ["k=a", "k=b", "k=c", "k=d", "x"]
    assert rows[3] == [0, 0, 0, 1, (1 + 3 + 5 + 2) / 4, 1]
    assert rows[4] == [0.25, 0.25, 0.25, 0.25, 2, 1]


def test_odd_bytes_in_text_files(tmp_path):
    csv, jsonl = tmp_path / "t.csv", tmp_path / "t.jsonl"
    good = b'{"k": "a", "y": 1}\n'
    for path, content, message in (
        (csv, b"x,y\n\xef\xbb\xbf1,2\n", r"row 1: a byte order mark is no part of a field"),
        (csv, b'""x"y,y\n1,2\n', "first line that cannot be read"),
        (jsonl, b'{"k\xff": "a", "y": 1}\n', "row 1: is not text in UTF-8"),
        (jsonl, good + b'{"k": "\xff", "y": 1}\n', "row 2: is not text in UTF-8"),
        (jsonl, good * 3 + b'{"k": "\xff", "y": 1}', "row 4: is not text in UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=message):
            read(path, "skip")


def test_numbers_are_what_every_reader_takes_for_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("k,y\n1_000,1\n2_000,2\n")
    assert read(tmp_path / "t.csv")[0] == ["k=1_000", "k=2_000"]


def test_a_header_that_promises_more_than_the_file_has(tmp_path):
    """Before a list of a billion names is made."""
    path = tmp_path / "t.npy"
    np.save(path, np.ones((2, 2)))
    content = path.read_bytes()
    assert content.count(b"(2, 2), }         ") == 1
    path.write_bytes(content.replace(b"(2, 2), }         ", b"(2, 1000000000), }"))
    with pytest.raises(SourceError, match=r"is not a whole NumPy file: X has the shape \(2, 1000000000\)"):
        open_source(str(path))
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((1, 100_000)), y=np.ones(1))  # a small file of many numbers
    assert len(open_source(str(tmp_path / "t.npz")).columns) == 100_001
