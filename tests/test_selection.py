"""Choosing a size: paths, criteria, folds and periods against the rows themselves."""

import math
import signal
import warnings
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from oracles import design
from thresher import Gram, SparseRegressor
from thresher.selection.ebic import Ebic
from thresher.selection.features import Features
from thresher.selection.folds import Folds
from thresher.selection.grouped import GroupedFeatures
from thresher.selection.prequential import Prequential
from thresher.selection.selecting import SelectingRounds, next_milestone
from thresher.sparsity.groups import Groups
from thresher.streams.synthetic import SparseLinearStream

KINDS = ["independent", "correlated", "duplicated", "scaled", "constant"]


def rows(seed, kind, n, d, active=4):
    rng = np.random.default_rng(seed)
    X = design(rng, kind, n, d) + rng.standard_normal(d)
    return X, X[:, :active] @ rng.standard_normal(active) + rng.standard_normal(n)


def residual(X, y, columns, centred):
    """Least squares by lstsq: residual sum of squares, coefficients and intercept."""
    A = np.column_stack([np.ones(len(X))] * centred + [X[:, list(columns)]])
    theta = np.linalg.lstsq(A, y, rcond=None)[0]
    return ((y - A @ theta) ** 2).sum(), theta[int(centred) :], theta[0] if centred else 0.0


def forward(X, y, n_most, centred):
    """Forward selection from the rows: every feature is tried in turn. Ties go to the lowest index."""
    order, sums = [], [residual(X, y, [], centred)[0]]
    while len(order) < n_most:
        tried = [residual(X, y, [*order, j], centred)[0] if j not in order else np.inf for j in range(X.shape[1])]
        least = min(tried)
        if not least < sums[-1] * (1.0 - 1e-9):
            break
        order.append(next(j for j, value in enumerate(tried) if value <= least * (1.0 + 1e-9)))
        sums.append(tried[order[-1]])
    return order, sums


def backward(X, y, order, centred):
    """The same features in the reverse of the order in which least squares can best do without them."""
    left, gone = list(order), []
    while left:
        without = [residual(X, y, [j for j in left if j != out], centred)[0] for out in left]
        gone.append(left.pop(int(np.argmin(without))))
    return gone[::-1]


