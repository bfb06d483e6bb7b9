"""The paper's experiments: what a cell computes, against Algorithm 1 and least squares in plain NumPy."""

import csv
import gzip
import html
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oracles import algorithm_1, last, matrix_algorithm_1
from thresher import cli
from thresher._progress import Progress
from thresher.paper import command, figure_weak_s, figure_weak_t0, runner, store, table_lowrank, table_sparse
from thresher.paper.cells import Cell, Method
from thresher.paper.command import main
from thresher.paper.item import Line, Results
from thresher.paper.items import ITEMS
from thresher.paper.profiles import FULL, QUICK
from thresher.paper.report import report, show, wall
from thresher.paper.reproducing import reproduce
from thresher.paper.runner import run_cells
from thresher.paper.running import Result, run_cell, run_together
from thresher.paper.store import Finished
from thresher.paper.trends import converges, is_inverse, ratio, slope, stalls
from thresher.rivals import OSLasso
from thresher.streams.synthetic import LowRankStream, SparseLinearStream

TINY = replace(
    QUICK,
    n_rounds=60,
    n_rounds_matrix_free=100,
    n_features=110,
    shape=(8, 8),
    batches=(20, 150, 400),
    n_points=6,
    vector_seeds=2,
    matrix_seeds=1,
)
SPARSE = {"matrix": False, "n_features": 30, "n_active": 4, "signal": 1.0, "correlation": 0.5}


def errors(cell):
    return {(result.method, result.t): result.mse for result in run_cell(cell)}


