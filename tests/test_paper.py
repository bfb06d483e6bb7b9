"""The paper's experiments: what a cell computes, against Algorithm 1 and least squares in plain NumPy."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from oracles import algorithm_1, last, matrix_algorithm_1
from thresher.paper import figure_weak_t0
from thresher.paper.cells import Cell, Method
from thresher.paper.item import Profile, Results
from thresher.paper.running import Result, run_cell
from thresher.rivals import OSLasso
from thresher.streams.synthetic import LowRankStream, SparseLinearStream

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
    assert found["o", 260] == pytest.approx(2 * (5 + 4 - 2) / 260)


def test_rows_follow_from_design_and_seed_alone():
    one, other = (Method("a", "oht", (50,), 0, size, 1, 0.1) for size in (2, 3))
    cell = Cell("some", SPARSE, 0, (one,))
    assert cell.data_seed == Cell("another", SPARSE, 0, (other,)).data_seed
    assert cell.data_seed != Cell("some", SPARSE, 1, (one,)).data_seed
    assert cell.data_seed != Cell("some", SPARSE | {"correlation": 0.3}, 0, (one,)).data_seed
    digests = {Cell("some", SPARSE, 0, (method,)).digest for method in (one, other)}
    assert len(digests) == 2
    assert run_cell(cell) == run_cell(cell)


def test_an_item_is_drawn_and_judged_from_its_results():
    matplotlib.use("Agg")
    profile = Profile("quick", 60, 20, 3, (4, 4), 1, 1, 1)
    cells = figure_weak_t0.cells(profile)
    assert len({cell.key for cell in cells}) == len(cells) == 2
    found = [
        Result(cell.name, cell.seed, method.label, t, 0.1 if method.kind != "os_lasso" else 30.0 / method.t0)
        for cell in cells
        for method in cell.methods
        for t in method.times
    ]
    figure = plt.figure(layout="constrained")
    figure_weak_t0.draw(Results(found), profile, figure)
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    np.testing.assert_allclose(lines["OS_LASSO K=20"], [30.0 / t0 for t0 in (20, 100, 200, 500)])
    np.testing.assert_allclose(lines["OHT K=5"], 0.1)
    assert [claim.verdict for claim in figure_weak_t0.claims(Results(found), profile)] == ["holds"] * 4
    worse = [r._replace(mse=r.mse * (2.0 if "t0=500" in r.method and "OHT" in r.method else 1.0)) for r in found]
    verdicts = [claim.verdict for claim in figure_weak_t0.claims(Results(worse), profile)]
    assert verdicts == ["holds", "does not hold"] * 2
    plt.close(figure)
