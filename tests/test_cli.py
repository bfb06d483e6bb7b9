"""The command, as its users see it: what it prints, what it leaves, how it ends."""

import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import thresher
from oracles import algorithm_1, last
from thresher import Gram, OnlineHardThresholding, SparseRegressor
from thresher.cli import main
from thresher.io.checkpoint import load_with_note
from thresher.io.sources.source_error import SourceError
from thresher.io.sources.synthetic import SparseLinearStream
from thresher.plotting import IntervalsDisplay

N, D = 3000, 12
SCALED = {"fit_intercept": True, "standardize": True}
X, Y = SparseLinearStream(D, 3, signal=1.0, seed=2).draw(N)
KINDS = np.array(["a", "b", "c"])[np.random.default_rng(1).integers(0, 3, N)]
Z = Y + 2.0 * (KINDS == "b")
TABLE = pa.table({**{f"x{j}": X[:, j] for j in range(D)}, "kind": KINDS, "y": Z})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(TABLE, tmp_path / "t.csv")
    pq.write_table(TABLE, tmp_path / "t.parquet")
    return tmp_path


def run(capfd, *arguments):
    status = main([str(argument) for argument in arguments])
    return status, *capfd.readouterr()


def test_fit_shows_what_matters(here, capfd):
    status, out, err = run(capfd, "fit", "t.csv", "--target", "y", "--model", "m.thresher", "--quiet")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "y: SparseRegressor"
    assert "Features: 4 of 15, chosen by posterior" in lines
    names = {line.split()[0] for line in lines if line.strip().startswith(("x", "kind"))}
    assert names == {"x0", "x1", "x2", "kind=b"}
    assert "3,000 rows read." in out
    assert "Kept in m.thresher." in out
    assert err == ""
    model = thresher.load("m.thresher")
    assert model.n_samples_seen_ == N
    assert sorted(model.get_feature_names_out()) == sorted(names)
    A = np.c_[np.ones(N), X[:, :3], KINDS == "b"]
    expected = np.linalg.lstsq(A, Z, rcond=None)[0]
    np.testing.assert_allclose(model.coef_[model.support_], expected[1:], rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, expected[0], rtol=1e-6)


def shown(out):
    """Coefficients by name, from what --json prints."""
    terms = json.loads(out)["model"]["terms"]
    return {term["name"]: term["coef"] for term in terms if term["name"] != "(intercept)"}


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ((), {}),
        (("--method", "sparse", "--selection", "posterior", "--fit-intercept"), {}),
        (("--selection", "ebic"), {"selection": "ebic"}),
        (("--selection", "cv"), {"selection": "cv"}),
        (("--sparsity", "3", "--no-fit-intercept"), {"sparsity": 3, "fit_intercept": False}),
    ],
)
def test_the_defaults_are_those_of_python(here, capfd, options, parameters):
    """What is printed is what predicts, and equals partial_fit and finish on the same rows."""
    status, out, _ = run(capfd, "fit", "t.csv", "-t", "y", "--json", "-m", "m", *options)
    assert status == 0
    plain = SparseRegressor(**parameters).partial_fit(load_rows(), Z).finish()
    model = thresher.load("m")
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.intercept_ == plain.intercept_
    if model.fit_intercept:
        assert model.intercept_ == json.loads(out)["model"]["terms"][0]["coef"]
    names = [*(f"x{j}" for j in range(D)), "kind=a", "kind=b", "kind=c"]
    assert shown(out) == {names[j]: plain.coef_[j] for j in plain.support_}
    assert run(capfd, "predict", "m", "t.csv", "-o", "p.parquet")[0] == 0
    predicted = pq.read_table("p.parquet")["prediction"].to_numpy()
    np.testing.assert_allclose(predicted, plain.predict(load_rows()), rtol=1e-12)


def test_the_algorithm_of_the_paper(here, capfd):
    """The setting of its first experiments, by options and in Python."""
    X, y = SparseLinearStream(80, 10, signal=0.5, seed=0).draw(600)
    pa.csv.write_csv(pa.table({**{f"x{j}": X[:, j] for j in range(80)}, "y": y}), "data.csv")
    options = ["--method", "oht", "--sparsity", "50", "--n-steps", "5", "--step-size", "0.001", "--n-warmup", "100"]
    status, out, _ = run(capfd, "fit", "data.csv", "-t", "y", *options, "--json", "-m", "m")
    assert status == 0
    plain = OnlineHardThresholding(50, n_steps=5, step_size=0.001, n_warmup=100).partial_fit(X, y).finish()
    model = thresher.load("m")
    assert type(model) is OnlineHardThresholding
    assert model.n_rounds_ == plain.n_rounds_ == 500
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert shown(out) == {f"x{j}": plain.coef_[j] for j in plain.support_}
    # The iterates themselves, from the definition of the algorithm.
    theta = last(algorithm_1(X, y, 50, 5, 0.001, 100))
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-8, atol=1e-12)
    assert run(capfd, "predict", "m", "data.csv", "-o", "p.parquet")[0] == 0
    np.testing.assert_allclose(pq.read_table("p.parquet")["prediction"].to_numpy(), X @ theta, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ("--sparsity 4 --rule pursuit --fit-intercept --standardize", {"rule": "pursuit", **SCALED}),
        ("--sparsity 4 --round-size 70 --step-size auto --no-fit-intercept", {"round_size": 70}),
        ("--sparsity 4 --rule reciprocal --n-steps 3", {"rule": "reciprocal", "n_steps": 3}),
        ("--selection algorithm --n-steps 2", {"selection": "algorithm", "n_steps": 2, "sparsity": "auto"}),
    ],
)
def test_every_option_of_the_algorithm_is_its_parameter(here, capfd, options, parameters):
    status, _, _ = run(capfd, "fit", "t.csv", "-t", "y", "--method", "oht", "-m", "m", *options.split())
    assert status == 0
    plain = OnlineHardThresholding(**{"sparsity": 4, **parameters}).partial_fit(load_rows(), Z).finish()
    model = thresher.load("m")
    assert model.get_params() == plain.get_params()
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.intercept_ == plain.intercept_


