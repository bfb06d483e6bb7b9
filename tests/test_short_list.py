"""SparseRegressor(selection="posterior"): the short list, its coefficients, and how they follow the rows."""

import numpy as np
import pytest
from sklearn.linear_model import LassoCV

import thresher
from thresher import Gram, PosteriorSelection, SparseRegressor
from thresher.selection.criteria import Selection
from thresher.selection.short_list import ShortList
from thresher.solvers.least_squares import least_squares

D = 40


def few_rows(seed, n=150, noise=1.0, d=D):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1::2] += X[:, ::2]
    coef = np.zeros(d)
    coef[:12] = 0.5 * rng.standard_normal(12)
    return X, 1.0 + X @ coef + noise * rng.standard_normal(n), coef


def listed(**parameters):
    return SparseRegressor(selection="posterior", **parameters)


@pytest.mark.parametrize(("seed", "within"), [(0, 0.25), (3, 1.0), (4, 0.05)])
def test_list_is_the_shortest_on_its_path_that_is_close_to_the_posterior_mean(seed, within):
    X, y, _ = few_rows(seed)
    model = SparseRegressor(selection=PosteriorSelection(within=within)).fit(X, y)
    result = model.posterior()
    Z = X - X.mean(axis=0)
    target, left = Z @ result.coef, list(range(D))
    chosen, distance = [], np.mean(target**2)
    while distance > within * result.risk:  # forward selection by least squares on the rows
        tried = {j: np.linalg.lstsq(Z[:, [*chosen, j]], target, rcond=None)[0] for j in left}
        distances = {j: np.mean((target - Z[:, [*chosen, j]] @ b) ** 2) for j, b in tried.items()}
        best = min(distances, key=distances.get)
        chosen, distance = [*chosen, best], distances[best]
        left.remove(best)
    while True:  # backward elimination
        rest = {j: [i for i in chosen if i != j] for j in chosen}
        fits = {j: Z[:, r] @ np.linalg.lstsq(Z[:, r], target, rcond=None)[0] for j, r in rest.items()}
        distances = {j: np.mean((target - fit) ** 2) for j, fit in fits.items()}
        worst = min(distances, key=distances.get)
        if distances[worst] > within * result.risk:
            break
        chosen, distance = rest[worst], distances[worst]
    np.testing.assert_array_equal(model.support_, sorted(chosen))
    assert model.sparsity_ == len(chosen) == model.selection_.chosen
    assert model.selection_.method == "posterior"
    np.testing.assert_allclose(model.selection_.criterion[-1], distance, rtol=1e-6)
    closest = np.linalg.lstsq(Z[:, model.support_], target, rcond=None)[0]
    np.testing.assert_allclose(model.coef_[model.support_], closest, rtol=0.15, atol=0.02)
    np.testing.assert_allclose(model.inclusion_probabilities_, result.inclusion_probabilities)


@pytest.mark.parametrize("within", [0.0, -1.0, np.nan, np.inf, "0.25"])
def test_a_share_that_is_not_positive_is_refused(within):
    with pytest.raises(ValueError, match="within must be a positive number"):
        PosteriorSelection(within=within)


def test_the_seed_of_the_regressor_is_used_with_a_share_of_your_own():
    X, y, _ = few_rows(5)
    one, two = (SparseRegressor(selection=PosteriorSelection(0.1), random_state=seed).fit(X, y) for seed in (0, 1))
    assert not np.array_equal(one.inclusion_probabilities_, two.inclusion_probabilities_)


def test_posterior_mean_is_not_sparse_and_keeps_the_list():
    X, y, _ = few_rows(1)
    sparse = listed().fit(X, y)
    dense = listed(estimate="posterior_mean").fit(X, y)
    expected = thresher.posterior(Gram(D).absorb(X, y))
    np.testing.assert_array_equal(dense.coef_, expected.coef)
    assert dense.intercept_ == expected.intercept
    np.testing.assert_array_equal(dense.support_, sparse.support_)
    np.testing.assert_array_equal(np.flatnonzero(dense.get_support()), sparse.support_)
    np.testing.assert_allclose(dense.predict(X), X @ expected.coef + expected.intercept)
    assert dense.noise_variance() == sparse.noise_variance()
    np.testing.assert_array_equal(dense.confidence_intervals().estimate, sparse.confidence_intervals().estimate)
    assert dense.posterior().coef is dense.coef_  # computed once


