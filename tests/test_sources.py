"""Rows of files and pipes: the same numbers whatever the format, and one sentence for whatever is wrong."""

import gzip
import io
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.io.sources.batches import Batches
from thresher.io.sources.columns import Columns
from thresher.io.sources.csv_file import CsvFile
from thresher.io.sources.lines import Lines
from thresher.io.sources.source import open_source
from thresher.io.sources.source_error import ChangedSourceError, SourceError

N = 7000
rng = np.random.default_rng(5)
NUMBERS = rng.standard_normal((N, 3))
COLOURS = np.array(["red", "green", "blue"])[rng.integers(0, 3, N)]
TABLE = pa.table(
    {
        "a": NUMBERS[:, 0],
        "n": pa.array(rng.integers(-5, 5, N)),
        "colour": COLOURS,
        "y": NUMBERS[:, 1],
        "sure": pa.array(rng.random(N) < 0.5),
        "w": np.abs(NUMBERS[:, 2]),
    }
)


def write(table, path):
    match "".join(path.suffixes):
        case ".csv":
            pa.csv.write_csv(table, path)
        case ".tsv":
            pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t"))
        case ".csv.gz":
            with gzip.open(path, "wb") as file:
                pa.csv.write_csv(table, file)
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        case ".ndjson.gz":
            path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in table.to_pylist()).encode()))
        case ".parquet":
            pq.write_table(table, path, row_group_size=1500)
        case ".arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, 999)
        case ".arrows":
            with pa.ipc.new_stream(path, table.schema) as writer:
                writer.write_table(table)
    return path


def everything(source, columns=None, **how):
    columns = columns or Columns.choose(source, "y", "w")
    batches = list(Batches(source, columns, **how))
    return (
        np.concatenate([batch.X for batch in batches]),
        np.concatenate([batch.y for batch in batches]),
        np.concatenate([batch.weights for batch in batches]),
        batches[-1].place,
    )


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.csv.gz", "t.jsonl", "t.ndjson.gz", "t.parquet", "t.arrow", "t.arrows"]
)
def test_every_format_gives_the_same_rows(tmp_path, name):
    source = open_source(str(write(TABLE, tmp_path / name)))
    assert source.columns == TABLE.column_names
    columns = Columns.choose(source, "y", "w")
    assert columns.names == ["a", "n", "colour=blue", "colour=green", "colour=red", "sure"]
    assert columns.groups == ["a", "n", "colour", "colour", "colour", "sure"]
    X, y, w, place = everything(source, columns)
    one_hot = COLOURS[:, None] == ["blue", "green", "red"]
    expected = np.column_stack([NUMBERS[:, 0], TABLE["n"].to_numpy(), one_hot, TABLE["sure"].to_numpy()])
    np.testing.assert_array_equal(X, expected.astype(float))
    np.testing.assert_array_equal(y, NUMBERS[:, 1])
    np.testing.assert_array_equal(w, np.abs(NUMBERS[:, 2]))
    assert place.n_rows == N
    assert X.flags.c_contiguous
    assert y.flags.c_contiguous


def test_numpy_files(tmp_path):
    X, y = NUMBERS[:, :2], NUMBERS[:, 2]
    np.save(tmp_path / "plain.npy", NUMBERS.astype(np.float32))
    np.savez_compressed(tmp_path / "both.npz", X=X, y=y)
    named = np.rec.fromarrays(NUMBERS.T, names="a,b,y")
    np.save(tmp_path / "named.npy", named)
    for name, target, columns in (
        ("plain.npy", "2", ["0", "1"]),
        ("both.npz", "y", ["0", "1"]),
        ("named.npy", "y", "ab"),
    ):
        source = open_source(str(tmp_path / name))
        assert source.n_rows == N
        chosen = Columns.choose(source, target)
        assert chosen.names == list(columns)
        batches = list(Batches(source, chosen))
        tolerance = 1e-6 if name == "plain.npy" else 0.0
        np.testing.assert_allclose(np.concatenate([batch.X for batch in batches]), X, rtol=tolerance)
        np.testing.assert_allclose(np.concatenate([batch.y for batch in batches]), y, rtol=tolerance)
        assert source.fraction == 1.0


