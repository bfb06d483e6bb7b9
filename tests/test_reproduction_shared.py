"""What methods on the same rows share, in the reproduction: against each of them alone."""

import numpy as np
import pytest

from reproduction.os_lassos import OSLassos
from reproduction.span import DROPPED, Span
from thresher.baselines import OSLasso


@pytest.mark.parametrize("cut", [1, 37, 60, 200])
def test_os_lasso_with_several_steps_shares_its_batch(rng, cut):
    X = rng.standard_normal((200, 30))
    y = X[:, 3] - X[:, 8] + rng.standard_normal(200)
    together = OSLassos(60, 0.05)
    alone = {K: OSLasso(60, n_steps=K, step_size=0.05) for K in (1, 7)}
    for K in alone:
        together.add(K)
    for start in range(0, 200, cut):
        together.partial_fit(X[start : start + cut], y[start : start + cut])
        for K, model in alone.items():
            model.partial_fit(X[start : start + cut], y[start : start + cut])
            np.testing.assert_array_equal(together.coef(K), model.coef_)
    assert np.any(together.coef(1) != together.coef(7))


def test_the_lasso_of_a_batch_is_fitted_once(rng, monkeypatch):
    fitted = []
    monkeypatch.setattr("thresher.baselines.os_lasso.LassoCV.fit", lambda self, X, y: fitted.append(len(y)) or self)
    monkeypatch.setattr("thresher.baselines.os_lasso.LassoCV.coef_", np.eye(30)[0], raising=False)
    together = OSLassos(60, 0.05)
    for K in (1, 5, 20):
        together.add(K)
    together.partial_fit(rng.standard_normal((100, 30)), rng.standard_normal(100))
    assert fitted == [60]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_within_a_span(rng, dtype):
    """Sequences of different lengths that stay in few dimensions, or do not."""
    M = rng.standard_normal((40, 40))
    M = M @ M.T
    n_multiplied = []

    def product(units):
        assert units.dtype == dtype
        np.testing.assert_allclose(np.linalg.norm(units, axis=1), 1.0, rtol=1e-6)
        n_multiplied.append(len(units))
        return units.astype(float) @ M

    span = Span(product, 3, 6, 40, np.dtype(dtype))
    share = DROPPED * float(np.finfo(dtype).eps)
    for _ in range(2):  # cleared in between
        n_multiplied.clear()
        flat = rng.standard_normal((3, 2, 40))  # two dimensions, three, and six
        flat = np.array([rng.standard_normal((6, n)) @ rng.standard_normal((n, 40)) for n in (2, 3, 6)])
        for k, n_active in enumerate((3, 3, 3, 3, 2, 2)):
            vectors = 10.0 ** (3 * k) * flat[:n_active, k]
            found = span.multiply(vectors)
            error = np.linalg.norm(found - vectors @ M, axis=1)
            assert np.all(error <= share * np.linalg.norm(M, 2) * np.linalg.norm(vectors, axis=1))
        assert n_multiplied == [3, 3, 2, 1]
        span.clear()


def test_what_is_dropped_is_small(rng):
    """A vector that leaves the span by less than the share is not multiplied; one that leaves it by more is."""
    share = DROPPED * float(np.finfo(np.float32).eps)
    n_multiplied = []

    def product(units):
        n_multiplied.append(len(units))
        return 2.0 * units.astype(float)

    for outside, expected in ((0.5 * share, [1]), (2.0 * share, [1, 1])):
        n_multiplied.clear()
        span = Span(product, 1, 2, 3, np.dtype(np.float32))
        span.multiply(np.array([[5.0, 0.0, 0.0]]))
        found = span.multiply(np.array([[1.0, outside, 0.0]]))
        assert n_multiplied == expected
        np.testing.assert_allclose(found, [[2.0, 2.0 * outside, 0.0]], rtol=0, atol=2.0 * share)


@pytest.mark.parametrize("bad", [0.0, np.inf, np.nan])
def test_vectors_without_a_direction_are_not_multiplied(bad):
    span = Span(lambda units: 3.0 * units, 2, 1, 2, np.dtype(float))
    with np.errstate(invalid="ignore"):
        found = span.multiply(np.array([[bad, bad], [0.0, 2.0]]))
    np.testing.assert_array_equal(found[1], [0.0, 6.0])
    assert np.all(found[0] == 0.0) if bad == 0.0 else np.isnan(found[0]).all()