def test_both_predict_better_than_the_lasso_with_few_rows():
    errors, kept = [], []
    for seed in range(12):
        X, y, coef = few_rows(100 + seed, n=80)
        T = np.random.default_rng(seed).standard_normal((500, D))
        T[:, 1::2] += T[:, ::2]
        lasso = LassoCV(cv=5).fit(X, y)
        models = [lasso, listed(estimate="posterior_mean").fit(X, y), listed().fit(X, y)]
        errors.append([np.mean((model.predict(T) - 1.0 - T @ coef) ** 2) for model in models])
        kept.append([np.count_nonzero(lasso.coef_), len(models[2].support_)])
    lasso, mean, sparse = np.exp(np.mean(np.log(errors), axis=0))
    assert mean < 0.95 * lasso
    assert sparse < 1.1 * lasso
    assert np.mean(kept, axis=0)[1] < 0.7 * np.mean(kept, axis=0)[0]


def test_many_rows_are_least_squares_on_the_support_of_the_criterion():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20_000, D))
    y = X[:, 3] - 0.5 * X[:, 8] + 0.2 * X[:, 20] + rng.standard_normal(20_000)
    model = listed().fit(X, y)
    np.testing.assert_array_equal(model.support_, [3, 8, 20])
    expected = least_squares(model.summary_, np.array([3, 8, 20]), True)
    np.testing.assert_allclose(model.coef_, expected.coef(D), rtol=1e-12)
    assert model.inclusion_probabilities_[[3, 8, 20]].min() > 0.999


@pytest.mark.parametrize("parameters", [{}, {"fit_intercept": False}, {"dtype": "float32"}])
def test_calls_may_be_cut_anywhere_and_finish_changes_nothing_later(parameters):
    X, y, _ = few_rows(3, n=700)
    whole = listed(**parameters).partial_fit(X, y)
    cut = listed(**parameters)
    for start in range(0, 700, 13):
        cut.partial_fit(X[start : start + 13], y[start : start + 13])
        if start % 91 == 0:
            assert np.isfinite(cut.finish().coef_).all()
    np.testing.assert_array_equal(whole.coef_, cut.coef_)
    np.testing.assert_array_equal(whole.inclusion_probabilities_, cut.inclusion_probabilities_)
    assert whole.intercept_ == cut.intercept_


