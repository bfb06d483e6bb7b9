import json
from itertools import combinations

import numpy as np
import pytest

from thresher import Gram
from thresher.inference.diagnostics import diagnose, sparse_eigenvalues


def brute_force(X, k, centred, standardized):
    """Extreme eigenvalues of the moments of all k columns, from the rows."""
    C = X - X.mean(axis=0) * centred
    C = C[:, (C**2).mean(axis=0) > 0.0]
    if standardized:
        C = C / np.sqrt((C**2).mean(axis=0))
    spectra = [np.linalg.eigvalsh(C[:, list(T)].T @ C[:, list(T)] / len(C)) for T in combinations(range(C.shape[1]), k)]
    largest, smallest = max(s[-1] for s in spectra), min(s[0] for s in spectra)
    return largest, smallest, max(s[-1] for s in spectra) / min(s[0] for s in spectra)


def constructed(rng, kind, n=60, d=9):
    X = rng.standard_normal((n, d))
    if kind == "correlated":
        X = X @ rng.standard_normal((d, d)) + 1.0
    elif kind == "twins":
        X[:, 7] = -X[:, 2] + 0.01 * X[:, 7]
    elif kind == "constant":
        X[:, 3] = 5.0
    elif kind == "scaled":
        X = X * np.exp(2.0 * rng.standard_normal(d)) + 3.0
    elif kind == "equal":
        X = X + 2.0 * rng.standard_normal((n, 1))
    return X


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("standardized", [True, False])
@pytest.mark.parametrize("kind", ["independent", "correlated", "twins", "constant", "scaled", "equal"])
def test_bounds_hold_for_all_subsets(rng, kind, standardized, k):
    X = constructed(rng, kind)
    for centred in (True, False):
        found = sparse_eigenvalues(Gram(9).absorb(X, X[:, 0]), k, centred, standardized)
        largest, smallest, _ = brute_force(X, k, centred, standardized)
        slack = 1e-12 * largest
        assert found.k == k
        assert found.largest[0] - slack <= largest <= found.largest[1] + slack
        assert found.smallest[0] - slack <= smallest <= found.smallest[1] + slack
        assert found.condition[0] * (1 - 1e-9) <= largest / smallest <= found.condition[1] * (1 + 1e-9)
        assert found.largest[0] > 0.8 * largest
        if k == 1:
            np.testing.assert_allclose(found.largest, largest, rtol=1e-10)
            np.testing.assert_allclose(found.smallest, smallest, rtol=1e-10)


def test_all_columns_at_once_have_the_eigenvalues_of_the_matrix(rng):
    X = constructed(rng, "constant")
    found = sparse_eigenvalues(Gram(9).absorb(X, X[:, 0]), 20)
    largest, smallest, condition = brute_force(X, 8, True, True)
    assert (found.k, found.n_columns) == (8, 8)
    np.testing.assert_allclose(found.largest, largest, rtol=1e-9)
    np.testing.assert_allclose(found.smallest, smallest, rtol=1e-9)
    np.testing.assert_allclose(found.condition, condition, rtol=1e-9)


def test_bounds_without_the_full_spectrum(rng, monkeypatch):
    monkeypatch.setattr("thresher.inference.sparse_eigenvalues.LARGEST_SPECTRUM", 5)
    X = constructed(rng, "independent", n=500)
    found = sparse_eigenvalues(Gram(9).absorb(X, X[:, 0]), 3)
    largest, smallest, _ = brute_force(X, 3, True, True)
    assert found.largest[0] <= largest <= found.largest[1] < 2.0
    assert 0.0 < found.smallest[0] <= smallest <= found.smallest[1]


def test_an_orthogonal_design_and_singular_ones():
    orthogonal = sparse_eigenvalues(Gram(4).absorb(np.tile(np.eye(4), (3, 1)), np.zeros(12)), 2, centred=False)
    np.testing.assert_allclose([*orthogonal.largest, *orthogonal.condition], 1.0, rtol=1e-12)
    X = np.random.default_rng(0).standard_normal((5, 12))
    singular = sparse_eigenvalues(Gram(12).absorb(X, X[:, 0]), 7)
    assert singular.smallest[0] == 0.0
    assert singular.smallest[1] < 1e-10
    assert singular.condition[0] > 1e10
    assert singular.condition[1] == np.inf
    with pytest.raises(ValueError, match="Every column is constant"):
        sparse_eigenvalues(Gram(2).absorb([[1.0, 2.0], [1.0, 2.0]], [0.0, 1.0]), 1)
    with pytest.raises(ValueError, match="empty: absorb rows"):
        sparse_eigenvalues(Gram(2), 1)
    with pytest.raises(ValueError, match="k must be a positive integer"):
        sparse_eigenvalues(Gram(2), 0)


# -- a diagnosis ---------------------------------------------------------------------------------------