def both_ways(X, y, n_most, centred):
    """Forward selection, or backward elimination from its best size if that has a lower BIC (gamma = 0.25)."""
    n, d = X.shape

    def criterion(sums):
        return [
            n * math.log(max(rss, 1e-300)) + k * math.log(n) + 0.5 * math.log(math.comb(d, k))
            for k, rss in enumerate(sums)
        ]

    order, sums = forward(X, y, n_most, centred)
    size = int(np.argmin(criterion(sums)))
    other = backward(X, y, order[:size], centred) + order[size:]
    other_sums = [residual(X, y, other[:k], centred)[0] for k in range(len(other) + 1)]
    better = min(criterion(other_sums)) < min(criterion(sums)) - 1e-9 * n
    return (other, other_sums) if better else (order, sums)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    n=st.integers(15, 90),
    centred=st.booleans(),
)
def test_path_is_forward_selection(seed, kind, n, centred):
    X, y = rows(seed, kind, n, 12)
    order, sums = forward(X, y, 8, centred)
    path = Features(centred).path(Gram(12).absorb(X, y), 8)
    assert list(path.order) == order
    np.testing.assert_allclose(2.0 * n * path.loss, sums, rtol=1e-8)
    for size in range(1, len(order) + 1):
        _, theta, intercept = residual(X, y, order[:size], centred)
        np.testing.assert_allclose(path.coef(size)[order[:size]], theta, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(path.intercept(size), intercept, rtol=1e-6, atol=1e-7)
        assert np.count_nonzero(path.coef(size)) == size


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(KINDS), n=st.integers(40, 120), centred=st.booleans())
def test_path_is_the_better_of_both_ways(seed, kind, n, centred):
    X, y = rows(seed, kind, n, 10, active=6)
    path = Features(centred).path(Gram(10).absorb(X, y))
    order, sums = both_ways(X, y, len(path.order), centred)
    np.testing.assert_allclose(2.0 * n * path.loss, sums, rtol=1e-7)
    for size in range(1, len(order) + 1):
        _, theta, intercept = residual(X, y, order[:size], centred)
        np.testing.assert_allclose(path.coef(size)[order[:size]], theta, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(path.intercept(size), intercept, rtol=1e-6, atol=1e-7)


def test_elimination_takes_back_what_the_true_features_make_superfluous():
    """One column close to the sum of two that matter comes first, and forward selection has to keep it."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((400, 12))
    X[:, 0] = X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(400)
    y = X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(400)
    assert forward(X, y, 3, True)[0][0] == 0
    assert list(SparseRegressor().fit(X, y).support_) == [1, 2]
    assert list(SparseRegressor().partial_fit(X, y).support_) == [1, 2]


def test_path_does_not_depend_on_what_is_folded(rng):
    X, y = rows(5, "correlated", 700, 80)
    for n in (40, 64, 100, 640, 700):
        path = Features().path(Gram(80).absorb(X[:n], y[:n]), 10)
        one_block = Gram(80, hold_rows=True).absorb(X[:n], y[:n])
        np.testing.assert_array_equal(path.order, Features().path(one_block, 10).order)
        np.testing.assert_allclose(path.loss, Features().path(one_block, 10).loss, rtol=1e-10)


@pytest.mark.parametrize(
    ("gamma", "n", "d", "price"),
    [
        (0.8, 120, 15, 0.8),
        ("auto", 120, 15, 1.2 - math.log(120) / (2.0 * math.log(15))),
        ("auto", 120, 10, 0.2),  # log n > 2 log d
        ("auto", 40, 60, 1.2 - math.log(40) / (2.0 * math.log(60))),
    ],
)
def test_extended_bic_equals_its_definition(gamma, n, d, price):
    X, y = rows(1, "correlated", n, d)
    model = SparseRegressor(selection=Ebic(gamma)).fit(X, y)
    order, sums = both_ways(X, y, len(model.selection_.sizes) - 1, True)
    expected = [
        n * math.log(rss / n) + k * math.log(n) + 2.0 * price * math.log(math.comb(d, k)) for k, rss in enumerate(sums)
    ]
    np.testing.assert_allclose(model.selection_.criterion, expected, rtol=1e-9)
    assert model.sparsity_ == model.selection_.chosen == int(np.argmin(expected))
    assert set(model.support_) == set(order[: model.sparsity_])


@pytest.mark.parametrize(("n_folds", "centred", "weighted"), [(5, True, False), (3, False, False), (4, True, True)])
def test_folds_equal_cross_validation_on_the_rows(n_folds, centred, weighted):
    """For every fold: forward selection on the other rows, then the mean squared error on its own."""
    X, y = rows(2, "scaled", 203, 14)
    w = np.random.default_rng(0).integers(1, 4, 203) if weighted else np.ones(203, int)
    model = SparseRegressor(selection=Folds(n_folds), fit_intercept=centred)
    model.fit(X, y, sample_weight=w if weighted else None)
    n_sizes = len(model.selection_.sizes)
    errors = np.full((n_folds, n_sizes), np.nan)
    for f in range(n_folds):
        test = np.arange(203) % n_folds == f
        A, b = np.repeat(X[~test], w[~test], axis=0), np.repeat(y[~test], w[~test])
        order, _ = both_ways(A, b, n_sizes - 1, centred)
        for k in range(n_sizes):
            _, theta, intercept = residual(A, b, order[:k], centred)
            error = (y[test] - X[test][:, order[:k]] @ theta - intercept) ** 2
            errors[f, k] = np.average(error, weights=w[test])
    np.testing.assert_allclose(model.selection_.criterion, errors.mean(axis=0), rtol=1e-9)
    spread = errors.std(axis=0, ddof=1) / math.sqrt(n_folds)
    np.testing.assert_allclose(model.selection_.standard_error, spread, rtol=1e-6)
    best = int(np.argmin(errors.mean(axis=0)))
    assert model.sparsity_ == best
    careful = SparseRegressor(selection=Folds(n_folds, one_standard_error=True), fit_intercept=centred)
    careful.fit(X, y, sample_weight=w if weighted else None)
    expected = np.flatnonzero(errors.mean(axis=0) <= errors.mean(axis=0)[best] + spread[best])[0]
    assert careful.sparsity_ == expected < best


def test_folds_of_a_stream_end_with_the_initial_batch_or_the_early_rounds():
    X, y = rows(3, "correlated", 900, 20)
    batch = SparseRegressor(selection="folds", n_warmup=150).partial_fit(X, y)
    assert batch.selection_.n_samples == 150
    whole = SparseRegressor(selection="folds").fit(X[:150], y[:150])
    np.testing.assert_allclose(batch.selection_.criterion, whole.selection_.criterion, rtol=1e-9)
    assert batch.sparsity_ == whole.sparsity_
    early = SparseRegressor(selection=Folds(n_samples=300)).partial_fit(X, y)
    assert 300 <= early.selection_.n_samples < 400
    assert not early._rounds.chooser.folds


def test_prequential_scores_are_errors_on_rows_not_yet_seen():
    """At every milestone: forward selection on the rows until then, errors on the rows until the next one."""
    X, y = rows(4, "correlated", 500, 16)
    model = SparseRegressor(selection=Prequential(discount=0.8)).partial_fit(X, y)
    n_sizes, total, weight = len(model.selection_.sizes), 0.0, 0.0
    ends = [m.n_samples for m in model.milestones_]
    family = Features()
    for start, end in pairwise(ends):
        n_had = len(family.path(Gram(16).absorb(X[:start], y[:start])).sizes)
        order, _ = both_ways(X[:start], y[:start], n_had - 1, True)
        errors = np.empty(n_sizes)
        for k in range(n_sizes):
            _, theta, intercept = residual(X[:start], y[:start], order[: min(k, n_had - 1)], True)
            errors[k] = ((y[start:end] - X[start:end][:, order[: min(k, n_had - 1)]] @ theta - intercept) ** 2).sum()
        total, weight = 0.8 * total + errors, 0.8 * weight + (end - start)
    np.testing.assert_allclose(
        model.selection_.criterion, total / weight, rtol=2e-3
    )  # old periods are dropped at 0.1 %
    assert model.selection_.method == "prequential"


@pytest.mark.parametrize("selection", ["ebic", "folds", "prequential"])
@pytest.mark.parametrize("settings_", [{}, {"n_warmup": 37, "round_size": 6}, {"rule": "hard", "n_steps": "auto"}])
def test_chunks_do_not_matter(selection, settings_):
    X, y = rows(6, "correlated", 700, 40)
    whole = SparseRegressor(selection=selection, **settings_).partial_fit(X, y)
    rng = np.random.default_rng(1)
    cuts = np.sort(rng.choice(np.arange(1, 700), 60, replace=False))
    pieces = SparseRegressor(selection=selection, **settings_)
    for piece in np.split(np.arange(700), cuts):
        pieces.partial_fit(X[piece], y[piece])
    np.testing.assert_array_equal(pieces.coef_, whole.coef_)
    np.testing.assert_array_equal(pieces.selection_.criterion, whole.selection_.criterion)
    assert [m.n_samples for m in pieces.milestones_] == [m.n_samples for m in whole.milestones_]
    assert pieces.n_rounds_ == whole.n_rounds_
    assert 1 <= whole.sparsity_ <= 12


def test_milestones_are_a_twentieth_apart_at_the_end_of_rounds():
    X, y = rows(7, "independent", 1000, 20)
    model = SparseRegressor(round_size=7, n_warmup=30).partial_fit(X, y)
    seen = [m.n_samples for m in model.milestones_]
    assert seen[0] == 30
    assert all((n - 30) % 7 == 0 for n in seen)
    assert all(1.05 * a - 64 < b <= 1.05 * a + 1 + 7 for a, b in pairwise(seen))
    assert next_milestone(1000, 64) == 1051
    assert next_milestone(2000, 64) == 2048
    last = model.milestones_[-1]
    at = SparseRegressor(round_size=7, n_warmup=30).partial_fit(X[: last.n_samples], y[: last.n_samples])
    np.testing.assert_array_equal(at.support_, last.support)
    np.testing.assert_array_equal(at.overall_coef_[at.support_], last.values)


def test_weights_are_repeats():
    X, y = rows(8, "correlated", 300, 25)
    w = np.random.default_rng(2).integers(0, 4, 300)
    weighted = SparseRegressor().fit(X, y, sample_weight=w)
    repeated = SparseRegressor().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert weighted.sparsity_ == repeated.sparsity_
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-9)


def test_noise_alone_selects_nothing_and_no_noise_selects_exactly():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 60))
    nothing = SparseRegressor().partial_fit(X, rng.standard_normal(400))
    assert nothing.sparsity_ == 0
    assert not nothing.coef_.any()
    np.testing.assert_allclose(nothing.predict(X[:3]), nothing.summary_.mean_y)
    exact = SparseRegressor().partial_fit(X, X[:, 7] - 2.0 * X[:, 9] + 3.0)
    assert list(exact.support_) == [7, 9]
    np.testing.assert_allclose(exact.coef_[[7, 9]], [1.0, -2.0])
    constant = SparseRegressor().partial_fit(X, np.full(400, 2.5))
    assert constant.sparsity_ == 0
    assert constant.intercept_ == 2.5


def test_the_first_rows_are_no_trouble():
    rng = np.random.default_rng(0)
    X, y = 1e3 + rng.standard_normal((30, 200)), rng.standard_normal(30)
    for selection in ("ebic", "folds", "prequential"):
        model = SparseRegressor(selection=selection)
        for i in range(30):
            model.partial_fit(X[i : i + 1], y[i : i + 1])
            assert np.isfinite(model.coef_).all()
        zero = SparseRegressor(selection=selection).partial_fit(X[:5], y[:5], sample_weight=np.zeros(5))
        assert not zero.coef_.any()
        zero.partial_fit(X[5:], y[5:])


def test_a_summary_has_no_rows_to_cross_validate():
    X, y = rows(9, "independent", 100, 8)
    summary = Gram(8).absorb(X, y)
    with pytest.raises(ValueError, match="selection='ebic'"):
        SparseRegressor(selection="folds").fit_summary(summary)
    np.testing.assert_allclose(SparseRegressor().fit_summary(summary).coef_, SparseRegressor().fit(X, y).coef_)


def test_parameters_may_change_on_the_way():
    X, y = rows(10, "correlated", 600, 30)
    model = SparseRegressor(sparsity=12).partial_fit(X[:300], y[:300])
    assert not hasattr(model, "selection_")
    model.set_params(sparsity="auto").partial_fit(X[300:], y[300:])
    assert model.sparsity_ == SparseRegressor().partial_fit(X, y).sparsity_
    model.set_params(sparsity=3).partial_fit(X[:1], y[:1])
    assert (model.sparsity_, len(model.support_)) == (3, 3)
    assert not hasattr(model, "selection_")
    rounds, seen = model._rounds, model.n_samples_seen_
    with pytest.raises(ValueError, match="has seen others"):
        model.set_params(sparsity="auto", selection="folds").partial_fit(X[:50], y[:50])
    assert model._rounds is rounds
    assert model.n_samples_seen_ == seen
    model.set_params(selection="ebic", groups=np.repeat(np.arange(10), 3)).partial_fit(X[:50], y[:50])
    model.set_params(groups=None).partial_fit(X[50:100], y[50:100])
    assert model.sparsity_ == len(model.support_)


@pytest.mark.parametrize("selection", ["ebic", "folds", "prequential"])
def test_other_parameters_may_change_without_forgetting_what_the_choice_rests_on(selection):
    X, y = rows(11, "correlated", 400, 20)
    model = SparseRegressor(selection=selection).partial_fit(X[:200], y[:200])
    chooser = model._rounds.chooser
    model.set_params(rule="hard").partial_fit(X[200:300], y[200:300])
    model.set_params(fit_intercept=False).partial_fit(X[300:], y[300:])
    assert model._rounds.chooser is chooser
    assert model.intercept_ == 0.0
    assert model.selection_.n_samples > 300


def test_groups_are_chosen_as_a_whole():
    rng = np.random.default_rng(3)
    n, labels = 600, np.repeat(np.arange(30), 3)
    X = rng.standard_normal((n, 90))
    X[:, 2::3] = 1.0 - X[:, ::3] - X[:, 1::3]  # one-hot like: a group has rank two
    y = X[:, :9] @ np.array([1, -1, 0, 0.5, 0.5, 0, -0.7, 0.7, 0]) + rng.standard_normal(n)
    model = SparseRegressor(groups=labels).fit(X, y)
    assert list(model.selected_groups_) == [0, 1, 2]
    streamed = SparseRegressor(groups=labels).partial_fit(X, y)
    assert list(streamed.selected_groups_) == [0, 1, 2]
    path = GroupedFeatures(Groups(labels, 1), True, True).path(Gram(90).absorb(X, y), 4)
    for size in range(1, 5):
        columns = path.columns[: path.ends[size]]
        np.testing.assert_allclose(2 * n * path.loss[size], residual(X, y, columns, True)[0], rtol=1e-9)
        assert path.freedom[size] == 2 * size
    first = [residual(X, y, np.flatnonzero(labels == g), True)[0] for g in range(30)]
    assert labels[path.columns[0]] == int(np.argmin(first))
    assert SparseRegressor(groups=labels).fit(X, rng.standard_normal(n)).sparsity_ == 0


@pytest.mark.parametrize("selection", ["ebic", "folds", "prequential"])
@pytest.mark.parametrize("place", ["_record", "_choose", "chooser"])
def test_an_interrupt_in_the_middle_of_a_choice_loses_nothing(selection, place, monkeypatch):
    """Signals while a milestone is passed; after each, go on where n_samples_seen_ says."""
    X, y = rows(12, "correlated", 1500, 30)
    expected = SparseRegressor(selection=selection).partial_fit(X, y)
    model = SparseRegressor(selection=selection).partial_fit(X[:1], y[:1])
    owner, name = (type(model._rounds.chooser), "absorb") if place == "chooser" else (SelectingRounds, place)
    original, n_calls = getattr(owner, name), 0

    def disturbed(*arguments):
        nonlocal n_calls
        n_calls += 1
        if n_calls % 6 == 0:
            signal.raise_signal(signal.SIGINT)
        result = original(*arguments)
        if n_calls % 9 == 0:
            signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(owner, name, disturbed)
    n_caught = 0
    while model.n_samples_seen_ < 1500:
        seen = model.n_samples_seen_
        try:
            model.partial_fit(X[seen:], y[seen:])
        except KeyboardInterrupt:
            n_caught += 1
    assert n_caught > 5
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.selection_.criterion, expected.selection_.criterion)
    assert [m.n_samples for m in model.milestones_] == [m.n_samples for m in expected.milestones_]


def test_prequential_on_a_batch_falls_back_to_the_information_criterion():
    X, y = rows(13, "correlated", 300, 20)
    batch = SparseRegressor(selection="prequential").fit(X, y)
    np.testing.assert_array_equal(batch.support_, SparseRegressor().fit(X, y).support_)
    assert batch.selection_.method == "ebic"
    assert len(batch.support_) > 0


def test_units_of_the_response_do_not_matter():
    X, y = rows(14, "correlated", 300, 20)
    methods = [Ebic(), Folds(one_standard_error=True), Prequential(one_standard_error=True)]
    for method in methods:
        plain = SparseRegressor(selection=method).partial_fit(X, y)
        for unit in (2.0**-300, 2.0**300):
            scaled = SparseRegressor(selection=method).partial_fit(X, unit * y)
            np.testing.assert_array_equal(scaled.support_, plain.support_)
            np.testing.assert_allclose(scaled.coef_, unit * plain.coef_, rtol=1e-9)
        assert len(plain.support_) > 0


def test_a_step_of_ones_own_that_is_too_long_warns_also_if_nothing_is_kept():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SparseRegressor(step_size=5.0).partial_fit(rng.standard_normal((300, 6)), rng.standard_normal(300))
    assert model.n_samples_seen_ == 300
    assert all("is safe" in str(warning.message) for warning in caught)


def test_folds_give_way_to_a_criterion():
    X, y = SparseLinearStream(40, 6, signal=0.5, seed=5).draw(1500)
    how = Folds(3, n_samples=400, afterwards=Ebic(1.0))
    model = SparseRegressor(selection=how).partial_fit(X[:400], y[:400])
    assert model.selection_.method == "folds"
    model.partial_fit(X[400:], y[400:])
    assert model.selection_.method == "ebic"
    alone = SparseRegressor(selection=Ebic(1.0)).partial_fit(X, y)
    np.testing.assert_array_equal(model.support_, alone.support_)
    with pytest.raises(ValueError, match="afterwards must be a criterion"):
        Folds(afterwards="ebic")


@pytest.mark.parametrize("how", ["ebic", "folds"])
def test_settling_is_fitting_with_the_history_kept(how):
    """At the end of a stream everything is chosen on all rows, also what would have waited for more of them."""
    X, y = SparseLinearStream(30, 5, signal=0.3, seed=6).draw(530)
    streamed = SparseRegressor(selection=how, round_size=100).partial_fit(X, y)
    assert streamed.selection_.n_samples < 530
    milestones = len(streamed.milestones_)
    streamed.settle()
    fitted = SparseRegressor(selection=how).fit(X, y)
    assert streamed.selection_.n_samples == 530
    np.testing.assert_allclose(streamed.selection_.criterion, fitted.selection_.criterion, rtol=1e-9)
    np.testing.assert_array_equal(streamed.support_, fitted.support_)
    np.testing.assert_allclose(streamed.coef_, fitted.coef_, rtol=1e-9)
    assert len(streamed.milestones_) == milestones + 1
    assert streamed.n_iter_ >= 1
    with pytest.raises(NotFittedError):
        SparseRegressor().settle()


def test_folds_that_say_nothing_are_left_out():
    X, y = rows(15, "independent", 120, 10)
    w = np.ones(120)
    w[50] = 1e15
    assert np.isfinite(SparseRegressor(selection="folds").partial_fit(X, y, sample_weight=w).coef_).all()
    short = SparseRegressor(selection="folds", n_warmup=3).partial_fit(X, y)
    assert len(short.support_) > 0
    for wrong in ({"n_folds": 2.5}, {"n_folds": 1}, {"n_samples": -1}):
        with pytest.raises(ValueError, match="must be"):
            Folds(**wrong)
    for wrong in ("x", -1.0, np.nan):
        with pytest.raises(ValueError, match="gamma"):
            Ebic(wrong)
        with pytest.raises(ValueError, match="discount"):
            Prequential(wrong)


def test_single_precision_does_not_split_hairs():
    """In float32, rounding must not tell a feature from the sum of two others."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((900, 8))
    X[:, 2] = X[:, 0] + X[:, 1]
    y = 3.0 * X[:, 0] - 2.0 * X[:, 1] + rng.standard_normal(900)
    for sparsity in (8, "auto"):
        model = SparseRegressor(sparsity, dtype="float32").partial_fit(X, y)
        assert np.count_nonzero(model.coef_[:3]) == 2
        assert np.abs(model.coef_).max() < 6.0


def test_fit_does_not_stop_at_a_decoy():
    """One column close to the sum of the two that matter: pursuit from zero stays with it, forward selection leaves."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((3000, 30))
    X = Z.copy()
    X[:, 2] = (Z[:, 0] + Z[:, 1]) / 2**0.5 * 0.95 + (1 - 0.95**2) ** 0.5 * Z[:, 2]
    y = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(3000)
    best = min(residual(X, y, pair, True)[0] for pair in combinations(range(6), 2))
    for settings_ in ({"sparsity": 3}, {"sparsity": 3, "rule": "hard"}, {"prudent": False}):
        model = SparseRegressor(**settings_).fit(X, y)
        assert ((y - model.predict(X)) ** 2).sum() <= best * (1.0 + 1e-9)


def test_memory_of_milestones_is_bounded():
    X, y = rows(16, "independent", 20_000, 40)
    model = SparseRegressor(sparsity=20).partial_fit(X, y)
    assert sum(m.part is not None for m in model.milestones_) <= 13
    assert len(model.milestones_) < 200
    taken = model.milestones_
    n = len(taken)
    model.partial_fit(X, y)
    assert len(taken) == n
