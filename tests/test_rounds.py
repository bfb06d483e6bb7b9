"""The compiled rounds against plain NumPy Algorithm 1, and against the readable reference."""

import numpy as np
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from oracles import algorithm_1, design, keep_largest, last, smoothness
from thresher import Cardinality, Gram
from thresher.online import reference
from thresher.online._sparse_round import SparseRound
from thresher.online.samples import Rows
from thresher.online.sparse import RULES, SparseRounds
from thresher.online.step_size import step_table
from thresher.sparsity.reciprocal import Reciprocal

KINDS = ["independent", "correlated", "duplicated", "scaled", "late", "constant"]


def stream(X, y, s, K, step_size, t0=0, round_size=1, centred=False, standardized=False, bound_scale=1.0, **how):
    rounds = SparseRounds(Gram(X.shape[1]), s, centred, standardized, bound_scale, **how)
    steps = rounds.steps_for(len(X), step_size, K, t0, round_size)
    return rounds.absorb(Rows(X, y), steps, t0, round_size)


def follow_reference(X, y, s, K, step_size, t0, centred, standardized, rule="hard"):
    """The reference after each round."""
    gram, theta = Gram(X.shape[1]), np.zeros(X.shape[1])
    sparsity = Reciprocal(s) if rule == "reciprocal" else Cardinality(s)
    for i in range(len(X)):
        gram.absorb(X[i : i + 1], y[i : i + 1])
        if i >= t0:
            steps = step_table(step_size, i - t0 + 1, 1, K)[0]
            theta = reference.run_round(theta, gram, sparsity, steps, centred, standardized, rule)
    return theta


def assert_close(actual, expected, rtol=1e-9):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * max(np.abs(expected).max(), 1e-300))


@settings(max_examples=120)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    d=st.integers(2, 90),
    share=st.floats(0.02, 1.0),
    K=st.sampled_from([1, 2, 3, 5, 8, 20]),
    eta=st.floats(0.01, 1.0),
    t0=st.integers(0, 120),
)
@example(seed=1, kind="duplicated", d=90, share=0.1, K=5, eta=0.5, t0=0)
@example(seed=2, kind="independent", d=300, share=0.05, K=2, eta=0.3, t0=20)  # n < d
def test_equals_plain_numpy(seed, kind, d, share, K, eta, t0):
    rng = np.random.default_rng(seed)
    n, s = t0 + 150, max(1, int(share * d))
    X = design(rng, kind, n, d)
    y = X[:, : min(3, d)].sum(axis=1) + rng.standard_normal(n)
    eta /= smoothness(X, t0)
    assert_close(stream(X, y, s, K, eta, t0).coef, last(algorithm_1(X, y, s, K, eta, t0)))


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    d=st.integers(2, 40),
    share=st.floats(0.02, 1.0),
    K=st.sampled_from([1, 2, 5, 10]),
    eta=st.floats(0.001, 1.0),
    t0=st.integers(0, 60),
)
def test_equals_plain_numpy_for_2000_rounds(seed, kind, d, share, K, eta, t0):
    rng = np.random.default_rng(seed)
    X = design(rng, kind, 2000 + t0, d)
    y = X[:, : min(3, d)].sum(axis=1) + rng.standard_normal(len(X))
    s, eta = max(1, int(share * d)), eta / smoothness(X, t0)
    assert_close(stream(X, y, s, K, eta, t0).coef, last(algorithm_1(X, y, s, K, eta, t0)))


def test_weights_intercept_and_scales_equal_plain_numpy_on_prepared_rows(rng):
    """At every round: the rows so far centred, scaled and weighted by hand, then one plain step."""
    X, w = design(rng, "scaled", 300, 25) + 3.0, rng.integers(0, 4, 300).astype(float)
    y = X[:, :3] @ [1.0, -2.0, 0.5] + rng.standard_normal(300)
    rounds = SparseRounds(Gram(25), 5, True, True)
    rounds.absorb(Rows(X, y, w), step_table(0.02, 1, 1, 2), 10)
    theta = np.zeros(25)
    for n in range(11, 301):
        a, b, v = X[:n], y[:n], w[:n] / w[:n].sum()
        Z, r = a - v @ a, b - v @ b
        scale = np.sqrt(v @ Z**2)
        for _ in range(2):
            g = (Z / scale).T @ (v * (Z @ theta - r))
            theta = keep_largest(scale * theta - 0.02 * g, 5) / scale
    assert_close(rounds.coef * scale, theta * scale)
    np.testing.assert_allclose(rounds.intercept, v @ b - v @ a @ theta, rtol=1e-9)


