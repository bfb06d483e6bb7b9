"""The contract of every estimator of a matrix or of groups, and what each is for."""

import copy
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import threadpoolctl
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import thresher._utils.memory
from oracles import completion_algorithm_1, keep_groups, keep_rank, matrix_algorithm_1, shown
from thresher import (
    Entries,
    Gram,
    LowRankRegressor,
    MatrixCompleter,
    MultiResponse,
    OnlineHardThresholding,
    ReducedRankRegressor,
    SparseRegressor,
)
from thresher.io.sources.synthetic import LowRankStream


@parametrize_with_checks(
    [
        ReducedRankRegressor(),
        ReducedRankRegressor(1, fit_intercept=False),
        ReducedRankRegressor(selection="cv"),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# -- one stream of data per estimator --------------------------------------------------------------------------

N = 300
LABELS = np.repeat(["a", "b", "c", "d", "e"], 4)
CENTRED = {"fit_intercept": True, "standardize": True}


def data(kind, seed=0):
    """Arrays that partial_fit takes, all of length N, and the truth."""
    rng = np.random.default_rng(seed)
    if kind in COMPLETIONS:
        truth = rng.standard_normal((9, 2)) @ rng.standard_normal((2, 7))
        i, j = rng.integers(0, 9, N), rng.integers(0, 7, N)
        i[:9], j[:7] = np.arange(9), np.arange(7)
        return (i, j, truth[i, j] + 0.1 * rng.standard_normal(N)), truth
    if kind == "sensing":
        truth = rng.standard_normal((5, 2)) @ rng.standard_normal((2, 4))
        X = rng.standard_normal((N, 5, 4)) + 0.5
        return (X, (X * truth).sum(axis=(1, 2)) + 2.0 + 0.1 * rng.standard_normal(N)), truth
    X = rng.standard_normal((N, 20)) * np.exp(rng.normal(size=20)) + 1.0
    if kind == "groups":
        truth = np.where(np.isin(LABELS, ["b", "d"]), rng.choice([-1.0, 1.0], 20), 0.0)
        return (X, X @ truth + 2.0 + 0.1 * rng.standard_normal(N)), truth
    B = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 4))
    return (X, X @ B + 2.0 + 0.1 * rng.standard_normal((N, 4))), B.T


def additive(k):
    return {"offsets": True, "round_size": 10} | k


MAKERS = {
    "sensing": lambda **k: LowRankRegressor(2, **{"fit_intercept": True} | k),
    "many responses": lambda **k: ReducedRankRegressor(2, **k),
    "groups": lambda **k: OnlineHardThresholding(2, groups=LABELS, **CENTRED | k),
    "completion": lambda **k: MatrixCompleter(2, shape=(9, 7), **{"shrink": False, "round_size": 1} | k),
}
MAKERS["offsets"] = lambda **k: MatrixCompleter(2, shape=(9, 7), **additive(k))
MAKERS["growing"] = lambda **k: MatrixCompleter(2, **{"shrink": False} | k)
KINDS = [kind for kind in MAKERS if kind not in ("offsets", "growing")]
BY_ROUNDS = [kind for kind in KINDS if kind != "many responses"]
COMPLETIONS = ("completion", "offsets", "growing")
SUMMARIES = {
    "sensing": lambda X, y: Gram(20).absorb(X.reshape(len(X), -1), y),
    "many responses": lambda X, y: MultiResponse(20, 4).absorb(X, y),
    "groups": lambda X, y: Gram(20).absorb(X, y),
    "completion": lambda i, j, v: Entries((9, 7)).absorb(i, j, v),
}


def weights():
    return np.random.default_rng(5).uniform(0.5, 2.0, N)


def cut(arrays, a, b):
    return tuple(array[a:b] for array in arrays)


def with_shape(model):
    return model.set_params(shape=(5, 4)) if isinstance(model, LowRankRegressor) else model


def predicted(model, kind, arrays):
    return model.predict(*arrays[:2]) if kind in COMPLETIONS else model.predict(arrays[0])


def state(model):
    return pickle.dumps(
        {name: value for name, value in vars(model).items() if name not in ("_checked_parameters", "_lock")}
    )


# -- Algorithm 1 -----------------------------------------------------------------------------------------------


def prepared(X, Y, w, centred, standardized):
    """Rows and responses about their means, weights that add up to one, and the scales as a column."""
    v = w / w.sum()
    Z, R = (X - v @ X, Y - v @ Y) if centred else (X, Y)
    return Z, R, v, np.sqrt(v @ Z**2)[:, None] if standardized else np.ones((X.shape[1], 1))


