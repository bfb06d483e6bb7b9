"""Levels of a category beside an intercept: intervals and conditions against a reference level."""

import numpy as np
import pandas
import pytest

from thresher import Gram, SparseRegressor
from thresher.inference.categories import find_categories, reference_levels
from thresher.inference.intervals import debiased_intervals


def design(n=3000, seed=0):
    """Four numbers, a category of five levels, and one of two; k3 and m have effects."""
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame(rng.standard_normal((n, 4)), columns=list("abcd"))
    frame["kind"] = rng.choice(["k1", "k2", "k3", "k4", "k5"], n, p=[0.1, 0.4, 0.2, 0.2, 0.1])
    frame["sex"] = rng.choice(["f", "m"], n)
    X = pandas.get_dummies(frame, dtype=float)
    y = 1.0 + 2.0 * X["b"] + 1.5 * X["kind_k3"] - 1.0 * X["sex_m"] + 0.5 * rng.standard_normal(n)
    return X, y


def test_levels_are_found_wherever_they_stand():
    X, y = design()
    found = find_categories(Gram(X.shape[1]).absorb(X, y))
    assert [list(X.columns[levels]) for levels in found] == [[f"kind_k{k}" for k in range(1, 6)], ["sex_f", "sex_m"]]


def test_a_level_that_never_came_up_does_not_hide_the_others():
    X, y = design()
    X.insert(X.columns.get_loc("kind_k3"), "kind_k2b", 0.0)
    found = find_categories(Gram(X.shape[1]).absorb(X, y))
    assert [list(X.columns[levels]) for levels in found] == [[f"kind_k{k}" for k in range(1, 6)], ["sex_f", "sex_m"]]


def test_what_only_looks_like_levels_is_none():
    rng = np.random.default_rng(1)
    ones = (rng.random((500, 3)) < [0.5, 0.3, 0.2]).astype(float)  # means that add up to one, but not in every row
    dropped = np.eye(3)[rng.integers(0, 3, 500)][:, :2]  # one level left out
    shares = rng.dirichlet([1.0, 1.0, 1.0], 500)  # sums of one, but no indicators
    X = np.c_[ones, rng.standard_normal(500), dropped, rng.standard_normal(500), shares]
    assert find_categories(Gram(X.shape[1]).absorb(X, X[:, 0])) == []


@pytest.mark.parametrize("weights", [False, True])
def test_weights_and_far_shifts_do_not_hide_levels(weights):
    rng = np.random.default_rng(2)
    X = np.c_[1e6 + rng.standard_normal(400), np.eye(3)[rng.integers(0, 3, 400)]]
    gram = Gram(4).absorb(X, X[:, 1], rng.random(400) + 0.1 if weights else None)
    assert [levels.tolist() for levels in find_categories(gram)] == [[1, 2, 3]]


def test_the_reference_is_the_most_frequent_level_that_is_free():
    X, y = design()
    gram = Gram(X.shape[1]).absorb(X, y)
    categories = find_categories(gram)
    names = X.columns
    assert list(names[reference_levels(gram, categories, True, np.array([names.get_loc("sex_m")]))]) == [
        "kind_k2",
        "sex_f",
    ]
    taken = np.array([names.get_loc(name) for name in ("kind_k2", "kind_k3", "sex_f", "sex_m")])
    (only,) = reference_levels(gram, categories, True, taken)
    frequency = X[["kind_k1", "kind_k4", "kind_k5"]].mean()
    assert names[only] == frequency.idxmax()
    assert len(reference_levels(gram, categories, False, np.zeros(0, np.intp))) == 1


def test_intervals_of_levels_are_those_of_least_squares_with_a_reference():
    X, y = design()
    model = SparseRegressor(3).fit(X, y)
    assert (
        sorted(model.get_feature_names_out()) == ["b", "kind_k3", "sex_m"] or "sex_f" in model.get_feature_names_out()
    )
    found = model.confidence_intervals()
    assert np.isfinite(found.standard_error).all()
    kept = list(model.get_feature_names_out())
    sex = "sex_f" if "sex_m" in kept else "sex_m"
    # The same as least squares on everything but the reference levels: n is large beside the 9 columns.
    Z = X.drop(columns=["kind_k2", sex]).assign(one=1.0)
    coef = np.linalg.lstsq(Z.to_numpy(), y.to_numpy(), rcond=None)[0]
    residual = y - Z @ coef
    variance = residual @ residual / (len(y) - Z.shape[1])
    errors = pandas.Series(np.sqrt(variance * np.diagonal(np.linalg.inv(Z.T @ Z))), Z.columns)
    coef = pandas.Series(coef, Z.columns)
    assert found.estimate == pytest.approx(coef[kept].to_numpy(), abs=0.5 * errors[kept].max())
    assert found.standard_error == pytest.approx(errors[kept].to_numpy(), rel=0.35)


def test_a_level_is_told_from_all_others_only_where_one_is_left():
    X, y = design()
    gram = Gram(X.shape[1]).absorb(X, y)
    coef = np.zeros(X.shape[1])
    coef[X.columns.get_loc("sex_m")] = -1.0
    found = debiased_intervals(gram, coef, [X.columns.get_loc("sex_f"), X.columns.get_loc("sex_m")])
    assert np.isinf(found.standard_error[0])
    assert np.isfinite(found.standard_error[1])


def test_levels_of_a_category_are_no_bad_condition():
    X, y = design()
    finding = SparseRegressor(3).fit(X, y).diagnose()["condition"]
    assert finding.severity == "ok"
    twice = X.assign(again=X["b"])
    assert SparseRegressor(3).fit(twice, y).diagnose()["condition"].severity == "warning"


def test_the_table_names_the_level_that_others_are_compared_with():
    X, y = design()
    table = SparseRegressor(3).fit(X, y).summary()
    notes = {term.name: term.note for term in table.terms}
    assert notes["kind_k3"] == "compared with kind_k2."
    assert notes["b"] == ""
    assert all(term.standard_error is not None for term in table.terms)
    assert "* kind_k3: compared with kind_k2." in str(table)