def test_json_is_one_object(here, capfd):
    status, out, _ = run(capfd, "fit", "t.parquet", "-t", "y", "--json", "--sparsity", "2", "--drop", "kind,x11")
    found = json.loads(out)
    assert status == 0
    assert found["rows_used"] == N
    assert found["model"]["n_features"] == D - 1
    assert len(found["model"]["terms"]) == 3
    assert 0.0 < found["model"]["prequential_r2"] < 1.0


def test_groups_select_levels_together(here, capfd):
    status, out, _ = run(capfd, "fit", "t.csv", "-t", "y", "--json", "--groups", "-m", "m")
    names = {term["name"] for term in json.loads(out)["model"]["terms"]}
    assert status == 0
    assert {"kind=a", "kind=b", "kind=c"} <= names
    assert "kind" in thresher.load("m").selected_groups_.tolist()


def piped(monkeypatch, content):
    """Let the standard input be a pipe through which this comes."""
    out, into = os.pipe()
    monkeypatch.setattr(sys, "stdin", os.fdopen(out, "rb"))
    threading.Thread(target=lambda: os.fdopen(into, "wb").write(content)).start()


def test_the_standard_input(here, capfd, monkeypatch):
    """Through a pipe, in CSV and JSON lines."""
    for format, content in (
        ("csv", (here / "t.csv").read_bytes()),
        ("jsonl", "\n".join(json.dumps(row) for row in TABLE.to_pylist()).encode()),
    ):
        piped(monkeypatch, content)
        status, out, _ = run(capfd, "fit", "-", "-t", "y", "--json", "--format", format)
        assert status == 0
        assert json.loads(out)["rows_used"] == N


# -- going on --------------------------------------------------------------------------------------------------------


def fail_after(monkeypatch, n_rows):
    """Let the run die, as by a kill, when this many rows were absorbed."""
    from thresher.io.ingest import Ingest

    absorb = Ingest.absorb

    def dying(self, batch):
        absorb(self, batch)
        if self.place.n_rows >= n_rows:
            raise MemoryError("killed")

    monkeypatch.setattr(Ingest, "absorb", dying)


@pytest.mark.parametrize("source", ["t.csv", "t.parquet"])
@pytest.mark.parametrize(
    "options", ["", "--selection cv", "--method oht --round-size 7 --sparsity 5", "--method oht --n-warmup 300"]
)
def test_a_run_that_died_goes_on_to_the_same_bytes(here, capfd, monkeypatch, source, options):
    arguments = ["fit", source, "-t", "y", "--checkpoint-every", 250, *options.split()]
    assert run(capfd, *arguments, "-m", "whole")[0] == 0
    with monkeypatch.context() as patch:
        fail_after(patch, 1100)
        status, _, err = run(capfd, *arguments, "-m", "part", "--resume")
        assert status == 1
        assert "killed" in err
    assert load_with_note("part")[1]["place"].n_rows == 1000
    assert run(capfd, "fit", source, "-m", "part", "--resume", "--checkpoint-every", 400)[0] == 0
    assert Path("part").read_bytes() == Path("whole").read_bytes()
    assert Path("part.1").exists()
    before = Path("part").read_bytes()
    assert run(capfd, *arguments, "-m", "part", "--resume")[0] == 0  # once more: nothing left to do
    assert Path("part").read_bytes() == before


def test_a_damaged_file_falls_back_to_the_one_before(here, capfd):
    arguments = ["fit", "t.csv", "-t", "y", "--checkpoint-every", 500, "-m", "m"]
    assert run(capfd, *arguments)[0] == 0
    whole = Path("m").read_bytes()
    Path("m").write_bytes(whole[:-1])
    status, _, err = run(capfd, *arguments, "--resume")
    assert status == 0
    assert err.startswith("thresher: note: m cannot be used (it is damaged")
    assert Path("m").read_bytes() == whole
    for name in ("m", "m.1"):
        Path(name).write_bytes(b"nonsense")
    status, _, err = run(capfd, *arguments, "--resume")
    assert status == 4
    assert err.startswith("thresher: m: it is not a checkpoint")


def test_a_changed_source_is_refused(here, capfd):
    assert run(capfd, "fit", "t.csv", "-t", "y", "-m", "m")[0] == 0
    before = Path("m").read_bytes()
    text = Path("t.csv").read_text()
    cell = text.splitlines()[1].split(",")[0]
    Path("t.csv").write_text(text.replace(cell, "1.5", 1))
    status, _, err = run(capfd, "fit", "t.csv", "-m", "m", "--resume")
    assert status == 3
    assert "has changed: its first 3,000 rows are not those" in err
    assert Path("m").read_bytes() == before