def iterates(X, Y, w, project, K, eta, t0, every, centred, standardized):
    """Algorithm 1 from the rows themselves: coefficients and intercepts after each row."""
    theta, intercept = np.zeros((X.shape[1], Y.shape[1])), np.zeros(Y.shape[1])
    for n in range(1, len(X) + 1):
        if n > t0 and (n - t0) % every == 0:
            Z, R, v, scale = prepared(X[:n], Y[:n], w[:n], centred, standardized)
            for k in range(K):
                pull = Z.T @ (v[:, None] * (R - Z @ theta)) / scale
                step = eta((n - t0) // every, k) if callable(eta) else eta
                theta = project(scale * theta + step * pull) / scale
        if centred and (n <= t0 or (n - t0) % every == 0):
            v = w[:n] / w[:n].sum()
            intercept = v @ Y[:n] - v @ X[:n] @ theta
        yield theta, intercept


def longest_step(X, Y, w, t0, centred, standardized):
    """The inverse of the largest curvature at any round: shorter steps do not amplify rounding errors."""
    largest = 0.0
    for n in range(t0 + 1, len(X) + 1):
        Z, _, v, scale = prepared(X[:n], Y[:n], w[:n], centred, standardized)
        largest = max(largest, np.linalg.norm(np.sqrt(v)[:, None] * Z / scale.T, 2) ** 2)
    return 1.0 / largest


def assert_iterate(actual, expected, size, rtol=1e-9):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * max(size, 1e-300))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["sensing", "groups"]),
    shape=st.tuples(st.integers(1, 6), st.integers(1, 5)),
    size=st.integers(1, 4),
    K=st.sampled_from([1, 2, 5]),
    eta=st.floats(0.01, 0.9),
    schedule=st.booleans(),
    t0=st.integers(0, 40),
    every=st.sampled_from([1, 1, 2, 7]),
    weighted=st.booleans(),
    centred=st.booleans(),
    standardized=st.booleans(),
)
@example(1, "sensing", (6, 5), 2, 5, 0.5, False, 10, 1, True, True, False)
@example(3, "groups", (6, 5), 3, 2, 0.9, False, 10, 1, True, True, True)
def test_every_row_leaves_the_iterate_of_algorithm_1(
    seed, kind, shape, size, K, eta, schedule, t0, every, weighted, centred, standardized
):
    rng = np.random.default_rng(seed)
    p, labels = shape[0] * shape[1], np.arange(shape[0] * shape[1]) // shape[1]
    standardized = standardized and kind != "sensing"
    t0 += 3 * standardized  # on one row, or two about their mean, all features pull equally: ties
    n, size = t0 + 80, min(size, shape[0]) if kind == "groups" else min(size, *shape)
    X = rng.standard_normal((n, p)) * np.exp(0.5 * rng.standard_normal(p)) + rng.standard_normal(p)
    Y = X @ rng.standard_normal((p, 1)) + 2.0 + rng.standard_normal((n, 1))
    w = rng.choice([0.0, 0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    w[:4] = 1.0
    eta *= longest_step(X, Y, w, t0, centred, standardized)
    given_steps = {
        "n_steps": K,
        "step_size": (lambda t, k: eta / (1.0 + 0.02 * t) / (1 + k)) if schedule else eta,
        "n_warmup": t0,
        "round_size": every,
        "fit_intercept": centred,
    }
    if kind == "sensing":
        model, rows = LowRankRegressor(size, **given_steps), X.reshape(n, *shape)
    else:
        model, rows = OnlineHardThresholding(size, groups=labels, standardize=standardized, **given_steps), X

    def project(z):
        if kind == "groups":
            return keep_groups(z, labels, size)
        return keep_rank(z.reshape(shape), size).reshape(z.shape)

    expected = iterates(X, Y, w, project, K, given_steps["step_size"], t0, every, centred, standardized)
    for i, (theta, intercept) in enumerate(expected):
        piece = slice(i, i + 1)
        model.partial_fit(rows[piece], Y[piece, 0], w[piece] if weighted else None)
        assert_iterate(model.coef_.reshape(-1, 1), theta, np.abs(theta).max())
        assert_iterate(model.intercept_, intercept[0], np.abs(Y).max())
    assert model.n_rounds_ == (n - t0) // every


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(2, 9), st.integers(2, 9)),
    r=st.integers(1, 4),
    K=st.sampled_from([1, 2, 5]),
    eta=st.floats(0.01, 0.9),
    t0=st.integers(0, 60),
    every=st.integers(1, 20),
    weighted=st.booleans(),
)
def test_every_observation_leaves_the_iterate_of_algorithm_1(seed, shape, r, K, eta, t0, every, weighted):
    rng = np.random.default_rng(seed)
    n, r = t0 + 100, min(r, *shape)
    i, j = rng.integers(0, shape[0], n), rng.integers(0, shape[1], n)
    values = np.outer(rng.standard_normal(shape[0]), rng.standard_normal(shape[1]))[i, j] + rng.standard_normal(n)
    w = rng.choice([0.0, 0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    w[0] = 1.0
    counts, largest = np.zeros(shape), 0.0
    for t in range(n):  # steps below the inverse of the curvature do not amplify rounding errors
        counts[i[t], j[t]] += w[t]
        if t >= t0:
            largest = max(largest, counts.max() / counts.sum())
    eta /= largest
    model = MatrixCompleter(r, shape=shape, shrink=False, step_size=eta, n_steps=K, n_warmup=t0, round_size=every)
    W, S, theta = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for t in range(n):
        W[i[t], j[t]] += w[t]
        S[i[t], j[t]] += w[t] * values[t]
        if t >= t0 and (t + 1 - t0) % every == 0:
            for _ in range(K):
                theta = keep_rank(theta - eta * (W * theta - S) / W.sum(), r)
        piece = slice(t, t + 1)
        model.partial_fit(i[piece], j[piece], values[piece], w[piece] if weighted else None)
        # Singular vectors are followed from step to step, to 1e-10 each time.
        assert_iterate(model.coef_, theta, np.abs(theta).max(), 1e-8)


# -- what all of them do ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_recovers_the_truth_in_one_pass_and_by_fit(kind):
    arrays, truth = data(kind)
    for model in (MAKERS[kind]().partial_fit(*arrays), MAKERS[kind]().fit(*arrays)):
        assert np.abs(model.coef_ - truth).max() < 0.15
        assert model.n_samples_seen_ == N
    if kind in BY_ROUNDS:
        assert model.n_iter_ == model.n_rounds_ >= 1


STEP_RULES = ["auto", 0.01, lambda t, k: 0.01 / (1 + k + 0.01 * t)]
# Every pair of a kind, a step rule and a round size, though not every triple.
CUTS = [
    (kind, rule, (1, 7)[(i + j) % 2])
    for i, kind in enumerate([*BY_ROUNDS, "offsets", "growing"])
    for j, rule in enumerate(STEP_RULES)
]


@pytest.mark.parametrize(("kind", "step_size", "round_size"), CUTS, ids=shown)
@pytest.mark.filterwarnings("ignore:step_size=")
def test_any_cut_gives_bit_identical_coefficients(kind, step_size, round_size):
    arrays, _ = data(kind)
    w = weights()
    parameters = {"step_size": step_size, "round_size": round_size, "n_warmup": 11 if kind != "offsets" else 77}
    whole = MAKERS[kind](**parameters).partial_fit(*arrays, w)
    for sizes in ([1] * N, [64, 1, 63, 128, 44], [7] * 40 + [20], [5, 295]):
        pieces = MAKERS[kind](**parameters)
        for a, b in pairwise(np.cumsum([0, *sizes])):
            pieces.partial_fit(*cut(arrays, a, b), w[a:b])
        np.testing.assert_array_equal(pieces.coef_, whole.coef_)
        assert pieces.n_rounds_ == whole.n_rounds_ == (N - parameters["n_warmup"]) // round_size
        np.testing.assert_array_equal(predicted(pieces, kind, arrays), predicted(whole, kind, arrays))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repeats(kind):
    arrays, _ = data(kind)
    k = np.random.default_rng(1).integers(0, 4, N)
    repeated = tuple(np.repeat(array, k, axis=0) for array in arrays)
    a, b = MAKERS[kind]().fit(*arrays, k.astype(float)), MAKERS[kind]().fit(*repeated)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-5 * np.abs(b.coef_).max())


@pytest.mark.parametrize("kind", KINDS)
def test_fit_ignores_order_and_equals_fit_of_merged_summaries(kind):
    arrays, _ = data(kind)
    model = MAKERS[kind]().fit(*arrays)
    order = np.random.default_rng(1).permutation(N)
    np.testing.assert_allclose(MAKERS[kind]().fit(*(a[order] for a in arrays)).coef_, model.coef_, atol=1e-5)
    merged = SUMMARIES[kind](*cut(arrays, 0, 120)).merge(SUMMARIES[kind](*cut(arrays, 120, N)))
    from_summary = with_shape(MAKERS[kind]()).fit_summary(merged)
    np.testing.assert_allclose(from_summary.coef_, model.coef_, atol=1e-5)
    assert merged.n_samples == N
    going_on = from_summary.partial_fit(*arrays)
    assert going_on.n_samples_seen_ == 2 * N
    assert merged.n_samples == N  # it was copied
    with pytest.raises(TypeError, match="summary must be"):
        with_shape(MAKERS[kind]()).fit_summary("rows")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_made_mid_stream_ends_bit_identical(kind, twin):
    arrays, _ = data(kind)
    for at in (5, 130, 220):
        model = MAKERS[kind]().partial_fit(*cut(arrays, 0, at))
        other = twin(model)
        np.testing.assert_array_equal(
            other.partial_fit(*cut(arrays, at, N)).coef_, model.partial_fit(*cut(arrays, at, N)).coef_
        )


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_left_alone(kind):
    arrays, _ = data(kind)
    kept = tuple(array.copy() for array in arrays)
    for array in arrays:
        array.flags.writeable = False
    predicted(MAKERS[kind]().partial_fit(*arrays).fit(*arrays), kind, arrays)
    for mine, theirs in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("kind", BY_ROUNDS)
def test_rounds_wait_until_full_or_finished_and_parameters_may_change(kind):
    arrays, _ = data(kind)
    model = MAKERS[kind](round_size=100).partial_fit(*cut(arrays, 0, 150))
    before = model.coef_.copy()
    assert model.n_rounds_ == 1
    model.partial_fit(*cut(arrays, 150, 160))
    np.testing.assert_array_equal(model.coef_, before)
    assert model.finish().n_rounds_ == 2
    assert np.abs(model.coef_ - before).max() > 0.0
    assert model.finish().n_rounds_ == 2
    name = "sparsity" if kind == "groups" else "rank"
    model.set_params(**{name: 1}).partial_fit(*cut(arrays, 160, N)).finish()
    if name == "rank":
        assert model.rank_ == 1
        assert np.linalg.matrix_rank(model.coef_, tol=1e-9 * np.abs(model.coef_).max()) == 1
    else:
        assert len(model.support_) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_not_fitted_and_clone(kind):
    arrays, _ = data(kind)
    with pytest.raises(NotFittedError):
        predicted(MAKERS[kind](), kind, arrays)
    with pytest.raises(NotFittedError):
        MAKERS[kind]().finish()
    changed = {"n_steps": 9} if kind in BY_ROUNDS else {"fit_intercept": False}
    copied = clone(MAKERS[kind](**changed).partial_fit(*arrays))
    assert changed.items() <= copied.get_params().items()
    assert not hasattr(copied, "summary_")
    assert type(copied).__name__ in copied._repr_html_()


@pytest.mark.parametrize("kind", ["sensing", "many responses", "groups"])
def test_intercept_is_exact_far_from_zero(kind):
    (X, y), _ = data(kind)
    model = MAKERS[kind]().partial_fit(X + 1e6, y)
    rows = (X + 1e6).reshape(N, -1).mean(axis=0)
    coef = model.coef_.T if kind == "many responses" else model.coef_.reshape(-1)
    np.testing.assert_allclose(model.intercept_, y.mean(axis=0) - rows @ coef, rtol=1e-8)
    assert np.all(MAKERS[kind](fit_intercept=False).partial_fit(X, y).intercept_ == 0.0)


# -- bad input -------------------------------------------------------------------------------------------------


def spoiled(array, value):
    array = np.array(array, float)
    array[3] = value
    return array


def bad_calls(kind):
    arrays, _ = data(kind)
    arrays = cut(arrays, 0, 50)
    last = arrays[-1]
    calls = {
        "NaN in values": (*arrays[:-1], spoiled(last, np.nan), None, "NaN"),
        "inf in values": (*arrays[:-1], spoiled(last, np.inf), None, "inf"),
        "negative weights": (*arrays, spoiled(np.ones(50), -1.0), "negative"),
        "NaN in weights": (*arrays, spoiled(np.ones(50), np.nan), "sample_weight contains NaN"),
        "lengths": (*arrays[:-1], last[:-1], None, "inconsistent|rows has"),
        "complex": (*arrays[:-1], last * 1j, None, "[Cc]omplex"),
        "strings": (*arrays[:-1], np.full(last.shape, "two"), None, "numbers|convert"),
        "empty": (*(a[:0] for a in arrays), None, "0 sample|no entries"),
    }
    if kind == "completion":
        i, j, v = arrays
        calls |= {
            "row outside": (i + 5, j, v, None, "rows holds the index"),
            "negative column": (i, j - 1, v, None, "cols holds the index -1"),
            "fractions": (i + 0.5, j, v, None, "vector of integers"),
            "ids after indices": (i.astype(str), j, v, None, "rows holds ids"),
        }
        return calls
    X, y = arrays
    calls |= {
        "NaN in X": (spoiled(X, np.nan), y, None, "NaN"),
        "too large": (spoiled(X, 1e200), y, None, "overflow"),
    }
    if kind == "sensing":
        calls |= {
            "other matrices": (X.transpose(0, 2, 1), y, None, r"shape \(4, 5\); expected \(5, 4\)"),
            "other columns": (X.reshape(50, -1)[:, :-1], y, None, "19 columns"),
            "one dimension": (X.reshape(-1), y, None, "2D array"),
        }
    else:
        calls["other columns"] = (X[:, :-1], y, None, "19 features")
    if kind == "many responses":
        calls["other responses"] = (X, y[:, :2], None, "before it had 4 responses")
    return calls


@pytest.mark.parametrize(("kind", "call"), [(kind, call) for kind in KINDS for call in bad_calls(kind)])
def test_bad_input_is_named_and_leaves_the_model_as_it_was(kind, call):
    arrays, _ = data(kind)
    *bad, message = bad_calls(kind)[call]
    fitted = MAKERS[kind]().partial_fit(*arrays)
    before = state(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        with pytest.raises(ValueError, match=message):
            fitted.partial_fit(*bad)
    assert state(fitted) == before


BAD_PARAMETERS = {
    "sensing": [{"rank": 0}, {"rank": 4.5}, {"rank": 7}, {"shape": (4, 5)}, {"shape": (20,)}, {"step_size": -1.0}],
    "many responses": [{"rank": 0}, {"rank": 6}, {"selection": "aic"}, {"fit_intercept": "no"}],
    "groups": [{"groups": ["a", "b"]}, {"groups": [[1, 2]]}, {"sparsity": 0}],
    "completion": [{"rank": 0}, {"rank": 8}, {"shape": (3, 3)}, {"shape": (0, 3)}, {"offsets": "yes"}, {"tol": -1}],
}


@pytest.mark.parametrize(("kind", "bad"), [(kind, bad) for kind in KINDS for bad in BAD_PARAMETERS[kind]], ids=shown)
def test_bad_parameters_are_named_and_change_nothing(kind, bad):
    arrays, _ = data(kind)
    model = MAKERS[kind]().partial_fit(*arrays)
    good = model.get_params()
    model.set_params(**bad)
    before = state(model)
    for call in (lambda: model.partial_fit(*arrays), lambda: model.finish()):
        with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
            call()
        assert state(model) == before
    fresh = MAKERS[kind]().set_params(**bad)
    with pytest.raises((ValueError, TypeError), match="|".join([next(iter(bad)), "rows holds"])):
        fresh.fit(*arrays)
    assert not hasattr(fresh, "summary_")
    model.set_params(**good).partial_fit(*arrays)
    assert model.n_samples_seen_ == 2 * N


def test_sensing_that_does_not_fit_says_what_would(monkeypatch):
    monkeypatch.setattr(thresher._utils.memory, "available_bytes", lambda: 10**9)
    X = np.zeros((1, 110, 110))
    with pytest.raises(MemoryError, match=r"1,756,920,000 bytes.*MatrixCompleter.*ReducedRankRegressor"):
        LowRankRegressor(2).partial_fit(X, [0.0])


def test_matrices_without_a_shape_are_asked_for_one(rng):
    with pytest.raises(ValueError, match=r"shape=\(d1, d2\)"):
        LowRankRegressor(2).partial_fit(np.ones((3, 20)), np.ones(3))
    with pytest.raises(ValueError, match="set shape"):
        LowRankRegressor(2).fit_summary(Gram(20).absorb(np.ones((2, 20)), [1.0, 2.0]))


def test_steps_that_raise_the_loss_are_told_once(rng):
    (X, y), _ = data("sensing")
    model = LowRankRegressor(2, step_size=5.0)
    with pytest.warns(ConvergenceWarning, match="step_size=5.0 raised the loss"):
        model.partial_fit(X[:50], y[:50])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X[50:60], y[50:60])
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("kind", ["completion", "growing", "sensing", "groups"])
def test_a_schedule_that_fails_later_changes_nothing(kind):
    arrays, _ = data(kind)
    model = MAKERS[kind](round_size=10, step_size=lambda t, k: 0.01 if t < 4 else -1.0)
    model.partial_fit(*cut(arrays, 0, 20))
    before = model.n_samples_seen_, model.n_rounds_, model.coef_.copy()
    with pytest.raises(ValueError, match=r"step_size\(4, 0\)"):
        model.partial_fit(*cut(arrays, 20, N))
    assert (model.n_samples_seen_, model.n_rounds_) == before[:2]
    np.testing.assert_array_equal(model.coef_, before[2])


def test_a_matrix_that_would_not_fit_changes_nothing(monkeypatch):
    model = MatrixCompleter(1, round_size=1).partial_fit(["a"], [20_000], [1.0])
    monkeypatch.setattr(thresher._utils.memory, "available_bytes", lambda: 10**7)
    with pytest.raises(MemoryError, match="Number rows and columns from zero"):
        model.partial_fit(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"], [0] * 10, [1.0] * 10)
    assert (model.n_samples_seen_, model.row_ids_) == (1, ["a"])


def test_summaries_in_float32_are_refused(rng):
    gram = Gram(20, np.float32).absorb(rng.standard_normal((50, 20)), rng.standard_normal(50))
    with pytest.raises(ValueError, match="float64"):
        LowRankRegressor(2, shape=(5, 4)).fit_summary(gram)
    LowRankRegressor(2, shape=(5, 4)).fit_summary(Gram(20).merge(gram))


# -- sensing ---------------------------------------------------------------------------------------------------


def test_sensing_gives_the_iterates_of_algorithm_1_across_the_seam(rng):
    """30 x 20: 600 columns, so float32 products; the rows become moments at 300."""
    stream = LowRankStream((30, 20), 2, seed=1)
    X, y = stream.draw(420)
    model = LowRankRegressor(3, n_steps=2, step_size=0.02, n_warmup=250, fit_intercept=False)
    for a in (0, 290, 310):
        model.partial_fit(X[a : {0: 290, 290: 310, 310: 420}[a]], y[a : {0: 290, 290: 310, 310: 420}[a]])
    rows, shape = X.reshape(420, -1), (30, 20)
    expected = matrix_algorithm_1(
        rows, y[:, None], lambda z: keep_rank(z.reshape(shape), 3).reshape(z.shape), 2, 0.02, 250
    ).reshape(shape)
    np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    assert model._rounds.inner._round.at.single
    assert model.summary_.n_folded == 364
    u, s, vt = model.factors_
    np.testing.assert_allclose((u * s) @ vt, model.coef_, atol=1e-12)
    assert (u.shape, s.shape, vt.shape) == ((30, 3), (3,), (3, 20))


def test_rows_matrices_frames_and_csr_are_the_same_samples(rng):
    (X, y), _ = data("sensing")
    expected = LowRankRegressor(2, fit_intercept=True).partial_fit(X, y)
    flat = X.reshape(N, -1)
    for rows in (flat, pd.DataFrame(flat), pl.DataFrame(flat), scipy.sparse.csr_matrix(flat), flat.tolist()):
        model = LowRankRegressor(2, shape=(5, 4), fit_intercept=True).partial_fit(rows, y)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_allclose(model.predict(rows), expected.predict(X), rtol=1e-9)
    assert expected.score(X, y) > 0.99


def test_error_of_sensing_decays_like_one_over_t():
    errors = []
    for seed in range(4):
        stream = LowRankStream((12, 10), 2, signal=1.0, seed=seed)
        model, row = LowRankRegressor(2), []
        for n in (1000, 4000):
            model.partial_fit(*stream.draw(n - (model.n_samples_seen_ if row else 0)))
            row.append(((model.coef_ - stream.coef) ** 2).sum())
        errors.append(row)
    slope = np.diff(np.log(np.mean(errors, axis=0)))[0] / np.log(4)
    assert abs(slope + 1.0) < 0.3


# -- many responses ----------------------------------------------------------------------------------------------


def test_full_rank_is_least_squares(rng):
    (X, Y), _ = data("many responses")
    w = weights()
    oracle = LinearRegression().fit(X, Y, w)
    model = ReducedRankRegressor(4).fit(X, Y, w)
    np.testing.assert_allclose(model.coef_, oracle.coef_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, oracle.intercept_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), oracle.predict(X), rtol=1e-8, atol=1e-8)
    one = ReducedRankRegressor(1).fit(X, Y[:, 0])
    oracle = LinearRegression().fit(X, Y[:, 0])
    np.testing.assert_allclose(one.coef_, oracle.coef_, rtol=1e-8, atol=1e-9)
    assert one.coef_.shape == (20,)
    assert isinstance(one.intercept_, float)
    assert one.predict(X).shape == (N,)


def test_reduced_rank_beats_least_squares_near_the_oracle_rate():
    p, q, r, n = 100, 12, 3, 800
    rng = np.random.default_rng(3)
    B = rng.standard_normal((p, r)) @ rng.standard_normal((r, q)) / np.sqrt(p)
    X = rng.standard_normal((n, p))
    Y = X @ B + rng.standard_normal((n, q))
    full = ((LinearRegression().fit(X, Y).coef_.T - B) ** 2).sum()
    oracle = r * (p + q - r) / (n - p - 1)
    for model in (ReducedRankRegressor(r).partial_fit(X, Y), ReducedRankRegressor(r).fit(X, Y)):
        error = ((model.coef_.T - B) ** 2).sum()
        assert error < 0.5 * full
        assert error < 1.3 * oracle


def test_frames_keep_names(rng):
    (X, Y), _ = data("many responses")
    names = [f"x{j}" for j in range(20)]
    expected = ReducedRankRegressor(2).partial_fit(X, Y)
    for frame, responses in (
        (pd.DataFrame(X, columns=names), pd.DataFrame(Y)),
        (pl.DataFrame(X, schema=names), pl.DataFrame(Y)),
    ):
        model = ReducedRankRegressor(2).partial_fit(frame, responses)
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        assert list(model.feature_names_in_) == names
    csr = ReducedRankRegressor(2).partial_fit(scipy.sparse.csr_matrix(X), Y)
    np.testing.assert_array_equal(csr.coef_, expected.coef_)


def test_collinear_and_constant_features_are_harmless(rng):
    (X, Y), _ = data("many responses")
    X = np.column_stack([X, X[:, 0], np.full(N, 3.0)])
    for fitted in (ReducedRankRegressor(2).partial_fit(X, Y), ReducedRankRegressor(2).fit(X[:100], Y[:100])):
        assert fitted.score(X, Y) > 0.99
        np.testing.assert_allclose(fitted.coef_[:, -2], fitted.coef_[:, 0], rtol=1e-8)
        np.testing.assert_array_equal(fitted.coef_[:, -1], 0.0)


# -- completion ----------------------------------------------------------------------------------------------------


def test_completion_gives_the_iterates_of_algorithm_1(rng):
    (i, j, v), _ = data("completion")
    model = MAKERS["completion"](step_size=20.0, n_steps=2, n_warmup=50, round_size=10).partial_fit(i, j, v)
    expected = completion_algorithm_1(i, j, v, (9, 7), 2, 2, 20.0, 50, 10)
    np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def partly_observed(seed, d, r, share, noise):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((d, r)) @ rng.standard_normal((r, d))
    order = rng.permutation(d * d)
    seen, held = order[: int(share * d * d)], order[int(share * d * d) :]
    i, j = np.divmod(seen, d)
    return truth, i, j, truth[i, j] + noise * rng.standard_normal(len(seen)), np.divmod(held, d)


def test_completion_beats_column_means_and_svd_imputation():
    d, r = 150, 3
    truth, i, j, v, held = partly_observed(2, d, r, 0.25, 0.5)

    def rmse(matrix):
        return np.sqrt(np.mean((matrix - truth)[held] ** 2))

    observed, data = np.zeros((d, d), bool), np.zeros((d, d))
    observed[i, j], data[i, j] = True, v
    means = np.broadcast_to(data.sum(axis=0) / observed.sum(axis=0), (d, d))
    filled = np.where(observed, data, means)
    once = rmse(keep_rank(filled, r))
    for _ in range(300):
        filled = np.where(observed, data, keep_rank(filled, r))
    model = MatrixCompleter(r, shape=(d, d)).partial_fit(i, j, v)
    error = rmse(model.coef_)
    assert error < 0.5 * rmse(means)
    assert error < 0.5 * once
    assert error < rmse(keep_rank(filled, r))
    np.testing.assert_allclose(model.predict(*held), model.coef_[held])
    assert error == pytest.approx(0.5 * np.sqrt(r * 2 * d / len(v)), rel=0.2)


def test_shrinking_helps_on_average_and_vanishes_without_noise():
    gains = []
    for seed in range(12):
        truth, i, j, v, held = partly_observed(seed, 40, 2, 0.4, 1.0)
        model = MatrixCompleter(2, shape=(40, 40)).fit(i, j, v)
        shrunk = ((model.coef_ - truth)[held] ** 2).mean()
        gains.append(((model.set_params(shrink=False).coef_ - truth)[held] ** 2).mean() - shrunk)
    assert np.mean(gains) > 2.0 * np.std(gains) / np.sqrt(12)
    for n in range(100, 200, 4):  # however few there are, what was observed is not shrunk away
        few = MatrixCompleter(2, shape=(30, 30), round_size=1).partial_fit(i[:n] % 30, j[:n] % 30, v[:n])
        assert few.factors_[1].sum() > 0.3 * few.set_params(shrink=False).factors_[1].sum()
    truth, i, j, v, _ = partly_observed(0, 40, 2, 0.6, 0.0)
    np.testing.assert_allclose(MatrixCompleter(2).fit(i, j, v).coef_, truth, atol=1e-3)


def test_offsets_are_fitted_exactly_when_there_is_nothing_else(rng):
    a, b = rng.standard_normal(30), rng.standard_normal(20)
    i, j = rng.integers(0, 30, 900), rng.integers(0, 20, 900)
    i[:30], j[:20] = np.arange(30), np.arange(20)
    v = 5.0 + a[i] + b[j] + 0.01 * rng.standard_normal(900)
    model = MatrixCompleter(1, offsets=True, tol=1e-3).fit(i, j, v)
    fitted = model.offset_ + model.row_offsets_[:, None] + model.col_offsets_ + model.coef_
    np.testing.assert_allclose(fitted, 5.0 + a[:, None] + b, atol=0.05)
    assert abs(np.mean(model.row_offsets_[i])) < 1e-9
    assert abs(np.mean(model.col_offsets_[j])) < 1e-9
    np.testing.assert_allclose(model.predict(i, j), fitted[i, j], atol=1e-9)
    assert model.score(i, j, v) > 0.99


def test_ids_are_numbered_as_they_appear_and_cut_does_not_matter(rng):
    (i, j, v), _ = data("completion")
    names, items = np.array([f"user {k}" for k in range(9)]), np.array(list("abcdefg"))
    by_id = MatrixCompleter(2).partial_fit(pd.Series(names[i]), items[j].tolist(), v)
    pieces = MatrixCompleter(2)
    for a in range(0, N, 17):
        pieces.partial_fit(names[i[a : a + 17]], items[j[a : a + 17]], v[a : a + 17])
    assert by_id.row_ids_ == list(dict.fromkeys(names[i].tolist())) == pieces.row_ids_
    np.testing.assert_array_equal(pieces.coef_, by_id.coef_)
    order = {name: k for k, name in enumerate(by_id.row_ids_)}
    columns = {name: k for k, name in enumerate(by_id.col_ids_)}
    k, m = np.array([order[n] for n in names[i]]), np.array([columns[n] for n in items[j]])
    np.testing.assert_array_equal(MatrixCompleter(2).partial_fit(k, m, v).coef_, by_id.coef_)
    np.testing.assert_array_equal(by_id.predict(names[i], items[j]), by_id.coef_[k, m])
    with pytest.raises(AttributeError):
        _ = MatrixCompleter(2).partial_fit(k, m, v).row_ids_
    with pytest.raises(ValueError, match="more than 3 different rows"):
        MatrixCompleter(2, shape=(3, 7)).partial_fit(names[i], items[j], v)
    for missing in (None, pd.NA, np.nan):
        with pytest.raises(ValueError, match="rows holds"):
            by_id.partial_fit(pd.Series([missing, "x"], dtype=object), ["a", "b"], [1.0, 2.0])
    mixed = MatrixCompleter(1).partial_fit(["a", 1, "1"], ["x", "x", "y"], [1.0, 2.0, 3.0])
    assert mixed.row_ids_ == ["a", 1, "1"]
    before = by_id.row_ids_
    with pytest.raises(ValueError, match="NaN"):
        by_id.partial_fit(["newcomer"], ["a"], [np.nan])
    assert by_id.row_ids_ == before


def test_what_was_never_observed_is_an_error_or_an_offset():
    model = MatrixCompleter(1, shape=(4, 3)).partial_fit([0, 1, 0], [0, 1, 1], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"Nothing was observed of 1 of the rows \(first: 3\)"):
        model.predict([0, 3], [0, 1])
    with pytest.raises(ValueError, match="cols"):
        model.predict([0], [7])
    with pytest.raises(ValueError, match="rows has 1"):
        model.predict([0], [1, 1])
    rows, cols = ["a", "b", "a", "b"], ["x", "y", "y", "x"]
    offsets = MatrixCompleter(1, offsets=True).fit(rows, cols, [1.0, 4.0, 3.0, 2.0])
    with pytest.warns(UserWarning, match="Nothing was observed of 1 of the cols"):
        unknown = offsets.predict(["a"], ["z"])
    np.testing.assert_allclose(unknown, offsets.offset_ + offsets.row_offsets_[0])
    with pytest.raises(ValueError, match="first: 'c'"):
        MatrixCompleter(1).fit(rows, cols, [1.0, 4.0, 3.0, 2.0]).predict(["c"], ["x"])


def test_early_rounds_do_not_end_in_a_poor_local_minimum():
    """Rounds begin with the first observations, when the matrix is far from determined."""
    for seed in range(8):
        truth, i, j, v, held = partly_observed(seed, 30, 2, 0.5, 0.1)
        model = MatrixCompleter(2, shape=(30, 30)).partial_fit(i, j, v)
        assert np.sqrt(np.mean((model.coef_ - truth)[held] ** 2)) < 0.1


def test_matrix_grows_with_the_indices_and_stays_bit_identical(rng):
    i, j = np.sort(rng.integers(0, 25, 600)), rng.integers(0, 20, 600)
    v = rng.standard_normal(25)[i] * rng.standard_normal(20)[j]
    whole, pieces = MatrixCompleter(2).partial_fit(i, j, v), MatrixCompleter(2)
    for a in range(0, 600, 41):
        pieces.partial_fit(i[a : a + 41], j[a : a + 41], v[a : a + 41])
    assert whole.coef_.shape == (i.max() + 1, j.max() + 1)
    np.testing.assert_array_equal(pieces.coef_, whole.coef_)


# -- groups --------------------------------------------------------------------------------------------------------


def test_groups_are_recovered_where_single_features_are_not():
    n_groups, n_levels, active, n = 60, 5, 6, 1500
    rng = np.random.default_rng(11)
    levels = rng.integers(0, n_levels, (n, n_groups))
    X = (levels[:, :, None] == np.arange(n_levels)).reshape(n, -1).astype(float)
    labels = np.repeat([f"g{k}" for k in range(n_groups)], n_levels)
    truth = np.sort(rng.choice(n_groups, active, replace=False))
    effects = np.zeros((n_groups, n_levels))
    effects[truth] = 0.5 * rng.standard_normal((active, n_levels))
    y = X @ effects.reshape(-1) + rng.standard_normal(n)
    expected = [f"g{k}" for k in truth]
    for kind in (SparseRegressor(active, groups=labels), OnlineHardThresholding(active, groups=labels, **CENTRED)):
        for fit in ("fit", "partial_fit"):
            model = getattr(clone(kind), fit)(X, y)
            assert list(model.selected_groups_) == expected
            assert len(model.support_) == active * n_levels
    singly = SparseRegressor(active * n_levels).partial_fit(X, y)
    assert set(labels[singly.support_]) != set(expected)
    assert model.transform(X).shape == (n, 30)


def test_groups_of_one_select_like_cardinality(rng):
    (X, y), _ = data("groups")
    for kind in (OnlineHardThresholding(8, **CENTRED), SparseRegressor(8)):
        for fit in ("fit", "partial_fit"):
            a = getattr(clone(kind).set_params(groups=np.arange(20)), fit)(X, y)
            b = getattr(clone(kind), fit)(X, y)
            np.testing.assert_array_equal(a.support_, b.support_)
            np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-3)
    for ungrouped in (b, b.set_params(groups=np.arange(20))):  # groups set, but not used yet
        with pytest.raises(AttributeError, match="needs groups"):
            _ = ungrouped.selected_groups_
    with pytest.warns(UserWarning, match="number of groups; using 5"):
        SparseRegressor(7, groups=LABELS).partial_fit(X, y)
    with pytest.raises(ValueError, match="float64"):
        OnlineHardThresholding(2, groups=LABELS, dtype="float32").partial_fit(X, y)


