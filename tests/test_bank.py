"""A bank of rounds against each of its members alone."""

import numpy as np
import pytest

from thresher import Gram, Rank
from thresher._threads import one_blas_thread
from thresher.rounds.bank import Bank
from thresher.rounds.dense import DenseRounds
from thresher.rounds.lockstep import Lockstep
from thresher.rounds.sparse import SparseRounds


def alone(gram, rounds, X, y, step, K, t0):
    rounds.absorb(X, y, None, rounds.steps_for(len(y), step, K, t0, 1), t0)
    return rounds


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
    bank = Bank(Gram(40))
    for s, centred, rule, step, K, t0 in settings:
        bank.add(lambda gram, s=s, c=centred, r=rule: SparseRounds(gram, s, c, c, rule=r), step, K, t0)
    for start in range(0, 700, cut):
        bank.absorb(X[start : start + cut], y[start : start + cut])
    for (s, centred, rule, step, K, t0), member in zip(settings, bank.members, strict=True):
        gram = Gram(40)
        expected = alone(gram, SparseRounds(gram, s, centred, centred, rule=rule), X, y, step, K, t0)
        assert member.rounds.coef.any()
        np.testing.assert_array_equal(member.rounds.coef, expected.coef)
        assert member.rounds.intercept == expected.intercept
        assert member.rounds.n_rounds == expected.n_rounds == 700 - t0
    np.testing.assert_array_equal(bank.gram.comoment(), Gram(40).absorb(X, y).comoment())


def test_matrices_in_a_bank(rng):
    X = rng.standard_normal((500, 48))
    y = X @ np.outer(np.arange(6.0), np.ones(8)).ravel() + rng.standard_normal(500)
    bank = Bank(Gram(48, hold_rows=True))
    for r, step, K in ((1, 0.1, 2), (2, "auto", 3)):
        bank.add(lambda gram, r=r: DenseRounds(gram, Rank(r, (6, 8)), False, False), step, K, 30)
    bank.absorb(X[:210], y[:210]).absorb(X[210:], y[210:])
    for (r, step, K), member in zip(((1, 0.1, 2), (2, "auto", 3)), bank.members, strict=True):
        gram = Gram(48, hold_rows=True)
        expected = alone(gram, DenseRounds(gram, Rank(r, (6, 8)), False, False), X, y, step, K, 30)
        np.testing.assert_array_equal(member.rounds.coef, expected.coef)


@pytest.mark.parametrize(("shape", "tolerance"), [((6, 8), 1e-12), ((21, 20), 1e-8)])
def test_matrices_in_lockstep_end_where_they_would_end_alone(rng, shape, tolerance):
    """Products in float64 and, from 400 columns on, in float32; rows held, folded and shifted."""
    d = shape[0] * shape[1]
    X = rng.standard_normal((700, d))
    X[400:] += 3.0  # the shift of the sums has to move
    y = X @ np.outer(np.ones(shape[0]), rng.standard_normal(shape[1])).ravel() + rng.standard_normal(700)
    settings = [(1, 0.0002, 4, 30), (2, 0.0001, 1, 0), (3, 0.0002, 7, 200)]
    together = Lockstep(Gram(d, hold_rows=True), shape)
    for setting in settings:
        together.add(*setting)
    with one_blas_thread():
        for start in range(0, 700, 93):
            together.absorb(X[start : start + 93], y[start : start + 93])
    for i, (r, step, K, t0) in enumerate(settings):
        gram = Gram(d, hold_rows=True)
        with one_blas_thread():
            expected = alone(gram, DenseRounds(gram, Rank(r, shape), False, False), X, y, step, K, t0).coef
        assert np.abs(expected).max() > 0.01
        np.testing.assert_allclose(together.coef(i), expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_lockstep_at_the_ends_of_the_range(rng):
    X, y = rng.standard_normal((300, 420)), rng.standard_normal(300)

    def run(scale):
        with one_blas_thread():
            return Lockstep(Gram(420), (21, 20)).add(2, 0.01 / scale**2, 3).absorb(scale * X, y).coef(0) * scale

    expected = run(1.0)
    for power in (-60, 60):
        found = run(10.0**power)
        np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())