def test_a_file_that_grew_is_read_on(here, capfd):
    text = Path("t.csv").read_text()
    lines = text.splitlines(keepends=True)
    Path("t.csv").write_text("".join(lines[:1501]))
    assert run(capfd, "fit", "t.csv", "-t", "y", "-m", "m")[0] == 0
    Path("t.csv").write_text(text)
    assert run(capfd, "fit", "t.csv", "-m", "m", "--resume")[0] == 0
    assert run(capfd, "fit", "t.csv", "-t", "y", "-m", "whole")[0] == 0
    grown, whole = thresher.load("m"), thresher.load("whole")
    assert grown.n_samples_seen_ == N
    np.testing.assert_array_equal(grown.coef_, whole.coef_)
    assert grown.intercept_ == whole.intercept_


def test_a_bad_row_leaves_the_rows_before_it(here, capfd):
    for k in range(3):
        pq.write_table(TABLE[k * 1000 : (k + 1) * 1000].drop_columns("kind"), f"part{k}.parquet")
    bad = np.array(TABLE["x3"])[2000:].copy()
    bad[17] = np.inf
    pq.write_table(TABLE[2000:].drop_columns("kind").set_column(3, "x3", pa.array(bad)), "part2.parquet")
    arguments = ["fit", "part*.parquet", "-t", "y", "-m", "m"]
    status, _, err = run(capfd, *arguments)
    assert status == 3
    assert "part2.parquet, row 18: column 'x3' has the value inf" in err
    assert "The 2,000 rows before are kept in m; fix it and use --resume." in err
    assert "Traceback" not in err
    pq.write_table(TABLE[2000:].drop_columns("kind"), "part2.parquet")
    assert run(capfd, *arguments, "--resume")[0] == 0
    assert run(capfd, *arguments[:-1], "whole")[0] == 0
    assert Path("m").read_bytes() == Path("whole").read_bytes()


def test_a_full_disk_leaves_what_was_kept(here, capfd, monkeypatch):
    """Every call that writes, syncs or renames fails in turn."""
    arguments = ["fit", "t.csv", "-t", "y", "--checkpoint-every", 1000, "--quiet"]
    assert run(capfd, *arguments, "-m", "whole")[0] == 0
    for name, module in (("fsync", os), ("replace", Path)):
        call = getattr(module, name)
        for nth in range(1, 5):
            count = 0

            def failing(*inputs, call=call, nth=nth, **options):
                nonlocal count
                count += 1
                if count == nth:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return call(*inputs, **options)

            model = f"{name}{nth}"
            with monkeypatch.context() as patch:
                patch.setattr(module, name, failing)
                status, _, err = run(capfd, *arguments, "-m", model)
            assert status == 5
            assert f"{model}: No space left on device" in err
            assert err.count("\n") == 1
            status, _, err = run(capfd, *arguments, "-m", model, "--resume")
            assert (status, err) == (0, "")
            assert Path(model).read_bytes() == Path("whole").read_bytes()


def test_options_that_do_not_go_together(here, capfd):
    fit, oht = ("fit", "t.csv", "-t", "y"), ("fit", "t.csv", "-t", "y", "--method", "oht")
    assert run(capfd, *fit, "-m", "m")[0] == 0
    for arguments, message in (
        ((*fit, "-m", "m"), "m exists; --resume continues it, --overwrite starts over"),
        (("fit", "t.csv", "-m", "m", "--resume", "--sparsity", "3"), "begun with another --sparsity ('auto', not '3')"),
        (("fit", "t.csv", "-m", "m", "--resume", "--target", "x1"), "begun with another --target ('y', not 'x1')"),
        (("fit", "t.csv", "-m", "m", "--resume", "--overwrite"), "give one of them"),
        (("fit", "t.csv", "--resume", "-t", "y"), "--resume needs the file"),
        (("fit", "t.csv"), "--target is missing: which of x0, x1"),
        ((*fit, "--sparsity", "0"), "--sparsity 0: use auto or a positive number"),
        (
            ("fit", "t.csv", "-m", "m", "--resume", "--method", "oht"),
            "another --method ('sparse', not 'oht')",
        ),
        ((*fit, "--method", "lasso"), "--method lasso: use sparse or oht"),
        ((*fit, "--selection", "aic"), "--selection aic: use posterior, ebic or cv"),
        (
            ("fit", "t.csv", "-t", "y", "--method", "oht", "--selection", "cv"),
            "--selection cv: use path or algorithm",
        ),
        ((*fit, "--n-warmup", "0"), "--n-warmup does not go with --method sparse"),
        ((*fit, "--standardize"), "--standardize does not go with --method sparse"),
        (
            ("fit", "t.csv", "-t", "y", "--method", "oht", "--rule", "soft"),
            "--rule soft: use hard, pursuit or reciprocal",
        ),
        ((*oht, "--step-size", "-1"), "--step-size -1: use auto or a positive"),
        (
            ("fit", "t.csv", "-t", "y", "--method", "oht", "--step-size", "nan"),
            "--step-size nan: use auto or a positive",
        ),
        ((*fit, "--missing", "maybe"), "--missing maybe: use error, skip or mean"),
        ((*fit, "--delimiter", "ab"), "one character"),
        (("fit", "t.csv", "--nonsense"), "No such option"),
        (("predict", "m", "t.csv", "-o", "p.xls"), "ends in .parquet or .csv"),
        (("nonsense",), "No such command"),
    ):
        status, out, err = run(capfd, *arguments)
        assert (status, out) == (2, ""), arguments
        assert message in err
        assert err.count("\n") == 1
    assert run(capfd, "fit", "t.csv", "-t", "y", "-m", "m", "--overwrite")[0] == 0


