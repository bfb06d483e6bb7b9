"""Rounds of matrices and groups against plain NumPy Algorithm 1 with full SVD, and against the readable reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher.online.completion
from oracles import completion_algorithm_1, design, keep_groups, keep_rank, matrix_algorithm_1, smoothness
from thresher import Cardinality, Entries, Gram, Groups, MultiResponse, Rank
from thresher.online import reference
from thresher.online.completion import EntriesRounds
from thresher.online.dense import DenseRounds
from thresher.online.samples import Observations, Rows

KINDS = ["independent", "correlated", "duplicated", "scaled", "late", "constant"]
SEEDS = st.integers(0, 2**32 - 1)


def assert_close(actual, expected, rtol=1e-8):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * max(np.abs(expected).max(), 1e-300))


def stream(rounds, X, Y, step_size, K, t0=0, every=1):
    steps = rounds.steps_for(len(X), step_size, K, t0, every)
    return rounds.absorb(Rows(X, Y), steps, t0, every)


def complete(rounds, i, j, values, step_size, K, t0, every):
    steps = rounds.steps_for(len(values), step_size, K, t0, every)
    return rounds.absorb(Observations(i, j, values), steps, t0, every)


def low_rank_rows(seed, kind, n, p, q, noise=1.0):
    rng = np.random.default_rng(seed)
    X = design(rng, kind, n, p)
    B = np.outer(rng.standard_normal(p), rng.standard_normal(q)) + np.outer(
        rng.standard_normal(p), rng.standard_normal(q)
    )
    return X, X @ B + noise * rng.standard_normal((n, q))


@settings(max_examples=120)
@given(
    seed=SEEDS,
    kind=st.sampled_from(KINDS),
    d1=st.integers(1, 8),
    d2=st.integers(1, 8),
    r=st.integers(1, 8),
    K=st.sampled_from([1, 2, 5]),
    eta=st.floats(0.01, 1.0),
    t0=st.integers(0, 60),
    hold_rows=st.booleans(),
    single=st.booleans(),
)
def test_sensing_equals_plain_numpy(seed, kind, d1, d2, r, K, eta, t0, hold_rows, single):
    rng = np.random.default_rng(seed)
    r, n = min(r, d1, d2), t0 + 120
    X = design(rng, kind, n, d1 * d2)
    y = X @ np.outer(rng.standard_normal(d1), rng.standard_normal(d2)).reshape(-1) + rng.standard_normal(n)
    eta /= smoothness(X, t0)
    rounds = DenseRounds(Gram(d1 * d2, hold_rows=hold_rows), Rank(r, (d1, d2)), False, False, single=single)
    stream(rounds, X, y, eta, K, t0)
    shape = (d1, d2)
    expected = matrix_algorithm_1(
        X, y[:, None], lambda z: keep_rank(z.reshape(shape), r).reshape(z.shape), K, eta, t0
    ).reshape(shape)
    assert_close(rounds.coef, expected)
    assert rounds.tallies["steps"] == 120 * K


@settings(max_examples=80)
@given(
    seed=SEEDS,
    kind=st.sampled_from(["independent", "correlated", "scaled", "late", "constant"]),
    p=st.integers(1, 30),
    n_groups=st.integers(1, 12),
    s=st.integers(1, 8),
    K=st.sampled_from([1, 3]),
    eta=st.floats(0.01, 1.0),
    t0=st.integers(0, 60),
)
def test_groups_equal_plain_numpy(seed, kind, p, n_groups, s, K, eta, t0):
    X, Y = low_rank_rows(seed, kind, t0 + 120, p, 1)
    labels = np.random.default_rng(seed).integers(0, n_groups, p)
    eta /= smoothness(X, t0)
    expected = matrix_algorithm_1(X, Y, lambda z: keep_groups(z, labels, s), K, eta, t0)
    rounds = stream(DenseRounds(Gram(p), Groups(labels, s), False, False), X, Y[:, 0].copy(), eta, K, t0)
    assert_close(rounds.coef, expected[:, 0])


@settings(max_examples=80)
@given(
    seed=SEEDS,
    d1=st.integers(1, 12),
    d2=st.integers(1, 12),
    r=st.integers(1, 5),
    K=st.sampled_from([1, 2, 5]),
    eta=st.floats(0.01, 1.0),
    t0=st.integers(0, 100),
    every=st.integers(1, 30),
)
def test_completion_equals_plain_numpy(seed, d1, d2, r, K, eta, t0, every):
    rng = np.random.default_rng(seed)
    n, r = t0 + 300, min(r, d1, d2)
    i, j = rng.integers(0, d1, n), rng.integers(0, d2, n)
    values = rng.standard_normal(d1)[i] * rng.standard_normal(d2)[j] + 0.1 * rng.standard_normal(n)
    counts = np.zeros((d1, d2))
    largest = 0.0
    for t in range(n):  # steps below the inverse of the curvature do not amplify rounding errors
        counts[i[t], j[t]] += 1.0
        if t >= t0:
            largest = max(largest, counts.max() / (t + 1))
    eta /= largest
    rounds = complete(EntriesRounds(Entries((d1, d2)), r), i, j, values, eta, K, t0, every)
    assert_close(rounds.coef, completion_algorithm_1(i, j, values, (d1, d2), r, K, eta, t0, every))


@pytest.mark.parametrize("single", [False, True])
def test_thousand_rounds_of_sensing_equal_plain_numpy_at_every_hundredth(rng, single):
    shape, r, K = (9, 7), 3, 3
    X = design(rng, "correlated", 1100, 63) + 0.5
    y = X @ (rng.standard_normal((9, 2)) @ rng.standard_normal((2, 7))).reshape(-1) + rng.standard_normal(1100)
    eta = 0.5 / smoothness(X, 100)
    rounds = DenseRounds(Gram(63, hold_rows=True), Rank(r, shape), False, False, single=single)
    for n in range(200, 1101, 100):
        seen = rounds.n_seen
        stream(rounds, X[seen:n], y[seen:n], eta, K, 100)
        expected = matrix_algorithm_1(
            X[:n], y[:n, None], lambda z: keep_rank(z.reshape(shape), r).reshape(z.shape), K, eta, 100
        )
        assert_close(rounds.coef.reshape(-1, 1), expected)
    assert rounds.tallies["followed"] > 0.95 * rounds.tallies["steps"]
    if single:
        assert rounds.tallies["refreshed"] < 0.5 * rounds.tallies["steps"]


def test_schedule_and_round_size_equal_plain_numpy(rng):
    X, Y = low_rank_rows(3, "correlated", 400, 12, 1)

    def eta(t, k):
        return 0.1 / (1.0 + 0.01 * t) / (1 + k)

    rounds = stream(DenseRounds(Gram(12), Rank(2, (4, 3)), False, False), X, Y[:, 0].copy(), eta, 3, 13, every=7)
    expected = matrix_algorithm_1(X, Y, lambda z: keep_rank(z.reshape(4, 3), 2).reshape(z.shape), 3, eta, 13, every=7)
    assert_close(rounds.coef, expected.reshape(4, 3))
    assert (rounds.n_rounds, rounds.n_pending) == ((400 - 13) // 7, (400 - 13) % 7)


# -- against the reference -------------------------------------------------------------------------------------


PAIRS = {
    "ranks": (lambda: Gram(20, hold_rows=True), Rank(2, (5, 4))),
    "groups": (lambda: Gram(20), Groups(np.arange(20) // 3, 3)),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(("centred", "standardized"), [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("step_size", [0.02, "auto"])
def test_equals_reference_with_the_steps_that_were_taken(pair, centred, standardized, step_size):
    """Certified steps are read off round by round; the reference then takes the same ones."""
    make, sparsity = PAIRS[pair]
    standardized = standardized and pair == "groups"  # scaling the entries of a matrix would change its rank
    X, Y = low_rank_rows(5, "scaled", 250, 20, 4)
    X, y = X / np.sqrt((X**2).mean(axis=0)) + 0.3, Y[:, 0].copy()
    rounds, summary = DenseRounds(make(), sparsity, centred, standardized), make()
    theta = np.zeros(20)
    for i in range(250):
        stream(rounds, X[i : i + 1], y[i : i + 1], step_size, 1)
        summary.absorb(X[i : i + 1], y[i : i + 1])
        if rounds.tallies["steps"] > 0:
            theta = reference.run_round(theta, summary, sparsity, [rounds.last_step], centred, standardized)
    assert rounds.tallies["steps"] >= 249
    assert_close(rounds.coef.reshape(-1), theta)
    if centred:
        np.testing.assert_allclose(rounds.intercept, summary.best_intercept(theta), rtol=1e-8)


def test_completion_equals_reference_with_the_steps_that_were_taken(rng, monkeypatch):
    monkeypatch.setattr(thresher.online.completion, "FRESH_UNTIL", 0)  # no second estimate
    i, j = rng.integers(0, 9, 900), rng.integers(0, 8, 900)
    values = np.outer(np.arange(9.0), np.arange(8.0))[i, j] + rng.standard_normal(900)
    rounds, summary, theta = EntriesRounds(Entries((9, 8)), 2), Entries((9, 8)), np.zeros((9, 8))
    for t in range(0, 900, 30):
        piece = slice(t, t + 30)
        complete(rounds, i[piece], j[piece], values[piece], "auto", 1, 0, 30)
        summary.absorb(i[piece], j[piece], values[piece])
        theta = reference.run_round(theta, summary, Rank(2), [rounds.last_step])
    assert_close(rounds.coef, theta)


EVERY_PAIR = [
    (Gram(12), Cardinality(3), (12,)),
    (Gram(12), Groups(np.arange(12) // 2, 2), (12,)),
    (Gram(12), Rank(1, (4, 3)), (12,)),
    (MultiResponse(12, 3), Groups(np.arange(12), 4), (12, 3)),
    (MultiResponse(12, 3), Rank(2), (12, 3)),
    (MultiResponse(12, 3), Cardinality(9), (12, 3)),
    (Entries((12, 3)), Rank(1), (12, 3)),
    (Entries((12, 3)), Groups(np.arange(12), 4), (12, 3)),
    (Entries((12, 3)), Cardinality(9), (12, 3)),
]


@pytest.mark.parametrize(("summary", "sparsity", "shape"), EVERY_PAIR, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize(("centred", "standardized"), [(False, False), (True, True)])
def test_reference_descends_on_every_pair(rng, summary, sparsity, shape, centred, standardized):
    summary = summary.copy()
    X = rng.standard_normal((60, 12)) + 0.5
    if isinstance(summary, Entries):
        summary.absorb(rng.integers(0, 12, 60), rng.integers(0, 3, 60), rng.standard_normal(60) + 1.0)
    else:
        summary.absorb(X, X[:, 0] if isinstance(summary, Gram) else X[:, :3] + rng.standard_normal((60, 3)))
    intercept = None if centred else 0.0
    theta, before = np.zeros(shape), summary.loss(np.zeros(shape), intercept)
    start = before
    for _ in range(10):
        theta = reference.run_round(theta, summary, sparsity, [0.0], centred, standardized)
        after = summary.loss(theta, intercept)
        assert after <= before * (1.0 + 1e-9)
        before = after
    assert before < start
    if standardized and isinstance(summary, Gram):
        theta = theta * np.sqrt(summary.variance())  # the rank is that of the scaled matrix
    assert sparsity.measure(theta) <= (sparsity.r if isinstance(sparsity, Rank) else sparsity.s)


# -- certified steps -------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(SEEDS, st.sampled_from(KINDS), st.booleans(), st.booleans(), st.sampled_from(list(PAIRS)))
def test_loss_never_rises_with_certified_steps(seed, kind, centred, standardized, pair):
    make, sparsity = PAIRS[pair]
    rng = np.random.default_rng(seed)
    X = design(rng, kind, 50, 20) * np.exp(rng.normal(0, 1, 20)) + rng.standard_normal(20)
    y = rng.standard_normal(50) + X[:, 0]
    standardized = standardized and pair == "groups"
    summary = make().absorb(X, y)
    rounds = DenseRounds(summary, sparsity, centred, standardized)

    def loss():
        residual = y - X @ rounds.coef.reshape(-1)
        return ((residual - residual.mean()) ** 2 if centred else residual**2).sum() / 100

    before = loss()
    for _ in range(30):
        rounds.run_round("auto", 1)
        after = loss()
        assert after <= before * (1.0 + 1e-9)
        before = after
    assert rounds.tallies["rises"] == 0


def test_a_stream_whose_scale_jumps_is_noticed(rng):
    X = rng.standard_normal((400, 20))
    X[200:] *= 1e4
    y = X @ np.outer(np.arange(5.0), np.arange(4.0)).reshape(-1) + rng.standard_normal(400)
    rounds = stream(DenseRounds(Gram(20), Rank(1, (5, 4)), False, False), X, y, "auto", 3)
    assert rounds.tallies["shortened"] > 0
    np.testing.assert_allclose(rounds.coef, np.outer(np.arange(5.0), np.arange(4.0)), atol=1e-2)


def test_completion_loss_never_rises(rng):
    i, j = rng.integers(0, 30, 400), (29 * rng.beta(0.5, 2, 400)).astype(int)  # some columns are seen far more often
    values = rng.standard_normal(400)
    for offsets in (False, True):
        rounds = EntriesRounds(Entries((30, 30)).absorb(i, j, values), 3, offsets)

        def loss(rounds=rounds):
            fitted = rounds.coef[i, j] + rounds.row_offsets[i] + rounds.col_offsets[j]
            return np.mean((values - fitted) ** 2)

        before = loss()
        for _ in range(40):
            rounds.run_round("auto", 1)
            after = loss()
            assert after <= before * (1.0 + 1e-9)
            before = after


@pytest.mark.parametrize("noise", [0.1, 4.0])
def test_large_completions_are_proved_not_decomposed(rng, noise):
    """Both by the norm of the rest (low noise) and by a Cholesky factorisation; the answer is that of full SVDs."""
    d, r, n = 150, 2, 6000
    truth = rng.standard_normal((d, r)) @ rng.standard_normal((r, d))
    i, j = rng.integers(0, d, n), rng.integers(0, d, n)
    values = truth[i, j] + noise * rng.standard_normal(n)

    def eta(t, k):
        return 0.6 * (1000 + 500 * t)  # in proportion to the weight, so that noise does not fade

    rounds = complete(EntriesRounds(Entries((d, d)), r), i, j, values, eta, 2, 1000, 500)
    expected = completion_algorithm_1(i, j, values, (d, d), r, 2, eta, 1000, 500)
    assert_close(rounds.coef, expected)
    assert rounds.tallies["followed"] >= rounds.tallies["steps"] - 2
    rest = np.linalg.norm(rounds._round.target - rounds.coef)
    assert (rest > rounds._round.triplets.values[r - 1]) == (noise == 4.0)  # then the norm of the rest proves nothing


def test_rows_absorbed_behind_the_back_are_noticed(rng):
    X, Y = low_rank_rows(1, "independent", 300, 10, 1)
    y, groups = Y[:, 0].copy(), Groups(np.arange(10) // 2, 3)
    rounds = stream(DenseRounds(Gram(10), groups, True, True), X[:100], y[:100], 0.1, 2)
    theta = rounds.coef.copy()
    rounds.summary.absorb(X[100:200], y[100:200])
    stream(rounds, X[200:201], y[200:201], 0.1, 2)
    summary = Gram(10).absorb(X[:201], y[:201])
    assert_close(rounds.coef, reference.run_round(theta, summary, groups, [0.1] * 2, True, True))


def test_steps_that_overflow_are_not_taken(rng):
    X, Y = low_rank_rows(1, "independent", 200, 6, 1)
    rounds = stream(DenseRounds(Gram(6), Rank(1, (3, 2)), False, False), X, Y[:, 0].copy(), 1e80, 5)
    assert rounds.tallies["overflows"] > 0
    assert np.isfinite(rounds.coef).all()


# -- what once went wrong --------------------------------------------------------------------------------------


def test_co_moments_in_float32_are_refused(rng):
    gram = Gram(12, np.float32).absorb(rng.standard_normal((30, 12)), rng.standard_normal(30))
    for sparsity in (Rank(1, (4, 3)), Groups(np.arange(12), 2)):
        with pytest.raises(ValueError, match="float64"):
            DenseRounds(gram, sparsity, False, False)


@pytest.mark.parametrize("power", [-330, -200, 200, 330])
@pytest.mark.parametrize("pair", PAIRS)
def test_certified_steps_ignore_the_units(rng, power, pair):
    """Powers of two change no digit, so data of size 1e100 must be treated like data of size one."""
    make, sparsity = PAIRS[pair]
    X, Y = low_rank_rows(2, "correlated", 100, 20, 4)
    y = Y[:, 0].copy()
    found = []
    for scale, scale_y in ((1.0, 1.0), (2.0**power, 2.0**power), (2.0 ** (power // 2), 1.0)):
        rounds = stream(DenseRounds(make(), sparsity, False, False), X * scale, y * scale_y, "auto", 3)
        assert rounds.tallies["steps"] == 300
        found.append(rounds.coef * (scale / scale_y))
    assert_close(found[1], found[0])
    assert_close(found[2], found[0])


def test_safe_steps_are_not_said_to_raise_the_loss(rng):
    """At rest a move is rounding, and so is what it does to the loss."""
    X = rng.standard_normal((60, 20))
    y = X @ np.outer(np.arange(5.0), [1.0, -1.0, 2.0, 0.5]).reshape(-1)
    step = 0.9 / np.linalg.eigvalsh(X.T @ X / 60)[-1]
    for sparsity in (Rank(1, (5, 4)), Groups(np.arange(20), 20)):
        rounds = DenseRounds(Gram(20).absorb(X, y), sparsity, False, False)
        for _ in range(600):
            rounds.run_round(step, 5)
        assert rounds.tallies["rises"] == 0
    i, j = np.divmod(rng.permutation(72), 8)
    entries = EntriesRounds(Entries((9, 8)).absorb(i, j, np.outer(np.arange(9.0), np.arange(8.0))[i, j]), 1)
    for _ in range(300):
        entries.run_round(0.5 * 72, 5)
    assert entries.tallies["rises"] == 0


def test_a_rank_above_the_truth_needs_no_full_decompositions(rng):
    """Without noise the last singular values are rounding, and there is no gap that could prove anything."""
    X = rng.standard_normal((300, 30))
    y = X @ np.outer(rng.standard_normal(6), rng.standard_normal(5)).reshape(-1)
    rounds = stream(DenseRounds(Gram(30), Rank(3, (6, 5)), False, False), X, y, "auto", 5)
    assert rounds.tallies["followed"] > 0.5 * rounds.tallies["steps"]


def test_what_is_left_of_a_constant_column_is_constant(rng):
    """Subtracting leaves rounding in place of a variance of zero, which standardisation must not blow up."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((80, 5)) * 10.0 ** rng.integers(-2, 3, 5) + 3.0, rng.standard_normal(80)
        X[40:, 1] = rng.standard_normal()
        y += X[:, 0]
        left = Gram(5).absorb(X, y).subtract(Gram(5).absorb(X[:40], y[:40]))
        assert left.variance()[1] == 0.0
        rounds = DenseRounds(left, Groups(np.arange(5), 5), True, True)
        rounds.settle("auto", 5, 1e-8, 200)
        kept = [0, 2, 3, 4]
        Z, v = X[40:, kept] - X[40:, kept].mean(axis=0), y[40:] - y[40:].mean()
        np.testing.assert_allclose(rounds.coef[kept], np.linalg.lstsq(Z, v, rcond=None)[0], rtol=1e-5, atol=1e-7)
        assert rounds.coef[1] == 0.0


@pytest.mark.parametrize("kind", ["completion", "sensing"])
def test_a_stream_that_starts_with_nothing_but_zeros_begins_as_soon_as_there_is_something(kind, rng):
    if kind == "completion":
        rounds = EntriesRounds(Entries((6, 5)), 1)
        complete(rounds, np.repeat(np.arange(6), 5), np.tile(np.arange(5), 6), np.zeros(30), "auto", 2, 0, 10)
        assert rounds.tallies["steps"] == 0
        complete(rounds, np.array([2]), np.array([3]), np.array([1.0]), "auto", 2, 0, 1)
    else:
        rounds = DenseRounds(Gram(30), Rank(1, (6, 5)), False, False)
        X = rng.standard_normal((31, 30))
        stream(rounds, X[:30], np.zeros(30), "auto", 2)
        assert rounds.tallies["steps"] == 0
        stream(rounds, X[30:], np.array([1.0]), "auto", 2)
    assert rounds.tallies["steps"] == 2
    assert rounds.coef.any()