def test_directories_and_patterns_are_one_table(tmp_path):
    for k in range(3):
        part = TABLE[k * 2000 : (k + 1) * 2000]
        write(part.select(part.column_names[::-1]) if k == 1 else part, tmp_path / f"part{k}.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".part.crc").write_text("")
    whole = everything(open_source(str(write(TABLE[:6000], tmp_path / "_whole.parquet"))))
    for where in (tmp_path, tmp_path / "part*.parquet"):
        source = open_source(str(where))
        assert source.n_rows == 6000
        for a, b in zip(everything(source), whole, strict=True):
            np.testing.assert_array_equal(a, b)


def test_only_the_columns_needed_are_read(tmp_path, monkeypatch):
    source = open_source(str(write(TABLE, tmp_path / "t.parquet")))
    columns = Columns.choose(source, "y", features=["n"])
    asked = []
    iter_batches = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda self, *a, **k: asked.append(k["columns"]) or iter_batches(self, *a, **k)
    )
    assert next(iter(Batches(source, columns))).X.shape[1] == 1
    assert asked == [["n", "y"]]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.arrow"])
def test_reading_begins_again_at_any_place(tmp_path, name):
    path = str(write(TABLE[:2500], tmp_path / name))
    source = open_source(path)
    columns = Columns.choose(source, "y")
    whole = list(Batches(source, columns, most_rows=300))
    rows = np.concatenate([batch.X for batch in whole])
    for batch in (whole[0], whole[3], whole[-1]):
        rest = list(Batches(open_source(path), columns, start=batch.place, most_rows=211))
        found = np.concatenate([np.zeros((0, rows.shape[1])), *(part.X for part in rest)])
        np.testing.assert_array_equal(found, rows[batch.place.n_rows :])
        if rest:
            assert rest[-1].place == whole[-1].place  # however they are cut
    # A place inside a batch, as it may come from a stream that was followed.
    inside = next(iter(Batches(open_source(path), columns, most_rows=17))).place
    assert next(iter(Batches(open_source(path), columns, start=inside))).X[0, 0] == rows[17, 0]


@pytest.mark.parametrize("column", ["a", "y", "colour", "w"])
def test_a_changed_row_is_noticed(tmp_path, column):
    path = tmp_path / "t.parquet"
    columns = Columns.choose(open_source(str(write(TABLE, path))), "y", "w")
    place = list(Batches(open_source(str(path)), columns))[1].place
    values = TABLE[column].to_pylist()
    values[30] = values[30] * (1.0 + 2e-16) if column != "colour" else "grey"
    assert values[30] != TABLE[column][30].as_py()
    changed = TABLE.set_column(TABLE.column_names.index(column), column, pa.array(values))
    with pytest.raises(ChangedSourceError, match=f"first {place.n_rows:,} rows are not those"):
        list(Batches(open_source(str(write(changed, path))), columns, start=place))
    with pytest.raises(ChangedSourceError, match=f"29 rows now, and {place.n_rows:,} were read"):
        list(Batches(open_source(str(write(TABLE[:29], path))), columns, start=place))
    grown = pa.concat_tables([TABLE, TABLE])
    rest = list(Batches(open_source(str(write(grown, path))), columns, start=place))
    assert sum(len(batch.y) for batch in rest) == 2 * N - place.n_rows


# -- missing values --------------------------------------------------------------------------------------------------

GAPS = "a,colour,y,w\n1,red,1,1\n,blue,2,1\n3,,3,1\n5,blue,,1\n9,grey,5,\n6,red,6,2\n"