def test_sources_and_models_that_cannot_be_used(here, capfd):
    Path("empty.csv").write_text("")
    Path("bad.csv").write_text("a,y\n1,2\nx,3\n")
    for status, arguments, message in (
        (3, ("fit", "nothing.csv", "-t", "y"), "nothing.csv does not exist"),
        (3, ("fit", "empty.csv", "-t", "y"), "empty.csv is empty"),
        (3, ("fit", "t.csv", "-t", "kinds"), "has no column 'kinds' for --target; did you mean 'kind'"),
        (3, ("fit", "bad.csv", "-t", "y"), "bad.csv, row 2: column 'a' has 'x' where a number belongs"),
        (4, ("show", "nothing"), "nothing does not exist"),
        (4, ("show", "t.csv"), "it is not a checkpoint of thresher"),
        (4, ("predict", "nothing", "t.csv"), "nothing does not exist"),
    ):
        found, out, err = run(capfd, *arguments)
        assert (found, out) == (status, ""), arguments
        assert message in err
        assert err.count("\n") == 1
    with pytest.raises(SourceError):
        main(["fit", "nothing.csv", "-t", "y", "--debug"])


def test_missing_values_are_counted(here, capfd):
    values = X[:, 0].copy()
    values[[3, 2000]] = np.nan
    pa.csv.write_csv(TABLE.set_column(0, "x0", pa.array(values, from_pandas=True)), "gaps.csv")
    status, _, err = run(capfd, "fit", "gaps.csv", "-t", "y")
    assert status == 3
    assert "row 4: column 'x0' has no value; --missing skip" in err
    _, out, _ = run(capfd, "fit", "gaps.csv", "-t", "y", "--missing", "skip")
    assert "3,000 rows read, 2,998 used." in out
    assert "2 rows left out: a value was missing." in out
    _, out, _ = run(capfd, "fit", "gaps.csv", "-t", "y", "--missing", "mean")
    assert "2 missing values replaced by the mean of their column." in out
    _, out, _ = run(capfd, "fit", "t.csv", "-t", "y", "--categories", "kind=a,b")
    assert f"{int((KINDS == 'c').sum())} texts were not among the known levels" in out.replace(",", "")


def test_a_named_pipe_is_read_from_its_first_byte(here, capfd):
    """Nobody looks into a pipe to see what it is."""
    (here / "bare.csv").write_bytes((here / "t.csv").read_bytes().split(b"\n", 1)[1])
    os.mkfifo(here / "pipe")
    options = ["-t", "13", "--json", "--quiet", "--format", "csv", "--no-header"]
    content = (here / "bare.csv").read_bytes()
    threading.Thread(target=lambda: (here / "pipe").write_bytes(content)).start()
    status, out, err = run(capfd, "fit", "pipe", *options)
    assert (status, err) == (0, "")
    assert json.loads(out)["rows_read"] == N


def test_the_rows_are_never_overwritten(here, capfd):
    before = Path("t.csv").read_bytes()
    os.link("t.csv", "linked.csv")
    assert run(capfd, "fit", "t.parquet", "-t", "y", "-m", "m", "--quiet")[0] == 0
    for arguments in (
        ("fit", "t.csv", "-t", "y", "-m", "t.csv", "--overwrite"),
        ("accumulate", "t.csv", "-t", "y", "-o", "linked.csv", "--overwrite"),
        ("predict", "m", "t.csv", "-o", "t.csv"),
    ):
        status, _, err = run(capfd, *arguments)
        assert status == 2
        assert "one of the files with the rows" in err
    assert Path("t.csv").read_bytes() == before
    status, _, err = run(capfd, "fit", "t.csv", "-t", "y", "-m", "missing/m")
    assert status == 2
    assert "its place is not a directory" in err


def test_two_runs_do_not_write_one_file(here, capfd):
    from thresher.cli.feeding import alone

    with alone(Path("m")):
        status, _, err = run(capfd, "fit", "t.csv", "-t", "y", "-m", "m")
    assert status == 2
    assert "m is being written by another run" in err
    assert run(capfd, "fit", "t.csv", "-t", "y", "-m", "m", "--quiet")[0] == 0
    assert sorted(path.name for path in here.glob(".*")) == []


def test_columns_with_odd_names_can_be_given(here, capfd):
    names = ["a,b", "k=l", "", "y"]
    kinds = ["u", "v"] * 50
    table = pa.table([X[:100, 0], kinds, X[:100, 1], Y[:100]], names)
    pa.csv.write_csv(table, "odd.csv")
    _, out, _ = run(capfd, "fit", "odd.csv", "-t", "y", "--drop", "", "--json", "--categories", "k=l=v")
    assert json.loads(out)["model"]["n_features"] == 2
    _, out, _ = run(capfd, "fit", "odd.csv", "-t", "y", "--features", "a,b", "--features", "a,b", "--json")
    assert json.loads(out)["model"]["n_features"] == 1


def test_json_has_no_infinity(here, capfd):
    """One-hot columns of all levels are dependent, so the condition number is infinite."""
    assert run(capfd, "fit", "t.csv", "-t", "y", "-m", "m", "--sparsity", "6", "--quiet")[0] == 0
    _, out, _ = run(capfd, "diagnose", "m", "--json")
    assert "Infinity" not in out
    assert "null" in out


