"""Columns that appear while a stream goes on. The truth is a summary, or a model, that saw zeros from the start."""

import numpy as np
import pytest
from sklearn.base import clone

import thresher
from thresher import CrossValidation, Ebic, Gram, Groups, OnlineHardThresholding, SparseRegressor
from thresher.inference.diagnostics import diagnose
from thresher.io.encoding import encode
from thresher.online.dense import DenseRounds
from thresher.online.samples import Rows
from thresher.online.sparse import SparseRounds
from thresher.selection.history import stability


def staircase(rng, n, d, first, every):
    """Rows with one more column that is not zero after every few of them, and how many such columns there are."""
    known = np.minimum(first + np.arange(n) // every, d)
    X = (rng.standard_normal((n, d)) + 3.0 * rng.standard_normal(d)) * (np.arange(d) < known[:, None])
    coef = np.where(rng.permutation(d) < 5, 2.0, 0.0)
    return X, X @ coef + rng.standard_normal(n), known


def grown_gram(X, y, known, weights=None, dtype="float64"):
    gram = Gram(int(known[0]), dtype)
    for i, d in enumerate(known):
        if d > gram.n_features:
            gram = gram.grown(int(d))
        gram.absorb(X[i : i + 1, :d], y[i : i + 1], None if weights is None else weights[i : i + 1])
    return gram


def assert_same_moments(one, other, tol=1e-12):
    scale = np.sqrt(np.diag(other.comoment()) + 1e-300)
    assert one.n_features == other.n_features
    assert one.n_samples == other.n_samples
    assert one.weight == pytest.approx(other.weight, rel=1e-14)
    for read in ("comoment", "second_moment"):
        np.testing.assert_allclose(
            getattr(one, read)(), getattr(other, read)(), rtol=0, atol=tol * max(scale.max() ** 2, 1.0)
        )
    np.testing.assert_allclose(one.mean_x, other.mean_x, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(one.cross_comoment(), other.cross_comoment(), rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(one.variance(), other.variance(), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 50, 128, 400])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_widened_summary_has_seen_zeros(n, dtype):
    rng = np.random.default_rng(n)
    X, y, w = 5.0 + rng.standard_normal((n, 4)), rng.standard_normal(n), rng.uniform(0.0, 2.0, n)
    padded = np.hstack([X, np.zeros((n, 3))])
    before = Gram(4, dtype).absorb(X, y, w)
    wide = before.copy().grown(7)
    tol = 1e-12 if dtype == "float64" else 1e-4
    assert_same_moments(wide, Gram(7, dtype).absorb(padded, y, w), tol)
    # It goes on as one that had been as wide from the start, and the first one stays as it was.
    more, z = rng.standard_normal((300, 7)), rng.standard_normal(300)
    wide.absorb(more, z)
    assert_same_moments(wide, Gram(7, dtype).absorb(padded, y, w).absorb(more, z), tol)
    assert_same_moments(before, Gram(4, dtype).absorb(X, y, w), tol)


def test_widened_summary_of_held_rows_and_of_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 100)), rng.standard_normal(40)
    wide = Gram(100, hold_rows=True).absorb(X, y).grown(120)
    more = rng.standard_normal((90, 120))
    wide.absorb(more, more[:, 0])
    expected = Gram(120).absorb(np.pad(X, ((0, 0), (0, 20))), y).absorb(more, more[:, 0])
    assert_same_moments(wide, expected)
    assert Gram(2).grown(5).n_features == 5


def test_widening_rejects_fewer_columns():
    gram = Gram(4).absorb(np.eye(4), np.arange(4.0))
    with pytest.raises(ValueError, match=r"Cannot widen a summary of 4 features to 3; select"):
        gram.copy().grown(3)
    with pytest.raises(ValueError, match="positive integer"):
        gram.copy().grown(0)
    assert gram.copy().grown(4).n_features == 4


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_summary_that_grew_is_worth_one_that_saw_zeros(dtype, tmp_path):
    rng = np.random.default_rng(3)
    X, y, known = staircase(rng, 500, 60, first=3, every=5)
    weights = rng.uniform(0.5, 2.0, 500)
    grown, expected = grown_gram(X, y, known, weights, dtype), Gram(60, dtype).absorb(X, y, weights)
    tol = 1e-12 if dtype == "float64" else 1e-4
    assert len(grown.state.scatter) > 60  # there is room for columns to come, which must not show anywhere
    assert_same_moments(grown, expected, tol)
    theta = rng.standard_normal(60)
    rtol = 1e-9 if dtype == "float64" else 1e-4
    assert grown.loss(theta, None) == pytest.approx(expected.loss(theta, None), rel=rtol)
    np.testing.assert_allclose(grown.gradient(theta, 0.3), expected.gradient(theta, 0.3), rtol=rtol, atol=100 * rtol)
    assert_same_moments(grown.merge(expected), expected.merge(grown), tol)
    assert_same_moments(grown.copy(), expected, tol)
    assert_same_moments(grown.select([50, 2]), expected.select([50, 2]), tol)
    half = Gram(60, dtype).absorb(X[:250], y[:250], weights[:250])
    assert_same_moments(grown.subtract(half), expected.subtract(half), tol)
    grown.save(tmp_path / "grown")
    again = thresher.load(tmp_path / "grown")
    for gram in (again, grown, expected):
        gram.absorb(X, y)
    assert_same_moments(again, grown, 0.0)
    assert_same_moments(again, expected, tol)
    coef = np.where(np.arange(60) < 3, 1.0, 0.0)
    assert str(diagnose(grown, coef, 3, True, None, [])) == str(diagnose(expected, coef, 3, True, None, []))


