"""Choosing a rank: paths, criteria and folds against the rows themselves."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from oracles import design, folds_of, keep_rank, shown
from thresher import (
    Entries,
    Gram,
    LowRankRegressor,
    MatrixCompleter,
    MultiResponse,
    ReducedRankRegressor,
    SparseRegressor,
)
from thresher.io.sources.synthetic import LowRankStream
from thresher.selection.completion_ranks import CompletionRanks
from thresher.selection.cross_validation import CrossValidation
from thresher.selection.ebic import Ebic
from thresher.selection.noise_edge import NoiseEdge
from thresher.selection.response_ranks import ResponseRanks
from thresher.selection.sensing_ranks import SensingRanks

KINDS = ["independent", "correlated", "duplicated", "scaled", "constant"]


def responses(seed, n, p, q, r, kind="independent", noise=1.0):
    rng = np.random.default_rng(seed)
    X = design(rng, kind, n, p)
    B = rng.standard_normal((p, r)) @ rng.standard_normal((r, q)) / np.sqrt(p)
    return X, X @ B + rng.standard_normal(q) + noise * rng.standard_normal((n, q)), B


def entries(seed, shape, r, n, noise):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], r)) @ rng.standard_normal((r, shape[1]))
    i, j = rng.integers(0, shape[0], n), rng.integers(0, shape[1], n)
    return (i, j, truth[i, j] + noise * rng.standard_normal(n)), truth


def by_rank(X, Y, r, centred):
    """Reduced-rank regression from the rows: fitted values of least squares, and those of rank r closest to them.

    Residual sum of squares, coefficients and intercepts.
    """
    mean_x, mean_y = (X.mean(axis=0), Y.mean(axis=0)) if centred else (np.zeros(X.shape[1]), np.zeros(Y.shape[1]))
    A, b = X - mean_x, Y - mean_y
    fitted = A @ np.linalg.lstsq(A, b, rcond=1e-10)[0]
    coef = np.linalg.lstsq(A, keep_rank(fitted, r), rcond=1e-10)[0]
    return ((b - keep_rank(fitted, r)) ** 2).sum(), coef, mean_y - mean_x @ coef


def edge_by_definition(X, Y, n_ranks, factor):
    """The criterion from the rows, with what noise of the residual covariance gains along each direction."""
    (n, q), A, b = Y.shape, X - X.mean(axis=0), Y - Y.mean(axis=0)
    fitted = A @ np.linalg.lstsq(A, b, rcond=1e-10)[0]
    p = np.linalg.matrix_rank(A, tol=1e-5 * np.linalg.norm(A))
    vt = np.linalg.svd(fitted, full_matrices=False)[2]
    of_noise = (b - fitted).T @ (b - fitted)
    total, price = np.trace(of_noise), 0.0
    for k in range(1, n_ranks + 1):
        rss = ((b - keep_rank(fitted, k)) ** 2).sum()
        gain = (np.sqrt(p) + np.sqrt(q)) ** 2
        if n - 1 - p > q:
            gain = (np.sqrt(p * vt[k - 1] @ of_noise @ vt[k - 1]) + np.sqrt(total)) ** 2 / (total / q)
        price += n * q * np.log(1.0 + factor * gain / (n * q - k * (p + q - k)))
        yield n * q * np.log(rss / (n * q)) + price


# -- paths and criteria ----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    n=st.integers(120, 200),
    q=st.integers(1, 7),
    centred=st.booleans(),
)
def test_path_of_responses_is_reduced_rank_regression(seed, kind, n, q, centred):
    X, Y, _ = responses(seed, n, 12, q, 2, kind)
    path = ResponseRanks(centred).path(MultiResponse(12, q).absorb(X, Y), min(q, 12))
    n_own = np.linalg.matrix_rank(X - X.mean(axis=0) if centred else X, tol=1e-5 * np.linalg.norm(X))
    assert list(path.sizes) == list(range(1, min(q, n_own) + 1))
    assert not path.strength.any()  # ten rows for each feature are enough for least squares
    for r in path.sizes:
        rss, coef, intercept = by_rank(X, Y, r, centred)
        np.testing.assert_allclose(2.0 * n * q * path.loss[r - 1], rss, rtol=1e-6, atol=1e-7 * (Y**2).sum())
        A = X - X.mean(axis=0) if centred else X
        np.testing.assert_allclose(A @ path.coef(r), A @ coef, atol=1e-4 * np.abs(Y).max())
        assert np.linalg.matrix_rank(path.coef(r)) <= r
        np.testing.assert_allclose(
            X @ path.coef(r) + path.intercept(path.coef(r)), X @ coef + intercept, atol=1e-4 * np.abs(Y).max()
        )


@pytest.mark.parametrize(("n", "kind"), [(250, "correlated"), (150, "duplicated")])
def test_criteria_of_responses_equal_their_definitions(n, kind):
    X, Y, _ = responses(3, n, 20, 6, 2, kind)
    Y *= np.exp(0.5 * np.random.default_rng(0).standard_normal(6))
    model = ReducedRankRegressor(selection=NoiseEdge(1.5)).fit(X, Y)
    n_ranks = len(model.selection_.sizes)
    expected = list(edge_by_definition(X, Y, n_ranks, 1.5))
    np.testing.assert_allclose(model.selection_.criterion, expected, rtol=1e-8)
    assert model.rank_ == model.selection_.chosen == 1 + int(np.argmin(expected))
    assert (model.selection_.method, model.selection_.n_samples) == ("noise_edge", n)
    p = np.linalg.matrix_rank(X - X.mean(axis=0), tol=1e-5 * np.linalg.norm(X))
    model = ReducedRankRegressor(selection="ebic").fit(X, Y)
    expected = [
        n * 6 * np.log(by_rank(X, Y, r, True)[0] / (n * 6)) + r * (p + 6 - r) * np.log(n * 6)
        for r in model.selection_.sizes
    ]
    np.testing.assert_allclose(model.selection_.criterion, expected, rtol=1e-8)
    assert "of 1.." in repr(model.selection_)


def test_candidates_of_sensing_are_as_good_as_many_plain_steps():
    """Beside projected gradient steps on the rows, run to the end: within a small part of the price of a rank."""
    stream, n = LowRankStream((8, 7), 2, signal=0.5, seed=3), 250
    X, y = stream.draw(n)
    rows = X.reshape(n, -1) - X.reshape(n, -1).mean(axis=0)
    path = SensingRanks((8, 7)).path(Gram(56).absorb(X.reshape(n, -1), y), 4)
    eta, theta = 1.0 / np.linalg.norm(rows, 2) ** 2, np.zeros((8, 7))
    for r in path.sizes:
        for _ in range(2000):
            pull = rows.T @ (y - y.mean() - rows @ theta.reshape(-1))
            theta = keep_rank(theta + eta * pull.reshape(8, 7), r)
        rss = ((y - y.mean() - rows @ theta.reshape(-1)) ** 2).sum()
        price = 2.0 * (np.sqrt(8) + np.sqrt(7)) ** 2
        assert abs(n * np.log(2 * n * path.loss[r - 1] / rss)) < 0.15 * price
        residual = y - X.reshape(n, -1) @ path.coef(r).reshape(-1) - path.intercept(r)
        np.testing.assert_allclose(2 * n * path.loss[r - 1], (residual**2).sum(), rtol=1e-9)
    edge = n * np.log(2 * path.loss) + np.cumsum(n * np.log1p(price / (n - path.freedom)))
    np.testing.assert_allclose(NoiseEdge().criterion(path), edge, rtol=1e-12)
    assert list(path.freedom) == [14, 26, 36, 44]


@pytest.mark.parametrize("offsets", [False, True])
def test_candidates_of_a_completion_are_as_good_as_imputation(offsets):
    """Beside iterated SVD imputation, run to the end."""
    shape, n = (30, 20), 1000
    (i, j, v), _ = entries(1, shape, 2, n, 0.5)
    v = v + 3.0 * offsets * np.random.default_rng(0).standard_normal(30)[i]
    summary = Entries(shape).absorb(i, j, v)
    path = CompletionRanks(offsets).path(summary, 3)
    counts, means = summary.counts, np.divide(summary.sums, np.maximum(summary.counts, 1.0))
    step = 1.0 / counts.max()
    theta, a, b = np.zeros(shape), np.zeros((30, 1)), np.zeros((1, 20))
    for r in path.sizes:
        for _ in range(3000):
            theta = keep_rank(theta + step * counts * (means - theta - a - b), r)
            if offsets:
                a = np.sum(counts * (means - theta - b), axis=1, keepdims=True) / counts.sum(axis=1, keepdims=True)
                b = np.sum(counts * (means - theta - a), axis=0, keepdims=True) / counts.sum(axis=0, keepdims=True)
        rss = ((v - (theta + a + b)[i, j]) ** 2).sum()
        price = 2.0 * (np.sqrt(30) + np.sqrt(20)) ** 2
        assert n * np.log(2 * n * path.loss[r - 1] / rss) < 0.15 * price
        rows, cols = path.offsets[r - 1]
        residual = v - path.coef(r)[i, j] - rows[i] - cols[j]
        np.testing.assert_allclose(2 * n * path.loss[r - 1], (residual**2).sum(), rtol=1e-9)
    assert list(path.freedom) == [49 + 49 * offsets, 96 + 49 * offsets, 141 + 49 * offsets]


def test_rows_and_columns_without_observations_do_not_count():
    (i, j, v), _ = entries(2, (40, 30), 2, 900, 0.3)
    small = CompletionRanks().path(Entries((40, 30)).absorb(i, j, v))
    large = CompletionRanks().path(Entries((400, 300)).absorb(3 * i + 7, 2 * j, v))
    np.testing.assert_allclose(NoiseEdge().criterion(large), NoiseEdge().criterion(small), rtol=1e-9)
    np.testing.assert_allclose(large.coef(2)[3 * i + 7, 2 * j], small.coef(2)[i, j], atol=1e-9)


# -- the rank that is there ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_true_rank_is_found(seed):
    stream = LowRankStream((12, 10), 2, seed=seed)
    assert LowRankRegressor().fit(*stream.draw(300)).rank_ == 2
    X, Y, _ = responses(seed, 600, 80, 10, 3)
    assert ReducedRankRegressor().fit(X, Y).rank_ == 3
    assert ReducedRankRegressor().fit(X[:60], Y[:60]).rank_ in (2, 3)  # fewer rows than features
    observed, _ = entries(seed, (100, 80), 3, 2400, 1.0)
    assert MatrixCompleter(shape=(100, 80)).fit(*observed).rank_ == 3
    assert MatrixCompleter(selection="ebic").fit(*observed).rank_ <= 3
    assert MatrixCompleter().partial_fit(*observed).rank_ == 3


def test_unequal_and_common_noise_is_no_rank():
    for seed in range(3):
        rng = np.random.default_rng(seed + 100)
        X, Y, _ = responses(seed, 1000, 100, 20, 4, noise=0.0)
        unequal = np.exp(0.7 * rng.standard_normal(20)) * rng.standard_normal((1000, 20))
        common = rng.standard_normal((1000, 20)) + np.outer(rng.standard_normal(1000), rng.standard_normal(20))
        assert ReducedRankRegressor().fit(X, Y + unequal).rank_ == 4
        assert ReducedRankRegressor().fit(X, Y + common).rank_ == 4


def test_weak_directions_are_kept_where_the_bic_would_lose_them():
    kept = {"noise_edge": 0.0, "ebic": 0.0}
    for seed in range(5):
        X, Y, B = responses(seed, 200, 10, 10, 3)
        Y += 2.0 * np.random.default_rng(seed + 100).standard_normal(Y.shape)
        for name in kept:
            kept[name] += ((ReducedRankRegressor(selection=name).fit(X, Y).coef_.T - B) ** 2).sum()
    assert kept["noise_edge"] < 0.8 * kept["ebic"]


def test_without_noise_the_rank_is_exact_and_noise_alone_has_rank_one(rng):
    X, Y, _ = responses(1, 200, 15, 6, 2, noise=0.0)
    assert ReducedRankRegressor().fit(X, Y).rank_ == 2
    assert ReducedRankRegressor().partial_fit(X, rng.standard_normal((200, 6))).rank_ == 1
    stream = LowRankStream((8, 6), 1, signal=1.0, noise=0.0, seed=1)
    assert LowRankRegressor().fit(*stream.draw(200)).rank_ == 1
    assert LowRankRegressor().partial_fit(rng.standard_normal((300, 8, 6)), rng.standard_normal(300)).rank_ == 1
    observed, truth = entries(1, (40, 30), 2, 1000, 0.0)
    model = MatrixCompleter().fit(*observed)
    assert model.rank_ == 2
    np.testing.assert_allclose(model.coef_, truth, atol=1e-2)
    constant = ReducedRankRegressor().partial_fit(X, np.full((200, 6), 2.5))
    assert (constant.rank_, np.abs(constant.coef_).max()) == (1, 0.0)
    assert MatrixCompleter().partial_fit([0, 1, 2], [1, 0, 1], [0.0, 0.0, 0.0]).rank_ == 1


# -- folds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_folds", "centred", "weighted"), [(5, True, False), (3, False, True)])
def test_folds_equal_cross_validation_on_the_rows(n_folds, centred, weighted):
    n = 243
    X, Y, _ = responses(2, n, 14, 5, 2, "scaled")
    w = np.random.default_rng(0).integers(1, 4, n) if weighted else np.ones(n, int)
    model = ReducedRankRegressor(selection=CrossValidation(n_folds), fit_intercept=centred)
    model.fit(X, Y, sample_weight=w if weighted else None)
    errors = np.empty((n_folds, len(model.selection_.sizes)))
    for f in range(n_folds):
        test = folds_of(X, Y, n_folds) == f
        A, b = np.repeat(X[~test], w[~test], axis=0), np.repeat(Y[~test], w[~test], axis=0)
        for r in model.selection_.sizes:
            _, coef, intercept = by_rank(A, b, r, centred)
            error = ((Y[test] - X[test] @ coef - intercept) ** 2).mean(axis=1)
            errors[f, r - 1] = np.average(error, weights=w[test])
    np.testing.assert_allclose(model.selection_.criterion, errors.mean(axis=0), rtol=1e-7)
    assert model.rank_ == 1 + int(np.argmin(errors.mean(axis=0)))


@pytest.mark.parametrize("centred", [False, True])
def test_folds_of_a_sensing_stream_choose_once(centred):
    X, y = LowRankStream((6, 5), 2, signal=1.0, seed=2).draw(500)
    model = LowRankRegressor(selection="cv", n_warmup=120, fit_intercept=centred).partial_fit(X, y)
    whole = LowRankRegressor(selection="cv", fit_intercept=centred).fit(X[:120], y[:120])
    assert model.selection_.n_samples == 120
    np.testing.assert_allclose(model.selection_.criterion, whole.selection_.criterion, rtol=1e-6)
    errors = []
    for f in range(5):
        test = folds_of(X[:120], y[:120], 5) == f
        path = SensingRanks((6, 5), centred).path(Gram(30).absorb(X[:120][~test].reshape(-1, 30), y[:120][~test]), 4)
        predicted = [X[:120][test].reshape(-1, 30) @ path.coef(r).reshape(-1) + path.intercept(r) for r in (1, 2, 3)]
        errors.append([((y[:120][test] - values) ** 2).mean() for values in predicted])
    # A candidate is left once another round could not change the choice, so summaries that differ by rounding agree in
    # two digits or so.
    np.testing.assert_allclose(model.selection_.criterion[:3], np.mean(errors, axis=0), rtol=2e-2)
    assert 2 <= model.rank_ <= 3
    with pytest.raises(ValueError, match="selection='ebic'"):
        LowRankRegressor(selection="cv", shape=(6, 5)).fit_summary(model.summary_)


# -- the contract of every estimator ---------------------------------------------------------------------------

N = 400


def data(kind):
    if kind == "sensing":
        return LowRankStream((6, 5), 2, signal=0.5, seed=1).draw(N)
    if kind == "responses":
        return responses(1, N, 15, 6, 2)[:2]
    i, j, v = entries(1, (12, 9), 2, N, 0.3)[0]
    if kind == "growing":
        order = np.argsort(np.maximum(i, j), kind="stable")
        i, j, v = i[order], j[order], v[order]
    return i, j, v


def of_responses(**parameters):
    """There are no rounds to be described."""
    return ReducedRankRegressor(**{k: v for k, v in parameters.items() if k in ("rank", "selection", "fit_intercept")})


MAKERS = {
    "sensing": lambda **k: LowRankRegressor(**k),
    "responses": of_responses,
    "completion": lambda **k: MatrixCompleter(shape=(12, 9), **k),
    "offsets": lambda **k: MatrixCompleter(shape=(12, 9), **{"offsets": True, "round_size": 13} | k),
    "growing": lambda **k: MatrixCompleter(**k),
}
BY_ROUNDS = [kind for kind in MAKERS if kind != "responses"]
FITTED = {
    "sensing": lambda *a: Gram(30).absorb(a[0].reshape(len(a[0]), -1), a[1]),
    "responses": lambda *a: MultiResponse(15, 6).absorb(*a),
    "completion": lambda *a: Entries((12, 9)).absorb(*a),
    "offsets": lambda *a: Entries((12, 9)).absorb(*a),
}


def cut(arrays, a, b):
    return tuple(array[a:b] for array in arrays)


def sizes_of(model):
    return [(record.n_samples, record.size) for record in model.selection_history_]


def state(model):
    return pickle.dumps(
        {name: value for name, value in vars(model).items() if name not in ("_checked_parameters", "_lock")}
    )


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize(
    "parameters",
    [{}, {"n_warmup": 37, "round_size": 6}, {"selection": "ebic", "step_size": 0.01}, {"selection": "cv"}],
    ids=shown,
)
@pytest.mark.filterwarnings("ignore:step_size=")
def test_any_cut_gives_bit_identical_results(kind, parameters):
    if parameters.get("selection") == "cv" and kind not in ("sensing", "responses"):
        with pytest.raises(ValueError, match="use 'noise_edge' or 'ebic'"):
            MAKERS[kind](**parameters).partial_fit(*data(kind))
        return
    arrays, w = data(kind), np.random.default_rng(5).uniform(0.5, 2.0, N)
    whole = MAKERS[kind](**parameters).partial_fit(*arrays, w)
    for sizes in ([1] * N, [64, 1, 63, 128, 144], [7] * 57 + [1]):
        pieces = MAKERS[kind](**parameters)
        for a, b in pairwise(np.cumsum([0, *sizes])):
            pieces.partial_fit(*cut(arrays, a, b), w[a:b])
        np.testing.assert_array_equal(pieces.coef_, whole.coef_)
        np.testing.assert_array_equal(pieces.selection_.criterion, whole.selection_.criterion)
        assert pieces.rank_ == whole.rank_
        if kind in BY_ROUNDS:
            assert sizes_of(pieces) == sizes_of(whole)
            assert pieces.n_rounds_ == whole.n_rounds_


@pytest.mark.parametrize("kind", FITTED)
def test_weights_are_repeats_and_a_summary_is_enough(kind):
    arrays = data(kind)
    k = np.random.default_rng(1).integers(0, 4, N)
    a = MAKERS[kind](max_iter=3000).fit(*arrays, k.astype(float))
    b = MAKERS[kind](max_iter=3000).fit(*(np.repeat(array, k, axis=0) for array in arrays))
    assert a.rank_ == b.rank_ == 2
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-4 * np.abs(b.coef_).max())
    np.testing.assert_allclose(a.selection_.criterion, b.selection_.criterion, rtol=1e-4)
    shape = {"shape": (6, 5)} if kind == "sensing" else {}
    whole = FITTED[kind](*cut(arrays, 0, 150)).merge(FITTED[kind](*cut(arrays, 150, N)))
    c = MAKERS[kind](**shape).fit_summary(whole)
    d = MAKERS[kind]().fit(*arrays)
    np.testing.assert_allclose(c.coef_, d.coef_, atol=1e-4 * np.abs(d.coef_).max())
    assert c.rank_ == d.rank_
    c.partial_fit(*arrays)
    assert (c.n_samples_seen_, c.rank_) == (2 * N, 2)
    assert c.selection_.n_samples > N


@pytest.mark.parametrize("kind", MAKERS)
def test_a_copy_made_mid_stream_ends_bit_identical(kind):
    arrays = data(kind)
    model = MAKERS[kind]().partial_fit(*cut(arrays, 0, 170))
    twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model]
    for twin in twins:
        twin.partial_fit(*cut(arrays, 170, N)).finish()
    for twin in twins[:2]:
        np.testing.assert_array_equal(twin.coef_, model.coef_)
        assert twin.rank_ == model.rank_
    assert model.rank_ == 2


@pytest.mark.parametrize("kind", MAKERS)
def test_rank_may_change_between_chosen_and_given(kind):
    arrays = data(kind)
    model = MAKERS[kind](rank=3).partial_fit(*cut(arrays, 0, 150))
    assert not hasattr(model, "selection_")
    assert model.rank_ == 3
    model.set_params(rank="auto").partial_fit(*cut(arrays, 150, N)).finish()
    assert model.rank_ == MAKERS[kind]().partial_fit(*arrays).rank_ == model.selection_.chosen == 2
    if kind in BY_ROUNDS:
        assert (sizes_of(model)[0][1], sizes_of(model)[-1][1]) == (3, 2)
    model.set_params(rank=1).partial_fit(*cut(arrays, 0, 30)).finish()
    assert (model.rank_, np.linalg.matrix_rank(np.atleast_2d(model.coef_), tol=1e-8)) == (1, 1)
    assert not hasattr(model, "selection_")
    before = state(model)
    for bad in ({"rank": "some"}, {"rank": 0}, {"rank": 2.5}, {"selection": "aic"}, {"selection": 3}):
        model.set_params(**bad)
        with pytest.raises(ValueError, match=next(iter(bad))):
            model.partial_fit(*arrays)
        model.set_params(rank=1, selection="noise_edge")
        assert state(model) == before
    with pytest.raises(ValueError, match="NaN"):
        model.set_params(rank="auto").partial_fit(*arrays[:-1], np.full(arrays[-1].shape, np.nan))
    assert model.set_params(rank=1) is model
    assert state(model) == before


@pytest.mark.parametrize("kind", MAKERS)
def test_the_first_samples_are_no_trouble(kind):
    arrays = data(kind)
    model = MAKERS[kind]()
    zero = MAKERS[kind]().partial_fit(*cut(arrays, 0, 5), np.zeros(5))
    assert not zero.coef_.any()
    with pytest.raises(ValueError, match="empty"):
        zero.path()
    for i in range(25):
        model.partial_fit(*cut(arrays, i, i + 1))
        assert np.isfinite(model.coef_).all()
        assert model.path().sizes[0] == 1
    zero.partial_fit(*arrays)
    assert zero.rank_ == 2


@pytest.mark.parametrize("kind", MAKERS)
def test_path_shows_every_rank_from_the_summary_alone(kind):
    arrays = data(kind)
    with pytest.raises(NotFittedError):
        MAKERS[kind]().path()
    model = MAKERS[kind]().fit(*arrays)
    path = model.path()
    np.testing.assert_array_equal(path.criterion, model.selection_.criterion)
    np.testing.assert_array_equal(path.sizes, model.selection_.sizes)
    assert model.rank_ == path.sizes[np.argmin(path.criterion)]
    assert [c.shape for c in path.coef] == [model.coef_.shape] * len(path.sizes)
    other = MAKERS[kind](rank=1, selection="ebic").partial_fit(*arrays).path()
    np.testing.assert_allclose(other.loss, path.loss, rtol=1e-6)
    weight = model.summary_.weight
    bic_like = np.diff(other.criterion) - np.diff(weight * np.log(other.loss)) * (6 if kind == "responses" else 1)
    assert np.all(bic_like > 0.0)
    assert len(repr(path).split("\n")) == 1 + len(path.sizes)
    if kind == "sensing":
        residual = arrays[1] - np.einsum("nij,kij->kn", arrays[0], np.array(path.coef))
        np.testing.assert_allclose(path.loss, (residual**2).mean(axis=1) / 2.0, rtol=1e-8)
        centred = LowRankRegressor(fit_intercept=True).fit(*arrays).path()
        residual = arrays[1] - np.einsum("nij,kij->kn", arrays[0], np.array(centred.coef))
        np.testing.assert_allclose(centred.loss, residual.var(axis=1) / 2.0, rtol=1e-8)
    if kind == "responses":
        residual = arrays[1] - np.einsum("np,kqp->knq", arrays[0], np.array(path.coef))
        np.testing.assert_allclose(path.loss, residual.var(axis=1).sum(axis=1) / 2.0, rtol=1e-8)


def test_path_of_one_response():
    X, Y, _ = responses(1, 100, 5, 3, 1)
    model = ReducedRankRegressor().fit(X, Y[:, 0])
    assert (model.rank_, model.path().coef[0].shape, model.coef_.shape) == (1, (5,), (5,))


def test_history_is_short_and_holds_no_matrices():
    for kind in BY_ROUNDS:
        model = MAKERS[kind](round_size=3, n_warmup=20).partial_fit(*data(kind))
        seen = [record.n_samples for record in model.selection_history_]
        assert seen[0] == 20
        assert all((n - 20) % 3 == 0 for n in seen)
        assert all(1.25 * a < b <= 1.25 * a + 4 for a, b in pairwise(seen))
        for record in model.selection_history_:
            assert record.part is None
            assert not len(record.values)
            assert not len(record.support)


def test_features_are_not_priced_like_ranks():
    with pytest.raises(ValueError, match="factor must be"):
        NoiseEdge(1.0)
    X, Y, _ = responses(0, 50, 5, 2, 1)
    with pytest.raises(ValueError, match="selection='ebic'"):
        SparseRegressor(selection=NoiseEdge()).fit(X, Y[:, 0])
    assert ReducedRankRegressor(selection=Ebic(0.0)).fit(X, Y).rank_ >= 1


def test_the_error_does_not_peak_where_rows_are_as_many_as_features():
    """Least squares is all variance there."""
    X, Y, B = responses(5, 120, 60, 8, 2)
    model, errors = ReducedRankRegressor(), {}
    for n in range(120):
        model.partial_fit(X[n : n + 1], Y[n : n + 1])
        errors[n + 1] = ((model.coef_.T - B) ** 2).sum()
    exact = ((by_rank(X[:64], Y[:64], 2, True)[1] - B) ** 2).sum()
    assert max(errors[n] for n in range(50, 80)) < 1.3 * errors[30] < 0.5 * exact
