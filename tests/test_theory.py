from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from oracles import keep_largest
from thresher import theory

SETTING = {"s": 64, "s_star": 4, "eta": 0.5, "alpha": 1.0, "smoothness": 2.0}
NOISE = {"delta": 0.5, "s": 20, "alpha": 2.0, "sigma_x": 1.0, "t0": 100}


def sparse_eigenvalues(gram, level):
    """The extreme eigenvalues over all vectors with `level` entries, by trying all supports."""
    supports = np.array(list(combinations(range(len(gram)), level)))
    values = np.linalg.eigvalsh(gram[supports[:, :, None], supports[:, None, :]])
    return values[:, 0].min(), values[:, -1].max()


def loss(gram, moment, theta):
    """Squared loss up to a constant."""
    return theta @ gram @ theta / 2.0 - moment @ theta


def simulate(seed, *, s_star, fraction, t0=1500, rounds=25, d=9, noise=2.0, extra_size=0, extra_steps=0, decay=0.0):
    """Algorithm 1 in plain NumPy, with constants that hold for every round: all supports are tried."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((t0 + rounds, d)) * np.linspace(1.0, 1.0 + decay, d)
    truth = np.zeros(d)
    truth[:s_star] = rng.standard_normal(s_star) * 3.0
    errors = noise * rng.standard_normal(len(X))
    y = X @ truth + errors
    stages = [(X[:n].T @ X[:n] / n, X[:n].T @ y[:n] / n, X[:n].T @ errors[:n] / n) for n in range(t0 + 1, len(X) + 1)]

    # The size depends on curvatures at level 2s, which depend on the size.
    for s in range(s_star + 1, d + 1):
        ends = [sparse_eigenvalues(gram, min(2 * s, d)) for gram, _, _ in stages]
        alpha, smoothness = min(e[0] for e in ends), max(e[1] for e in ends)
        curvatures = {"eta": fraction / smoothness, "alpha": alpha, "smoothness": smoothness}
        if theory.minimum_size(s_star, **curvatures) + extra_size <= s:
            break
    else:
        pytest.fail("no size is large enough: the simulated design is too badly conditioned")
    setting = {"s": s, "s_star": s_star, **curvatures}
    K = theory.minimum_steps(**setting) + extra_steps
    theta = keep_largest(rng.standard_normal(d) * 5.0, s)
    iterates = [[theta]]
    for gram, moment, _ in stages:
        path = [theta]
        for _ in range(K):
            path.append(keep_largest(path[-1] - setting["eta"] * (gram @ path[-1] - moment), s))
        theta = path[-1]
        iterates.append(path)
    return setting, K, truth, stages, iterates


SIMULATIONS = [
    {"seed": 1, "s_star": 1, "fraction": 1.0},
    {"seed": 2, "s_star": 2, "fraction": 0.9},
    {"seed": 3, "s_star": 1, "fraction": 0.7, "noise": 20.0, "extra_size": 1, "extra_steps": 2},
    {"seed": 4, "s_star": 1, "fraction": 1.0, "decay": 0.2, "noise": 0.0},
]


@pytest.fixture(params=SIMULATIONS, ids=lambda p: f"seed{p['seed']}", scope="module")
def run(request):
    return simulate(**request.param)


def squared(v):
    return float(np.sum(np.square(v)))


# Along Algorithm 1


def test_every_step_descends_as_much_as_promised(run):
    setting, _, _, stages, iterates = run
    step = {"eta": setting["eta"], "smoothness": setting["smoothness"]}
    for (gram, moment, _), path in zip(stages, iterates[1:], strict=True):
        for old, new in pairwise(path):
            change = loss(gram, moment, new) - loss(gram, moment, old)
            union = (old != 0.0) | (new != 0.0)
            gradient = np.linalg.norm((gram @ old - moment)[union])
            assert change <= theory.descent_bound(**step, gradient=gradient) + 1e-9
            assert change <= theory.descent_bound(**step, move=np.linalg.norm(new - old)) + 1e-9


def test_every_round_keeps_the_bounds_of_the_multi_step_lemma(run):
    setting, K, truth, stages, iterates = run
    s, alpha = setting["s"], setting["alpha"]
    delta = theory.contraction(K, **setting)
    assert 0.0 <= delta < 1.0
    for (gram, moment, noise), path in zip(stages, iterates[1:], strict=True):
        before, after = squared(path[0] - truth), squared(path[-1] - truth)
        gap = loss(gram, moment, path[-1]) - loss(gram, moment, truth)
        size = np.abs(noise).max()
        assert gap <= theory.loss_gap_bound(K, squared_error=before, **setting) + 1e-9
        assert after <= theory.squared_error_from_loss_gap(gap, noise=size, s=s, alpha=alpha) + 1e-9
        assert after <= theory.next_round_bound(before, noise=size, delta=delta, s=s, alpha=alpha) + 1e-9


def test_the_theorem_bounds_every_round(run):
    setting, K, truth, stages, iterates = run
    t0, delta = 1500, theory.contraction(K, **setting)
    # With the largest noise of this very run, the expectation in the theorem is that of a constant.
    sigma_x = max(np.sqrt(t0 + t) * np.abs(noise).max() for t, (_, _, noise) in enumerate(stages, start=1))
    known = {"delta": delta, "s": setting["s"], "alpha": setting["alpha"], "sigma_x": sigma_x, "t0": t0}
    errors = np.array([squared(path[-1] - truth) for path in iterates])
    rounds = np.arange(len(errors))
    exact = theory.online_error_bound(rounds, squared_error=errors[0], closed_form=False, **known)
    assert exact[0] == errors[0]
    assert (errors <= exact + 1e-9).all()
    if delta > 0.0:
        assert (exact <= theory.online_error_bound(rounds, squared_error=errors[0], **known) + 1e-12).all()


def test_best_subset_is_as_good_as_promised(run):
    setting, _, truth, stages, _ = run
    s_star, n = setting["s_star"], 1500 + len(stages)
    gram, moment, noise = stages[-1]
    best, best_loss = truth, np.inf
    for support in combinations(range(len(truth)), s_star):
        theta = np.zeros(len(truth))
        theta[list(support)] = np.linalg.solve(gram[np.ix_(support, support)], moment[list(support)])
        if loss(gram, moment, theta) < best_loss:
            best, best_loss = theta, loss(gram, moment, theta)
    sigma_x = np.sqrt(n) * np.abs(noise).max()
    bound = theory.best_subset_error_bound(len(stages), s_star=s_star, alpha=setting["alpha"], sigma_x=sigma_x, t0=1500)
    assert squared(best - truth) <= bound + 1e-12


def test_offline_bound_holds_and_the_last_iterate_has_a_smaller_one(run):
    setting, _, truth, stages, iterates = run
    gram, moment, _ = stages[0]
    known = {k: setting[k] for k in ("s_star", "alpha", "smoothness")}
    s = theory.minimum_size_at_longest_step(setting["s_star"], setting["smoothness"] / setting["alpha"])
    s = max(s, setting["s"])
    start = theta = iterates[0][0]
    losses = []
    for K in range(1, 8):
        theta = keep_largest(theta - (gram @ theta - moment) / setting["smoothness"], s)
        losses.append(loss(gram, moment, theta) - loss(gram, moment, truth))
        offline = theory.offline_loss_gap_bound(K, squared_error=squared(start - truth), s=s, **known)
        last = theory.loss_gap_bound(
            K, squared_error=squared(start - truth), s=s, eta=1.0 / setting["smoothness"], **known
        )
        assert min(losses) <= last + 1e-9
        assert last <= offline
        np.testing.assert_allclose(last, offline * (1.0 - np.sqrt(setting["s_star"] / s)), atol=1e-300)


def test_orthonormal_design_needs_one_step():
    setting = {"s": 4, "s_star": 3, "eta": 1.0 / 3.0, "alpha": 3.0, "smoothness": 3.0}
    assert theory.critical_steps(**setting) == 0.0
    assert theory.minimum_steps(**setting) == 1
    assert theory.contraction(1, **setting) == 0.0
    assert theory.loss_gap_bound(1, squared_error=7.0, **setting) == 0.0  # least squares, thresholded, beats the truth
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((40, 12)))[0] * np.sqrt(40 * 3.0)
    truth = keep_largest(rng.standard_normal(12), 3)
    errors = rng.standard_normal(40)
    gram, moment = X.T @ X / 40, X.T @ (X @ truth + errors) / 40
    start = keep_largest(rng.standard_normal(12), 4)
    theta = keep_largest(start - (gram @ start - moment) / 3.0, 4)
    assert loss(gram, moment, theta) <= loss(gram, moment, truth) + 1e-12
    noise = np.abs(X.T @ errors / 40).max()
    bound = theory.next_round_bound(squared(start - truth), noise=noise, delta=0.0, s=4, alpha=3.0)
    assert squared(theta - truth) <= bound


def test_one_step_inequality_is_attained_by_the_worst_case_of_the_projection():
    # One step of size 1/2 under the identity from theta, whose gradient step makes all s + s* sizes equal:
    # the inequality behind loss_gap_bound then has no slack but that of the projection's.
    s, s_star, eta = 25, 1, 0.5
    truth = np.r_[np.zeros(s), np.sqrt(s / s_star)]
    target = np.r_[np.ones(s), 1.0]  # what is thresholded; ties keep the first s
    theta = keep_largest(np.r_[np.full(s, 1.0), 0.0], s)
    moment = (target - (1.0 - eta) * theta) / eta
    new = keep_largest(theta - eta * (theta - moment), s)
    gap = loss(np.eye(s + 1), moment, new) - loss(np.eye(s + 1), moment, truth)
    gamma = theory.hard_thresholding_concavity(s, s_star)
    right = ((1 - eta) * squared(theta - truth) - (1 - 2 * gamma) * squared(new - truth)) / (2 * eta)
    np.testing.assert_allclose(gap, right)


def test_descent_is_nearly_attained_by_a_swap_of_supports():
    # A tiny entry gives way to one with the same gradient.
    eta, moment, theta = 1e-3, np.array([-1.0, 1.0]), np.array([1e-9, 0.0])
    new = keep_largest(theta - eta * (theta - moment), 1)
    assert new[0] == 0.0
    change = loss(np.eye(2), moment, new) - loss(np.eye(2), moment, theta)
    bound = theory.descent_bound(eta=eta, smoothness=1.0, gradient=np.linalg.norm(theta - moment))
    assert 1.01 * bound <= change <= bound


def low_rank(Z, s):
    u, sizes, vt = np.linalg.svd(Z)
    return (u[:, :s] * sizes[:s]) @ vt[:s]


@pytest.mark.parametrize("seed", range(5))
def test_matrices_descend_by_the_length_of_the_move(seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((20, 20))
    gram = root @ root.T / 20
    moment = rng.standard_normal(20)
    top = np.linalg.eigvalsh(gram)[-1]
    eta = rng.uniform(0.2, 1.0) / top
    theta = low_rank(rng.standard_normal((5, 4)), 2)
    for _ in range(10):
        gradient = (gram @ theta.ravel() - moment).reshape(5, 4)
        new = low_rank(theta - eta * gradient, 2)
        change = loss(gram, moment, new.ravel()) - loss(gram, moment, theta.ravel())
        assert change <= theory.descent_bound(eta=eta, smoothness=top, move=np.linalg.norm(new - theta)) + 1e-12
        theta = new


def test_matrices_need_not_descend_by_the_gradient_on_their_column_spaces():
    # Identity Gram: smoothness 1. The column space tilts a little, so that old and new together are everything.
    eta, tilt = 0.5, 1e-4
    theta, gradient = np.diag([1.0, 0.0]), np.array([[0.0, 0.0], [-tilt, -1.0]])
    moment = (theta - gradient).ravel()
    new = low_rank(theta - eta * gradient, 1)
    assert np.linalg.matrix_rank(np.hstack([theta, new]), tol=1e-9) == 2
    change = loss(np.eye(4), moment, new.ravel()) - loss(np.eye(4), moment, theta.ravel())
    assert change > theory.descent_bound(eta=eta, smoothness=1.0, gradient=np.linalg.norm(gradient)) + 0.1
    assert change <= theory.descent_bound(eta=eta, smoothness=1.0, move=np.linalg.norm(new - theta)) + 1e-12


# Relative concavity


def reciprocal(z, s, a):
    kept = keep_largest(z, s)
    tau = np.sort(np.abs(z))[::-1][s]
    return np.where(kept != 0.0, np.sign(z) * (np.abs(z) + np.sqrt(np.maximum(z**2 - a * tau**2, 0.0))) / 2.0, 0.0)


CONCAVITIES = [(9, 1, 1.0), (8, 2, 1.0), (4, 2, 1.0), (5, 4, 1.0), (4, 2, 0.75), (6, 3, 0.3), (6, 5, 0.4), (8, 2, 0.0)]


@pytest.mark.parametrize(("s", "s_star", "a"), CONCAVITIES)
def test_reciprocal_concavity_is_attained_and_not_exceeded(s, s_star, a):
    gamma = theory.reciprocal_thresholding_concavity(s, s_star, a)
    rng = np.random.default_rng(s)
    z = np.ones(s + s_star)
    p = reciprocal(z, s, a)
    attained = 0.0
    for inside in range(s_star + 1):  # on this many kept entries Y is a little more than P(Z)
        for size in np.geomspace(0.1, 30.0, 60):
            for above in np.geomspace(1e-3, 10.0, 60):
                y = np.zeros(s + s_star)
                y[:inside] = p[:inside] + above
                y[s : s + s_star - inside] = size
                attained = max(attained, (y - p) @ (z - p) / squared(y - p))
    assert attained <= gamma * (1.0 + 1e-12)
    assert attained >= gamma * 0.97
    for _ in range(2000):
        z = rng.standard_normal(s + s_star + 1) ** rng.integers(1, 4)
        p = reciprocal(z, s, a)
        y = np.zeros(len(z))
        chosen = rng.permutation(len(z))[:s_star]
        # Y - P(Z) of about the right length on its own support: otherwise random search is blind.
        y[chosen] = p[chosen] + (z - p)[chosen] * rng.uniform(0.2, 5.0)
        assert (y - p) @ (z - p) <= gamma * squared(y - p) + 1e-12


def test_reciprocal_concavity_has_its_known_special_cases():
    for s, s_star in [(9, 1), (8, 2), (4, 2), (3, 3)]:
        ratio = s_star / s
        best = theory.reciprocal_thresholding_concavity(s, s_star, 1.0 - ratio**2)
        np.testing.assert_allclose(best, ratio / (1.0 + ratio))
        hard = theory.hard_thresholding_concavity(s, s_star)
        np.testing.assert_allclose(theory.reciprocal_thresholding_concavity(s, s_star, 0.0), hard)
        others = [theory.reciprocal_thresholding_concavity(s, s_star, a) for a in np.linspace(0.0, 1.0, 11)]
        assert best <= min(others) * (1.0 + 1e-12)
    np.testing.assert_allclose(theory.reciprocal_thresholding_concavity(8, 2), (np.sqrt(2.0) - 1.0) / 2.0)
    assert theory.reciprocal_thresholding_concavity(9, 4) == pytest.approx(theory.hard_thresholding_concavity(9, 4))
    assert theory.reciprocal_thresholding_concavity(3, 3) == np.inf


# Sizes and steps


@pytest.mark.parametrize("s_star", [1, 3, 7, 15])
@pytest.mark.parametrize("kappa", [Fraction(1), Fraction(3, 2), Fraction(3), Fraction(7), Fraction(10, 3)])
@pytest.mark.parametrize("alpha", [1.0, 0.1, 3e-5])
def test_minimum_size_is_the_first_integer_strictly_above(s_star, kappa, alpha):
    exact = kappa**2 * s_star
    expected = exact.numerator // exact.denominator + 1
    top = alpha * float(kappa)
    assert theory.minimum_size_at_longest_step(s_star, float(kappa)) == expected
    assert theory.minimum_size(s_star, eta=1.0 / top, alpha=alpha, smoothness=top) == expected
    enlarged = 4 * exact
    half = theory.minimum_size(s_star, eta=0.5 / top, alpha=alpha, smoothness=top)
    assert half == enlarged.numerator // enlarged.denominator + 1


@pytest.mark.parametrize("fraction", [1.0, 0.6, 0.05])
@pytest.mark.parametrize("kappa", [1.0, 1.3, 20.0])
@pytest.mark.parametrize("extra", [0, 5, 5000])
def test_minimum_steps_is_the_first_that_contracts(fraction, kappa, extra):
    known = {"s_star": 3, "eta": fraction / kappa, "alpha": 1.0, "smoothness": kappa}
    known["s"] = theory.minimum_size(3, **{k: v for k, v in known.items() if k != "s_star"}) + extra
    two_gamma, seen = np.sqrt(3 / known["s"]), known["eta"]

    def delta(K):
        return 2.0 * (1.0 - two_gamma) / seen * ((1.0 - seen) / (1.0 - two_gamma)) ** K

    K = theory.minimum_steps(**known)
    assert delta(K) < 1.0
    assert K == 1 or delta(K - 1) >= 1.0 - 1e-6  # billions of steps at worst: 1 - eta alpha is rounded
    np.testing.assert_allclose(theory.contraction(K, **known), delta(K), rtol=1e-9)
    if delta(1) > 0.0:
        np.testing.assert_allclose(delta(theory.critical_steps(**known)), 1.0, rtol=1e-6)
    assert theory.contraction(K + 1, **known) <= theory.contraction(K, **known)
    if K > 1:
        with pytest.raises(ValueError, match=rf"K = {K - 1} steps do not contract; take K >= {K}"):
            theory.contraction(K - 1, **known)


def test_exactly_the_critical_number_of_steps_is_not_enough():
    # (1 - eta alpha)/(1 - 2 gamma) = 1/2 and 2 (1 - 2 gamma)/(eta alpha) = 2: K_0 = 1, and delta = 1 there.
    known = {"s": 9, "s_star": 1, "eta": 2 / 3, "alpha": 1.0, "smoothness": 1.0}
    np.testing.assert_allclose(theory.critical_steps(**known), 1.0)
    assert theory.minimum_steps(**known) == 2
    np.testing.assert_allclose(theory.contraction(2, **known), 0.5)


def test_more_room_and_longer_steps_contract_faster():
    by_size = [theory.contraction(5, **{**SETTING, "s": s}) for s in (30, 64, 200, 10000)]
    assert by_size == sorted(by_size, reverse=True)
    by_step = [theory.contraction(8, **{**SETTING, "eta": eta}) for eta in (0.4, 0.45, 0.5)]
    assert by_step == sorted(by_step, reverse=True)
    sizes = [theory.minimum_size_at_longest_step(5, kappa) for kappa in (1.0, 1.5, 2.0, 50.0)]
    assert sizes == sorted(sizes)
    steps = [theory.minimum_steps(**{**SETTING, "s": s}) for s in (17, 20, 64)]
    assert steps == sorted(steps, reverse=True)


# Sums over rounds


@pytest.mark.parametrize("delta", [1e-6, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("t0", [0, 1, 50, 5000])
def test_discounted_sum_and_its_closed_form(delta, t0):
    rounds = np.array([[0, 1, 2], [7, 100, 3000]])
    direct = [[sum(delta ** (t - j) / (t0 + j) for j in range(1, t + 1)) for t in row] for row in rounds.tolist()]
    np.testing.assert_allclose(theory.discounted_sum(rounds, delta=delta, t0=t0), direct, rtol=1e-12)
    assert (theory.discounted_sum(rounds, delta=delta, t0=t0, closed_form=True) >= np.array(direct)).all()


def test_closed_form_is_the_proof_s_and_the_statement_is_too_small():
    delta, T, t0 = 0.999, 3000, 0
    stated = delta ** (T - 1) / (t0 + 1) + 3 / (delta * (T + 1 + t0)) + delta ** ((T + 1) / 2 - 1) / (t0 + 1)
    assert stated < 0.5 * theory.discounted_sum(T, delta=delta, t0=t0)
    closed = theory.discounted_sum(T, delta=delta, t0=t0, closed_form=True)
    np.testing.assert_allclose(closed, stated / np.log(1 / delta))


@pytest.mark.parametrize("delta", [0.0, 0.3, 0.95])
def test_theorem_is_the_lemma_applied_round_by_round(delta):
    known = {"s": 7, "alpha": 0.5, "delta": delta}
    error, sigma_x, t0 = 3.0, 0.2, 4
    for t in range(1, 30):
        error = theory.next_round_bound(error, noise=sigma_x / np.sqrt(t0 + t), **known)
        bound = theory.online_error_bound(t, squared_error=3.0, sigma_x=sigma_x, t0=t0, closed_form=False, **known)
        np.testing.assert_allclose(bound, error)


def test_the_power_printed_in_the_theorem_is_one_too_high():
    # Without noise the lemma's inequality allows an error of delta after the first round, not of delta^2.
    bound = theory.online_error_bound([0, 1, 2], squared_error=1.0, **{**NOISE, "sigma_x": 0.0})
    np.testing.assert_allclose(bound, [1.0, 0.5, 0.25])


def test_online_error_falls_like_one_over_t():
    far = theory.online_error_bound([10**4, 2 * 10**4], squared_error=4.0, **NOISE)
    np.testing.assert_allclose(far[0] / far[1], 2.0, rtol=0.01)
    base = theory.online_error_bound(50, squared_error=4.0, **NOISE)
    for name, worse in [("s", 21), ("alpha", 1.9), ("sigma_x", 1.1), ("t0", 90), ("delta", 0.6)]:
        assert theory.online_error_bound(50, squared_error=4.0, **{**NOISE, name: worse}) > base, name


# Without a batch


@pytest.mark.parametrize("seed", range(4))
def test_without_a_batch_errors_and_losses_stay_below_their_bounds(seed):
    rng = np.random.default_rng(seed)
    d, s, s_star, K, T, runs = 6, 2, 1, 1 + seed % 3, 6, 200
    truth = np.r_[2.0, np.zeros(d - 1)]
    start = keep_largest(rng.standard_normal(d) * 3.0, s)
    X = np.sign(rng.standard_normal((runs, T, d)))
    noise = 0.5 * rng.standard_normal((runs, T))
    smoothness = float(d)  # rows of signs: no Gram, of any level, has a larger eigenvalue
    eta = (1.0, 0.5)[seed % 2] / smoothness
    errors, losses, largest = np.zeros((runs, T)), np.zeros((runs, T)), np.zeros((runs, T))
    for r in range(runs):
        theta = start
        for t in range(1, T + 1):
            rows, e = X[r, :t], noise[r, :t]
            y = rows @ truth + e
            for _ in range(K):
                old = theta
                theta = keep_largest(theta - eta * rows.T @ (rows @ theta - y) / t, s)
                # One step, with the noise that occurred: factor 2 where the bound has 4.
                pull = np.abs(rows.T @ e / t).max()
                one = 2.0 * squared(old - truth) + 2.0 * s * eta**2 * pull**2 + squared(truth)
                assert squared(theta - truth) <= one + 1e-9
            errors[r, t - 1] = squared(theta - truth)
            losses[r, t - 1] = squared(rows @ theta - y) / (2 * t)
            largest[r, t - 1] = squared(np.abs(rows.T @ e).max()) / t
    rounds, sigma_x = np.arange(1, T + 1), np.sqrt(largest.mean(axis=0).max())
    known = {"K": K, "signal": squared(truth), "s": s, "eta": eta, "smoothness": smoothness, "sigma_x": sigma_x}
    bound = theory.no_batch_error_bound(rounds, squared_error=squared(start - truth), **known)
    assert (errors.mean(axis=0) <= bound).all()
    loss_bound = theory.no_batch_loss_bound(
        rounds, squared_error=bound, s=s, s_star=s_star, sigma=0.5, x_max_squared=1.0
    )
    assert (losses.mean(axis=0) <= loss_bound).all()


@pytest.mark.parametrize("K", [1, 2, 5])
@pytest.mark.parametrize(("first", "signal", "sigma"), [(2.0, 1.0, 0.7), (0.0, 3.0, 0.0), (0.1, 0.0, 5.0)])
def test_no_batch_bounds_sum_up_the_steps_of_their_proof(K, first, signal, sigma):
    s, s_star, eta, sigma_x, x_max_squared = 3, 2, 0.25, 1.5, 2.5
    errors = [first]
    for _ in range(8 * K):
        errors.append(4.0 * errors[-1] + 4.0 * s * eta**2 * sigma_x**2 + signal)
    known = {"K": K, "signal": signal, "s": s, "eta": eta, "smoothness": 4.0, "sigma_x": sigma_x}
    rounds = np.arange(9)
    bound = theory.no_batch_error_bound(rounds, squared_error=first, **known)
    np.testing.assert_allclose(bound, errors[::K])
    loss_bound = theory.no_batch_loss_bound(
        rounds, squared_error=bound, s=s, s_star=s_star, sigma=sigma, x_max_squared=x_max_squared
    )
    for t in range(1, 9):
        rows = [(s + s_star) * x_max_squared * errors[(j - 1) * K] + sigma**2 for j in range(1, t + 1)]
        assert sum(row / (2 * j) for j, row in enumerate(rows, start=1)) <= loss_bound[t]
        C_0, added = (s + s_star) * x_max_squared, (4.0 * s * eta**2 * sigma_x**2 + signal) / 3.0
        stated = C_0 * (first + added) * 4.0 ** (t * K) + sigma**2 * np.log(t + 1)
        np.testing.assert_allclose(loss_bound[t], stated - C_0 * added)


def test_harmonic_sums_exceed_the_logarithm_but_their_halves_do_not():
    t = np.arange(1, 2000)
    harmonic = np.cumsum(1.0 / t)
    assert (harmonic > np.log(t + 1.0)).all()
    assert (harmonic / 2.0 < np.log(t + 1.0)).all()


def test_after_enough_rows_the_stream_without_a_batch_is_one_with_a_batch():
    known = {"squared_error": 9.0, "delta": 0.7, "s": 3, "alpha": 0.5, "sigma_x": 0.4}
    bound = theory.no_batch_online_bound([6, 7, 40], t_enough=6, **known)
    error, expected = 9.0, [9.0]
    for t in range(7, 41):
        error = 0.7 * error + 8 * 3 * 0.4**2 / (0.5**2 * t)
        expected.append(error)
    np.testing.assert_allclose(bound, [expected[0], expected[1], expected[-1]])


# What is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eta": 0.51}, r"eta = 0.51 exceeds 1/L = 0.5; take eta <= 1/L"),
        ({"s": 16}, r"s = 16 is not above s_star/\(eta alpha\)\^2; take s >= 17"),
        ({"s": 1}, r"take s >= 17"),
        ({"alpha": 2.5}, r"alpha = 2.5 exceeds L = 2"),
        ({"alpha": 0.0}, r"alpha must be a positive finite number"),
        ({"eta": float("nan")}, r"eta must be a positive finite number"),
        ({"smoothness": -1.0}, r"smoothness must be a positive finite number"),
        ({"s": 64.0}, r"s must be a positive integer"),
        ({"s_star": 0}, r"s_star must be a positive integer"),
    ],
)
def test_conditions_of_the_lemma_are_checked(change, message):
    setting = {**SETTING, **change}
    for call in (
        lambda: theory.critical_steps(**setting),
        lambda: theory.minimum_steps(**setting),
        lambda: theory.contraction(3, **setting),
        lambda: theory.loss_gap_bound(3, squared_error=1.0, **setting),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_a_size_of_exactly_the_limit_is_refused_however_it_is_rounded():
    for L in (1.0, 3.0, 7.0, 0.3, 1e-7):
        with pytest.raises(ValueError, match="take s >= 46"):
            theory.critical_steps(s=45, s_star=5, eta=1.0 / L, alpha=L / 3.0, smoothness=L)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.hard_thresholding_concavity(4, 5), "s_star must be between 1 and s = 4"),
        (lambda: theory.reciprocal_thresholding_concavity(4, 2, 1.5), "a must be between 0"),
        (lambda: theory.minimum_size_at_longest_step(4, 0.9), "kappa must be a finite number, at least 1"),
        (lambda: theory.descent_bound(eta=0.6, smoothness=2.0, move=1.0), "take eta <= 1/L"),
        (lambda: theory.descent_bound(eta=0.5, smoothness=2.0), "pass either gradient"),
        (lambda: theory.descent_bound(eta=0.5, smoothness=2.0, gradient=1.0, move=1.0), "pass either gradient"),
        (
            lambda: theory.offline_loss_gap_bound(3, squared_error=1.0, s=16, s_star=4, alpha=1.0, smoothness=2.0),
            "take s >= 17",
        ),
        (
            lambda: theory.offline_loss_gap_bound(3, squared_error=1.0, s=16, s_star=4, alpha=1.0, smoothness=0.0),
            "smoothness must be a positive",
        ),
        (lambda: theory.next_round_bound(1.0, noise=0.1, delta=1.0, s=5, alpha=1.0), "more steps K lower it"),
        (lambda: theory.next_round_bound(1.0, noise=-0.1, delta=0.5, s=5, alpha=1.0), "noise must be"),
        (lambda: theory.discounted_sum([1, 2], delta=0.0, t0=0, closed_form=True), "use closed_form=False"),
        (lambda: theory.discounted_sum([1.5], delta=0.5, t0=0), "t must hold integers"),
        (lambda: theory.discounted_sum([-1], delta=0.5, t0=0), "t must hold integers"),
        (lambda: theory.best_subset_error_bound(0, s_star=2, alpha=1.0, sigma_x=1.0, t0=0), "without rows"),
        (lambda: theory.online_error_bound(3, squared_error=-1.0, **NOISE), "squared_error must be"),
        (
            lambda: theory.no_batch_error_bound(
                501, K=1, squared_error=1.0, signal=1.0, s=2, eta=0.5, smoothness=2.0, sigma_x=1.0
            ),
            "ask for t K <= 500",
        ),
        (
            lambda: theory.no_batch_loss_bound(2, squared_error=1.0, s=2, s_star=3, sigma=1.0, x_max_squared=1.0),
            "s_star must be between 1 and s = 2",
        ),
        (
            lambda: theory.no_batch_online_bound(
                4, t_enough=5, squared_error=1.0, delta=0.5, s=2, alpha=1.0, sigma_x=1.0
            ),
            "use no_batch_error_bound",
        ),
    ],
)
def test_what_no_statement_covers_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
