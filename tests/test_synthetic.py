import numpy as np

from thresher.io.sources.synthetic import SparseLinearStream


def test_rows_do_not_depend_on_how_they_are_cut():
    whole = SparseLinearStream(20, 3, correlation=0.4, seed=5).draw(100)
    pieces = list(SparseLinearStream(20, 3, correlation=0.4, seed=5).blocks(100, block=33))
    np.testing.assert_array_equal(whole[0], np.vstack([X for X, _ in pieces]))
    np.testing.assert_allclose(whole[1], np.hstack([y for _, y in pieces]), rtol=1e-12)  # BLAS sums in its own order
    again = list(SparseLinearStream(20, 3, correlation=0.4, seed=5).blocks(100, block=33))
    np.testing.assert_array_equal(np.hstack([y for _, y in again]), np.hstack([y for _, y in pieces]))


def test_design_is_the_one_described():
    stream = SparseLinearStream(6, 2, correlation=0.7, signal=2.0, noise=0.5, seed=1)
    X, y = stream.draw(200_000)
    place = np.arange(6)
    expected = 0.7 ** np.abs(place[:, None] - place)
    np.testing.assert_allclose(X.T @ X / len(X), expected, atol=0.02)  # five standard errors
    assert np.count_nonzero(stream.coef) == 2
    np.testing.assert_allclose(np.std(y - X @ stream.coef), 0.5, atol=0.005)