def gaps(tmp_path, missing, **choose):
    path = tmp_path / "gaps.csv"
    path.write_text(GAPS)
    source = open_source(str(path))
    return next(iter(Batches(source, Columns.choose(source, "y", "w", **choose), missing)))


def test_missing_values_are_an_error_unless_told_otherwise(tmp_path):
    with pytest.raises(SourceError, match=r"gaps\.csv, row 2: column 'a' has no value; --missing skip"):
        gaps(tmp_path, "error")


def test_rows_with_missing_values_are_left_out(tmp_path):
    batch = gaps(tmp_path, "skip", categories={"colour": ("red", "blue")})
    np.testing.assert_array_equal(batch.X, [[1, 1, 0], [6, 1, 0]])
    assert batch.y.tolist() == [1, 6]
    assert (batch.n_skipped, batch.n_filled, batch.n_unknown) == (4, 0, 1)
    assert batch.kept.tolist() == [True, False, False, False, False, True]
    assert batch.place.n_rows == 6


def test_missing_values_become_the_means_of_the_first_rows(tmp_path):
    batch = gaps(tmp_path, "mean", categories={"colour": ("red", "blue")})
    mean_a, red, blue = (1 + 3 + 5 + 9 + 6) / 5, 2 / 5, 2 / 5
    np.testing.assert_allclose(batch.X, [[1, 1, 0], [mean_a, 0, 1], [3, red, blue], [6, 1, 0]])
    assert batch.y.tolist() == [1, 2, 3, 6]
    assert (batch.n_skipped, batch.n_filled) == (2, 3)


