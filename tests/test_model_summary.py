"""The table of a fitted model, and the error on rows before they were learned."""

import numpy as np
import pandas
import pytest

from thresher import OnlineHardThresholding, SparseRegressor, posterior
from thresher.inference.intervals import Intervals
from thresher.inference.model_summary import INTERCEPT
from thresher.inference.robust import widening
from thresher.io.sources.synthetic import SparseLinearStream


def rows(n, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 3.0
    return X, 2.0 * X[:, 3] - X[:, 7] + 5.0 + rng.standard_normal(n)


def replayed(make, X, y, weights, centred, block=128):
    """Errors on each block but the first, predicted by models of the rows up to an earlier block: R2, and parts."""
    due, model, parts, ends = 0, None, [], []
    for n in range(block, len(y) + 1, block):
        block_rows = slice(n - block, n)
        if model is not None:
            w = weights[block_rows]
            error = w @ (y[block_rows] - X[block_rows] @ model[0] - model[1]) ** 2
            parts[-1] += [block, w.sum(), error, w @ (y[block_rows] - model[2]) ** 2]
            ends[-1] = n
        if n >= due:
            fitted = make().partial_fit(X[:n], y[:n], weights[:n])
            mean = np.average(y[:n], weights=weights[:n]) if centred else 0.0
            model, due = (fitted.coef_, fitted.intercept_, mean), n + -(-n // 20)
            parts.append(np.zeros(4))
            ends.append(n)
    sums = np.sum(parts, axis=0)
    return 1.0 - sums[2] / sums[3], [(n, *part) for n, part in zip(ends, parts, strict=True) if part[0]]


@pytest.mark.parametrize(
    ("make", "centred"),
    [
        (lambda: SparseRegressor(selection="ebic"), True),
        (lambda: SparseRegressor(2, fit_intercept=False), False),
        (lambda: OnlineHardThresholding(3, fit_intercept=True, n_steps=3), True),
    ],
)
def test_blocks_are_predicted_before_they_are_learned(make, centred):
    X, y = rows(3300)
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    model = make().partial_fit(X, y, weights)
    r2, parts = replayed(make, X, y, weights, centred)
    assert model.prequential_r2_ == pytest.approx(r2, abs=1e-10)
    history = model.prequential_history_
    assert len(history) == len(parts) > 5
    assert history.n_samples.tolist()[:-1] == [n for n, *_ in parts[:-1]]
    assert history.n_samples[-1] in (parts[-1][0], len(y))
    assert history.n_predicted.tolist() == [part[1] for part in parts]
    np.testing.assert_allclose(history.error, [np.sqrt(part[3] / part[2]) for part in parts], rtol=1e-9)
    np.testing.assert_allclose(history.mean_error, [np.sqrt(part[4] / part[2]) for part in parts], rtol=1e-9)
    np.testing.assert_allclose(history.to_frame()["r2"], [1.0 - part[3] / part[4] for part in parts], atol=1e-9)
    assert len(repr(history).split("\n")) == 1 + min(len(history), 21)
    cut = make()
    for start in range(0, len(y), 77):
        cut.partial_fit(X[start : start + 77], y[start : start + 77], weights[start : start + 77])
    assert cut.prequential_r2_ == model.prequential_r2_
    np.testing.assert_array_equal(cut.prequential_history_.error, history.error)
    assert cut.summary().prequential_n_samples == 3300 // 128 * 128 - 128


def test_parts_of_long_streams_are_joined():
    """No more parts than the table has room for, and together they say what the totals say."""
    X, y = rows(60_000, d=8)
    model = SparseRegressor(2, fit_intercept=False).partial_fit(X, y)
    n_models, n = 0, 128
    while n <= len(y):  # when a model is replaced: at the first block with 5 % more rows
        n_models, n = n_models + 1, -(-(n + -(-n // 20)) // 128) * 128
    history = model.prequential_history_
    assert len(history) < n_models - 10
    assert 32 <= len(history) <= 65
    assert history.n_predicted.sum() == model.summary().prequential_n_samples
    total = history.n_predicted @ history.error**2 / (history.n_predicted @ history.mean_error**2)
    assert model.prequential_r2_ == pytest.approx(1.0 - total, abs=1e-12)
    assert (np.diff(history.n_samples) > 0).all()


def test_rows_that_are_fitted_at_once_are_not_predicted():
    X, y = rows(1000)
    model = SparseRegressor().fit(X, y)
    assert model.prequential_r2_ is None
    assert len(model.prequential_history_) == 0
    assert model.prequential_history_.to_frame().empty
    assert "Prequential" not in str(model.summary())
    model.partial_fit(X, y)  # the block that is full first has rows of fit
    assert model.summary().prequential_n_samples == 2000 // 128 * 128 - 1024


def test_the_table_has_the_numbers_of_least_squares():
    X, y = rows(700)
    model = SparseRegressor(2).partial_fit(X, y).finish()
    table = model.summary(level=0.9)
    support = model.support_
    Z = np.c_[np.ones(700), X[:, support]]
    coef = np.linalg.lstsq(Z, y, rcond=None)[0]
    residual = y - Z @ coef
    variance = residual @ residual / (700 - Z.shape[1])
    errors = np.sqrt(variance * np.diagonal(np.linalg.inv(Z.T @ Z)))
    intercept, *terms = table.terms
    assert (intercept.name, [term.name for term in terms]) == (INTERCEPT, ["x3", "x7"])
    assert intercept.coef == pytest.approx(coef[0])
    # Least squares on the support does not know that other features may matter, and move the intercept.
    assert errors[0] < intercept.standard_error < 3.0 * errors[0]
    width = 2.0 * 1.647 * intercept.standard_error  # t quantile of 90 %
    assert intercept.upper - intercept.lower == pytest.approx(width, rel=1e-3)
    assert [term.coef for term in terms] == pytest.approx(coef[1:])
    assert [term.standardized for term in terms] == pytest.approx(coef[1:] * X[:, support].std(axis=0) / y.std())
    assert (table.noise, table.r2) == pytest.approx((np.sqrt(variance), 1.0 - residual.var() / y.var()))
    frame = table.to_frame()
    assert frame.loc["x7", "coef"] == pytest.approx(coef[2])
    assert table.to_dict()["terms"][1]["name"] == "x3"


def test_with_groups_the_intercept_has_the_error_of_least_squares():
    X, y = rows(700)
    model = SparseRegressor(2, groups=list(range(X.shape[1]))).partial_fit(X, y).finish()
    Z = np.c_[np.ones(700), X[:, model.support_]]
    residual = y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
    error = np.sqrt(residual @ residual / (700 - Z.shape[1]) * np.linalg.inv(Z.T @ Z)[0, 0])
    intercept = model.summary(level=0.9).terms[0]
    assert intercept.standard_error == pytest.approx(error)
    assert intercept.upper - intercept.lower == pytest.approx(2.0 * 1.647 * error, rel=1e-3)


def test_the_table_reads_the_same_as_text_and_as_html():
    X, y = rows(400, d=8)
    names = ["a", "b", "c", "<b>d</b>", "e", "f", "g", "h"]
    model = SparseRegressor(2).partial_fit(pandas.DataFrame(X, columns=names), y)
    table = model.summary()
    text, page = str(table), table._repr_html_()
    assert "95 % intervals: posterior" in text
    assert "<b>d</b>" in text
    assert "<b>d</b>" not in page
    assert "&lt;b&gt;d&lt;/b&gt;" in page
    assert all(finding.sentence in text for finding in model.diagnose().findings)


def test_what_the_rows_do_not_identify_is_said_in_words():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 3))
    X = np.c_[X, X[:, 0] + X[:, 1]]
    y = X @ [1.0, 2.0, 3.0, 4.0] + rng.standard_normal(300)
    table = OnlineHardThresholding(4, fit_intercept=True, groups=[0, 1, 2, 3]).fit(X, y).summary()
    unknown = [term for term in table.terms if term.standard_error is None]
    assert unknown
    assert all("linear combination" in term.note for term in unknown)
    assert "do not identify" in str(table)
    few = SparseRegressor(1).partial_fit(X[:2], y[:2]).summary()
    assert "too few rows" in str(few)


@pytest.mark.filterwarnings("ignore:The weights of .* rows sum to")
@pytest.mark.parametrize("sparsity", ["auto", 1])
def test_weights_that_sum_to_one_leave_the_noise_unknown(sparsity):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 5))
    y, w = X[:, 0] + rng.standard_normal(200), rng.random(200)
    model = SparseRegressor(sparsity).fit(X, y, w / w.sum())
    table = model.summary()
    assert (table.noise, table.intervals) == (None, "none")
    assert "Noise: unknown: less than one degree of freedom" in str(table)
    for term in table.terms:
        assert (term.standard_error, term.lower, term.upper) == (None, None, None)
        assert term.note
    assert model.diagnose()["noise"].numbers["noise"] is None
    for unknown in (
        model.noise_variance,
        model.confidence_intervals,
        lambda: model.confidence_intervals(method="posterior"),
        lambda: model.confidence_intervals(features=[0]),
    ):
        with pytest.raises(ValueError, match="less than one degree of freedom"):
            unknown()


def test_the_table_says_how_the_size_was_chosen():
    X, y = rows(700)
    model = SparseRegressor(selection="ebic").fit(X, y)
    table = model.summary()
    assert (table.selection, table.criterion) == ("ebic", model.selection_.criterion.min())
    assert f"Features: {len(model.support_)} of 12, chosen by ebic" in str(table)
    given = SparseRegressor(2).fit(X, y).summary()
    assert (given.selection, given.criterion) == (None, None)
    assert "Criterion" not in str(given)


def test_a_level_that_is_none_is_refused():
    X, y = rows(50)
    with pytest.raises(ValueError, match="level is 95"):
        SparseRegressor().partial_fit(X, y).summary(95)


def test_the_table_has_the_intervals_of_the_posterior():
    """Of all rows and all models, whatever the support; widened where the noise varies."""
    X, y = rows(500)
    for model in (SparseRegressor().partial_fit(X, y), OnlineHardThresholding(3, fit_intercept=True).fit(X, y)):
        found = posterior(model.summary_)
        terms = {term.name: term for term in model.summary(0.8).terms}
        factors = widening(model.summary_, model._scored.residual_moments, True, model.support_)
        for j, factor in zip(model.support_, factors, strict=True):
            term, (lower, upper) = terms[f"x{j}"], found.intervals(0.8)[j]
            assert term.inclusion == found.inclusion_probabilities[j]
            assert term.standard_error == pytest.approx(factor * found.standard_deviation[j])
            assert term.upper - term.lower == pytest.approx(factor * (upper - lower))
    assert "P(in model)" in str(model.summary())


def test_the_table_of_a_posterior_mean_is_that_of_its_short_list():
    X, y = rows(200)
    table = SparseRegressor(estimate="posterior_mean").fit(X, y).summary()
    assert [(term.name, term.coef) for term in table.terms] == [
        (term.name, term.coef) for term in SparseRegressor().fit(X, y).summary().terms
    ]


def test_a_table_without_rows_is_a_frame_without_rows():
    model = SparseRegressor(fit_intercept=False).fit(np.eye(4), np.zeros(4))
    frame = model.summary().to_frame()
    assert len(frame) == 0
    assert list(frame.columns[:2]) == ["coef", "standard_error"]


def test_any_name_may_be_that_of_a_feature():
    X, y = rows(200)
    X = pandas.DataFrame(X[:, [3, 7]], columns=[INTERCEPT, "a\nb\x1b[31m"])
    model = SparseRegressor(2).fit(X, y)
    table = model.summary()
    assert table.n_kept == table.to_dict()["n_kept"] == 2
    assert "Features: 2 of 2" in str(table)
    for text in (str(table), repr(model.confidence_intervals())):
        assert "a\\nb\\x1b[31m" in text
        assert "\x1b" not in text


def test_a_model_that_diverged_fits_on_the_screen():
    rng = np.random.default_rng(0)
    X = 1000.0 * rng.standard_normal((300, 4))
    with pytest.warns(UserWarning, match="step_size"):
        model = OnlineHardThresholding(2, step_size=0.01).partial_fit(X, X[:, 1])
    assert abs(model.coef_).max() > 1e20
    table = model.summary()
    assert [finding.key for finding in table.findings] == ["diverged"]
    assert max(map(len, str(table).split("Intervals belong")[0].splitlines())) < 100


def test_the_table_says_what_intervals_are_about():
    """Hard thresholding keeps features that the posterior leaves out, and coefficients that it shrinks."""
    X, y = SparseLinearStream(1000, 10, signal=0.5, seed=0).draw(3000)
    model = OnlineHardThresholding(50, step_size=0.001, n_warmup=100).partial_fit(X, y)
    table = model.summary()
    assert any(term.lower is not None and not term.lower <= term.coef <= term.upper for term in table.terms)
    said = "Intervals belong to posterior means, which average over models, not to coef"
    assert said in str(table)
    assert said in table._repr_html_()
    zero = posterior(model.summary_, fit_intercept=False).intervals(0.95)
    for term in table.terms:
        if (zero[int(term.name[1:])] == 0.0).all():
            assert (term.standard_error, term.lower, term.upper) == (None, None, None)
            assert "zero with a probability of 95 % or more" in term.note
        else:
            assert term.lower < term.upper
    assert any(term.note for term in table.terms)
    assert " more: zero with" in str(table)
    assert all(term.inclusion < 0.05 for term in table.terms if term.note)
    X, y = X[:1000, :20], y[:1000]
    assert "Intervals belong" not in str(SparseRegressor().partial_fit(X, y).summary())
    grouped = OnlineHardThresholding(9, step_size=1e-4, groups=list(range(20))).partial_fit(X, y).summary()
    assert "Intervals belong to debiased estimates, not to coef" in str(grouped)


def test_intervals_that_are_a_point_stay_where_they_are():
    point = Intervals(*(np.array(v) for v in ([3], ["a"], [0.1], [0.2], [0.0], [0.0])), 0.95, "posterior", 9.0)
    wide = point.widened(np.array([2.0]))
    assert (wide.lower[0], wide.upper[0], wide.standard_error[0]) == (0.0, 0.0, 0.4)


def test_after_fit_nothing_is_said_of_recent_rows():
    X, y = rows(700)
    for make in (SparseRegressor, lambda: OnlineHardThresholding(2, fit_intercept=True)):
        assert "support" not in make().fit(X, y).diagnose().to_dict()
        assert "support" in make().partial_fit(X, y).diagnose().to_dict()


def test_only_a_size_that_was_given_can_be_lowered():
    X, y = rows(12, d=300)
    given, chosen = (SparseRegressor(size).fit(X, y).diagnose()["rows"].sentence for size in (8, "auto"))
    assert "lower the sparsity" in given
    assert "lower the sparsity" not in chosen