def residual_sum(X, y, support):
    design = np.column_stack([np.ones(len(X)), X[:, support]])
    return ((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum()


def fitted(X, y, support):
    coef = np.zeros(X.shape[1])
    design = np.column_stack([np.ones(len(X)), X[:, support]])
    coef[support] = np.linalg.lstsq(design, y, rcond=None)[0][1:]
    return coef


def test_a_healthy_fit_has_nothing_to_say(rng):
    X = rng.standard_normal((500, 20))
    y = X[:, 3] - X[:, 7] + 0.5 * rng.standard_normal(500)
    found = diagnose(Gram(20).absorb(X, y), fitted(X, y, [3, 7]), 2, recent_supports=[(10, [3, 7]), (500, [3, 7])])
    assert [finding.severity for finding in found.findings] == ["ok"] * 6
    assert found.warnings == ()
    assert found["noise"].numbers["noise"] == pytest.approx(0.5, rel=0.1)
    assert found["noise"].numbers["explained"] == pytest.approx(1 - residual_sum(X, y, [3, 7]) / (500 * y.var()))
    assert "2 kept features did not change" in found["support"].sentence
    with pytest.raises(KeyError, match="there are rows, condition"):
        found["nothing"]


def test_a_twin_that_could_replace_a_kept_feature_is_named(rng):
    X = rng.standard_normal((400, 20))
    X[:, 11] = -X[:, 3] + 1e-3 * rng.standard_normal(400)
    y = X[:, 3] + X[:, 7] + rng.standard_normal(400)
    names = [f"gene<{j}>" for j in range(20)]
    found = diagnose(Gram(20).absorb(X, y), fitted(X, y, [3, 7]), 2, names=names)
    twins = found["twins"]
    assert twins.severity == "warning"
    assert "'gene<3>' for 'gene<11>'" in twins.sentence
    (entry,) = twins.numbers["outside"]
    assert (entry["kept"], entry["twin"], entry["interchangeable"]) == (3, 11, True)
    assert entry["correlation"] == pytest.approx(np.corrcoef(X[:, 3], X[:, 11])[0, 1])
    assert entry["rise"] == pytest.approx(residual_sum(X, y, [7, 11]) / residual_sum(X, y, [3, 7]) - 1.0, abs=1e-9)
    assert found["condition"].severity == "warning"
    assert "gene<3>" not in found._repr_html_()
    assert "gene&lt;3&gt;" in found._repr_html_()


def test_a_near_twin_that_fits_worse_is_no_more_than_a_note(rng):
    X = rng.standard_normal((2000, 20))
    X[:, 11] = X[:, 3] + 0.3 * X[:, 11]
    y = X[:, 3] + X[:, 7] + 0.3 * rng.standard_normal(2000)
    twins = diagnose(Gram(20).absorb(X, y), fitted(X, y, [3, 7]), 2)["twins"]
    assert twins.severity == "note"
    assert "x3 over x11" in twins.sentence
    expected = residual_sum(X, y, [7, 11]) / residual_sum(X, y, [3, 7]) - 1.0
    assert twins.numbers["outside"][0]["rise"] == pytest.approx(expected, rel=1e-9)


def test_twins_that_are_both_kept_are_named_and_perfect_fits_compare(rng):
    X = rng.standard_normal((300, 10))
    X[:, 5] = X[:, 2] + 0.01 * X[:, 5]
    X[:, 8] = 2.0 * X[:, 4]
    y = X[:, 2] + X[:, 4]
    coef = np.zeros(10)
    coef[[2, 4, 5]] = [0.5, 1.0, 0.5]
    twins = diagnose(Gram(10).absorb(X, y), coef, 3)["twins"]
    assert "both kept: x2 and x5" in twins.sentence
    assert "x4 for x8" in twins.sentence
    assert twins.numbers["outside"][0]["rise"] == 0.0


def test_constant_columns_are_named_up_to_five(rng):
    X = rng.standard_normal((100, 12))
    X[:, [0, 2, 4, 6, 8, 10]] = 3.0
    y = X[:, 1] + rng.standard_normal(100)
    constant = diagnose(Gram(12).absorb(X, y), fitted(X, y, [1]), 1)["constant"]
    assert constant.severity == "note"
    assert "6 columns are constant so far: x0, x2, x4, x6, x8 and 1 more." in (constant.sentence)
    assert constant.numbers == {"count": 6, "columns": [0, 2, 4, 6, 8]}
    assert diagnose(Gram(12).absorb(X, y), fitted(X, y, [1]), 1, centred=False)["constant"].severity == "ok"


def test_too_few_rows(rng):
    X = rng.standard_normal((40, 200))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(40)
    found = diagnose(Gram(200).absorb(X, y), fitted(X, y, np.arange(10)), 10)
    assert found["rows"].severity == "warning"
    assert found["rows"].sentence.startswith("Too few: 40 rows for 10 of 200 features")
    assert found["rows"].sentence.endswith("Wait for more rows or lower the sparsity.")
    chosen = diagnose(Gram(200).absorb(X, y), fitted(X, y, np.arange(10)), 10, size_is_given=False)["rows"]
    assert chosen.sentence.endswith(" Wait for more rows.")
    one = diagnose(Gram(200).absorb(X[:1], y[:1]), np.zeros(200), 10)["rows"]
    assert one.sentence.startswith("Too few: 1 row for 10 of 200 features")
    weighted = diagnose(Gram(200).absorb(X, y, np.full(40, 14.426925)), np.zeros(200), 10)["rows"]
    assert "577 rows for" in weighted.sentence
    assert "noise" in str(found)
    saturated = diagnose(Gram(200).absorb(X[:8], y[:8]), np.ones(200), 10)
    assert "wait for 202 rows" in saturated["noise"].sentence
    X, y = rng.standard_normal((150, 200)), rng.standard_normal(150)
    assert diagnose(Gram(200).absorb(X, y), np.eye(200)[0], 10)["rows"].severity == "note"


def test_a_condition_number_without_an_upper_bound_is_not_called_good(rng):
    X = rng.standard_normal((20, 40))
    found = diagnose(Gram(40).absorb(X, X[:, 0]), fitted(X, X[:, 0], [0]), 3)["condition"]
    low, high = found.numbers["condition"]
    assert low < 100.0
    assert high == np.inf
    assert found.severity == "note"
    assert found.sentence == (f"Not known exactly: of 6 columns at a time, the condition number is at least {low:.3g}.")


@pytest.mark.parametrize("size", [1e3, 1e150])
@pytest.mark.filterwarnings("error")
def test_a_fit_that_diverged_is_the_only_thing_that_is_said(rng, size):
    X = rng.standard_normal((100, 3))
    found = diagnose(Gram(3).absorb(X, X[:, 0]), [size, 0.0, 0.0], 1)
    (finding,) = found.findings
    assert (finding.key, finding.severity) == ("diverged", "error")
    assert "step_size='auto'" in finding.sentence
    assert finding.numbers["times"] == pytest.approx((size - 1.0) ** 2)
    assert found.warnings == (finding,)
    assert len(finding.sentence) < 250


def test_supports_that_move(rng):
    X = rng.standard_normal((300, 10))
    y = X[:, 2] + rng.standard_normal(300)
    summary, coef = Gram(10).absorb(X, y), fitted(X, y, [2, 4])
    recent = [(5, [2, 3]), (90, [2, 4]), (120, [2, 3]), (130, [2, 3]), (140, np.array([2, 4]))]
    support = diagnose(summary, coef, 2, recent_supports=recent)["support"]
    assert support.severity == "note"
    assert support.numbers == {"kept": 2, "changes": 3, "last_change": 140, "unsettled": [3, 4]}
    assert "changed 3 times, last at row 140; what came or went: x3, x4" in support.sentence
    assert "changed once, last" in diagnose(summary, coef, 2, recent_supports=recent[:2])["support"].sentence
    still = diagnose(summary, coef, 2, recent_supports=[(7, [2, 4]), (9, [2, 4])])["support"]
    assert (still.severity, still.sentence) == ("ok", "The 2 kept features did not change over the recent rows.")
    # Without a history there is nothing to say.
    for alone in ([], [(7, [2, 4])], [(300, [2, 4]), (300, [2, 4])]):
        with pytest.raises(KeyError, match="support"):
            diagnose(summary, coef, 2, recent_supports=alone)["support"]


def test_nothing_seen_nothing_kept_nothing_to_explain(rng):
    assert [finding.key for finding in diagnose(Gram(3), np.zeros(3), 1).findings] == ["rows"]
    X = rng.standard_normal((100, 3))
    empty = diagnose(Gram(3).absorb(X, X[:, 0]), np.zeros(3), 1)
    assert empty["support"].severity == "warning"
    assert empty["twins"].severity == "ok"
    assert empty["noise"].numbers["explained"] == 0.0
    still = diagnose(Gram(3).absorb(np.ones((9, 3)), np.full(9, 2.0)), np.zeros(3), 1)
    assert "No column varies" in still["condition"].sentence
    assert "The response is constant" in still["noise"].sentence
    worse = diagnose(Gram(3).absorb(X, X[:, 0]), [-1.0, 0.0, 0.0], 1)
    assert "worse than no model" in worse["noise"].sentence
    with pytest.raises(ValueError, match="2 names for 3 columns"):
        diagnose(Gram(3), np.zeros(3), 1, names=["a", "b"])


def test_a_diagnosis_is_plain_values(rng):
    X = rng.standard_normal((100, 6))
    X[:, 1] = X[:, 0]
    found = diagnose(Gram(6).absorb(X, X[:, 0] + X[:, 2]), fitted(X, X[:, 0] + X[:, 2], [0, 2]), 2)
    saved = json.loads(json.dumps(found.to_dict()))
    assert list(saved) == ["rows", "condition", "twins", "constant", "noise"]
    assert saved["twins"]["numbers"]["outside"][0]["twin"] == 1
    assert len(str(found).split("\n")) == 5
    assert found._repr_html_().count("<tr>") == 6


def test_wide_designs_skip_what_needs_a_large_temporary(rng, monkeypatch):
    monkeypatch.setattr("thresher.inference.diagnostics.LARGEST_CONDITION", 5)
    X = rng.standard_normal((100, 6))
    found = diagnose(Gram(6).absorb(X, X[:, 0]), fitted(X, X[:, 0], [0]), 1)
    assert "sparse_eigenvalues(summary, 2)" in found["condition"].sentence
