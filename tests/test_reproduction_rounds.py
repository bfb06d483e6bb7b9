"""Rounds that share a Gram, against each of them alone."""

import numpy as np
import pytest

from reproduction.bank import Bank
from reproduction.lockstep import Lockstep
from thresher import Gram, OnlineHardThresholding, Rank
from thresher._utils.threads import one_blas_thread
from thresher.online.dense import DenseRounds
from thresher.online.samples import Rows
from thresher.online.sparse import SparseRounds


def alone(rounds, X, y, step, K, t0):
    return rounds.absorb(Rows(X, y), rounds.steps_for(len(y), step, K, t0, 1), t0)


@pytest.mark.parametrize("cut", [700, 1, 97])
def test_every_member_of_a_bank_ends_where_it_would_end_alone(rng, cut):
    X = rng.standard_normal((700, 40)) + 3.0 * rng.standard_normal(40)
    X[350:] += 5.0  # the shift of the sums has to move
    y = X[:, 3] - X[:, 8] + rng.standard_normal(700)
    settings = [
        (4, False, "hard", 0.01, 5, 100),
        (6, True, "hard", "auto", 3, 0),
        (3, True, "pursuit", "auto", 5, 20),
        (5, True, "hard", lambda t, k: 0.1 / (t + k), 2, 333),
    ]
    gram = Gram(40)
    bank = Bank(gram)
    members = [SparseRounds(gram, s, centred, centred, rule=rule) for s, centred, rule, *_ in settings]
    for rounds, (*_, step, K, t0) in zip(members, settings, strict=True):
        bank.add(rounds, step, K, t0)
    for start in range(0, 700, cut):
        bank.absorb(X[start : start + cut], y[start : start + cut])
    for rounds, (s, centred, rule, step, K, t0) in zip(members, settings, strict=True):
        expected = alone(SparseRounds(Gram(40), s, centred, centred, rule=rule), X, y, step, K, t0)
        assert rounds.coef.any()
        np.testing.assert_array_equal(rounds.coef, expected.coef)
        assert rounds.intercept == expected.intercept
        assert rounds.n_rounds == expected.n_rounds == 700 - t0
        assert rounds.tallies == expected.tallies
    np.testing.assert_array_equal(gram.comoment(), Gram(40).absorb(X, y).comoment())


def test_a_member_of_a_bank_is_the_estimator_of_the_package(rng):
    X = rng.standard_normal((400, 30)) + 1.0
    y = X[:, 3] - X[:, 8] + rng.standard_normal(400)
    gram = Gram(30)
    bank, rounds = Bank(gram), SparseRounds(gram, 4, False, False)
    bank.add(rounds, 0.01, 5, 50)
    bank.absorb(X, y)
    model = OnlineHardThresholding(4, n_steps=5, step_size=0.01, n_warmup=50).partial_fit(X, y)
    np.testing.assert_array_equal(rounds.coef, model.coef_)


def test_a_bank_without_members_fills_the_gram(rng):
    X, y = rng.standard_normal((300, 5)), rng.standard_normal(300)
    gram = Gram(5)
    Bank(gram).absorb(X, y)
    assert gram.n_samples == 300
    np.testing.assert_array_equal(gram.comoment(), Gram(5).absorb(X, y).comoment())


def test_matrices_in_a_bank(rng):
    X = rng.standard_normal((500, 48))
    y = X @ np.outer(np.arange(6.0), np.ones(8)).ravel() + rng.standard_normal(500)
    gram = Gram(48, hold_rows=True)
    bank = Bank(gram)
    settings = [(1, 0.1, 2), (2, "auto", 3)]
    members = [DenseRounds(gram, Rank(r, (6, 8)), False, False) for r, *_ in settings]
    for rounds, (_, step, K) in zip(members, settings, strict=True):
        bank.add(rounds, step, K, 30)
    bank.absorb(X[:210], y[:210])
    bank.absorb(X[210:], y[210:])
    for rounds, (r, step, K) in zip(members, settings, strict=True):
        own = DenseRounds(Gram(48, hold_rows=True), Rank(r, (6, 8)), False, False)
        np.testing.assert_array_equal(rounds.coef, alone(own, X, y, step, K, 30).coef)


@pytest.mark.parametrize(("shape", "tolerance"), [((6, 8), 1e-12), ((21, 20), 1e-8)])
def test_matrices_in_lockstep_end_where_they_would_end_alone(rng, shape, tolerance):
    """Products in float64 and, from 400 columns on, in float32; rows held, folded and shifted."""
    d = shape[0] * shape[1]
    X = rng.standard_normal((700, d))
    X[400:] += 3.0  # the shift of the sums has to move
    y = X @ np.outer(np.ones(shape[0]), rng.standard_normal(shape[1])).ravel() + rng.standard_normal(700)
    settings = [(1, 0.0002, 4, 30), (2, 0.0001, 1, 0), (3, 0.0002, 7, 200)]
    gram = Gram(d, hold_rows=True)
    together = Lockstep(gram)
    members = [DenseRounds(gram, Rank(r, shape), False, False) for r, *_ in settings]
    for rounds, (_, *setting) in zip(members, settings, strict=True):
        together.add(rounds, *setting)
    with one_blas_thread():
        for start in range(0, 700, 93):
            together.absorb(X[start : start + 93], y[start : start + 93])
        np.testing.assert_array_equal(gram.comoment(), Gram(d, hold_rows=True).absorb(X, y).comoment())
        for rounds, (r, *setting) in zip(members, settings, strict=True):
            own = DenseRounds(Gram(d, hold_rows=True), Rank(r, shape), False, False)
            expected = alone(own, X, y, *setting).coef
            assert np.abs(expected).max() > 0.01
            np.testing.assert_allclose(rounds.coef, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_lockstep_at_the_ends_of_the_range(rng):
    X, y = rng.standard_normal((300, 420)), rng.standard_normal(300)

    def run(scale):
        gram = Gram(420)
        rounds, together = DenseRounds(gram, Rank(2, (21, 20)), False, False), Lockstep(gram)
        together.add(rounds, 0.01 / scale**2, 3)
        with one_blas_thread():
            together.absorb(scale * X, y)
        return rounds.coef * scale

    expected = run(1.0)
    for power in (-60, 60):
        np.testing.assert_allclose(run(10.0**power), expected, atol=1e-8 * np.abs(expected).max())


def test_lockstep_of_nobody_sums_rows_alone(rng):
    """Cells without Algorithm 1, such as those of offline references, have no members."""
    X, y = rng.standard_normal((300, 5)), rng.standard_normal(300)
    gram = Gram(5)
    Lockstep(gram).absorb(X, y)
    np.testing.assert_array_equal(gram.comoment(), Gram(5).absorb(X, y).comoment())