def test_weights_that_are_all_zero(here, capfd):
    pa.csv.write_csv(TABLE.append_column("w", pa.array(np.zeros(N))), "w.csv")
    status, _, err = run(capfd, "fit", "w.csv", "-t", "y", "--weight", "w", "--quiet")
    assert status == 3
    assert "w.csv has no row with a positive weight" in err


# -- signals ---------------------------------------------------------------------------------------------------------


def start(*arguments):
    command = [sys.executable, "-m", "thresher", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_rows(path, n_rows, process):
    """Until the file has seen so many rows."""
    for _ in range(600):
        if path.exists() and load_with_note(path)[1]["place"].n_rows >= n_rows:
            return
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    raise AssertionError("it took too long")


def test_a_growing_file_is_followed_until_interrupted(here, capfd):
    """Ctrl-C saves and says how to go on; what it leaves is what an uninterrupted run has at that row."""
    lines = Path("t.csv").read_text().splitlines(keepends=True)
    log = Path("log.csv")
    log.write_text("".join(lines[:1001]))
    arguments = ["fit", "log.csv", "-t", "y", "-m", "m", "--checkpoint-every", "500"]
    process = start(*arguments, "--follow")
    try:
        wait_for_rows(Path("m"), 1000, process)
        with log.open("a") as file:
            file.write("".join(lines[1001:2002])[:-5])
        wait_for_rows(Path("m"), 2000, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Interrupted after 2,000 rows, which m holds. The same command with --resume continues." in err
    model, rows = thresher.load("m"), load_rows()
    np.testing.assert_array_equal(model.coef_, SparseRegressor().partial_fit(rows[:2000], Z[:2000]).coef_)
    log.write_text("".join(lines))
    assert run(capfd, "fit", "log.csv", "-m", "m", "--resume")[0] == 0
    whole = SparseRegressor().partial_fit(rows, Z).finish()
    np.testing.assert_array_equal(thresher.load("m").summary_.comoment(), whole.summary_.comoment())
    np.testing.assert_array_equal(thresher.load("m").coef_, whole.coef_)


def load_rows():
    return np.column_stack([X, *(level == KINDS for level in "abc")]).astype(float)


def test_a_polite_kill_saves_too(here):
    process = start("fit", "t.csv", "-t", "y", "-m", "m", "--follow", "--checkpoint-every", "500")
    try:
        wait_for_rows(Path("m"), N, process)
        process.terminate()
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143


# -- the other commands ----------------------------------------------------------------------------------------------


def test_predictions_are_those_of_the_model(here, capfd):
    assert run(capfd, "fit", "t.csv", "-t", "y", "-m", "m")[0] == 0
    model = thresher.load("m")
    expected = load_rows() @ model.coef_ + model.intercept_
    assert run(capfd, "predict", "m", "t.parquet", "-o", "p.parquet")[0] == 0
    np.testing.assert_allclose(pq.read_table("p.parquet")["prediction"].to_numpy(), expected, rtol=1e-12)
    pa.csv.write_csv(TABLE.drop_columns("y"), "new.csv")
    assert run(capfd, "predict", "m", "new.csv", "-o", "p.csv")[0] == 0
    np.testing.assert_allclose(pa.csv.read_csv("p.csv")["prediction"].to_numpy(), expected, rtol=1e-12)
    status, out, _ = run(capfd, "predict", "m", "new.csv")
    assert status == 0
    assert out == Path("p.csv").read_text()
    Path("gaps.csv").write_text("\n".join(Path("new.csv").read_text().splitlines()[:3]) + "\n" + "," * D + "\n")
    status, _, err = run(capfd, "predict", "m", "gaps.csv", "-o", "q.csv")
    assert status == 3
    assert "row 3" in err
    assert not Path("q.csv").exists()
    assert run(capfd, "predict", "m", "gaps.csv", "-o", "q.parquet", "--missing", "skip")[0] == 0
    Path("other.csv").write_text(Path("new.csv").read_text().replace("a", "zz"))
    assert "texts were not among the known levels" in run(capfd, "predict", "m", "other.csv", "-o", "q.csv")[2]
    found = pq.read_table("q.parquet")["prediction"].to_pylist()
    assert found[2] is None
    np.testing.assert_allclose(found[:2], expected[:2], rtol=1e-12)
    status, _, err = run(capfd, "predict", "m", "p.csv")
    assert status == 3
    assert "has no column 'x0'" in err


def test_a_model_from_python_predicts_and_shows(here, capfd):
    pandas = pytest.importorskip("pandas")
    model = SparseRegressor().fit(pandas.DataFrame(X, columns=[f"x{j}" for j in range(D)]), Y)
    model.save("m")
    assert run(capfd, "predict", "m", "t.csv", "-o", "p.parquet")[0] == 0
    np.testing.assert_allclose(
        pq.read_table("p.parquet")["prediction"].to_numpy(),
        model.predict(pandas.DataFrame(X, columns=[f"x{j}" for j in range(D)])),
        rtol=1e-12,
    )
    status, out, _ = run(capfd, "show", "m")
    assert status == 0
    assert "Features: 3 of 12" in out
    SparseRegressor().fit(X, Y).save("nameless")
    status, _, err = run(capfd, "predict", "nameless", "t.csv")
    assert status == 4
    assert "lacks the names of its columns" in err


@pytest.mark.filterwarnings("error")
def test_the_picture_of_a_changed_stream_shows_the_coefficients_in_use(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3))
    y = np.where(np.arange(4000) < 2000, 2.0, -1.0) * X[:, 1] + 0.5 * rng.standard_normal(4000)
    np.savetxt("t.csv", np.c_[X, y], "%.6f", ",", header="s0,s1,s2,price", comments="")
    assert run(capfd, "fit", "t.csv", "-t", "price", "-m", "m")[0] == 0
    drawn, draw = [], IntervalsDisplay.from_estimator
    monkeypatch.setattr(IntervalsDisplay, "from_estimator", lambda *a, **k: drawn.append(draw(*a, **k)) or drawn[-1])
    status, out, _ = run(capfd, "show", "m", "--plot", "m.png")
    assert status == 0
    shown = drawn[0]
    assert shown.lower is None
    assert shown.estimate[shown.names.index("s1")] < -0.3
    assert "effect on price" in shown.ax_.get_xlabel()
    assert "No intervals" in out


def test_show_and_diagnose(here, capfd):
    assert run(capfd, "fit", "t.csv", "-t", "y", "-m", "m")[0] == 0
    _, fitted, _ = run(capfd, "show", "m", "--json")
    status, out, _ = run(capfd, "show", "m", "--html", "m.html", "--plot", "m.png")
    assert status == 0
    assert "Written: m.html." in out
    assert Path("m.png").read_bytes().startswith(b"\x89PNG")
    page = Path("m.html").read_text()
    assert page.count("<img") == 6
    assert "http" not in page.replace("http://www.w3.org", "")
    for feature in json.loads(fitted)["model"]["terms"]:
        assert f"<th>{feature['name']}</th>" in page
    status, out, _ = run(capfd, "diagnose", "m")
    assert status == 0
    assert "noise" in out
    _, out, _ = run(capfd, "diagnose", "m", "--json")
    assert set(json.loads(out)) >= {"rows", "condition", "twins", "constant", "noise"}
    Gram(2).save("g")
    assert run(capfd, "show", "g")[:2] == (0, "Gram(n_features=2, dtype=float64, n_samples=0)\n")
    assert run(capfd, "diagnose", "g")[0] == 4


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("thresher sh", ["show"]),
        ("thresher fit --sel", ["--selection"]),
        ("thresher fit --selection p", ["posterior", "path"]),
        ("thresher fit --method ", ["sparse", "oht"]),
        ("thresher predict --missing s", ["skip"]),
        ("thresher accumulate --format jso", ["jsonl"]),
    ],
)
def test_shells_complete_commands_options_and_values(words, offered):
    place = len(words.split(" ")) - 1
    settings = {"_THRESHER_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from thresher.cli import main; sys.argv[0] = 'thresher'; sys.exit(main())"],
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == offered