def test_the_list_follows_the_criterion_between_posteriors():
    """The first posterior comes with 128 rows; later a feature begins to matter, and the criterion notices."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((190, 10))
    y = 2.0 * X[:, 0] + np.where(np.arange(190) < 128, 0.0, 4.0) * X[:, 5] + 0.5 * rng.standard_normal(190)
    model = listed().partial_fit(X[:130], y[:130])
    np.testing.assert_array_equal(model.support_, [0])
    before = model.inclusion_probabilities_
    model.partial_fit(X[130:], y[130:])
    assert 5 in model.support_
    np.testing.assert_array_equal(model.inclusion_probabilities_, before)  # no posterior before 192 rows
    assert model.finish().inclusion_probabilities_[5] > 0.9


@pytest.mark.parametrize(
    ("chosen", "support", "ridge"),
    [
        ([4, 5, 7], [1, 4, 5, 6, 7], [0.1, 0.4, 0.0, 0.6, 0.7]),  # the same again: 5 was not on the list, but counts
        ([0, 1, 7], [0, 1, 6, 7], [0.0, 0.1, 0.6, 0.7]),  # 4 was dropped, 0 and 1 were added
        ([], [1, 6], [0.1, 0.6]),
    ],
)
def test_features_join_and_leave_a_list_as_the_criterion_chooses(chosen, support, ridge):
    selection = Selection("posterior", np.arange(2), np.ones(2), None, 1, 100)
    features, penalties = np.array([1, 4, 6, 7]), np.array([0.1, 0.4, 0.6, 0.7])
    found = ShortList(features, penalties, np.array([4, 5, 7]), np.zeros(9), selection)
    now = found.followed(np.array(chosen, np.intp))
    np.testing.assert_array_equal(now[0], support)
    np.testing.assert_array_equal(now[1], ridge)


def test_a_stream_keeps_what_both_the_posterior_and_the_criterion_choose():
    # Its error is that of the extended BIC with many rows, where a list may be older than the rows.
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, coef = rng.standard_normal((1400, 300)), np.zeros(300)
        coef[:15] = 0.2 * rng.standard_normal(15)
        y = X @ coef + rng.standard_normal(1400)
        errors = [
            np.sum((SparseRegressor(selection=selection).partial_fit(X, y).coef_ - coef) ** 2)
            for selection in ("posterior", "ebic")
        ]
        ratios.append(errors[0] / errors[1])
    assert np.exp(np.log(ratios).mean()) < 1.1


def test_coefficients_between_posteriors_count_all_rows():
    X, y, coef = few_rows(5, n=2000)
    model = listed().partial_fit(X[:1100], y[:1100])
    support, early = model.support_, model.coef_
    model.partial_fit(X[1100:], y[1100:])
    assert ((model.coef_ - coef) ** 2).sum() < ((early - coef) ** 2).sum()
    assert set(np.flatnonzero(np.abs(coef) > 0.3)) <= set(support) & set(model.support_)


def test_saved_and_resumed_is_the_same(tmp_path):
    X, y, _ = few_rows(6, n=600)
    whole = listed().partial_fit(X, y)
    whole.save(tmp_path / "whole")
    listed().partial_fit(X[:333], y[:333]).save(tmp_path / "half")
    thresher.load(tmp_path / "half").partial_fit(X[333:], y[333:]).save(tmp_path / "resumed")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "resumed").read_bytes()


def test_seeds_count_and_parameters_may_change():
    X, y, _ = few_rows(7, n=90)
    model = listed().fit(X, y)
    other = listed(random_state=1).fit(X, y)
    assert not np.array_equal(model.inclusion_probabilities_, other.inclusion_probabilities_)
    np.testing.assert_array_equal(model.set_params(random_state=1).finish().coef_, other.coef_)
    plain = SparseRegressor(selection="ebic").fit(X, y)
    np.testing.assert_array_equal(model.set_params(selection="ebic").finish().coef_, plain.coef_)
    with pytest.raises(AttributeError, match="inclusion_probabilities_ needs selection='posterior'"):
        plain.inclusion_probabilities_  # noqa: B018


def test_groups_are_chosen_by_the_criterion():
    X, y, _ = few_rows(8)
    labels = np.arange(D) // 4
    grouped = listed(groups=labels).fit(X, y)
    np.testing.assert_array_equal(grouped.coef_, SparseRegressor(selection="ebic", groups=labels).fit(X, y).coef_)
    with pytest.raises(ValueError, match="does not know groups"):
        listed(groups=labels, estimate="posterior_mean").fit(X, y)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 30])
@pytest.mark.parametrize("estimate", ["sparse", "posterior_mean"])
def test_edges(n, estimate):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 6))
    X[:, 2], X[:, 4] = 1.0, X[:, 3]
    for y in (rng.standard_normal(n), np.full(n, 3.0), X[:, 3] - 2.0 * X[:, 0]):
        model = listed(estimate=estimate).fit(X, y)
        assert np.isfinite([*model.coef_, model.intercept_, *model.inclusion_probabilities_]).all()
        assert model.coef_[2] == 0.0
    if n == 30:
        np.testing.assert_allclose(model.predict(X), y, atol=1e-4)
    one = listed(estimate=estimate).fit(X[:, :1], y)
    assert np.isfinite(one.coef_).all()


def spectra(seed, n, d=100, n_parts=8):
    """Smooth curves, neighbours correlated by more than .99; y is a contrast of a few of their parts."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0.0, 1.0, d)
    parts = np.exp(-0.5 * ((grid - rng.uniform(0, 1, (n_parts, 1))) / rng.uniform(0.05, 0.3, (n_parts, 1))) ** 2)
    scores = rng.standard_normal((n, n_parts)) * rng.uniform(0.2, 2.0, n_parts)
    X = scores @ parts + 2.0 * rng.standard_normal((n, 1)) + 0.001 * rng.standard_normal((n, d))
    y = scores[:, 0] + 0.5 * scores[:, 1] - 0.3 * scores[:, 2]
    return X, y / y.std() + 0.1 * rng.standard_normal(n)


def test_nearly_collinear_columns_are_no_trouble():
    # Coefficients are in the tens, of both signs, and cancel: no single column is worth much.
    ratios = []
    for seed in range(6):
        X, y = spectra(seed, 1150)
        assert np.corrcoef(X[:, 40], X[:, 41])[0, 1] > 0.99
        errors = [
            np.mean((model.fit(X[:150], y[:150]).predict(X[150:]) - y[150:]) ** 2)
            for model in (
                SparseRegressor(),
                SparseRegressor(estimate="posterior_mean"),
                SparseRegressor(selection="ebic"),
            )
        ]
        ratios.append([errors[0] / errors[2], errors[1] / errors[2]])
    default, mean = np.exp(np.log(ratios).mean(axis=0))
    assert default < 2.0
    assert mean < 1.2
