"""Files with a valid checksum that this package never wrote: refused, within their share of memory, without a trace."""

import hashlib
import json
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import thresher.io.encoding as encoding
from thresher import Gram, OnlineHardThresholding
from thresher.cli import main
from thresher.io.checkpoint import CheckpointError
from thresher.io.encoding import HEAD, decode, encode
from thresher.io.sources.batches import Place


def around(*nodes, arrays=()):
    """A header that is right but for what is in it."""
    return {"root": {"@": 0} if nodes else None, "note": None, "nodes": list(nodes), "arrays": list(arrays)}


KINDS_NEVER_WRITTEN = ("O", "V8", "M8[s]", "f8,f8", "(1000000,1000000)f8", "<U0", "a", "f8", "<f16", "=f8", 8, None)
CLASSES_NEVER_WRITTEN = (
    "builtins:eval",
    "thresher:Gram",
    "thresher.cli:main",
    "thresher.cli.app:app",
    "thresher.io.ingest:Ingest",
    "thresher.io.sources.parquet_file:ParquetFile",
    "thresher.selection.response_ranks:ResponseRanks",
    "thresher.selection.subset_family:SubsetFamily",
    "thresher.summaries.gram:Saving",
    "thresher.summaries.gram:np",
    "thresher.summaries.gram:Gram.absorb",
    "thresher.summaries.nothing:Gram",
    "thresher.baselines.__init__:Any",
    "thresher.baselines.comparing:FailedRunsError",
    "thresher.estimators._online:OnlineEstimator",
    7,
    ["thresher.summaries.gram:Gram"],
)


def resealed(header):
    """A file with a valid checksum around any header."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    content = HEAD.pack(b"thresher", 1, len(text)) + text
    if isinstance(header, dict) and header.get("arrays"):
        content += bytes(-len(content) % 64)
    return content + hashlib.sha256(content).digest()


@pytest.mark.parametrize(
    "header",
    [
        [],
        {},
        {"root": None, "note": None, "nodes": [], "arrays": [["<f8", [10**18], False]]},
        {"root": None, "note": None, "nodes": [], "arrays": [["<f8", [-1], False]]},
        {"root": None, "note": None, "nodes": [], "arrays": [["O", [1], False]]},
        {"root": {"@": 0}, "note": None, "nodes": [], "arrays": []},
        {"root": {"@": 0}, "note": None, "nodes": [["tuple", [{"@": 0}]]], "arrays": []},
        {"root": {"@": 0}, "note": None, "nodes": [["object", "os:system", []]], "arrays": []},
        {"root": {"@": 0}, "note": None, "nodes": [["object", "thresher.io.checkpoint:os", []]], "arrays": []},
        {"root": {"@": 0}, "note": None, "nodes": [["tuple of", "thresher.io.checkpoint:save", [1, 2]]], "arrays": []},
        *(around(["array", 0], arrays=[[dtype, [0], False]]) for dtype in KINDS_NEVER_WRITTEN),
        *(around(["array", 0], arrays=[["<f8", shape, False]]) for shape in ("3", [0.0], [True], [0] * 65, [0, 2**63])),
        *(around(["object", name, []]) for name in CLASSES_NEVER_WRITTEN),
        *(
            around(["tuple of", f"thresher.{name}", [1] * 3])
            for name in ("summaries.gram:Gram", "summaries._shifted:Sums", "io.sources.batches:Place")
        ),
        around(["tuple of", "thresher.integrations.river._features:Layout", []]),
        around(["tuple of", "reproduction.bank:Bank", []]),
        around(["object", "thresher.summaries._shifted:Sums", []]),
        around(["object", "thresher.summaries.gram:Gram", [[1, 2]]]),
        around(["names", [10**9], ["a"]]),
        around(["names", [1], [{"@": 0}]]),
        around(["names", [1], [{"@": 1}]], ["list", []]),
        around(["array", 0]),
        around(["array", -1], arrays=[["<f8", [0], False]]),
        around(["scalar", 0], arrays=[["<f8", [0], False]]),
        around(["list", [{"@": 1}, {"@": 2}]], ["array", 0], ["array", 0], arrays=[["<f8", [0], False]]),
        around(["PCG64", 0], arrays=[["<u8", [0], False]]),
        around(["dict", [[{"@": 0}, 1]]]),
        around(["dict", [[{"@": 1}, 1]]], ["list", []]),
        around(["dict", [[1]]]),
        around(["list", "ab"]),
        around(["list", [{"@": 0}]]),
        around(["list", [{"@": 1}]], ["dict", [["a", {"@": 0}]]]),
        around(["list", [{"@": 1}]], ["object", "thresher.selection.ebic:Ebic", [["gamma", {"@": 0}]]]),
        around("list"),
        around(["list", [{"int": "9" * 10**5}]]),
        around(["list", [{"int": 7}]]),
        around(["list", [{"float": "1.0"}]]),
        around(["list", [{"type": "int64"}]]),
        around(["list", [{"bytes": "0"}]]),
        around(["list", [{}]]),
        around(["list", [[]]]),
        around(["list", [{"@": 10**30}]]),
        around(["list", [{"@": True}]]),
        around(*(["list", [{"@": k + 1}]] for k in range(200)), ["list", []]),
    ],
)
def test_a_valid_checksum_is_not_enough(header):
    with pytest.raises(CheckpointError):
        decode(resealed(header))


def test_what_is_written_by_hand_is_read_if_it_is_right():
    nodes = ["list", [{"@": 1}, {"@": 2}, {"@": 3}, {"int": "7"}]], ["array", 0], ["dict", [["a", {"@": 1}]]]
    nodes = *nodes, ["tuple of", "thresher.io.sources.batches:Place", [12, "digest", 3]]
    found, _ = decode(resealed(around(*nodes, arrays=[["<f8", [2, 0], False]])))
    assert found[0].shape == (2, 0)
    assert found[1]["a"] is found[0]
    assert type(found[2]) is Place
    assert found[2:] == [(12, "digest", 3), 7]


def test_what_files_ask_for_is_not_even_imported():
    code = """if True:
        import sys
        import thresher.io.encoding as encoding
        for name in ("thresher.cli:main", "thresher.theory:rate", "thresher.cli.live:Live", "ctypes:CDLL"):
            before = set(sys.modules)
            try:
                encoding._class(name)
            except encoding.CheckpointError:
                assert set(sys.modules) == before, name
            else:
                raise AssertionError(name)
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_tuple_that_is_nested_without_end_is_no_key():
    n = 100_000  # comparing or hashing it would overflow the stack of the interpreter itself
    tuples = [["tuple", []], *(["tuple", [{"@": k}]] for k in range(1, n))]
    nodes = [["list", [{"@": k} for k in range(1, n + 2)]], *tuples, ["dict", [[{"@": n}, 1]]]]
    with pytest.raises(CheckpointError):
        decode(resealed(around(*nodes)))


