"""Those baselines of benchmarks/peers that are written there, against scikit-learn, a closed form or themselves."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Lasso, LinearRegression

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks" / "peers"))

import earlier
import grids
import matrices
import tables
import verdicts
from learner import Learner, Method, RunningScale, Scaled
from measuring import measure
from methods import algorithm_one, gram_solvers, ours, recursive, sgd
from real import prequential

from thresher import SparseRegressor


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((150, 20)) * rng.uniform(0.1, 10.0, 20) + rng.uniform(-5.0, 5.0, 20)
    y = X[:, 3] * 0.7 - X[:, 8] * 2.0 + 3.0 + rng.standard_normal(150)
    return X, y


def test_lasso_on_a_gram_is_the_lasso_on_standardised_rows(data):
    X, y = data
    learner = gram_solvers.OnGram(20, gram_solvers.lasso, real=True, c=0.3)
    learner.learn(X, y)
    scaled, response = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    alpha = 0.3 * np.sqrt(np.log(20) / 150)
    lasso = Lasso(alpha=alpha, fit_intercept=False, tol=1e-10).fit(scaled, response)
    expected = scaled @ lasso.coef_ * y.std() + y.mean()
    np.testing.assert_allclose(learner.predict(X), expected, atol=2e-2 * y.std())


def test_the_refit_is_least_squares_on_the_support_of_the_lasso(data):
    X, y = data
    learner = gram_solvers.OnGram(20, gram_solvers.LassoThenLeastSquares(), real=True, c=0.3)
    learner.learn_block(X, y)
    support = np.flatnonzero(learner.coef)
    assert {3, 8} <= set(support)
    expected = LinearRegression().fit(X[:, support], y)
    np.testing.assert_allclose(learner.coef[support], expected.coef_, rtol=1e-6)
    np.testing.assert_allclose(learner.intercept, expected.intercept_, rtol=1e-6)


def test_rows_skipped_or_learned_one_by_one_give_the_same_estimate(data):
    X, y = data
    for learner, other in (
        [gram_solvers.OnGram(20, gram_solvers.pursuit, s=4) for _ in range(2)],
        [recursive.RecursiveLeastSquares(20, s=5, ridge=2.0) for _ in range(2)],
        [algorithm_one.AlgorithmOne(20, s=6, eta=0.003, n_warmup=30) for _ in range(2)],
    ):
        learner.learn(X, y)
        other.skip(X[:120], y[:120])
        other.learn(X[120:], y[120:])
        np.testing.assert_allclose(learner.coef, other.coef, rtol=1e-7, atol=1e-9)


def test_recursive_least_squares_is_ridge(data):
    X, y = data
    learner = recursive.RecursiveLeastSquares(20, s=3, ridge=2.0)
    learner.learn(X, y)
    ridge = np.linalg.solve(X.T @ X + 2.0 * np.eye(20), X.T @ y)
    np.testing.assert_allclose(learner.full, ridge, rtol=1e-6)
    kept = np.argsort(-np.abs(ridge))[:3]
    assert set(np.flatnonzero(learner.coef)) == set(kept)


def test_recursive_least_squares_with_an_intercept(data):
    X, y = data
    rows = np.column_stack([X, np.ones(len(y))])
    ridge = np.linalg.solve(rows.T @ rows + 0.5 * np.eye(21), rows.T @ y)
    learner = recursive.make(20, real=True, s=10_000, ridge=0.5)
    learner.learn(X, y)
    np.testing.assert_allclose(learner.predict(X), rows @ ridge, rtol=1e-6)
    few = recursive.make(20, real=True, s=3, ridge=0.5)
    few.learn(X[:70], y[:70])
    few.learn(X[70:], y[70:])
    few.estimate()
    assert set(np.flatnonzero(few.coef)) == set(np.argsort(-np.abs(ridge[:-1]) * X.std(axis=0))[:3])
    np.testing.assert_allclose(few.predict(X.mean(axis=0)[None]), X.mean(axis=0) @ ridge[:-1] + ridge[-1], rtol=1e-6)


def test_algorithm_one_on_real_rows_is_that_on_standardised_ones(data):
    X, y = data
    learner = algorithm_one.make(20, real=True, s=4, eta=0.05)
    learner.learn_block(X, y)
    coef = np.zeros(20)
    for n in range(101, 151):
        rows, response = X[:n] - X[:n].mean(axis=0), (y[:n] - y[:n].mean()) / y[:n].std()
        rows = rows / rows.std(axis=0)
        for _ in range(5):
            coef = coef - 0.05 * rows.T @ (rows @ coef - response) / n
            coef[np.argsort(-np.abs(coef))[4:]] = 0.0
    expected = rows @ coef * y.std() + y.mean()
    np.testing.assert_allclose(learner.predict(X), expected, rtol=1e-8)


def test_solving_after_every_block_ends_where_solving_after_every_row_does(data):
    X, y = data
    rows, blocks = (how(20, gram_solvers.pursuit, s=4) for how in (gram_solvers.OnGram, gram_solvers.InBlocks))
    rows.learn(X, y)
    blocks.learn(X, y)
    np.testing.assert_allclose(blocks.coef, rows.coef, rtol=1e-8, atol=1e-12)


def test_running_scales_do_not_depend_on_the_blocks(data):
    X, _ = data
    for block in (1, 7, 150):
        scale = RunningScale(20)
        for start in range(0, 150, block):
            scale.absorb(X[start : start + block])
        np.testing.assert_allclose(scale.means, X.mean(axis=0))
        np.testing.assert_allclose(scale.scales, X.std(axis=0))


def test_coefficients_of_a_scaled_method_are_in_the_units_of_the_data(data):
    X, y = data
    learner = Scaled(sgd.Sgd(10, "l1", alpha=1e-4, eta0=0.01, power_t=0.25), 20, 10)
    learner.learn(X, y)
    learner.estimate()
    np.testing.assert_allclose(learner.predict(X), X @ learner.coef + learner.intercept, rtol=1e-9)


class Mean(Learner):
    """Predicts the mean of the responses so far."""

    def __init__(self, d):
        self.coef, self.total, self.n = np.zeros(d), 0.0, 0

    def learn(self, X, y):
        self.total, self.n = self.total + y.sum(), self.n + len(y)

    def predict(self, X):
        return np.full(len(X), self.total / self.n)


def test_r2_of_the_running_mean_is_zero(data):
    X, y = np.tile(data[0], (3, 1)), np.tile(data[1], 3)
    found = prequential(Method("mean", lambda d, real: Mean(d)), {}, X, y, block=5)
    assert found["r2"] == pytest.approx(0.0, abs=1e-12)
    assert found["nonzeros"] == 0


def test_measurements_say_how_far_and_which(data):
    X, y = data
    truth = np.zeros(20)
    truth[[3, 8]] = 0.7, -2.0
    method = Method("pursuit", lambda d, s: gram_solvers.OnGram(d, gram_solvers.pursuit, s=s))
    new = np.random.default_rng(9).standard_normal((50, 20))
    first, last = measure(method, {"s": 4}, X, y, truth, new, checkpoints=(130, 150), window=10)
    assert (first["t"], last["t"]) == (130, 150)
    assert last["nonzeros"] == 4
    assert last["recall"] in (0.5, 1.0)
    assert last["precision"] == last["recall"] / 2
    assert last["seconds"] > first["seconds"] > 0.0
    learner = method.make(20, s=4)
    learner.learn(X[:150], y[:150])
    learner.estimate()
    assert last["prediction_error"] == pytest.approx(np.mean((new @ learner.coef - new @ truth) ** 2))


def test_matrix_baselines_recover_a_matrix_without_noise():
    rng = np.random.default_rng(3)
    truth = rng.standard_normal((12, 2)) @ rng.standard_normal((2, 6))
    X = rng.standard_normal((400, 12))
    for fit in (matrices.nuclear_norm((12, 6), 1e-6), matrices.ridge_then_rank(1e-6, 2)):
        np.testing.assert_allclose(fit(X, X @ truth)[0], truth, atol=1e-3)


def test_imputation_fills_what_is_missing():
    rng = np.random.default_rng(4)
    truth = np.outer(rng.standard_normal(matrices.SIDE), rng.standard_normal(matrices.SIDE))
    cells = rng.permutation(truth.size)[: truth.size // 2]
    entries = np.column_stack(np.divmod(cells, matrices.SIDE))
    fit = matrices.imputation(lambda filled: matrices.truncated(filled, 1), tol=1e-9)
    found = fit(entries, truth[tuple(entries.T)])[0]
    np.testing.assert_allclose(found, truth, atol=1e-4 * np.abs(truth).max())


def row(method, error=1.0, seconds=1.0, estimates="row", **more):
    known = {"problem": "p", "rows": 3000, "squared_error": error, "seconds": seconds}
    return {"method": method, "estimates": estimates} | known | more


def test_who_dominates_and_which_cells_are_lost():
    rows = [
        row("thresher"),
        row("both", 0.95, 0.5),
        row("rounding", 0.9995, 0.5),
        row("slower, a little better", 0.95, 2.0),
        row("slower, much better", 0.85, 2.0),
        row("faster", 1.1, 0.1),
        row("thresher refit", 0.5, 0.1, "checkpoint"),
    ]
    later = [row("thresher", rows=10_000), row("both", 1.0, 0.5, rows=10_000)]
    assert [r["method"] for r in verdicts.dominating(rows + later)] == ["both"]
    assert verdicts.dominating(rows + later, n_last=1) == []
    assert [(r["method"], r["also_faster"]) for r in verdicts.lost(rows)] == [
        ("both", "yes"),
        ("slower, much better", "no"),
    ]


def test_standings_are_among_streaming_methods():
    real = [
        row("thresher", r2=0.90, nonzeros=7),
        row("thresher, cv", r2=0.92, nonzeros=30),
        row("best", r2=0.91, nonzeros=50),
        row("near", r2=0.895, nonzeros=5, estimates="block"),
        row("far", r2=0.88, nonzeros=1),
        row("refit", r2=0.99, nonzeros=2, estimates="checkpoint"),
    ]
    (found,) = verdicts.standings(real)
    assert (found["best_peer"], found["smallest_near"], found["smallest_features"]) == ("best", "near", 5)
    assert found["behind"] == pytest.approx(0.01)


def test_estimates_of_ours_do_not_depend_on_the_size_of_calls(data):
    X, y = data
    in_calls, one_by_one = (ours.Streamed(SparseRegressor(), block) for block in (100, 1))
    for learner in (in_calls, one_by_one):
        learner.learn(X, y)
        learner.estimate()
    assert {3, 8} <= set(np.flatnonzero(in_calls.coef))
    np.testing.assert_array_equal(in_calls.coef, one_by_one.coef)


def test_the_paper_settings_of_ours_are_algorithm_one_line_by_line():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((400, 80))
    y = X[:, 3] - X[:, 8] + rng.standard_normal(400)
    learner, plain = ours.Streamed(ours.thresholding(real=False)), algorithm_one.AlgorithmOne(80, s=50, eta=0.001)
    for method in (learner, plain):
        method.learn(X, y)
        method.estimate()
    assert np.count_nonzero(plain.coef) == 50
    np.testing.assert_allclose(learner.coef, plain.coef, rtol=1e-9, atol=1e-12)


def test_algorithm_one_is_tuned_over_steps_of_every_length_and_over_their_number(data):
    settings = next(one for one in ours.METHODS if one.name.endswith("tuned")).settings()
    assert {setting["eta"] for setting in settings} == {0.001, 0.01, 0.1, 0.3, "auto"}
    assert {setting["n_steps"] for setting in settings} == {1, 5, 20}
    X, y = data
    for setting in ({"s": 3, "eta": 0.1, "n_steps": 5}, {"s": 3, "eta": "auto", "n_steps": 1}):
        learner = ours.Streamed(ours.tuned(True, **setting))
        learner.learn(X, y)
        learner.estimate()
        assert {3, 8} <= set(np.flatnonzero(learner.coef))
        assert len(np.flatnonzero(learner.coef)) == 3


def test_certified_steps_have_no_place_on_the_scale_of_a_grid():
    tried = [{"eta": eta, "s": 10} for eta in (0.1, 0.3, "auto")]
    assert [one["eta"] for one in grids.beyond(tried, {"eta": 0.3, "s": 10})] == [0.9]
    assert list(grids.beyond(tried, {"eta": "auto", "s": 10})) == []


def test_baselines_of_an_earlier_report_are_taken_only_with_the_same_setting(tmp_path):
    head = "problem,method,estimates,rows,runs,squared_error,setting,note,grows,measured\n"
    lines = [
        'p,good,row,3000,5,1.5e-05,"{""s"": 3}",,no,now\n',
        'p,other setting,row,3000,5,0.25,"{""s"": 4}",,no,now\n',
        "p,thresher,row,3000,5,0.25,{},,no,now\n",
        "p,gone,row,3000,5,0.25,{},,no,now\n",
    ]
    (tmp_path / "peers.csv").write_text(head + "".join(lines))
    (tmp_path / "real.csv").write_text('problem,method,runs,r2,setting\nq,good,5,0.5,"{""s"": 3}"\n')
    settings = {
        ("p", "good"): {"s": 3},
        ("p", "other setting"): {"s": 3},
        ("p", "thresher"): {},
        ("q", "good"): {"s": 3},
    }
    first, second = earlier.read(tmp_path, settings)
    assert (first["method"], first["rows"], first["squared_error"]) == ("good", 3000, 1.5e-5)
    assert "measured" not in first
    assert (second["problem"], second["rows"], second["r2"]) == ("q", 0, 0.5)


def test_tables_have_at_most_six_columns():
    known = {"formatting_per_row": 0.0, "microseconds_per_row": 5.0, "nonzeros": 7, "precision": 1.0, "recall": 0.5}
    known |= {"rank": "", "state_bytes": 80, "grows": "no", "setting": "{}", "prediction_error": 0.3}
    synthetic = [
        row(method, error, rows=t, **known)
        for method, error in (("thresher", 1.0), ("better", 0.5))
        for t in (300, 1000, 3000, 10_000)
    ]
    real = [row(method, r2=r2, **known) for method, r2 in (("thresher", 0.9), ("thresher, cv", 0.8), ("better", 0.91))]
    text = tables.tables(synthetic, real)
    assert "better 2.00" in text
    assert "better 0.910 (7)" in text
    assert max(line.count("|") for line in text.splitlines()) == 7


def test_a_grid_is_continued_where_its_best_value_is_the_last():
    def error(setting):
        return abs(np.log(setting["c"] / 0.02)) + abs(np.log(setting["s"] / 12))

    scores = {}

    def score(setting):
        scores[json.dumps(setting)] = error(setting)

    grids.complete(
        [{"c": c, "s": s} for c in (0.1, 0.2, 0.4) for s in (5, 10, 20, grids.ALL)],
        lambda: list(scores),
        score,
        lambda: json.loads(min(scores, key=scores.get)),
    )
    tried = [json.loads(key) for key in scores]
    assert {setting["c"] for setting in tried} == {0.1, 0.2, 0.4, 0.05, 0.025, 0.013}
    assert {setting["s"] for setting in tried} == {5, 10, 20, grids.ALL}
    assert list(grids.beyond([{"s": s} for s in (4, 8, 16, grids.ALL)], {"s": 16})) == [{"s": 32}]
    assert list(grids.beyond([{"s": s} for s in (4, 8, 16, grids.ALL)], {"s": grids.ALL})) == []
