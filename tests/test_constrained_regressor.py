"""Algorithm 1 with any set: those of docs/projections.md against slow solvers and a dozen lines of NumPy."""

import pickle
import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import least_squares, nnls
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from thresher import (
    Cardinality,
    ConstrainedRegressor,
    Gram,
    Groups,
    LowRankRegressor,
    MatrixCompleter,
    OnlineHardThresholding,
    Rank,
    load,
)

PAGE = Path(__file__).parents[1] / "docs" / "projections.md"


class Hyperplane:
    """Vectors whose entries add up to one, with everything optional left out. Zero is not in it."""

    def project(self, theta):
        return theta + (1.0 - theta.sum()) / theta.size

    def __repr__(self):
        return "Hyperplane()"  # the same in every process that collects tests


@parametrize_with_checks([ConstrainedRegressor(Hyperplane(), max_iter=20), ConstrainedRegressor(Cardinality(3))])
@pytest.mark.filterwarnings("ignore:fit did not settle:sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# -- the sets of the page ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sets():
    """The classes that the page defines, without what else it does."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    namespace = {"np": np, "Cardinality": Cardinality, "Rank": Rank}
    for block in blocks:
        for source in re.findall(r"^class .*?(?=^\S|\Z)", block, re.MULTILINE | re.DOTALL):
            exec(source, namespace)
    return namespace


SPIKED = np.outer([1.0, -1.0, 0.5], [1.0, 2.0, 1.0])
SPIKED[0, 2] -= 4.0

# Of each set: its class, its arguments, and the shape and the truth of a small problem.
EXAMPLES = {
    "non-negative": ("NonNegative", (2,), [0.0, 1.5, 0.0, -1.0, 0.6, 0.0, 0.0]),
    "members": ("WithMembers", (2, [0, 3]), [0.0, 1.5, 0.0, -1.0, 0.6, 0.0, -0.4]),
    "jumps": ("PiecewiseConstant", (2,), [1.0, 1.0, 1.0, -0.5, -0.5, 2.0, 2.0]),
    "symmetric": ("SymmetricRank", (2,), np.diag([2.0, -1.0, 0.1]) + 0.3),
    "sparse plus low rank": ("SparsePlusLowRank", (1, 1), SPIKED),
}


def problem(rng, truth, n=120):
    truth = np.array(truth)
    X = rng.standard_normal((n, *truth.shape))
    X[..., 0] += 0.5 * X[..., 1]
    return X, (X * truth).reshape(n, -1).sum(axis=1) + 0.3 * rng.standard_normal(n)


def made(sets, name, **parameters):
    kind, arguments, truth = EXAMPLES[name]
    return ConstrainedRegressor(sets[kind](*arguments), **parameters), truth


def algorithm_1(X, y, project, K, eta, t0=0, every=1):
    """Algorithm 1 in NumPy: the iterate after every row."""
    rows = X.reshape(len(X), -1)
    A, b, theta, t = 0.0, 0.0, np.zeros(X.shape[1:]), 0
    for n in range(1, len(X) + 1):
        A, b = A + np.outer(rows[n - 1], rows[n - 1]), b + rows[n - 1] * y[n - 1]
        if n > t0 and (n - t0) % every == 0:
            t += 1
            for _ in range(K(t) if callable(K) else K):
                theta = project(theta - eta * ((A @ theta.ravel() - b) / n).reshape(theta.shape))
        yield theta


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.filterwarnings("ignore:step_size=:sklearn.exceptions.ConvergenceWarning")  # an inexact projection
def test_every_row_leaves_the_iterate_of_algorithm_1(sets, name, rng):
    model, truth = made(sets, name, n_steps=3, step_size=0.1, n_warmup=12, round_size=2)
    X, y = problem(rng, truth)
    for n, expected in enumerate(algorithm_1(X, y, model.projection.project, 3, 0.1, 12, 2), start=1):
        model.partial_fit(X[n - 1 : n], y[n - 1 : n])
        np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-9)


def on_columns(X, y, columns):
    """The least mean square of a combination of columns."""
    A = X @ columns
    return ((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2).mean()


def slow_non_negative(X, y):
    return min(nnls(X[:, list(S)], y)[1] ** 2 / len(y) for S in combinations(range(X.shape[1]), 2))


def slow_members(X, y):
    others = [j for j in range(X.shape[1]) if j not in (0, 3)]
    return min(on_columns(X, y, np.eye(X.shape[1])[:, [0, 3, *S]]) for S in combinations(others, 2))


def slow_jumps(X, y):
    steps = np.tril(np.ones((X.shape[1], X.shape[1])))
    return min(on_columns(X, y, steps[:, [0, *S]]) for S in combinations(range(1, X.shape[1]), 2))


def descents(X, y, build, n_parameters, n_starts=6):
    """The least mean square over matrices with parameters, by Levenberg and Marquardt from several starts."""
    rng = np.random.default_rng(0)

    def residuals(p):
        return (X * build(p)).sum(axis=(1, 2)) - y

    ends = [least_squares(residuals, rng.standard_normal(n_parameters), method="lm") for _ in range(n_starts)]
    return min(2.0 * end.cost for end in ends) / len(y)


def slow_symmetric(X, y):
    def signed(signs):
        return lambda p: (p.reshape(3, 2) * signs) @ p.reshape(3, 2).T

    return min(descents(X, y, signed(np.array(signs)), 6) for signs in product([-1.0, 1.0], repeat=2))


def slow_sparse_plus_low_rank(X, y):
    def spiked(unit):
        return lambda p: np.outer(p[:3], p[3:6]) + p[6] * unit

    return min(descents(X, y, spiked(unit.reshape(3, 3)), 7, n_starts=3) for unit in np.eye(9))


SLOW = dict(
    zip(EXAMPLES, (slow_non_negative, slow_members, slow_jumps, slow_symmetric, slow_sparse_plus_low_rank), strict=True)
)


@pytest.mark.parametrize("name", EXAMPLES)
def test_fit_ends_at_the_optimum_of_a_slow_solver(sets, name, rng):
    model, truth = made(sets, name)
    X, y = problem(rng, truth)
    if name == "sparse plus low rank":
        model.projection.n_turns = 300  # so that the projection is exact to ten digits
    model.fit(X, y)
    least = SLOW[name](X, y)
    assert ((y - model.predict(X)) ** 2).mean() == pytest.approx(least, rel=1e-6)
    if hasattr(model.projection, "measure"):
        assert model.projection.measure(model.coef_) <= model.projection.s


@pytest.mark.parametrize("name", list(EXAMPLES)[:4])  # the last one takes turns and is not exact
def test_projections_are_the_closest_points_of_their_sets(sets, name, rng):
    kind, arguments, truth = EXAMPLES[name]
    own = sets[kind](*arguments)
    for _ in range(20):
        theta = 2.0 * rng.standard_normal(np.shape(truth))
        nearest = own.project(theta)
        for _ in range(20):
            other = own.project(nearest + 0.5 * rng.standard_normal(theta.shape))
            assert np.linalg.norm(theta - nearest) <= np.linalg.norm(theta - other) + 1e-12


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("step_size", [0.1, "auto"])
@pytest.mark.filterwarnings("ignore:step_size=:sklearn.exceptions.ConvergenceWarning")
def test_any_cut_gives_bit_identical_coefficients(sets, name, step_size, rng):
    kind, arguments, truth = EXAMPLES[name]
    X, y = problem(rng, truth, n=150)
    parameters = {"n_steps": 2, "step_size": step_size, "n_warmup": 10, "round_size": 7, "fit_intercept": True}
    ends = []
    for cuts in ([], [1, 10, 11, 60], [130]):
        model = ConstrainedRegressor(sets[kind](*arguments), **parameters)
        for rows, responses in zip(np.split(X, cuts), np.split(y, cuts), strict=True):
            model.partial_fit(rows, responses)
        ends.append(model.finish())
    for end in ends[1:]:
        np.testing.assert_array_equal(end.coef_, ends[0].coef_)
        assert end.intercept_ == ends[0].intercept_


class Box:
    """Between bounds; can be pickled, for it is a class of a module."""

    def project(self, theta):
        return np.clip(theta, -0.5, 0.5)


def test_a_pickle_of_a_set_of_ones_own_goes_on_and_a_file_is_refused(rng, tmp_path):
    X, y = problem(rng, [1.0, 0.2, 0.0])
    model = ConstrainedRegressor(Box()).partial_fit(X[:70], y[:70])
    again = pickle.loads(pickle.dumps(model)).partial_fit(X[70:], y[70:])
    np.testing.assert_array_equal(again.coef_, model.partial_fit(X[70:], y[70:]).coef_)
    with pytest.raises(TypeError, match="Box cannot be saved: files hold data, not code"):
        model.save(tmp_path / "m")
    kept = ConstrainedRegressor(Cardinality(2)).partial_fit(X[:70], y[:70])
    kept.save(tmp_path / "m")
    again = load(tmp_path / "m").partial_fit(X[70:], y[70:])
    np.testing.assert_array_equal(again.coef_, kept.partial_fit(X[70:], y[70:]).coef_)


# -- the sets of the package -------------------------------------------------------------------------------


class Plain:
    """Another object with the projection of a set, and nothing else."""

    def __init__(self, own):
        self.project = own.project


@pytest.mark.parametrize(
    "own", [Cardinality(2), Groups([0, 0, 1, 1, 2, 2], 2), Rank(1), Groups([0, 0, 1], 1)], ids=repr
)
def test_sets_of_the_package_have_the_same_iterates_as_any_others(own, rng):
    shape = (3, 2) if isinstance(own, Rank) or len(getattr(own, "index", [])) == 3 else (6,)
    X, y = problem(rng, rng.standard_normal(shape))
    models = [ConstrainedRegressor(one, step_size=0.1, n_steps=2, fit_intercept=True) for one in (own, Plain(own))]
    for n in range(0, len(X), 10):
        one, other = (model.partial_fit(X[n : n + 10], y[n : n + 10]).coef_ for model in models)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_it_is_the_other_estimators_where_they_have_the_set(rng):
    X, y = problem(rng, [1.0, 0.0, -1.0, 0.2])
    np.testing.assert_array_equal(
        ConstrainedRegressor(Cardinality(2)).partial_fit(X, y).coef_, OnlineHardThresholding(2).partial_fit(X, y).coef_
    )
    X, y = problem(rng, np.outer([1.0, -1.0, 0.5], [1.0, 2.0]))
    np.testing.assert_array_equal(
        ConstrainedRegressor(Rank(1)).partial_fit(X, y).coef_, LowRankRegressor(1).partial_fit(X, y).coef_
    )
    rows = ConstrainedRegressor(Rank(1), shape=(3, 2)).partial_fit(X.reshape(len(X), 6), y)
    np.testing.assert_array_equal(rows.coef_, LowRankRegressor(1).partial_fit(X, y).coef_)


def test_without_a_set_it_is_least_squares(rng):
    X, y = problem(rng, [1.0, -2.0, 0.5])
    model = ConstrainedRegressor(fit_intercept=True, max_iter=3000).fit(X, y + 4.0)
    expected = np.linalg.lstsq(np.c_[X, np.ones(len(X))], y + 4.0, rcond=None)[0]
    np.testing.assert_allclose([*model.coef_, model.intercept_], expected, rtol=1e-6)
    again = ConstrainedRegressor(max_iter=3000).fit_summary(Gram(3).absorb(X, y))
    np.testing.assert_allclose(again.coef_, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-6)


def test_certified_steps_need_no_restrict_and_use_it_where_there_is_one(rng):
    X, y = problem(rng, [1.0, 0.0, -1.0, 0.2, 0.0])
    calls = []

    class Restricting(Cardinality):
        def restrict(self, direction, theta):
            calls.append(1)
            return super().restrict(direction, theta)

    for own in (Plain(Cardinality(3)), Restricting(3), Hyperplane()):
        model = ConstrainedRegressor(own)
        for n in range(5, len(X), 5):
            model.partial_fit(X[n - 5 : n], y[n - 5 : n])
            rounds = model._rounds.inner
            loss = model.summary_.loss(rounds.coef)
            rounds.run_round("auto", 3)
            assert model.summary_.loss(rounds.coef) <= loss * (1 + 1e-12)
    assert rounds.coef.sum() == pytest.approx(1.0)
    assert calls


# -- what can go wrong -------------------------------------------------------------------------------------


class Faulty:
    """Does what it should for some calls, then something else."""

    s = 2

    def __init__(self, returned, after):
        self.returned, self.left = returned, after

    def project(self, theta):
        self.left -= 1
        return Cardinality(2).project(theta) if self.left >= 0 else self.returned(theta)

    def measure(self, theta):
        return np.count_nonzero(theta)


def raises(theta):
    raise RuntimeError("out of luck")


FAULTS = {
    "shape": (lambda theta: theta[:2], r"Faulty.project returned an array of shape \(2,\) for one of shape \(5,\)"),
    "not finite": (
        lambda theta: np.where(theta == 0.0, 0.0, np.nan),
        "Faulty.project returned entries that are not finite",
    ),
    "outside": (lambda theta: theta, "Faulty.project returned a point outside its set: it measures 5, above s = 2"),
    "no numbers": (lambda theta: "none", "Faulty.project returned a str; it must return an array of real numbers"),
    "complex": (lambda theta: theta + 1j, "returned a ndarray; it must return an array of real numbers"),
    "nothing": (lambda theta: None, "Faulty.project returned"),
    "an error": (raises, "out of luck"),
}


def state(model):
    """Everything about a model but its set, which counts its calls."""
    own, model.projection = model.projection, None
    rounds = model.__dict__.get("_rounds")
    if rounds is None:
        found = {key: repr(value) for key, value in vars(model).items()}
    else:
        gram, at = model.summary_.state, rounds.inner._round
        found = {
            "public": {key: repr(value) for key, value in vars(model).items() if not key.startswith("_")},
            "gram": {key: pickle.dumps(value) for key, value in vars(gram).items()},
            "at": pickle.dumps((at.coef, at.intercept, at.last_step, at.tallies)),
            "counts": (rounds.inner.n_rounds, rounds.inner.n_pending, rounds.inner.n_at_round, rounds._next),
            "history": len(rounds.history),
        }
    model.projection = own
    return found


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("n_before", [0, 40, 255])
def test_a_projection_that_fails_leaves_the_model_as_it_was(fault, n_before, rng):
    returned, message = FAULTS[fault]
    X, y = problem(rng, [1.0, 0.0, -1.0, 0.2, 0.0], n=700)
    own = Faulty(returned, 10**9)
    model = ConstrainedRegressor(own, n_steps=1, step_size=0.1, round_size=3)
    if n_before:
        model.partial_fit(X[:n_before], y[:n_before])
    before = state(model)
    for n_more in (300, 5):  # with a fold on the way, and without
        own.left = 0
        with pytest.raises((ValueError, RuntimeError), match=message):
            model.partial_fit(X[n_before : n_before + n_more], y[n_before : n_before + n_more])
        assert state(model) == before
    if n_before:
        own.left = 0
        with pytest.raises((ValueError, RuntimeError), match=message):
            model.finish() if n_before % 3 else model.fit(X, y)
        assert state(model) == before
    own.left = 10**9
    model.partial_fit(X[n_before:], y[n_before:])
    whole = ConstrainedRegressor(own, n_steps=1, step_size=0.1, round_size=3).partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_bad_sets_and_shapes_are_named(rng):
    X, y = problem(rng, [1.0, 0.0, -1.0])

    class Unsized:
        def project(self, theta):
            return theta

        def measure(self, theta):
            return 0

    for model, message in [
        (ConstrainedRegressor(Unsized()), "Unsized has measure.*but no attribute s"),
        (ConstrainedRegressor(3), "'projection' parameter"),
        (ConstrainedRegressor(Rank(1)), "Rank is a set of matrices"),
        (ConstrainedRegressor(Groups([0, 1], 1)), "2 labels for 3 rows"),
        (ConstrainedRegressor(shape=(2, 2)), "3 columns; matrices of shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, y)
        assert not hasattr(model, "summary_")
    model = ConstrainedRegressor().partial_fit(X, y)
    with pytest.raises(ValueError, match="before, it had rows of 3 numbers"):
        model.partial_fit(X[:, None], y)


# -- where it starts, and how many steps -------------------------------------------------------------------


def test_a_start_goes_on_from_there_bit_for_bit(sets, rng):
    model, truth = made(sets, "jumps", n_steps=2, step_size=0.1)
    X, y = problem(rng, truth)
    model.partial_fit(X[:50], y[:50])
    other = clone(model).set_params(start=model.coef_, n_warmup=50).partial_fit(X, y)
    np.testing.assert_array_equal(other.coef_, model.partial_fit(X[50:], y[50:]).coef_)


@pytest.mark.parametrize(
    ("one", "truth"),
    [
        (OnlineHardThresholding(2), [1.0, 0.0, -1.0, 0.2]),
        (OnlineHardThresholding(2, fit_intercept=True, standardize=True), [1.0, 0.0, -1.0, 0.2]),
        (OnlineHardThresholding(1, groups=[0, 0, 1, 1]), [1.0, 0.5, -1.0, 0.2]),
        (ConstrainedRegressor(Cardinality(3)), [1.0, 0.0, -1.0, 0.2]),
        (LowRankRegressor(1), np.outer([1.0, -1.0, 0.5], [1.0, 2.0])),
    ],
    ids=repr,
)
@pytest.mark.parametrize("step_size", [0.1, "auto"])
def test_compiled_rounds_go_on_from_a_start(one, truth, step_size, rng):
    X, y = problem(rng, truth)
    one = clone(one).set_params(step_size=step_size)
    first = clone(one).partial_fit(X[:50], y[:50])
    array = clone(one).set_params(start=first.coef_.copy(), n_warmup=50).partial_fit(X, y)
    model = clone(one).set_params(n_warmup=50)
    model.start = first
    model.partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.coef_, first.coef_)
    first.partial_fit(X[50:], y[50:])  # the start was taken at the first row
    np.testing.assert_array_equal(model.partial_fit(X[50:], y[50:]).coef_, array.coef_)
    # What the compiled rounds remember of earlier rows is rounded otherwise than what they compute again; certified
    # steps for ranks also remember a curvature.
    if not (step_size == "auto" and isinstance(one, LowRankRegressor)):
        np.testing.assert_allclose(array.coef_, first.coef_, rtol=0, atol=1e-12)


def test_a_start_is_the_first_input_of_algorithm_1(rng):
    X, y = problem(rng, [1.0, 0.0, -1.0, 0.2])
    start = np.array([0.0, 5.0, 0.0, -5.0])
    model = OnlineHardThresholding(2, n_steps=1, step_size=0.01, start=start)
    theta, A, b = start, 0.0, 0.0
    for n in range(1, 30):
        model.partial_fit(X[n - 1 : n], y[n - 1 : n])
        A, b = A + np.outer(X[n - 1], X[n - 1]), b + X[n - 1] * y[n - 1]
        theta = Cardinality(2).project(theta - 0.01 * (A @ theta - b) / n)
        np.testing.assert_allclose(model.coef_, theta, rtol=0, atol=1e-12)
    outside = OnlineHardThresholding(1, n_warmup=5, start=[1.0, 3.0, 0.0, -2.0]).partial_fit(X[:2], y[:2])
    np.testing.assert_array_equal(outside.coef_, [0.0, 3.0, 0.0, 0.0])
    chosen = OnlineHardThresholding(n_warmup=50, start=start).partial_fit(X[:2], y[:2])
    np.testing.assert_array_equal(chosen.coef_, start)
    assert chosen.partial_fit(X[2:], y[2:]).sparsity_ == OnlineHardThresholding(n_warmup=50).partial_fit(X, y).sparsity_


def test_a_completion_starts_from_a_matrix(rng):
    truth = np.outer([1.0, -1.0, 0.5], [1.0, 2.0])
    rows, cols = np.divmod(np.arange(6), 2)
    parameters = {"rank": 1, "shape": (3, 2), "step_size": 0.5, "n_steps": 1, "round_size": 6, "shrink": False}
    model = MatrixCompleter(**parameters, start=truth).partial_fit(rows, cols, 3.0 * truth[rows, cols])
    # Every entry was seen once: a step goes a half of a sixth of the way, and stays within rank one.
    np.testing.assert_allclose(model.coef_, truth + 0.5 * (3.0 - 1.0) * truth / 6.0, rtol=1e-9)
    chosen = MatrixCompleter(shape=(3, 2), n_warmup=10, start=truth).partial_fit(rows, cols, truth[rows, cols])
    np.testing.assert_allclose(chosen.coef_, truth, rtol=1e-9)
    with pytest.raises(ValueError, match="start needs the shape"):
        MatrixCompleter(start=truth).partial_fit(rows, cols, truth[rows, cols])
    sensing = LowRankRegressor(n_warmup=10, start=truth, shape=(3, 2)).partial_fit(np.eye(6), truth.ravel())
    np.testing.assert_array_equal(sensing.coef_, truth)
    assert sensing.rank_ == 1


def test_bad_starts_are_named_and_change_nothing(rng):
    X, y = problem(rng, [1.0, 0.0, -1.0])
    for start, message in [
        ([1.0, 2.0], r"start has shape \(2,\); the coefficients have shape \(3,\)"),
        ([1.0, np.nan, 0.0], "not finite"),
        (OnlineHardThresholding(2), "without coef_. Fit it first, or pass its coefficients"),
    ]:
        model = OnlineHardThresholding(2, start=start)
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, y)
        assert not hasattr(model, "summary_")


@pytest.mark.parametrize("kind", ["compiled", "any set", "matrix"])
@pytest.mark.parametrize("schedule", [lambda t: 1 + t % 3, lambda t: 12 if t == 4 else 1])
def test_rounds_have_as_many_steps_as_the_schedule_says(kind, schedule, rng):
    truth = np.outer([1.0, -1.0, 0.5], [1.0, 2.0]) if kind == "matrix" else np.array([1.0, 0.0, -1.0, 0.2])
    X, y = problem(rng, truth)
    own = Rank(1) if kind == "matrix" else Cardinality(2)
    model = ConstrainedRegressor(Plain(own) if kind == "any set" else own, n_steps=schedule, step_size=0.05, n_warmup=5)
    for n, expected in enumerate(algorithm_1(X, y, own.project, schedule, 0.05, 5), start=1):
        if n % 7 == 0 or n == len(X):
            start = n - 7 if n % 7 == 0 else n - n % 7
            model.partial_fit(X[start:n], y[start:n])
            np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-9)


def test_a_schedule_of_steps_is_checked_and_can_be_set_aside_for_saving(rng, tmp_path):
    X, y = problem(rng, [1.0, 0.0, -1.0])
    model = OnlineHardThresholding(2, n_steps=lambda t: 2).partial_fit(X[:50], y[:50])
    constant = OnlineHardThresholding(2, n_steps=2).partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.coef_, constant.coef_)
    for wrong in (lambda t: 0, lambda t: 1.5, lambda t: None):
        model.set_params(n_steps=wrong)
        with pytest.raises(ValueError, match=r"n_steps\(51\) must be an integer of at least 1"):
            model.partial_fit(X[50:], y[50:])
        assert model.n_samples_seen_ == 50
    with pytest.raises(TypeError, match="or set the parameter to a number"):
        model.save(tmp_path / "m")
    model.set_params(n_steps=2).save(tmp_path / "m")
    again = load(tmp_path / "m").set_params(n_steps=lambda t: 2).partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(again.coef_, constant.partial_fit(X[50:], y[50:]).coef_)