def test_growing_copies_the_matrix_rarely():
    gram, matrices = Gram(1), set()
    for d in range(2, 400):
        gram = gram.grown(d)
        gram.absorb(np.ones((1, d)), np.ones(1))
        matrices.add(len(gram.state.scatter))
        assert len(gram.state.scatter) <= d + d // 8
    assert len(matrices) < 60


def test_groups_may_follow_on_a_summary_that_grew():
    # Compiled code hands the matrix to BLAS by its address, so there must be no room in it for columns to come.
    rng = np.random.default_rng(4)
    X, y, known = staircase(rng, 400, 20, first=3, every=5)
    labels = np.arange(20) // 2
    grown, exact = grown_gram(X, y, known), Gram(20).absorb(X, y)
    for gram in (grown, exact):
        DenseRounds(gram, Groups(labels, 2), True, True)
    results = [
        DenseRounds(gram, Groups(labels, 2), True, True).absorb(Rows(X, y), np.zeros((1, 5))) for gram in (grown, exact)
    ]
    np.testing.assert_allclose(results[0].coef, results[1].coef, rtol=1e-10, atol=1e-12)


SCALED = {"fit_intercept": True, "standardize": True}
SETTINGS = {
    "pursuit": (OnlineHardThresholding, {"sparsity": 5, "rule": "pursuit", **SCALED}),
    "more than there are": (OnlineHardThresholding, {"sparsity": 45, "rule": "pursuit", **SCALED}),
    "hard": (OnlineHardThresholding, {"sparsity": 4, "round_size": 3, **SCALED}),
    "reciprocal": (OnlineHardThresholding, {"sparsity": 5, "rule": "reciprocal", **SCALED}),
    # Steps below the inverse of the largest eigenvalue, or rounding would be amplified until nothing agrees.
    "paper": (OnlineHardThresholding, {"sparsity": 6, "step_size": 0.0004, "n_steps": 7}),
    "no intercept": (OnlineHardThresholding, {"sparsity": 4, "standardize": True}),
    "long warm-up": (OnlineHardThresholding, {"sparsity": 5, "n_warmup": 40, "round_size": 70, **SCALED}),
    "float32": (OnlineHardThresholding, {"sparsity": 5, "rule": "pursuit", "dtype": "float32", **SCALED}),
    "direct": (SparseRegressor, {"sparsity": 5}),
    "direct, more than there are": (SparseRegressor, {"sparsity": 45}),
    "direct, no intercept": (SparseRegressor, {"sparsity": 4, "fit_intercept": False}),
    "direct, float32": (SparseRegressor, {"sparsity": 5, "dtype": "float32"}),
}