def test_bytes_that_stand_for_no_value_are_refused():
    for array in (np.array([True, False]), np.array(["a", "b"])):
        content = bytearray(encode(array))
        stop = len(content) - 32
        assert decode(bytes(content))[0].tolist() == array.tolist()
        content[stop - 1] = 7
        content[stop:] = hashlib.sha256(content[:stop]).digest()
        with pytest.raises(CheckpointError):
            decode(bytes(content))


MANY = 20_000


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(around() | {"note": [[]] * MANY}),
        json.dumps(around() | {"note": [{"": {"": 0}}] * MANY}),
        json.dumps(around() | {"note": ["\U0001d11e" + "a" * MANY] * 3}, ensure_ascii=False),
        json.dumps(around() | {"note": "\U0001d11e" + "a" * MANY}),
        json.dumps(around(["list", [{"@": 1}] * MANY], ["list", []])),
        json.dumps(around(["list", [{"@": k} for k in range(1, MANY)]], *[["dict", [[0, 0]]]] * MANY)),
        json.dumps(around(["names", [MANY], [0] * MANY])),
        json.dumps(around(arrays=[["<f8", [0], 0]] * MANY)),
        '{"root":null,"note":' + ",".join(["[" * 50 + "]" * 50] * 1000).join("[]") + ',"nodes":[],"arrays":[]}',
        '{"root":null,"note":' + "[" * MANY + "]" * MANY + ',"nodes":[],"arrays":[]}',
        json.dumps(around(["names", [2], ["a" * 10 * MANY, "b"]])),
    ],
    ids=range(11),
)
def test_no_file_takes_more_memory_than_its_share(text):
    content = resealed(text)
    tracemalloc.start()
    with suppress(CheckpointError):
        decode(content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(content) < peak <= 64 * len(content) + 2**16


def test_over_a_thousand_files_that_were_tampered_with():
    script = Path(__file__).parents[1] / "benchmarks" / "fuzz_checkpoints.py"
    run = subprocess.run([sys.executable, script, "--cases", "1200", "--seed", "9"], check=True, capture_output=True)
    found = json.loads(run.stdout)
    assert found["failures"] == 0
    assert min(found["accepted"], found["refused"]) > 120


def edited(content, change):
    """The content of a file whose header a function has changed, with a new checksum."""
    _, _, length = HEAD.unpack_from(content)
    start = HEAD.size + length
    header = json.loads(content[HEAD.size : start])
    change(header)
    text = json.dumps(header).encode()
    sealed = HEAD.pack(b"thresher", 1, len(text)) + text
    sealed += bytes(-len(sealed) % 64) + content[start + -start % 64 : -32]
    return sealed + hashlib.sha256(sealed).digest()


def resealed_model(change):
    """A file of a model whose kernels were changed by a function of their fields."""

    def change_kernels(header):
        nodes = {node[1].rpartition(":")[2]: dict(node[2]) for node in header["nodes"] if node[0] == "kernel"}
        change(nodes)
        for node in header["nodes"]:
            if node[0] == "kernel":
                node[2] = [[key, value] for key, value in nodes[node[1].rpartition(":")[2]].items()]

    X = np.random.default_rng(0).standard_normal((40, 6))
    return edited(encode(OnlineHardThresholding(2, rule="pursuit").partial_fit(X, X[:, 1])), change_kernels)


@pytest.mark.parametrize(
    "change",
    [
        lambda nodes: nodes["SparseRound"].update(coef=nodes["WorkingSet"]["at_reference"]),
        lambda nodes: nodes["Factor"].update(members=nodes["WorkingSet"]["features"]),
        lambda nodes: nodes["Factor"].update(place=nodes["Factor"]["members"]),
        lambda nodes: nodes["WorkingSet"].update(another=nodes["SparseRound"]["certificate"]),
        lambda nodes: nodes["SparseRound"].update(factor=None),
    ],
    ids=["estimate and gradient", "members and features", "members and places", "a circle", "no factor"],
)
def test_kernels_share_nothing_and_see_only_kernels_that_are_complete(change):
    """What a kernel has checked when it is loaded must not change under it: its loops trust it."""
    decode(resealed_model(lambda nodes: None))
    with pytest.raises(CheckpointError):
        decode(resealed_model(change))


@pytest.mark.parametrize(
    "change",
    [{"n_buffered": 10**7}, {"scatter": np.zeros((1, 1))}, {"shift_x": np.zeros(1)}, {"cross": np.zeros(10**5)}],
    ids=lambda change: next(iter(change)),
)
def test_a_summary_whose_arrays_do_not_fit_is_neither_written_nor_read(change, monkeypatch):
    X = np.random.default_rng(0).standard_normal((300, 50))
    gram = Gram(50).absorb(X, X[:, 3])
    for name, value in change.items():
        setattr(gram.state, name, value)
    with pytest.raises(ValueError, match="cannot be saved"):
        encode(gram)
    monkeypatch.setattr(encoding, "check", lambda *_: None)
    content = encode(gram)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="State"):
        decode(content)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A directory with rows, and the contents of a model and of two summaries, all by the command."""
    here = tmp_path_factory.mktemp("written")
    X = np.random.default_rng(0).standard_normal((300, 3))
    for name, rows in (("one", X[:200]), ("two", X[200:])):
        table = np.c_[rows, rows @ [2.0, 0.0, -1.0]]
        np.savetxt(here / f"{name}.csv", table, delimiter=",", header="a,b,c,y", comments="")
        arguments = [str(here / f"{name}.csv"), "-t", "y", "--quiet"]
        assert main(["fit", *arguments, "-m", str(here / f"{name}.model")]) == 0
        assert main(["accumulate", *arguments, "-o", str(here / f"{name}.sums")]) == 0
    return here


def fields_of(header, owner):
    """The fields of the first object of a class, or those of the command's note."""
    if owner == "note":
        return header["nodes"][header["note"]["@"]][1]
    return next(node[2] for node in header["nodes"] if node[0] == "object" and node[1].endswith(f":{owner}"))