@pytest.mark.parametrize(
    ("power", "standardized"), [(-498, True), (-300, True), (300, True), (498, True), (-200, False), (200, False)]
)
def test_certificate_survives_squares_that_overflow(power, standardized):
    """Powers of two change no digit, so columns of size 1e150 must be treated like columns of size one."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = design(rng, "correlated", 600, 80)
        y = 1e3 * (X[:, :4] @ [1.0, -0.5, 0.3, 0.2] + rng.standard_normal(600))
        plain = stream(X, y, 5, 3, "auto", 0, 1, True, standardized).coef
        scaled = stream(X * 2.0**power, y, 5, 3, "auto", 0, 1, True, standardized).coef
        assert_close(scaled * 2.0**power, plain)


def test_far_from_zero_the_reference_is_as_accurate_as_the_rounds(rng):
    X = design(rng, "correlated", 200, 40) + 1e5
    y = X[:, 0] - X[:, 20] + rng.standard_normal(200)
    expected = follow_reference(X, y, 6, 3, "auto", 0, True, True)
    assert_close(stream(X, y, 6, 3, "auto", 0, 1, True, True).coef, expected, 1e-6)


def test_coefficients_may_span_thirteen_powers_of_ten(rng):
    X = rng.standard_normal((300, 8))
    y = 1e13 * X[:, 0] + 5e2 * X[:, 5]
    expected = last(algorithm_1(X, y, 2, 5, 0.5, 100))
    rounds = stream(X, y, 2, 5, 0.5, 100)
    np.testing.assert_array_equal(np.flatnonzero(rounds.coef), np.flatnonzero(expected))
    assert list(np.flatnonzero(expected)) == [0, 5]


@pytest.mark.parametrize("kind", KINDS)
def test_every_one_of_2000_rounds_equals_plain_numpy(rng, kind):
    d, s, K, t0 = 60, 8, 3, 30
    X = design(rng, kind, 2000 + t0, d) + 0.5
    y = X[:, :4] @ [1.0, -0.5, 0.3, 0.1] + rng.standard_normal(len(X))
    eta = 0.7 / np.linalg.eigvalsh(X.T @ X / len(X))[-1]
    rounds = SparseRounds(Gram(d), s, False, False)
    steps = step_table(eta, 1, 1, K)
    for i, expected in enumerate(algorithm_1(X, y, s, K, eta, t0)):
        chunk = slice(0, t0 + 1) if i == 0 else slice(t0 + i, t0 + i + 1)
        assert_close(rounds.absorb(Rows(X[chunk], y[chunk]), steps, t0).coef, expected)
    assert rounds.n_rounds == 2000


def test_schedule_and_round_size_equal_plain_numpy(rng):
    X = design(rng, "correlated", 400, 40)
    y = X[:, 0] - X[:, 20] + rng.standard_normal(400)

    def eta(t, k):
        return 0.1 / (1.0 + 0.01 * t) / (1 + k)

    expected = last(algorithm_1(X, y, 6, 3, eta, 13, every=7))
    rounds = stream(X, y, 6, 3, eta, 13, round_size=7)
    assert_close(rounds.coef, expected)
    assert rounds.n_rounds == (400 - 13) // 7
    assert rounds.n_pending == (400 - 13) % 7


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    d=st.integers(1, 70),
    share=st.floats(0.02, 1.0),
    K=st.integers(1, 6),
    t0=st.integers(0, 60),
    centred=st.booleans(),
    standardized=st.booleans(),
    step_size=st.sampled_from(["auto", 0.01, lambda t, k: 0.1 / (10 + t + k)]),
    rule=st.sampled_from(list(RULES)),
)
@example(0, "duplicated", 70, 0.1, 5, 0, True, True, "auto", "hard")
@example(0, "duplicated", 70, 0.1, 5, 0, True, True, "auto", "pursuit")
@example(0, "correlated", 70, 0.1, 5, 0, False, True, "auto", "reciprocal")
@example(4096, "independent", 61, 0.75, 1, 1, True, True, 0.01, "reciprocal")
def test_equals_reference(seed, kind, d, share, K, t0, centred, standardized, step_size, rule):
    rng = np.random.default_rng(seed)
    n, s = t0 + 80, max(1, int(share * d))
    X = design(rng, kind, n, d) + rng.standard_normal(d)
    y = X[:, : min(3, d)].sum(axis=1) + rng.standard_normal(n)
    if step_size != "auto" and not standardized:
        X /= np.abs(X).max() * np.sqrt(d)  # keeps a fixed step stable
    expected = follow_reference(X, y, s, K, step_size, t0, centred, standardized, rule)
    actual = stream(X, y, s, K, step_size, t0, 1, centred, standardized, rule=rule).coef
    # At the threshold the slope of that rule is infinite, as of a square root: rounding of 1e-15 comes out as 3e-8.
    least, scale = 1e-7 if rule == "reciprocal" else 1e-8, max(np.abs(expected).max(), 1e-300)
    if np.abs(actual - expected).max() <= least * scale:
        return
    # Some problems amplify rounding: least squares on nearly as many features as rows, twins under a rule with an
    # infinite slope. The reference then disagrees with itself when responses change in the last digit.
    nearby = y * (1.0 + 1e-15 * rng.standard_normal(n))
    try:
        again = follow_reference(X, nearby, s, K, step_size, t0, centred, standardized, rule)
    except np.linalg.LinAlgError:  # or finds a singular problem
        reject()
    assert_close(actual, expected, rtol=least + 1000.0 * np.abs(again - expected).max() / scale)


def test_equals_reference_over_1000_rounds_with_the_certified_step(rng):
    d, s, K = 50, 7, 4
    X = design(rng, "scaled", 1000, d) + rng.standard_normal(d)
    y = X[:, :4] @ [1.0, -0.5, 0.3, 0.1] + rng.standard_normal(1000)
    expected = follow_reference(X, y, s, K, "auto", 0, True, True)
    assert_close(stream(X, y, s, K, "auto", 0, 1, True, True).coef, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("centred", [False, True])
def test_rounds_of_many_short_steps_are_leaps_and_equal_single_steps(rng, kind, centred):
    X = design(rng, kind, 500, 80) + 0.3
    y = X[:, :6] @ [1.0, -0.5, 0.3, 0.2, 0.4, -0.6] + rng.standard_normal(500)
    eta = 0.004 / smoothness(X, 100)
    if centred:
        expected = follow_reference(X, y, 8, 20, eta, 100, True, False)
    else:
        expected = last(algorithm_1(X, y, 8, 20, eta, 100))
    rounds = stream(X, y, 8, 20, eta, 100, 1, centred)
    assert_close(rounds.coef, expected)
    assert rounds.tallies["leaps"] > 100
    assert rounds.tallies["steps"] == 20 * 400
    eager = stream(X, y, 8, 20, eta, 100, 1, centred, bound_scale=np.inf)
    assert eager.tallies["leaps"] == 0
    assert_close(rounds.coef, eager.coef, 1e-11)


def test_reference_equals_plain_numpy(rng):
    X = design(rng, "correlated", 200, 30)
    y = X[:, 2] + rng.standard_normal(200)
    expected = last(algorithm_1(X, y, 5, 3, 0.05, 10))
    assert_close(follow_reference(X, y, 5, 3, 0.05, 10, False, False), expected)


SETTINGS = [("auto", True, True), (0.2, True, True), ("auto", False, False), (0.05, False, False)]


@pytest.mark.parametrize(("step_size", "centred", "standardized"), SETTINGS)
def test_certificate_changes_nothing_and_passes_nearly_always(rng, step_size, centred, standardized):
    X = design(rng, "correlated", 1500, 200)
    y = X[:, :5] @ [1.0, -0.7, 0.5, 0.4, 0.3] + rng.standard_normal(1500)
    lazy = stream(X, y, 10, 4, step_size, 50, 1, centred, standardized)
    eager = stream(X, y, 10, 4, step_size, 50, 1, centred, standardized, bound_scale=np.inf)
    assert_close(lazy.coef, eager.coef, 1e-10)
    assert eager.tallies["certified"] == 0
    assert eager.tallies["moved_references"] >= eager.tallies["steps"]
    assert lazy.tallies["steps"] == eager.tallies["steps"] == 4 * 1450
    assert lazy.tallies["certified"] >= 0.9 * lazy.tallies["steps"]


def test_weakened_certificate_is_noticed(rng):
    """The bound is needed: at a tenth of its size the iterates go wrong."""
    X = design(rng, "correlated", 1500, 200)
    y = X[:, :5] @ [1.0, -0.7, 0.5, 0.4, 0.3] + rng.standard_normal(1500)
    sound = stream(X, y, 10, 4, "auto", 0, 1, True, True).coef
    weak = stream(X, y, 10, 4, "auto", 0, 1, True, True, bound_scale=0.1).coef
    assert np.abs(weak - sound).max() > 1e-3 * np.abs(sound).max()


@pytest.mark.parametrize(("centred", "standardized"), [(True, True), (False, True), (False, False)])
def test_bound_holds_for_every_feature(rng, centred, standardized):
    """What the kernel takes for an upper bound of |g_j| / sigma_j, against dense gradients from the rows."""
    X = design(rng, "correlated", 150, 60) + 0.5
    y = X[:, 0] - X[:, 9] + rng.standard_normal(150)
    rounds = stream(X, y, 6, 3, 0.05 if standardized else 0.01, 20, 1, centred, standardized)
    work, certificate = rounds._round.work, rounds._round.certificate
    reference_point = np.zeros(60)
    reference_point[work.features[: work.size]] = work.reference[: work.size]
    Z, v = (X - X.mean(axis=0), y - y.mean()) if centred else (X, y)
    scale = np.sqrt((Z**2).mean(axis=0)) if standardized else np.ones(60)

    def pulls(theta):
        return np.abs(Z.T @ (Z @ theta - v)) / len(Z) / scale

    assert not np.array_equal(rounds.coef, reference_point)
    slack = np.sqrt(np.mean((Z @ (rounds.coef - reference_point)) ** 2))
    assert np.all(pulls(rounds.coef) <= certificate.bounds(slack) * (1.0 + 1e-10))
    np.testing.assert_allclose(certificate.bounds(0.0), pulls(reference_point), rtol=1e-9, atol=1e-12)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    centred=st.booleans(),
    standardized=st.booleans(),
)
def test_loss_never_rises_with_certified_steps(seed, kind, centred, standardized):
    rng = np.random.default_rng(seed)
    d, n = 40, 60
    X = design(rng, kind, n, d) * np.exp(rng.normal(0, 2, d)) + rng.standard_normal(d)
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)
    gram = Gram(d).absorb(X, y)
    rounds = SparseRounds(gram, 6, centred, standardized)

    def loss():
        intercept = y.mean() - X.mean(axis=0) @ rounds.coef if centred else 0.0
        return np.mean((y - X @ rounds.coef - intercept) ** 2) / 2

    before = loss()
    for _ in range(30):
        rounds.run_round("auto", 1)
        after = loss()
        assert after <= before * (1.0 + 1e-9)
        before = after


def test_rows_absorbed_behind_the_back_are_noticed(rng):
    X, y = rng.standard_normal((300, 20)), rng.standard_normal(300)
    aside = stream(X[:100], y[:100], 4, 3, "auto", 0, 1, True, True)
    aside.summary.absorb(X[100:200], y[100:200])
    aside.absorb(Rows(X[200:], y[200:]), step_table("auto", 1, 1, 3))
    # The same rounds on the same summary, by the reference, from the estimate after row 100.
    theta, gram = stream(X[:100], y[:100], 4, 3, "auto", 0, 1, True, True).coef, Gram(20)
    gram.absorb(X[:200], y[:200])
    for i in range(200, 300):
        gram.absorb(X[i : i + 1], y[i : i + 1])
        theta = reference.run_round(theta, gram, Cardinality(4), [0.0] * 3, True, True)
    assert_close(aside.coef, theta)


def test_support_without_pull_still_sees_outside():
    """Orthogonal columns of integers: the gradient on the support is exactly zero, the better feature is elsewhere."""
    H = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]], float)
    rounds = SparseRounds(Gram(4).absorb(H, H @ [0, 1.0, 0, 0]), 1, False, False)
    rounds.run_round("auto", 1)
    np.testing.assert_allclose(rounds.coef, [0, 1, 0, 0])
    rounds.summary.absorb(np.repeat(H, 3, axis=0), np.repeat(H @ [0, 1.0, 8.0, 0], 3))
    for _ in range(5):
        rounds.run_round("auto", 1)
    np.testing.assert_allclose(rounds.coef, [0, 0, 6, 0])


@pytest.mark.parametrize("centred", [True, False])
def test_kept_factors_equal_refactorising_over_5000_rounds(rng, centred):
    """Least squares on the support, from the rows, after every row: the signal moves, so the support keeps changing."""
    d, n = 40, 5000
    X = design(rng, "correlated", n, d) + 3.0
    X[:, 30:] = X[:, :10]  # twins
    signal = np.zeros((n, d))
    for k, start in enumerate(range(0, n, 250)):
        signal[start:, :] = 0.0
        signal[start:, rng.choice(30, 4, replace=False)] = (1.0 + k) * rng.choice([-1.0, 1.0], 4)
    y = (X * signal).sum(axis=1) + rng.standard_normal(n)
    rounds = SparseRounds(Gram(d), 8, centred, True, rule="pursuit")
    lead = np.ones((n, 1)) if centred else np.zeros((n, 0))
    A, b, supports = np.zeros((d + centred,) * 2), np.zeros(d + centred), []
    for i in range(n):
        rounds.absorb(Rows(X[i : i + 1], y[i : i + 1]), np.zeros((1, 5)))
        row = np.concatenate([lead[i], X[i]])
        A += np.outer(row, row)
        b += y[i] * row
        support = np.flatnonzero(rounds.coef)
        if i >= 40:
            members = np.concatenate([np.arange(int(centred)), support + centred])
            expected = np.linalg.solve(A[np.ix_(members, members)], b[members])[int(centred) :]
            assert_close(rounds.coef[support], expected, 1e-8)
            supports.append(tuple(support))
    assert len({*supports}) > 25
    assert all(len(s) == 8 for s in supports)


def test_a_feature_that_others_determine_is_never_fitted(rng):
    X = rng.standard_normal((400, 6))
    X[:, 3] = X[:, 0] - 2.0 * X[:, 1]
    y = X[:, 0] + X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(400)
    for i in (1, 2, 3, 5, 400):
        rounds = stream(X[:i], y[:i], 6, 5, "auto", 0, 1, True, True, rule="pursuit")
        fitted = y[:i].mean() + (X[:i] - X[:i].mean(axis=0)) @ rounds.coef
        Z = np.column_stack([np.ones(i), X[:i]])
        assert np.count_nonzero(rounds.coef) == min(np.linalg.matrix_rank(Z) - 1, 5)
        np.testing.assert_allclose(fitted, Z @ np.linalg.lstsq(Z, y[:i], rcond=None)[0], atol=1e-8)


@pytest.mark.parametrize("rule", ["pursuit", "reciprocal"])
def test_other_rules_survive_squares_that_overflow(rng, rule):
    X = design(rng, "correlated", 400, 50)
    y = 1e3 * (X[:, :4] @ [1.0, -0.5, 0.3, 0.2] + rng.standard_normal(400))
    plain = stream(X, y, 5, 3, "auto", 0, 1, True, True, rule=rule).coef
    for power in (-498, 300):
        scaled = stream(X * 2.0**power, y, 5, 3, "auto", 0, 1, True, True, rule=rule).coef
        assert_close(scaled * 2.0**power, plain)


@pytest.mark.parametrize("piece", ["certificate", "factor", "sums", "work"])
def test_a_state_with_a_piece_missing_is_refused(piece):
    kernel = SparseRound(5, 8, 8, 2, True, False, 1.0, "pursuit")
    if piece in ("sums", "work"):
        kernel = kernel.certificate
    with pytest.raises((TypeError, ValueError)):
        type(kernel).__new__(type(kernel)).__setstate__(kernel.__getstate__() | {piece: None})