def test_options_are_named_as_parameters_are(capfd):
    """What an option sets is what Python calls by the same name."""
    _, out, _ = run(capfd, "fit", "--help")
    named = set(SparseRegressor().get_params()) | set(OnlineHardThresholding().get_params())
    for name in ("sparsity", "selection", "fit_intercept", "groups", "n_steps", "step_size", "n_warmup", "round_size"):
        assert name in named
        assert f"--{name.replace('_', '-')}" in out


def test_names_are_shown_as_they_are(here, capfd):
    """Also such as mean something to a terminal or a browser."""
    odd = ["[bold]x[/bold]", "<b>&x"]
    pa.csv.write_csv(TABLE.select(["x0", "x1", "y"]).rename_columns([*odd, "y"]), "odd.csv")
    _, out, _ = run(capfd, "fit", "odd.csv", "-t", "y", "-m", "m")
    assert all(name in out for name in odd)
    run(capfd, "show", "m", "--html", "m.html")
    assert "&lt;b&gt;&amp;x" in Path("m.html").read_text()


def test_shards_make_the_same_model(here, capfd):
    for k in range(4):
        pq.write_table(TABLE[k * 750 : (k + 1) * 750], f"shard{k}.parquet")
        arguments = ["accumulate", f"shard{k}.parquet", "-t", "y", "-o", f"part{k}", "--categories", "kind=a,b,c"]
        assert run(capfd, *arguments)[0] == 0
    status, out, _ = run(capfd, "merge", *(f"part{k}" for k in range(4)), "-o", "all")
    assert status == 0
    assert "3,000 rows read." in out
    assert run(capfd, "fit", "all", "-m", "m")[0] == 0
    assert run(capfd, "fit", "all", "-m", "oht", "--method", "oht", "--sparsity", "4", "--fit-intercept")[0] == 0
    algorithm = OnlineHardThresholding(4, fit_intercept=True).fit(load_rows(), Z)
    np.testing.assert_allclose(thresher.load("oht").coef_, algorithm.coef_, rtol=1e-9)
    assert run(capfd, "fit", "t.parquet", "-t", "y", "-m", "single")[0] == 0
    merged, single = thresher.load("m"), thresher.load("single")
    a, b = merged.summary_.comoment(), single.summary_.comoment()
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(b).max())
    np.testing.assert_array_equal(merged.support_, single.support_)
    np.testing.assert_allclose(merged.coef_, single.coef_, rtol=1e-9)
    assert merged.feature_names_in_.tolist() == single.feature_names_in_.tolist()
    np.testing.assert_allclose(
        merged.summary_.comoment(), Gram(D + 3).absorb(load_rows(), Z).comoment(), rtol=1e-12, atol=1e-9
    )
    assert run(capfd, "predict", "m", "t.csv", "-o", "p.csv")[0] == 0


