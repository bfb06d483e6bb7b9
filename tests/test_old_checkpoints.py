"""Files of every format that was ever written, kept in tests/fixtures, are read as they were meant.

What they must hold is computed here, from the same few numbers, by NumPy alone. A new format adds its own files

    PYTHONPATH=src:tests python -c "import test_old_checkpoints as t; t.write_fixtures()"

and leaves those of earlier formats as they are.
"""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from thresher import (
    Entries,
    Gram,
    LowRankRegressor,
    MatrixCompleter,
    MultiResponse,
    ReducedRankRegressor,
    SparseRegressor,
    load,
)
from thresher._encoding import FORMAT, encode

FIXTURES = Path(__file__).parent / "fixtures"
# Formats of which there are files.
FORMATS = [1]
# Rows that the models in the files have seen; the others come after.
N, SEEN = 40, 25
NAMES = ["age", "höhe", "x3", "x4"]
ROWS, COLS = ["ann", "bob", "cleo"], ["tea", "milk"]

numbers = np.sin(np.arange(1.0, 8 * N + 1) ** 2).reshape(
    8, N
)  # without a generator, whose numbers might change one day
X = numbers[:4].T.copy()
MATRICES = numbers[:6].T.reshape(N, 3, 2).copy()
Y = 2.0 * X[:, 1] - X[:, 3] + 0.1 * numbers[6] + 1.0
Y2 = np.column_stack([Y, X[:, 0] - 0.5 * Y + 0.2 * numbers[7]])
Y_OF_MATRICES = np.einsum("nij,i,j->n", MATRICES, [1.0, -2.0, 0.5], [1.0, 3.0]) + 0.1 * numbers[6] + 1.0
WEIGHTS = 1.5 + numbers[7]
CELLS = np.arange(N) % 3, np.arange(N) // 3 % 2
MATRIX = np.array([[1.0, 2.0], [2.5, 4.0], [3.0, 7.0]])


def write_fixtures():
    """Write the files of the present format. Never called by tests."""
    directory = FIXTURES / f"format_{FORMAT}"
    directory.mkdir(parents=True)
    values = {
        "sparse_regressor": SparseRegressor(2).partial_fit(pd.DataFrame(X[:SEEN], columns=NAMES), Y[:SEEN]),
        "low_rank_regressor": LowRankRegressor(1, tol=1e-12).fit(MATRICES, Y_OF_MATRICES),
        "reduced_rank_regressor": ReducedRankRegressor(1, tol=1e-12).fit(X, Y2),
        "matrix_completer": MatrixCompleter(1, shrink=False, tol=1e-12).fit(
            ROWS * 2, np.repeat(COLS, 3), MATRIX.T.ravel()
        ),
        "gram": Gram(4).absorb(X[:SEEN], Y[:SEEN], WEIGHTS[:SEEN]),
        "multi_response": MultiResponse(4, 2).absorb(X[:SEEN], Y2[:SEEN]),
        "entries": Entries((3, 2)).absorb(*(part[:SEEN] for part in (*CELLS, Y))),
    }
    for name, value in values.items():
        # Compressed, for most of such small models is room for more rows.
        (directory / f"{name}.gz").write_bytes(gzip.compress(encode(value), mtime=0))


@pytest.fixture(params=FORMATS)
def loaded(request, tmp_path):
    """What loads a file by its name."""

    def from_fixture(name):
        content = (FIXTURES / f"format_{request.param}" / f"{name}.gz").read_bytes()
        (tmp_path / name).write_bytes(gzip.decompress(content))
        return load(tmp_path / name)

    return from_fixture


def least_squares(X, y):
    """Coefficients and intercept."""
    found = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    return found[:-1], found[-1]


def test_there_are_files_of_every_format():
    assert list(range(1, FORMAT + 1)) == FORMATS
    for number in FORMATS:
        assert len(list((FIXTURES / f"format_{number}").iterdir())) == 7


def test_a_sparse_model_is_least_squares_on_its_support_and_goes_on(loaded):
    model = loaded("sparse_regressor")
    assert model.feature_names_in_.tolist() == NAMES
    for n in (SEEN, N):
        if n > SEEN:
            model.partial_fit(pd.DataFrame(X[SEEN:], columns=NAMES), Y[SEEN:])
        assert model.n_samples_seen_ == n
        coef, intercept = least_squares(X[:n, [1, 3]], Y[:n])
        np.testing.assert_allclose(model.coef_, [0.0, coef[0], 0.0, coef[1]], rtol=1e-9)
        assert model.intercept_ == pytest.approx(intercept, rel=1e-9)