# -- living with it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sensing", "completion"])
@pytest.mark.parametrize("rank", [3, "auto"])
def test_an_interrupt_loses_nothing(kind, rank, interrupt_at_fold, monkeypatch):
    if kind == "sensing":
        X, y = LowRankStream((15, 15), 2, seed=0).draw(3000)
        model, arrays = LowRankRegressor(rank), (X, y)
    else:
        _, i, j, v, _ = partly_observed(0, 200, 3, 0.5, 0.5)
        model, arrays = MatrixCompleter(rank, shape=(200, 200)), (i, j, v)
    model.partial_fit(*cut(arrays, 0, 200))
    if kind == "sensing":
        interrupt_at_fold(3)
    else:
        interrupt_at_entries(3, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(*cut(arrays, 200, len(arrays[0])))
    done = model.n_samples_seen_
    assert done == model.summary_.n_samples
    assert 200 < done < len(arrays[0])
    model.partial_fit(*cut(arrays, 0, 100))
    assert model.n_samples_seen_ == done + 100


def interrupt_at_entries(n, monkeypatch):
    """Let Ctrl-C fall while entries are added to a summary for the n-th time from now on."""
    add, n_pieces = Entries.add, iter(range(1, 1_000_000))

    def add_and_interrupt(entries, *observed):
        if next(n_pieces) == n:
            signal.raise_signal(signal.SIGINT)
        return add(entries, *observed)

    monkeypatch.setattr(Entries, "add", add_and_interrupt)


def test_an_interrupt_while_finishing_leaves_one_model(monkeypatch):
    arrays, _ = data("sensing")
    model = LowRankRegressor(2, round_size=200).partial_fit(*arrays)
    run_round = type(model._rounds).run_round

    def interrupted(self, *args):
        run_round(self, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model._rounds), "run_round", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.finish()
    assert model.n_rounds_ == 2
    np.testing.assert_array_equal(model.coef_, model._rounds.inner.coef)


def test_threads_of_blas_are_given_back():
    info = threadpoolctl.threadpool_info
    before = [pool["num_threads"] for pool in info() if pool["user_api"] == "blas"]
    arrays, _ = data("completion")
    models = [MAKERS["completion"]() for _ in range(4)]
    threads = [threading.Thread(target=model.partial_fit, args=arrays) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [pool["num_threads"] for pool in info() if pool["user_api"] == "blas"] == before
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


GROWTH = """
import resource
import numpy as np
from thresher import LowRankRegressor
from thresher.io.sources.synthetic import LowRankStream

stream, model, at = LowRankStream((8, 8), 2, seed=1), LowRankRegressor(2), {}
for n in range(100, 20_001, 100):
    model.partial_fit(*stream.draw(100))
    if n in (5_000, 20_000):
        at[n] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(at[20_000] - at[5_000])
"""


def test_memory_does_not_grow():
    result = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 1_000_000


def test_works_outside_the_main_thread():
    arrays, _ = data("many responses")
    model = ReducedRankRegressor(2)
    thread = threading.Thread(target=model.partial_fit, args=arrays)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(model.coef_, ReducedRankRegressor(2).partial_fit(*arrays).coef_)