def test_summaries_that_do_not_go_together(here, capfd):
    assert run(capfd, "accumulate", "t.csv", "-t", "y", "-o", "a")[0] == 0
    assert run(capfd, "accumulate", "t.csv", "-t", "y", "-o", "b", "--drop", "x3")[0] == 0
    assert run(capfd, "fit", "t.csv", "-t", "y", "-m", "m")[0] == 0
    assert run(capfd, "fit", "a", "-m", "s")[0] == 0
    for status, arguments, message in (
        (4, ("merge", "a", "b", "-o", "c"), "b has other columns or categories than a"),
        (2, ("merge", "a", "a", "-o", "c"), "a has the same rows as a, so they would count twice"),
        (2, ("merge", "a", "-o", "b"), "b exists"),
        (4, ("merge", "a", "m", "-o", "c"), "m holds a SparseRegressor, not a summary"),
        (4, ("fit", "m"), "not a summary"),
        (2, ("fit", "a", "--target", "y"), "--target cannot be given now"),
        (4, ("fit", "t.csv", "-m", "s", "--resume"), "s was made from summaries, so there is no row of a source"),
        (2, ("fit", "a", "--method", "oht", "--round-size", "7"), "--round-size cannot be given now"),
        (2, ("fit", "a", "--selection", "cv"), "--selection cannot be given now"),
        (2, ("fit", "a", "--method", "oht"), "choosing the size needs the rows: give --sparsity N"),
        (4, ("fit", "t.csv", "-m", "a", "--resume"), "a holds a Gram; fit continues models"),
        (4, ("accumulate", "t.csv", "-o", "m", "--resume"), "m holds a SparseRegressor; fit continues models"),
    ):
        found, _, err = run(capfd, *arguments)
        assert found == status, arguments
        assert message in err


def test_an_unfinished_summary_is_refused(here, capfd, monkeypatch):
    arguments = ["accumulate", "t.csv", "-t", "y", "-o", "a", "--checkpoint-every", "500"]
    with monkeypatch.context() as patch:
        fail_after(patch, 1000)
        assert run(capfd, *arguments)[0] == 1
    for command in (("fit", "a"), ("merge", "a", "-o", "b")):
        status, _, err = run(capfd, *command)
        assert status == 4
        assert "a is not finished" in err
    assert run(capfd, *arguments, "--resume")[0] == 0
    assert run(capfd, "fit", "a")[0] == 0


def test_help_has_an_example_for_each(capfd):
    for name in ("fit", "predict", "show", "diagnose", "accumulate", "merge", "demo"):
        status, out, _ = run(capfd, name, "--help")
        assert status == 0
        assert "Example:" in out
    assert "No such command 'reproduce'" in run(capfd, "reproduce", "--help")[2]
    assert run(capfd, "--version")[1] == f"thresher {thresher.__version__}\n"


HEAVY = ("matplotlib", "scipy", "sklearn")