def streamed(model, X, y, known, weights=None):
    """The rows one by one, each with the columns that are known by then."""
    model._growing = True
    for i, d in enumerate(known):
        if i and d > model.n_features_in_:
            model._widen(int(d))
        model.partial_fit(X[i : i + 1, :d], y[i : i + 1], None if weights is None else weights[i : i + 1])
    return model


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("d", "first", "every"), [(24, 2, 9), (60, 40, 3), (90, 1, 4)])
def test_a_model_that_grew_is_worth_one_that_saw_zeros(name, d, first, every):
    rng = np.random.default_rng(len(name) + d)
    X, y, known = staircase(rng, 450, d, first, every)
    weights = rng.uniform(0.2, 3.0, len(X)) if name in ("hard", "direct") else None
    kind, parameters = SETTINGS[name]
    grown, expected = streamed(kind(**parameters), X, y, known, weights), kind(**parameters)
    expected._growing = True
    expected.partial_fit(X, y, weights)
    tol = 1e-9 if "float32" not in name else 1e-5
    np.testing.assert_array_equal(grown.support_, expected.support_)
    np.testing.assert_allclose(grown.coef_, expected.coef_, rtol=tol, atol=tol)
    np.testing.assert_allclose(grown.intercept_, expected.intercept_, rtol=tol, atol=tol)
    assert getattr(grown, "n_rounds_", None) == getattr(expected, "n_rounds_", None)
    assert grown.sparsity_ == expected.sparsity_
    assert [one.n_samples for one in grown.selection_history_] == [one.n_samples for one in expected.selection_history_]
    # While there are no more rows than parameters, many supports fit perfectly, and rounding chooses among them.
    first = grown.sparsity_ + 2 if kind is SparseRegressor else 0
    histories = [[one for one in model.selection_history_ if one.n_samples >= first] for model in (grown, expected)]
    assert len(histories[0]) > 5
    for one, other in zip(*histories, strict=True):
        np.testing.assert_array_equal(one.support, other.support)
    shares = [stability(history, grown.n_samples_seen_, grown.n_features_in_) for history in histories]
    np.testing.assert_allclose(*shares, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("selection", [Ebic(), CrossValidation(n_folds=3, n_samples=300)])
def test_a_chosen_size_after_growth(selection):
    # The criterion depends on the number of columns known at the time, but once all are, the choice is the same.
    rng = np.random.default_rng(11)
    X, y, known = staircase(rng, 1500, 40, first=20, every=1)
    grown = streamed(SparseRegressor(selection=selection), X, y, known)
    expected = SparseRegressor(selection=selection).partial_fit(X, y)
    np.testing.assert_array_equal(grown.support_, expected.support_)
    np.testing.assert_allclose(grown.coef_, expected.coef_, rtol=1e-8, atol=1e-10)
    assert grown.selection_.chosen == expected.selection_.chosen
    np.testing.assert_allclose(grown.selection_.criterion, expected.selection_.criterion, rtol=1e-8)


def test_compiled_rounds_without_a_certificate_agree_after_growth():
    # An infinite bound looks at all features in every step, so a wrong one for a new column would show as a difference.
    rng = np.random.default_rng(5)
    X, y, known = staircase(rng, 300, 50, first=10, every=3)
    rounds = {scale: SparseRounds(Gram(10), 4, True, True, scale, "hard") for scale in (1.0, np.inf)}
    for i, d in enumerate(known):
        for scale, one in rounds.items():
            if d > one.summary.n_features:
                one = SparseRounds(one.summary.grown(int(d)), 4, True, True, scale, "hard").adopt(one)
                rounds[scale] = one
            one.absorb(Rows(X[i : i + 1, :d], y[i : i + 1]), np.zeros((1, 5)))
        np.testing.assert_allclose(rounds[1.0].coef, rounds[np.inf].coef, rtol=1e-8, atol=1e-10)
    assert rounds[1.0].tallies["certified"] > 0


def test_growth_across_sizes_of_blocks():
    # Blocks are longer from 1032 columns on: what is summed is the same, in another order.
    rng = np.random.default_rng(6)
    X, y, known = staircase(rng, 420, 1100, first=1000, every=2)
    grown = streamed(SparseRegressor(5), X, y, known)
    assert grown.summary_.block_size > Gram(1000).block_size
    expected = SparseRegressor(5).partial_fit(X[:, : known[-1]], y)
    np.testing.assert_array_equal(grown.support_, expected.support_)
    np.testing.assert_allclose(grown.coef_, expected.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("model", "place"),
    [
        (SparseRegressor(3), "thresher.summaries._widening.padded"),
        (SparseRegressor(selection=CrossValidation(3)), "thresher.selection.cross_validation.copy"),
        (OnlineHardThresholding(3), "thresher.summaries._widening.padded"),
        (OnlineHardThresholding(3), "thresher.online.gram_rounds.padded"),
    ],
)
def test_growth_that_fails_changes_nothing(monkeypatch, model, place):
    rng = np.random.default_rng(7)
    X, y, known = staircase(rng, 200, 20, first=5, every=20)
    model, untouched = (streamed(clone(model), X[:150], y[:150], known[:150]) for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(place, lambda *_: (_ for _ in ()).throw(MemoryError("no room")))
        with pytest.raises(MemoryError):
            model._learn(Rows(rng.standard_normal((4, 100)), np.ones(4)))
    d = model.n_features_in_
    assert encode(model) == encode(untouched)
    for one in (model, untouched):
        one.partial_fit(X[150:, :d], y[150:])
    np.testing.assert_array_equal(model.coef_, untouched.coef_)
    np.testing.assert_array_equal(model.summary_.comoment(), untouched.summary_.comoment())


@pytest.mark.parametrize(
    "make", [lambda: SparseRegressor(estimate="posterior_mean"), lambda: OnlineHardThresholding(2)]
)
def test_a_posterior_that_was_read_knows_columns_that_come_later(make, rng):
    """Also before the first row that has them is learned."""
    X, y = rng.standard_normal((200, 3)), rng.standard_normal(200)
    model = make()
    model._learn(Rows(X, y, None))
    model._sample()
    model._learn(Rows(np.empty((0, 5)), np.empty(0), None))
    assert model.n_features_in_ == len(model.coef_) == len(model._sample().coef) == 5
