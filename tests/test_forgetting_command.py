"""--half-life, --window and --time-column: the same as in Python, whatever happens on the way."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import thresher
from thresher import Gram, SparseRegressor
from thresher.cli import main
from thresher.io.encoding import encode

N, D = 1500, 8
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = np.where(np.arange(N) < 700, 2.0 * X[:, 0], -1.0 * X[:, 3]) + 0.3 * RNG.standard_normal(N)
SECONDS = 1.7e9 + 60.0 * np.arange(N)
STAMPS = (SECONDS * 1e6).astype("M8[us]")
NAMES = [f"x{j}" for j in range(D)]
COLUMNS = {name: X[:, j] for j, name in enumerate(NAMES)}
TABLE = pa.table({**COLUMNS, "at": pa.array(STAMPS), "y": Y})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "t.parquet")
    pa.csv.write_csv(TABLE, "t.csv")
    pa.csv.write_csv(pa.table({**COLUMNS, "y": Y}), "rows.csv")
    pa.csv.write_csv(pa.table({**COLUMNS, "at": SECONDS, "y": Y}), "seconds.csv")
    with open("t.jsonl", "w") as file:
        for k in range(N):
            row = {**{name: X[k, j] for j, name in enumerate(NAMES)}, "at": f"{STAMPS[k]}Z", "y": Y[k]}
            file.write(json.dumps(row) + "\n")
    return tmp_path


def run(capfd, *arguments):
    status = main([str(argument) for argument in arguments])
    return status, *capfd.readouterr()


@pytest.mark.parametrize(
    ("options", "memory"),
    [
        (("--half-life", "150"), {"half_life": 150}),
        (("--window", "300"), {"window": 300}),
        (("--window", "300", "--exact-window"), {"window": 300, "exact_window": True}),
    ],
)
def test_rows_by_number(here, capfd, options, memory):
    assert run(capfd, "fit", "rows.csv", "-t", "y", "-m", "m", "-q", *options)[0] == 0
    expected = SparseRegressor(**memory).partial_fit(X, Y).finish()
    np.testing.assert_array_equal(thresher.load("m").coef_, expected.coef_)
    assert set(np.flatnonzero(expected.coef_)) >= {3}
    assert expected.coef_[0] == 0.0


@pytest.mark.parametrize("source", ["t.parquet", "t.csv", "t.jsonl", "seconds.csv"])
def test_rows_by_time_from_every_kind_of_file(here, capfd, source):
    options = ("--half-life", "2.5h", "--time-column", "at")
    assert run(capfd, "fit", source, "-t", "y", "-m", "m", "-q", *options)[0] == 0
    expected = SparseRegressor(half_life=9000.0).partial_fit(X, Y, times=SECONDS).finish()
    model = thresher.load("m")
    assert list(model.feature_names_in_) == NAMES
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.summary_.last_time == SECONDS[-1]
    assert run(capfd, "predict", "m", source, "-o", "p.parquet")[0] == 0  # needs no times


@pytest.mark.parametrize("source", ["seconds.csv", "seconds.parquet"])
def test_the_time_column_is_a_feature_if_it_is_named_as_one(here, capfd, source):
    pq.write_table(pa.table({**COLUMNS, "at": SECONDS, "y": Y}), "seconds.parquet")
    options = ("--half-life", "2.5h", "--time-column", "at", "--features", "at,x0,x3")
    assert run(capfd, "fit", source, "-t", "y", "-m", "m", "-q", *options)[0] == 0
    expected = SparseRegressor(half_life=9000.0)
    expected.partial_fit(np.column_stack([SECONDS, X[:, [0, 3]]]), Y, times=SECONDS).finish()
    model = thresher.load("m")
    assert list(model.feature_names_in_) == ["at", "x0", "x3"]
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.summary_.last_time == SECONDS[-1]
    assert run(capfd, "predict", "m", source, "-o", "p.parquet")[0] == 0
    assert run(capfd, "fit", source, "-t", "y", "-m", "dropped", "-q", *options, "--drop", "at")[0] == 0
    assert list(thresher.load("dropped").feature_names_in_) == ["x0", "x3"]


@pytest.mark.parametrize(
    ("source", "options"), [("t.csv", ()), ("t.parquet", ()), ("seconds.csv", ("--categories", "at"))]
)
def test_dates_and_categories_of_time_are_no_features(here, capfd, source, options):
    options = ("--half-life", "2.5h", "--time-column", "at", "--features", "at,x0", *options)
    status, _, said = run(capfd, "fit", source, "-t", "y", "-m", "m", "-q", *options)
    assert status != 0
    assert "is a feature only if it has numbers; leave it out of --features" in " ".join(said.split())


def test_runs_that_are_resumed_end_in_the_same_file(here, capfd):
    options = ("-t", "y", "-q", "--window", "6h", "--time-column", "at", "--checkpoint-every", "100")
    assert run(capfd, "fit", "t.csv", "-m", "whole", *options)[0] == 0
    pa.csv.write_csv(TABLE.slice(0, 850), "growing.csv")
    assert run(capfd, "fit", "growing.csv", "-m", "part", *options)[0] == 0
    pa.csv.write_csv(TABLE, "growing.csv")
    assert run(capfd, "fit", "growing.csv", "-m", "part", "--resume", "-q")[0] == 0
    part, whole = thresher.load("part"), thresher.load("whole")
    np.testing.assert_array_equal(part.coef_, whole.coef_)
    assert encode(part.summary_) == encode(whole.summary_)
    status, _, err = run(
        capfd, "fit", "growing.csv", "-m", "part", "--resume", "-q", "--window", "7h", "--time-column", "at"
    )
    assert status != 0
    assert "another --window" in err


def test_summaries_of_shards_are_aged_by_their_times(here, capfd):
    for k, part in enumerate((slice(0, 900), slice(900, N))):
        pq.write_table(TABLE.take(np.arange(N)[part]), f"{k}.parquet")
        assert (
            run(
                capfd,
                "accumulate",
                f"{k}.parquet",
                "-t",
                "y",
                "-o",
                f"{k}.s",
                "-q",
                "--half-life",
                "2h",
                "--time-column",
                "at",
            )[0]
            == 0
        )
    assert run(capfd, "merge", "1.s", "0.s", "-o", "all.s")[0] == 0
    assert run(capfd, "fit", "all.s", "-m", "m")[0] == 0
    expected = SparseRegressor(half_life=7200.0).fit(X, Y, times=SECONDS)
    np.testing.assert_allclose(thresher.load("m").coef_, expected.coef_, rtol=1e-7)
    assert thresher.load("m").half_life == 7200.0
    status, _, err = run(capfd, "fit", "all.s", "--half-life", "5", "--overwrite", "-m", "m")
    assert status != 0
    assert "--half-life cannot be given now" in err
    summary = Gram(D, half_life=7200.0).absorb(X, Y, times=SECONDS)
    np.testing.assert_allclose(thresher.load("all.s").weight, summary.weight, rtol=1e-9)


def test_late_rows_stop_the_run_or_are_left_out(here, capfd):
    order = np.arange(N)
    order[[400, 500]] = [500, 400]
    pa.csv.write_csv(TABLE.take(order), "late.csv")
    options = ("-t", "y", "-m", "m", "-q", "--half-life", "3h", "--time-column", "at")
    status, _, err = run(capfd, "fit", "late.csv", *options)
    assert status != 0
    assert "late.csv, row 402: column 'at' goes back" in err
    assert "--late-rows skip" in err
    status, out, _ = run(capfd, "fit", "late.csv", *options, "--late-rows", "skip", "--overwrite", "--json")
    assert status == 0
    kept = np.r_[order[:401], order[501:]]  # nothing from row 402 on, until times are as late as in row 401
    expected = SparseRegressor(half_life=10800.0).partial_fit(X[kept], Y[kept], times=SECONDS[kept]).finish()
    np.testing.assert_array_equal(thresher.load("m").coef_, expected.coef_)
    assert json.loads(out)["rows_skipped"] == N - len(kept)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--half-life", "0"), "--half-life 0: use a positive number"),
        (("--half-life", "-3"), "--half-life -3: use a positive number"),
        (("--window", "soon"), "--window soon: use a positive number"),
        (("--window", "2h"), "say which column has the times with --time-column"),
        (("--window", "2", "--half-life", "3"), "give one of them"),
        (("--time-column", "at"), "--time-column goes with --half-life or --window"),
        (("--exact-window",), "--exact-window goes with --window"),
        (("--half-life", "3", "--time-column", "when"), "when"),
        (("--half-life", "3", "--late-rows", "mend"), "--late-rows mend: use error or skip"),
        (("--half-life", "3", "--method", "oht"), "--half-life does not go with --method oht"),
        (("--half-life", "9999999999999d", "--time-column", "at"), "too long"),
    ],
)
def test_options_that_do_not_go(here, capfd, options, message):
    status, _, err = run(capfd, "fit", "t.csv", "-t", "y", "-q", *options)
    assert status != 0
    assert message in " ".join(err.split())


def test_columns_that_have_no_times(here, capfd):
    words = pa.array(["soon"] * N)
    for name, values, message in [
        ("words", words, "row 1: column 'at' has 'soon', and times are like"),
        ("mixed", pa.array(["2026-01-01"] * 5 + ["soon"] * (N - 5)), "row 6: column 'at' has 'soon'"),
        ("gaps", pa.array([None if k == 7 else float(k) for k in range(N)]), "row 8: column 'at' has no value"),
    ]:
        pa.csv.write_csv(TABLE.set_column(D, "at", values), f"{name}.csv")
        status, _, err = run(capfd, "fit", f"{name}.csv", "-t", "y", "-q", "--half-life", "3", "--time-column", "at")
        assert status != 0
        assert message in " ".join(err.split())
    skip = ("--missing", "skip", "-m", "m")
    assert run(capfd, "fit", "gaps.csv", "-t", "y", "-q", "--half-life", "300", "--time-column", "at", *skip)[0] == 0
    kept = np.delete(np.arange(N), 7)
    expected = SparseRegressor(half_life=300.0).partial_fit(X[kept], Y[kept], times=kept.astype(float)).finish()
    np.testing.assert_array_equal(thresher.load("m").coef_, expected.coef_)


def test_drift_and_horizon_are_those_of_the_class(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3000, 5))
    y = np.where(np.arange(3000) < 1500, 2.0, -2.0) * X[:, 3] + rng.standard_normal(3000)
    rows = np.column_stack([X, y])
    np.savetxt("flip.csv", rows, delimiter=",", header="a,b,c,d,e,y", comments="", fmt="%.17g")
    coefs = {}
    for name, given, options in (
        ("m", {}, ()),
        ("equal", {"drift": None}, ("--drift", "none")),
        ("far", {"horizon": 400}, ("--drift", "auto", "--horizon", "400")),
    ):
        assert run(capfd, "fit", "flip.csv", "-t", "y", "-q", "-m", name, *options)[0] == 0
        model, expected = thresher.load(name), SparseRegressor(**given).partial_fit(X, y).finish()
        assert (model.drift, model.horizon) == (expected.drift, expected.horizon)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        coefs[name] = model.coef_[3]
    assert coefs["m"] < -1.5 < coefs["equal"]
    status, _, err = run(capfd, "fit", "flip.csv", "-t", "y", "-q", "--drift", "no")
    assert status == 2
    assert "--drift" in err
    status, _, err = run(capfd, "fit", "flip.csv", "-t", "y", "-q", "--method", "oht", "--horizon", "3")
    assert status == 2
    assert "--horizon does not go with --method oht" in err


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (("--drift", "full", "--horizon", "20"), {"drift": "full", "horizon": 20}),
        (("--drift", "none"), {"drift": None}),
        (("--drift", "auto", "--half-life", "150"), {"half_life": 150}),
    ],
)
def test_drift(here, capfd, options, parameters):
    assert run(capfd, "fit", "rows.csv", "-t", "y", "-m", "m", "-q", *options)[0] == 0
    expected, model = SparseRegressor(**parameters).partial_fit(X, Y).finish(), thresher.load("m")
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.get_params()["drift"] == parameters.get("drift", "auto")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--drift", "some"), "auto, full or none"),
        (("--drift", "full", "--window", "300"), "leave out --half-life and --window"),
        (("--drift", "full", "--method", "oht"), "--drift does not go with --method oht"),
        (("--horizon", "0"), "--horizon"),
    ],
)
def test_what_drift_does_not_go_with(here, capfd, options, message):
    status, _, said = run(capfd, "fit", "rows.csv", "-t", "y", "-m", "m", "-q", *options)
    assert status != 0
    assert message in " ".join(said.split())