def test_a_column_without_any_value_has_no_mean(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n1,,2\n3,,4\n")
    source = open_source(str(path))
    with pytest.raises(SourceError, match="column 'b' has no value here and had none in the first rows"):
        list(Batches(source, Columns.choose(source, "y"), "mean"))


def test_unknown_levels_are_zeros_and_counted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("k,y\na,1\nb,2\nzz,3\n")
    source = open_source(str(path))
    batch = next(iter(Batches(source, Columns.choose(source, "y", categories={"k": ("b", "a")}))))
    assert batch.names == ["k=b", "k=a"]
    assert batch.X.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert batch.n_unknown == 1


def test_numbers_can_be_categories(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("zip,y\n007,1\n12,2\n007,3\n")
    source = open_source(str(path))
    batch = next(iter(Batches(source, Columns.choose(source, "y", categories={"zip": None}))))
    assert batch.names == ["zip=007", "zip=12"]


# -- what is wrong ---------------------------------------------------------------------------------------------------

BAD = {
    "x,y\n1,2\n3\n": r"t\.csv, row 2: too few fields, 1 instead of 2",
    "x,y\n1,2\n3,4,5\n": r"t\.csv, row 2: too many fields, 3 instead of 2",
    "x,y\n1,2\n3,4\nabc,5\n": r"t\.csv, row 3: column 'x' has 'abc' where a number belongs; .*--drop",
    "x,y\n1,2\n3,oops\n4,5\n": r"t\.csv, row 2: column 'y' has 'oops' where a number belongs",
    "x,y\n1,2\ninf,3\n": r"t\.csv, row 2: column 'x' has the value inf",
    "x,y\n1,2\n3,1e200\n": r"t\.csv, row 2: column 'y' has the value 1e\+200",
    "x,z\n1,2\n": r"t\.csv has no column 'y' for --target; there are 'x', 'z'",
    "x,yy\n1,2\n": r"did you mean 'yy'\?",
    "x,y,x\n1,2,3\n": r"more than one column named 'x'",
    "": r"t\.csv is empty",
    "\n\n": r"t\.csv is empty",
    "x,y\n": r"t\.csv has no rows",
    "1,2\n3,4\n": r"numbers in its first line instead of names; use --no-header",
    "y\n1\n": r"no columns left to explain 'y'",
    "a,y,z\n1,2,3\n1,2,3\n1,2,oops\n": r"t\.csv, row 3: column 'z' has 'oops' where a number belongs",
    "a,y\r1,2\r3,4\r": r"t\.csv has a first line that cannot be read",
    'x,y\n"1\n",2\n': r"row 1: a quoted field continues on the next line",
    "x,y\na,b\nc,d\n": r"column 'y' has texts",
    "t,y\n2020-01-01,1\n2020-01-02,2\n": r"column 't' has values of the type date32.*--drop t",
    "name,y\n" + "".join(f"p{i},1\n" for i in range(300)): r"column 'name' has 300 different texts.*--drop name",
}


@pytest.mark.parametrize("content", list(BAD))
def test_bad_csv_is_told_in_a_sentence(tmp_path, content):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(SourceError, match=BAD[content]) as error:
        read_all(tmp_path / "t.csv")
    assert "\n" not in str(error.value)


def test_rows_are_counted_across_blocks(tmp_path):
    lines = [f"{i},{i}" for i in range(100_000)]
    lines[88_887] = "1,2,3"
    text = "x,y\n" + "\n".join(lines)
    (tmp_path / "t.csv").write_text(text)
    file = CsvFile(tmp_path / "t.csv", "t.csv")
    file._lines._block_size = 100_000
    tables = file.tables({"x": "number"})
    before = [next(tables).num_rows for _ in range(5)]
    assert 30_000 < sum(before) < 88_888
    with pytest.raises(SourceError, match=r"t\.csv, row 88888: too many fields"):
        list(tables)


def test_bad_json_is_told_in_a_sentence(tmp_path):
    path = tmp_path / "t.jsonl"
    for content, message in (
        (
            '{"x": 1, "y": 2}\n{"x": "abc", "y": 3}\n',
            r"t\.jsonl, row 2: column 'x' has a string where a number belongs",
        ),
        ('{"x": 1, "y": 2}\n{"x": 1, "y"\n', r"t\.jsonl, row 2: "),
        ('{"x": 1, "x": 2}\n', r"t\.jsonl, row 1: .*twice"),
        ('{"x": [1], "y": 2}\n', r"column 'x' has values of the type list"),
        ("\n", r"t\.jsonl is empty"),
    ):
        path.write_text(content)
        with pytest.raises(SourceError, match=message):
            read_all(path)
    path.write_text('{"x": 1, "y": 2}\n{"y": 3, "new": 4}\n')
    source = open_source(str(path))
    with pytest.raises(SourceError, match="row 2: column 'x' has no value"):
        list(Batches(source, Columns.choose(source, "y", drop=["new"])))


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet", "t.arrow", "t.arrows", "t.npy", "t.npz"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_named(tmp_path, name, share):
    path = tmp_path / name
    if name == "t.npy":
        np.save(path, NUMBERS)
    elif name == "t.npz":
        np.savez(path, X=NUMBERS, y=NUMBERS[:, 0])
    else:
        write(TABLE, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(SourceError, match=rf"{name}.*(not a whole|is empty|cannot be read|ends here|damaged|no rows)"):
        read_all(path, "2" if name == "t.npy" else "y")


def test_files_that_do_not_go_together(tmp_path):
    write(TABLE, tmp_path / "a.parquet")
    write(TABLE.drop_columns(["n"]), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"b\.parquet lacks the column 'n', compared with .*a\.parquet"):
        open_source(str(tmp_path))
    write(TABLE.append_column("more", TABLE["n"]), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"b\.parquet has the column 'more' in addition"):
        open_source(str(tmp_path))
    write(TABLE, tmp_path / "c.csv")
    with pytest.raises(SourceError, match="files of different kinds"):
        open_source(str(tmp_path))


def test_sources_that_are_not_there(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "what.is").write_text("this")
    for where, message in (
        ("nothing.csv", "does not exist, and no file matches"),
        ("empty", "has no files with rows"),
        ("what.is", "could be anything; give --format"),
    ):
        with pytest.raises(SourceError, match=message):
            open_source(str(tmp_path / where))
    with pytest.raises(SourceError, match="cannot be followed"):
        open_source(str(write(TABLE, tmp_path / "t.parquet")), follow=True)
    with pytest.raises(SourceError, match="cannot be read from the standard input"):
        open_source("-", format="parquet")
    with pytest.raises(SourceError, match="no format 'xls'"):
        open_source("-", format="xls")


@pytest.mark.parametrize("columns", [None, ["z"]])
def test_the_column_named_is_the_one_that_is_wrong(tmp_path, columns):
    (tmp_path / "t.csv").write_text("a,y,z\n1,2,3\n1,2,3\n1,2,oops\n")
    with pytest.raises(SourceError, match=r"row 3: column 'z' has 'oops'"):
        read_all(tmp_path / "t.csv", features=columns)


def test_long_lines_and_odd_quotes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,text,y\n" + "1," + "x" * 3_000_000 + ",2\n" + '3,5",4\n5,"a ""b"" c",6\n')
    batches = read_all(path, drop=["text"])
    assert np.concatenate([np.c_[batch.X, batch.y] for batch in batches]).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_json_lines_that_are_not_objects(tmp_path):
    """On some of them pyarrow would crash."""
    path = tmp_path / "t.jsonl"
    for line in ("null", "3", "[1, 2]", '"a"'):
        for before in ("", '{"x": 1, "y": 2}\n\n'):
            path.write_text(f"{before}{line}\n{line}\n")
            with pytest.raises(SourceError, match=rf"t\.jsonl, row {2 if before else 1}: is not an object"):
                read_all(path)


def test_json_values_of_other_types_are_taken_if_all_are(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"x": "1.5", "k": 7, "t": "2020-01-01", "y": 1}\n{"x": "2", "k": 8, "t": "2020-01-02", "y": 2}\n')
    (batch,) = read_all(path, categories={"k": None, "t": None})
    assert batch.names == ["x", "k=7", "k=8", "t=2020-01-01", "t=2020-01-02"]
    assert batch.X.tolist() == [[1.5, 1, 0, 1, 0], [2, 0, 1, 0, 1]]
    (batch,) = read_all(path, categories={"k": ("8",)}, drop=["t"])
    assert batch.X.tolist() == [[1.5, 0], [2, 1]]
    columns = Columns("y", None, ("x",), {}, ("x",))  # true and false, elsewhere
    path.write_text('{"x": 1, "y": 1}\n{"x": 0, "y": 2}\n')
    assert next(iter(Batches(open_source(str(path)), columns))).X.tolist() == [[1], [0]]


def test_optional_keys_may_be_absent_from_a_whole_file(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"x": 1, "b": 2, "y": 2}\n')
    (tmp_path / "b.jsonl").write_text('{"x": 3, "y": 4}\n')
    source = open_source(str(tmp_path))
    batches = list(Batches(source, Columns.choose(source, "y"), "skip"))
    assert [batch.n_skipped for batch in batches] == [0, 1]


def test_files_without_rows_do_no_harm_among_others(tmp_path):
    (tmp_path / "a.csv").write_text("")
    (tmp_path / "b.csv").write_text("x,y\n")
    (tmp_path / "c.csv").write_text("x,y\n1,2\n")
    (tmp_path / "d.csv").write_text("x,y\n\n")
    assert everything_plain(open_source(str(tmp_path))) == [[1, 2]]
    pq.write_table(TABLE[:0], tmp_path / "a.parquet")
    pq.write_table(TABLE[:5], tmp_path / "b.parquet")
    assert sum(len(batch.y) for batch in read_all(tmp_path / "*.parquet")) == 5
    for name in ("c.csv", "b.csv"):
        (tmp_path / name).write_text("x,y\n")
    with pytest.raises(SourceError, match="has no rows"):
        read_all(tmp_path / "*.csv")


def test_types_that_change_from_file_to_file(tmp_path):
    lists = pa.array([[1.0]] * 5)
    pq.write_table(TABLE[:5], tmp_path / "a.parquet")
    for column, message in (("a", "values of the type list.* where numbers belong"), ("colour", "not texts")):
        place = TABLE.column_names.index(column)
        pq.write_table(TABLE[:5].set_column(place, column, lists), tmp_path / "b.parquet")
        with pytest.raises(SourceError, match=rf"b\.parquet, row 1: column '{column}' has .*{message}"):
            read_all(tmp_path)
    pq.write_table(TABLE[:5].set_column(0, "a", pa.array(["1", " 3", "4", "5", "6"])), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"b\.parquet, row 2: column 'a' has ' 3' where a number belongs"):
        read_all(tmp_path)


def test_names_that_would_be_there_twice(tmp_path):
    (tmp_path / "t.csv").write_text("k,k=a,y\na,1,2\nb,2,3\n")
    with pytest.raises(SourceError, match="'k=a' is both a column and a level"):
        read_all(tmp_path / "t.csv")


def test_opening_many_files_reads_their_first_lines_only(tmp_path, monkeypatch):
    for k in range(3):
        (tmp_path / f"{k}.csv").write_text("x,y\n" + "1,2\n" * 100_000)
    read = []
    blocks = Lines._read
    monkeypatch.setattr(Lines, "_read", lambda *a: read.append(blocks(*a)) or read[-1])
    open_source(str(tmp_path))
    assert sum(map(len, read)) < 100_000


def test_headers_of_all_sorts(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeff"a, b",y\r\n1,2\r\n3,4'.encode())
    source = open_source(str(path))
    assert source.columns == ["a, b", "y"]
    assert everything_plain(source) == [[1, 2], [3, 4]]
    path.write_text("1,2\n3,4\n")
    assert everything_plain(open_source(str(path), header=False), "1") == [[1, 2], [3, 4]]
    path.write_text("a;y\n1;2\n")
    assert everything_plain(open_source(str(path), delimiter=";")) == [[1, 2]]
    path.write_bytes(b"a,\xff\n1,2\n")
    with pytest.raises(SourceError, match="not text in UTF-8"):
        open_source(str(path))


def read_all(path, target="y", **choose):
    source = open_source(str(path))
    return list(Batches(source, Columns.choose(source, target, **choose)))


def everything_plain(source, target="y"):
    batches = list(Batches(source, Columns.choose(source, target)))
    return np.concatenate([np.c_[batch.X, batch.y] for batch in batches]).tolist()


@given(st.integers(1, 200), st.integers(5, 60), st.integers(1, 30))
def test_places_do_not_depend_on_how_rows_are_cut(n_rows, block_size, most_rows):
    """Any blocks, any batches: the digest is that of the rows."""
    rows = [f"{i},{(i * 7) % 11}" for i in range(n_rows)]
    text = "x,y\n" + "\n".join(rows)
    places = []
    for size, most in ((block_size, most_rows), (1_000_000, 4096)):
        file = CsvFile(io.BytesIO(text.encode()), "t")
        file._lines._block_size = size
        source = Single(file)
        places.append(list(Batches(source, Columns("y", None, ("x",), {}, ()), most_rows=most))[-1].place)
    assert places[0] == places[1]
    assert places[0].n_rows == len(rows)


class Single:
    name, columns = "t", ("x", "y")
    n_replaced, unterminated = 0, False

    def __init__(self, file):
        self.file = file

    def tables(self, kinds):
        row = 1
        for table in self.file.tables(kinds):
            yield table, self.file, row
            row += table.num_rows


def test_a_pipe_can_be_read_once(tmp_path, monkeypatch):
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as sink:
        sink.write(b"x,y\n" + b"1,2\n" * 100)
    with os.fdopen(reader, "rb") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        source = open_source("-")
        assert len(everything_plain(source)) == 100