def drawn(stream, n):
    """Rows as a cell draws them, in blocks of 256."""
    blocks = [stream.draw(256) for _ in range(-(-n // 256))]
    return tuple(np.concatenate(parts)[:n] for parts in zip(*blocks, strict=True))


def test_methods_of_a_cell_see_the_same_rows_and_end_where_they_would_alone():
    methods = (
        Method("a", "oht", (150, 300), 40, 6, 3, 0.05),
        Method("b", "oht", (300,), 0, 4, 1, 0.02),
        Method("c", "os_lasso", (300,), 60, 0, 2, 0.05),
        Method("d", "oracle", (150, 300)),
        Method("e", "default", (300,)),
    )
    cell = Cell("some", SPARSE, 3, methods)
    found = errors(cell)
    assert set(found) == {("a", 150), ("a", 300), ("b", 300), ("c", 300), ("d", 150), ("d", 300), ("e", 300)}
    stream = SparseLinearStream(30, 4, 0.5, 1.0, seed=cell.data_seed)
    truth = stream.coef
    X, y = drawn(stream, 300)
    for (name, t), theta in {
        ("a", 150): last(algorithm_1(X[:150], y[:150], 6, 3, 0.05, 40)),
        ("a", 300): last(algorithm_1(X, y, 6, 3, 0.05, 40)),
        ("b", 300): last(algorithm_1(X, y, 4, 1, 0.02, 0)),
        ("c", 300): OSLasso(60, n_steps=2, step_size=0.05).partial_fit(X, y).coef_,
        ("d", 150): np.r_[np.linalg.lstsq(X[:150, :4], y[:150], rcond=None)[0], np.zeros(26)],
    }.items():
        assert found[name, t] == pytest.approx(((theta - truth) ** 2).sum(), rel=1e-6)
    assert found["e", 300] < 0.2


def test_a_cell_of_matrices():
    design = {"matrix": True, "shape": (5, 4), "rank": 2, "signal": 1.0}
    cell = Cell("matrices", design, 0, (Method("a", "oht", (260,), 20, 2, 2, 0.1), Method("o", "oracle", (260,))))
    found = errors(cell)
    stream = LowRankStream((5, 4), 2, 1.0, seed=cell.data_seed)
    truth = stream.coef
    X, y = drawn(stream, 260)

    def project(theta):
        u, s, vt = np.linalg.svd(theta.reshape(5, 4), full_matrices=False)
        return ((u[:, :2] * s[:2]) @ vt[:2]).reshape(20, 1)

    theta = matrix_algorithm_1(X.reshape(260, 20), y[:, None], project, 2, 0.1, 20)
    assert found["a", 260] == pytest.approx(((theta.reshape(5, 4) - truth) ** 2).sum(), rel=1e-6)
    u, _, vt = np.linalg.svd(truth)
    tangent = [np.outer(u[:, i], vt[j]).ravel() for i in range(5) for j in range(4) if min(i, j) < 2]
    assert len(tangent) == 2 * (5 + 4 - 2)
    least_squares = np.linalg.lstsq(X.reshape(260, 20) @ np.array(tangent).T, y, rcond=None)[0]
    assert found["o", 260] == pytest.approx(((least_squares @ tangent - truth.ravel()) ** 2).sum(), rel=1e-6)


def test_rows_follow_from_design_and_seed_alone():
    one, other = (Method("a", "oht", (50,), 0, size, 1, 0.1) for size in (2, 3))
    cell = Cell("some", SPARSE, 0, (one,))
    assert cell.data_seed == Cell("another", SPARSE, 0, (other,)).data_seed
    assert cell.data_seed != Cell("some", SPARSE, 1, (one,)).data_seed
    assert cell.data_seed != Cell("some", SPARSE | {"correlation": 0.3}, 0, (one,)).data_seed
    digests = {Cell("some", SPARSE, 0, (method,)).digest for method in (one, other)}
    assert len(digests) == 2
    assert run_cell(cell) == run_cell(cell)


def made_up(cells, error):
    """Results of cells without running them."""
    return [
        Result(cell.name, cell.seed, method.label, t, error(method, t))
        for cell in cells
        for method in cell.methods
        for t in method.times
    ]


def plain(method, t):
    """One over rows, K = 1 twice that, and a support from a small batch that misses something for good."""
    missed = 30.0 / method.t0 if method.kind == "os_lasso" else 0.0
    return (2.0 if method.n_steps == 1 else 1.0) / t + missed


def test_figure_of_batch_sizes_is_judged_by_what_is_in_it():
    cells = figure_weak_t0.cells(QUICK)
    assert len({cell.key for cell in cells}) == len(cells) == 2 * QUICK.vector_seeds
    found = made_up(cells, plain)
    panel = figure_weak_t0.panels(Results(found), QUICK)[0]
    at = np.array(QUICK.batches)
    np.testing.assert_allclose(panel.lines["OHT K=1"].medians, 2.0 / (at + QUICK.n_rounds))
    np.testing.assert_allclose(panel.lines["OS_LASSO K=20"].medians, 1.0 / (at + QUICK.n_rounds) + 30.0 / at)
    assert [claim.verdict for claim in figure_weak_t0.claims(Results(found), QUICK)] == ["holds"] * 4
    worse = [r._replace(mse=r.mse * (2.0 if "t0=500" in r.method and "OHT" in r.method else 1.0)) for r in found]
    verdicts = [claim.verdict for claim in figure_weak_t0.claims(Results(worse), QUICK)]
    assert verdicts == ["holds", "does not hold"] * 2


def test_figure_of_projection_sparsities_says_up_to_which_s_more_steps_help():
    cells = figure_weak_s.cells(QUICK)

    def first(claims):
        return claims[0].verdict, claims[0].evidence

    def error(upper):
        return lambda method, t: 2.0 if method.n_steps == 1 and method.size <= upper else 1.0

    assert first(figure_weak_s.claims(Results(made_up(cells, error(30))), QUICK))[0] == "holds"
    verdict, evidence = first(figure_weak_s.claims(Results(made_up(cells, error(20))), QUICK))
    assert verdict == "holds with a change"
    assert "for s up to 20" in evidence
    assert first(figure_weak_s.claims(Results(made_up(cells, error(0))), QUICK))[0] == "does not hold"


def test_low_rank_claims_follow_slopes_and_ratios():
    cells = table_lowrank.cells(QUICK)

    def error(method, t):
        return max(method.size, 1) / t if method.size >= QUICK.rank else 1.0 / method.size if method.size else 1.0 / t

    verdicts = {claim.text: claim.verdict for claim in table_lowrank.claims(Results(made_up(cells, error)), QUICK)}
    assert set(verdicts.values()) == {"holds"}
    assert len(verdicts) == 6
    verdicts = [claim.verdict for claim in table_lowrank.claims(Results(made_up(cells, plain)), QUICK)]
    assert verdicts == ["does not hold"] * 6  # too small a rank converges, too large a one costs nothing


def test_slopes_are_those_of_power_laws():
    x = QUICK.times(0, 1000)
    line = Line(x, np.array([[3.0 * t**-1.5 for t in x], [5.0 * t**-1.5 for t in x]]))
    assert slope(line) == pytest.approx(-1.5)
    assert converges(line)
    assert not is_inverse(line)
    assert stalls(Line(x, 1.0 + 0.0 * line.errors))
    np.testing.assert_allclose(ratio(line, Line(x, 2.0 * line.errors)), 0.5)


@pytest.mark.parametrize("name", list(ITEMS))
def test_every_item_can_be_shown_and_judged(name):
    item = ITEMS[name]
    for profile in (QUICK, FULL):
        cells = item.cells(profile)
        assert len({cell.digest for cell in cells}) == len({cell.key for cell in cells}) == len(cells)
        results = Results(made_up(cells, plain))
        for panel in item.panels(results, profile):
            assert {"default", "oracle"} <= set(panel.lines)
            assert all(line.errors.shape[1] == len(line.x) > 0 for line in panel.lines.values())
        assert item.claims(results, profile)
        for table in item.tables(results, profile):
            assert profile.is_full or not table.printed
            assert all(len(row) == len(table.columns) for row in [*table.rows.values(), *table.printed.values()])


def test_cells_shared_by_items_are_the_same():
    by_key = {}
    for item in ITEMS.values():
        for cell in item.cells(FULL):
            assert by_key.setdefault(cell.key, cell.digest) == cell.digest


def test_the_papers_tables_are_the_printed_ones():
    """The rows of the tables as they stand in the source, spacing included."""
    sparse = "0.519131  & 0.529622 &  0.376415 &   0.239696  &  0.138760 & 0.126439"
    assert table_sparse.PRINTED["OHT K=1"] == tuple(float(number) for number in sparse.split("&"))
    lowrank = "10.8299 & 5.2613 & 0.0499 & 0.1350 & 0.1990 & 0.2516"
    assert table_lowrank.PRINTED["OHT K=20"] == tuple(float(number) for number in lowrank.split("&"))


def tiny_cells(n=6, n_rows=300):
    return [Cell("tiny", SPARSE, seed, (Method("a", "oht", (20, n_rows), 10, 3, 2, 0.1),)) for seed in range(n)]


def test_a_cell_is_kept_and_not_run_again(tmp_path, monkeypatch):
    cells = tiny_cells(3)
    first = run_cells(cells, tmp_path, n_jobs=1)
    monkeypatch.setattr(runner, "run_together", None)
    again = run_cells(cells, tmp_path, n_jobs=1)
    assert [one.results for one in again] == [one.results for one in first] == [run_cell(cell) for cell in cells]
    with pytest.raises(TypeError):
        run_cells(tiny_cells(4), tmp_path, n_jobs=1)
    monkeypatch.setattr(store, "__version__", "another")
    with pytest.raises(TypeError):
        run_cells(cells, tmp_path, n_jobs=1)


def test_a_file_that_is_not_a_cell_is_named(tmp_path):
    (cell,) = tiny_cells(1)
    (tmp_path / f"{cell.digest}.json").write_text("{")
    with pytest.raises(ValueError, match=f"{cell.digest}.*not a finished cell"):
        run_cells([cell], tmp_path, n_jobs=1)


def test_cells_of_matrices_run_together_end_as_alone():
    design = {"matrix": True, "shape": (21, 20), "rank": 2, "signal": 1.0}
    cells = [
        Cell(f"s={s}", design, 0, tuple(Method(f"K={K}", "oht", (150, 470), 30, s, K, 0.01) for K in (1, 4)))
        for s in (2, 4)
    ]
    together = run_together(cells)
    for cell, found in zip(cells, together, strict=True):
        alone = run_cell(cell)
        assert [r[:4] for r in found] == [r[:4] for r in alone]
        np.testing.assert_allclose([r.mse for r in found], [r.mse for r in alone], rtol=1e-7)


def test_progress_tells_the_time_that_is_left(capsys, monkeypatch):
    clock = iter([0.0, 10.0, 30.0, 400.0])
    monkeypatch.setattr("thresher._progress.time.monotonic", lambda: next(clock))
    with Progress(1, 4, True, done=5.0, total=20.0) as shown:
        shown.advance("a", 5.0)
        shown.advance("b", 2.5)
        shown.advance("c", 7.5)
    assert capsys.readouterr().err.splitlines() == ["2 of 4, 20 s left: a", "3 of 4, 30 s left: b", "4 of 4: c"]


COMMAND = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_paper import tiny_cells
from thresher.paper.runner import run_cells
if __name__ == "__main__":
    run_cells(tiny_cells(8, 20_000), Path(sys.argv[2]), n_jobs=2, progress=True)
"""


def test_killed_or_interrupted_it_goes_on_where_it_was(tmp_path):
    script, kept = tmp_path / "script.py", tmp_path / "cells"
    script.write_text(COMMAND)
    arguments = [sys.executable, script, Path(__file__).parent, kept]
    n_lines = []
    for blow in (signal.SIGKILL, signal.SIGINT, None):
        with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
            lines = [process.stderr.readline()]
            if blow:
                process.send_signal(blow)
            lines += process.stderr.readlines()
            assert process.wait(60) == (-blow if blow else 0)
        n_lines.append(sum(" of 8" in line for line in lines))
    assert n_lines[0] < 8
    assert n_lines[2] < 8
    cells = tiny_cells(8, 20_000)
    found = run_cells(cells, kept, n_jobs=1)
    assert [one.results for one in found] == [run_cell(cell) for cell in cells]
    assert sorted(path.suffix for path in kept.iterdir() if path.suffix == ".json") == [".json"] * 8


def test_report_holds_everything_and_nothing_outside(tmp_path):
    """From cells to files, at sizes that take a moment."""
    items = [ITEMS[name] for name in ("table-sparse", "figure-free-initial")]
    shown = reproduce(items, TINY, tmp_path, n_jobs=1)
    page = (tmp_path / "report.html").read_text()
    assert "quick profile" in page
    assert page.count("<img ") == sum(len(one.panels) for one in shown) == 4
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)
    for one in shown:
        assert all(html.escape(claim.text) in page for claim in one.claims)
        for suffix in (".png", ".svg"):
            assert (tmp_path / "figures" / one.item.name).with_suffix(suffix).stat().st_size > 1000
    with gzip.open(tmp_path / "results.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    table = shown[0].tables[0]
    picked = [
        float(row["mse"]) for row in rows if row["method"] == f"OHT K=5 s=20 {table.caption}" and row["t"] == "160"
    ]
    np.testing.assert_array_equal(picked, table.rows["OHT K=5"][2])
    content = (tmp_path / "results.csv.gz").read_bytes()
    reproduce(items, TINY, tmp_path, n_jobs=1)
    assert (tmp_path / "results.csv.gz").read_bytes() == content


def test_numbers_of_the_paper_stand_beside_full_sizes_only():
    item = ITEMS["table-sparse"]
    for profile, expected in ((FULL, True), (QUICK, False)):
        results = Results(made_up(item.cells(profile), plain))
        finished = {cell.digest: Finished(cell, [], 0.0, 1.0) for cell in item.cells(profile)}
        page = report([show(item, results, profile, finished)], profile)
        assert ("0.519" in page) == ("in brown the paper" in page) == expected


def test_wall_time_counts_what_runs_side_by_side_once():
    cell = tiny_cells(1)[0]
    spans = [(0.0, 4.0), (1.0, 2.0), (3.0, 6.0), (10.0, 11.0)]
    assert wall([Finished(cell, [], *span) for span in spans]) == 7.0


def test_command_refuses_what_it_does_not_know(capsys):
    for arguments, message in (
        (["reproduce", "--only", "figure-9"], "figure-9"),
        (["reproduce", "--seeds", "0"], "at least 1"),
        (["redo"], "redo"),
    ):
        with pytest.raises(SystemExit) as error:
            cli.main(arguments)
        assert error.value.code == 2
        assert message in capsys.readouterr().err


def test_command_writes_a_report_and_says_what_holds(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "QUICK", TINY)
    assert cli.main(["reproduce", "--quick", "--seeds", "1", "--jobs", "1", "--only", "figure-free-initial"]) == 0
    out, err = capsys.readouterr()
    assert "[holds]" in out or "[does not hold]" in out
    assert "1 of 1: figure-free-initial seed=0" in err
    assert (tmp_path / "reproduction" / "quick" / "report.html").exists()


def test_command_says_how_to_go_on_when_interrupted(tmp_path, capsys, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_together", interrupt)
    monkeypatch.setattr(command, "QUICK", TINY)
    assert main(["--quick", "--jobs", "1", "--only", "rates", "--output", str(tmp_path)]) == 130
    assert "same command goes on" in capsys.readouterr().out