def lose(owner, field):
    def change(header):
        fields = fields_of(header, owner)
        fields.remove(next(pair for pair in fields if pair[0] == field))

    return change


def put(owner, field, value):
    def change(header):
        next(pair for pair in fields_of(header, owner) if pair[0] == field)[1] = value

    return change


def reshape_largest(header):
    largest = max(header["arrays"], key=lambda array: int(np.prod(array[1])))
    largest[1] = [int(np.prod(largest[1])), 1]


@pytest.mark.parametrize(
    "change",
    [
        *(put("State", "n_buffered", n) for n in (10**7, -1, 2**62)),
        put("State", "n_samples", 0),
        put("note", "n_skipped", 10**9),
        reshape_largest,
        *(lose("State", field) for field in ("n_buffered", "scatter", "shift_x")),
        *(lose("note", field) for field in ("place", "n_skipped", "merged")),
    ],
)
def test_commands_refuse_forged_files_in_one_line(written, tmp_path, monkeypatch, capfd, change):
    monkeypatch.chdir(tmp_path)
    for name in ("one.model", "one.sums"):
        Path(name).write_bytes(edited((written / name).read_bytes(), change))
    rows, other = str(written / "one.csv"), str(written / "two.sums")
    for command in (
        ["fit", rows, "-m", "one.model", "--resume"],
        ["show", "one.model"],
        ["predict", "one.model", rows],
        ["merge", "one.sums", other, "-o", "merged"],
        ["merge", other, "one.sums", "-o", "merged"],
    ):
        assert main(command) == 4, command
        out, err = capfd.readouterr()
        assert (out, err.count("\n"), err.startswith("thresher: one.")) == ("", 1, True), (command, err)
    assert sorted(map(str, Path().glob("[!.]*"))) == ["one.model", "one.sums"]


def test_commands_read_files_that_were_sealed_again_unchanged(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one.model", "one.sums"):
        Path(name).write_bytes(edited((written / name).read_bytes(), lambda header: None))
    rows, other = str(written / "one.csv"), str(written / "two.sums")
    assert main(["fit", rows, "-m", "one.model", "--resume", "--quiet"]) == 0
    assert main(["predict", "one.model", rows, "-o", "p.csv"]) == 0
    assert main(["merge", "one.sums", other, "-o", "merged"]) == 0