def loaded_after(*groups):
    """Which of the heavy libraries are loaded after each group of commands, in one process."""
    code = f"""if True:
        import sys
        from thresher.cli import main
        for commands in {groups!r}:
            for command in commands:
                assert main(command.split()) == 0, command
            print("\\nloaded", *(name for name in {HEAVY!r} if name in sys.modules))
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("loaded")]


def test_commands_load_no_more_than_they_need(here):
    summaries = ("accumulate t.csv -t y -o a", "accumulate t.parquet -t y -o b", "merge a b -o c --allow-duplicates")
    fits = ("fit c -m n", "fit t.csv -t y -m m --selection cv --groups", "fit t.csv -m m --resume")
    reads = ("show m", "diagnose m", "predict m t.csv -o p.csv", "predict m t.parquet -o p.parquet")
    loaded = loaded_after(("--help", "fit --help"), summaries, (*fits, *reads))
    assert loaded == [[], ["scipy"], ["scipy", "sklearn"]]


def test_without_its_libraries_the_command_says_what_to_install(monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "typer", None)
    status, out, err = run(capfd, "fit", "t.csv")
    assert (status, out) == (2, "")
    assert err == "The command needs typer; install it with: pip install 'thresher[cli]'\n"


def test_progress_goes_to_the_standard_error_line_by_line(here, capfd, monkeypatch):
    """Where there is no terminal; and nothing of it is in what is printed."""
    from thresher.cli import live

    monkeypatch.setattr(live, "BETWEEN", 0.0)
    monkeypatch.setattr(live, "BEFORE", 0.0)
    status, out, err = run(capfd, "fit", "t.parquet", "-t", "y", "-m", "m", "--checkpoint-every", "1000")
    assert status == 0
    lines = err.splitlines()
    assert len(lines) == 3
    assert re.fullmatch(
        r"1,000 rows   [\d,]+ rows/s   2,000 left, \d+ s   4 features   R2 0\.\d{4} on new rows", lines[0]
    )
    assert re.fullmatch(r"3,000 rows   [\d,]+ rows/s   4 features   R2 0\.\d{4} on new rows", lines[2])
    assert "rows/s" not in out
    assert run(capfd, "predict", "m", "t.parquet", "-o", "p.csv")[2].startswith("3,000 rows ")
    assert run(capfd, "predict", "m", "t.parquet", "-o", "p.csv", "--quiet")[2] == ""


def test_levels_of_a_category_are_found_by_the_command_and_by_python(here, capfd):
    pandas = pytest.importorskip("pandas")
    frame = TABLE.to_pandas()
    new = frame.drop(columns=["y", "x5"])  # x5 is not used
    model = SparseRegressor().fit(frame.assign(kind=frame["kind"].astype("category")), y="y")
    assert {"x0", "kind=b"} < {*model.get_feature_names_out()}
    assert "x5" not in model.get_feature_names_out()
    model.save("python")
    new.to_csv("new.csv", index=False)
    new.assign(kind=new["kind"].astype("category")).to_parquet("new.parquet")
    expected = model.predict(frame)
    for file in ("new.csv", "new.parquet"):
        assert run(capfd, "predict", "python", file, "-o", "p.parquet")[0] == 0
        np.testing.assert_allclose(pq.read_table("p.parquet")["prediction"].to_numpy(), expected, rtol=1e-12)
    new.assign(kind=new["kind"].where(new["x0"] > 0, None), x6=None).to_csv("gaps.csv", index=False)
    assert run(capfd, "predict", "python", "gaps.csv", "-o", "p.parquet", "--missing", "mean")[0] == 0
    share = model.summary_.mean_x[list(model.feature_names_in_).index("kind=b")]
    level = model.coef_[list(model.feature_names_in_).index("kind=b")]
    filled = np.where(X[:, 0] > 0, expected, expected + (share - (KINDS == "b")) * level)
    np.testing.assert_allclose(pq.read_table("p.parquet")["prediction"].to_numpy(), filled, rtol=1e-9)
    status, _, err = run(capfd, "predict", "python", "gaps.csv", "-o", "p.csv")
    assert (status, "'kind'" in err) == (3, True)
    new.drop(columns=["kind", "x1"]).to_csv("few.csv", index=False)
    status, _, err = run(capfd, "predict", "python", "few.csv")
    assert (status, "no column 'x1' for a feature of the model" in err) == (3, True)

    assert run(capfd, "fit", "t.csv", "-t", "y", "-m", "command")[0] == 0
    loaded = thresher.load("command")
    assert run(capfd, "predict", "command", "t.csv", "-o", "p.parquet")[0] == 0
    expected = pq.read_table("p.parquet")["prediction"].to_numpy()
    for texts in (frame, frame.assign(kind=frame["kind"].astype("category"))):
        np.testing.assert_allclose(loaded.predict(texts), expected, rtol=1e-12)
    encoded = pandas.get_dummies(frame, columns=["kind"], prefix_sep="=")[list(loaded.feature_names_in_)]
    np.testing.assert_allclose(loaded.predict(encoded.astype(float)), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame.drop(columns=["x1"]))


def test_a_model_that_keeps_nothing_predicts_from_its_first_column(here, capfd):
    A = np.c_[np.ones(N), X[:, :2]]
    noise = X[:, 2] - A @ np.linalg.lstsq(A, X[:, 2], rcond=None)[0]
    pa.csv.write_csv(pa.table({"a": X[:, 0], "b": X[:, 1], "y": noise}), "noise.csv")
    assert run(capfd, "fit", "noise.csv", "-t", "y", "-m", "m")[0] == 0
    model = thresher.load("m")
    assert not model.coef_.any()
    pa.csv.write_csv(pa.table({"a": X[:5, 0]}), "new.csv")
    assert run(capfd, "predict", "m", "new.csv", "-o", "p.parquet")[0] == 0
    assert pq.read_table("p.parquet")["prediction"].to_pylist() == [model.intercept_] * 5


def test_the_page_about_the_command_runs_as_printed(tmp_path, monkeypatch, capfd):
    """In order, in an empty directory; what it says is printed is printed.

    Lines that need a shell go to one, where the command is the one that is installed; the others run in this process.
    """
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "command.md").read_text()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    blocks, out, n_shell = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL), "", 0
    assert [language for language, _ in blocks].count("text") == 1
    for language, code in blocks:
        if language == "text":
            assert [line.rstrip() for line in out.splitlines()] == code.splitlines()
            continue
        if language == "python":
            exec(compile(code, "docs/command.md", "exec"), {"__name__": "__main__"})
        else:
            for line in code.replace("\\\n", " ").splitlines():
                if re.fullmatch(r"thresher [^|<>&;$`]*", line):
                    assert main(shlex.split(line)[1:]) == 0, line
                else:
                    n_shell += 1
                    subprocess.run(["bash", "-ec", line], env=environment, check=True)
        out = capfd.readouterr().out
    assert n_shell >= 1


def test_the_commands_of_the_tutorial_run_after_its_python(tmp_path, monkeypatch, capfd):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text()
    namespace = {"__name__": "__main__"}
    for language, code in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(code, "docs/tutorial.md", "exec"), namespace)
        for line in code.splitlines():
            if language == "console" and line.startswith("thresher "):
                assert main(shlex.split(line)[1:]) == 0, line
                capfd.readouterr()
                if line.startswith("thresher fit"):
                    assert main(shlex.split(line)[1:]) == 2
                    assert "--overwrite starts over" in capfd.readouterr().err


def test_demo(here, capfd):
    status, out, _ = run(capfd, "demo", "--plot", "d.png")
    assert status == 0
    assert "of 15 active features found" in out
    assert Path("d.png").exists()