def test_a_low_rank_model_is_where_alternating_least_squares_ends(loaded):
    model = loaded("low_rank_regressor")
    v = np.ones(2)
    for _ in range(500):
        u, _ = least_squares(MATRICES @ v, Y_OF_MATRICES)
        v, intercept = least_squares(u @ MATRICES, Y_OF_MATRICES)
    np.testing.assert_allclose(model.coef_, np.outer(u, v), rtol=1e-6)
    assert model.intercept_ == pytest.approx(intercept, rel=1e-6)
    assert model.partial_fit(MATRICES, Y_OF_MATRICES).n_samples_seen_ == 2 * N


def test_a_reduced_rank_model_is_least_squares_projected_on_what_it_fits_best(loaded):
    model = loaded("reduced_rank_regressor")
    coef, _ = least_squares(X, Y2)
    direction = np.linalg.svd((X - X.mean(axis=0)) @ coef)[2][0]
    expected = coef @ np.outer(direction, direction)
    np.testing.assert_allclose(model.coef_, expected.T, rtol=1e-6)
    np.testing.assert_allclose(model.intercept_, Y2.mean(axis=0) - X.mean(axis=0) @ expected, rtol=1e-6)


def test_a_completion_of_a_whole_matrix_is_its_leading_singular_triplet(loaded):
    model = loaded("matrix_completer")
    u, s, vt = np.linalg.svd(MATRIX)
    np.testing.assert_allclose(model.coef_, s[0] * np.outer(u[:, 0], vt[0]), rtol=1e-6)
    assert (model.row_ids_, model.col_ids_) == (ROWS, COLS)
    assert model.predict(["cleo"], ["milk"])[0] == pytest.approx(s[0] * u[2, 0] * vt[0, 1], rel=1e-6)


def test_a_gram_has_the_weighted_moments_of_its_rows_and_goes_on(loaded):
    gram = loaded("gram")
    for n in (SEEN, N):
        if n > SEEN:
            gram.absorb(X[SEEN:], Y[SEEN:], WEIGHTS[SEEN:])
        x, y, w = X[:n], Y[:n], WEIGHTS[:n]
        mean = w @ x / w.sum()
        assert gram.n_samples == n
        assert gram.weight == pytest.approx(w.sum(), rel=1e-12)
        np.testing.assert_allclose(gram.mean_x, mean, rtol=1e-9)
        np.testing.assert_allclose(gram.comoment(), (w[:, None] * (x - mean)).T @ (x - mean), rtol=1e-9)
        np.testing.assert_allclose(gram.cross_moment(), x.T @ (w * y), rtol=1e-9)
        assert gram.sum_squares_y == pytest.approx(w @ y**2, rel=1e-9)


def test_a_summary_of_several_responses_has_their_moments(loaded):
    summary = loaded("multi_response")
    x, y = X[:SEEN] - X[:SEEN].mean(axis=0), Y2[:SEEN] - Y2[:SEEN].mean(axis=0)
    assert summary.n_samples == SEEN
    np.testing.assert_allclose(summary.mean_y, Y2[:SEEN].mean(axis=0), rtol=1e-9)
    for found, expected in (
        (summary.comoment(), x.T @ x),
        (summary.cross_comoment(), x.T @ y),
        (summary.comoment_y(), y.T @ y),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_summary_of_entries_has_the_loss_of_its_observations(loaded):
    entries = loaded("entries")
    rows, cols, values = (part[:SEEN] for part in (*CELLS, Y))
    assert entries.n_samples == SEEN
    assert entries.shape == (3, 2)
    residual = MATRIX[rows, cols] - values
    assert entries.loss(MATRIX) == pytest.approx(np.mean(residual**2) / 2, rel=1e-12)
    gradient = np.zeros((3, 2))
    np.add.at(gradient, (rows, cols), residual / SEEN)
    np.testing.assert_allclose(entries.gradient(MATRIX), gradient, rtol=1e-9)
