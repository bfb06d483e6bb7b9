import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import keep_groups
from thresher import Cardinality, Groups, Rank
from thresher.io.schema import CheckpointError, check
from thresher.online._subspace import Triplets

SEEDS = st.integers(0, 2**32 - 1)


def matrix(seed, d1, d2, decay=0.7):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((d1, d2)) * decay ** np.arange(d2)


@given(SEEDS, st.integers(1, 9), st.integers(1, 9), st.integers(1, 10))
def test_rank_projection_leaves_the_smallest_singular_values_over(seed, d1, d2, r):
    """Eckart and Young: no matrix of rank r is closer than the root of the sum of the other squared singular values."""
    theta = matrix(seed, d1, d2)
    projected = Rank(r).project(theta)
    rest = np.linalg.eigvalsh(theta @ theta.T)[::-1][r:]
    np.testing.assert_allclose(((theta - projected) ** 2).sum(), rest.clip(0).sum(), atol=1e-12)
    assert Rank(r).measure(projected) <= r
    np.testing.assert_allclose(Rank(r).project(projected), projected, atol=1e-12)


@given(SEEDS, st.integers(2, 8), st.integers(2, 8), st.integers(1, 5))
def test_rank_factors_multiply_to_the_projection_with_one_choice_of_signs(seed, d1, d2, r):
    theta = matrix(seed, d1, d2)
    u, s, vt = Rank(r).factors(theta)
    np.testing.assert_allclose((u * s) @ vt, Rank(r).project(theta), atol=1e-12)
    np.testing.assert_allclose(u.T @ u, np.eye(len(s)), atol=1e-12)
    assert np.all(u[np.argmax(np.abs(u), axis=0), np.arange(len(s))] > 0.0)
    flipped = Rank(r).factors(theta[::-1, :])[0][::-1]
    np.testing.assert_allclose(np.abs(flipped), np.abs(u), atol=1e-9)


def test_rank_takes_vectors_of_a_known_shape():
    theta = matrix(1, 4, 5)
    np.testing.assert_array_equal(Rank(2, (4, 5)).project(theta.reshape(-1)), Rank(2).project(theta).reshape(-1))
    with pytest.raises(ValueError, match="give Rank the shape"):
        Rank(2).project(theta.reshape(-1))
    with pytest.raises(ValueError, match="positive integer"):
        Rank(0)


@given(SEEDS, st.integers(1, 5), st.integers(1, 5))
def test_relative_concavity_of_ranks_is_not_exceeded(seed, r_star, extra):
    """The definition: <theta - P theta, phi - P theta> <= gamma |phi - P theta|^2 for phi of rank r*."""
    rng = np.random.default_rng(seed)
    r = r_star + extra - 1
    theta = rng.standard_normal((7, 6))
    phi = rng.standard_normal((7, r_star)) @ rng.standard_normal((r_star, 6))
    kept = Rank(r).project(theta)
    gamma = Rank(r).concavity(r_star)
    assert np.sum((theta - kept) * (phi - kept)) <= gamma * np.sum((phi - kept) ** 2) + 1e-12
    assert gamma == pytest.approx(np.sqrt(r_star / r) / 2)
    with pytest.raises(ValueError, match="between 1 and r"):
        Rank(r).concavity(r + 1)


LABELS = st.lists(st.integers(0, 5), min_size=1, max_size=20)


@given(SEEDS, LABELS, st.integers(1, 7), st.integers(0, 3))
def test_groups_projection_equals_its_definition(seed, labels, s, n_columns):
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((len(labels), n_columns) if n_columns else len(labels))
    groups = Groups(labels, s)
    projected = groups.project(theta)
    np.testing.assert_array_equal(projected, keep_groups(theta, labels, s))
    np.testing.assert_array_equal(groups.project(projected), projected)
    assert groups.measure(projected) == min(s, len(set(labels)))
    np.testing.assert_array_equal(groups.restrict(theta, projected), projected)


def test_groups_of_one_are_cardinality(rng):
    theta = rng.standard_normal(30)
    np.testing.assert_array_equal(Groups(np.arange(30), 7).project(theta), Cardinality(7).project(theta))
    assert Groups(np.arange(30), 16).concavity(4) == Cardinality(16).concavity(4)


def test_groups_break_ties_by_first_appearance_and_survive_extremes():
    groups = Groups(["b", "a", "b", "a"], 1)
    np.testing.assert_array_equal(groups.project([3.0, 5.0, 4.0, 0.0]), [3.0, 0.0, 4.0, 0.0])
    np.testing.assert_allclose(groups.norms([3e200, 5e-200, 4e200, 0.0]), [5e200, 5e-200])
    assert list(groups.names) == ["b", "a"]


@pytest.mark.parametrize("labels", [[], [[1, 2]], [1.5, 2.5], [1, "a", None]])
def test_bad_labels_are_named(labels):
    with pytest.raises(ValueError, match="labels"):
        Groups(np.array(labels, dtype=object) if None in np.ravel(labels) else labels, 1)


def test_groups_reject_a_vector_of_another_length():
    with pytest.raises(ValueError, match="3 labels"):
        Groups([0, 1, 1], 1).project(np.zeros(4))


# -- following singular vectors ------------------------------------------------------------------------------


def followed(before, after, r):
    triplets = Triplets(*before.shape, r)
    triplets.decompose(before)
    return triplets.follow(after), triplets.multiply_out()


def given_triplets(left, values, right):
    """Triplets to begin with, all of which are wanted."""
    triplets = Triplets(left.shape[1], right.shape[1], len(values), spare=0)
    for ours, theirs in ((triplets.left, left), (triplets.values, values), (triplets.right, right)):
        np.asarray(ours)[...] = theirs
    return triplets


@given(
    SEEDS,
    st.integers(2, 12),
    st.integers(2, 12),
    st.integers(1, 6),
    st.floats(-8, 0),
    st.floats(-8, 0),
    st.sampled_from([1e-200, 1.0, 1e150]),
)
def test_proved_projections_equal_full_decompositions(seed, d1, d2, r, log_change, log_rest, size):
    """Whatever the change and the gap: if it says proved, it is right to 1e-10."""
    rng = np.random.default_rng(seed)
    r = min(r, d1, d2)
    before = size * (rng.standard_normal((d1, r)) @ rng.standard_normal((r, d2)))
    before += 10.0**log_rest * size * rng.standard_normal((d1, d2))
    after = before + 10.0**log_change * size * rng.standard_normal((d1, d2))
    proved, out = followed(before, after, r)
    if proved:
        top = np.linalg.svd(after, compute_uv=False)[0]
        assert np.abs(out - Rank(r).project(after)).max() <= 1e-10 * top


def test_small_changes_are_proved_and_impossible_ones_are_not(rng):
    before = rng.standard_normal((20, 4)) @ rng.standard_normal((4, 15)) + 0.01 * rng.standard_normal((20, 15))
    assert followed(before, before + 1e-4 * rng.standard_normal((20, 15)), 4)[0]
    tied = np.diag([3.0, 2.0, 2.0, 1.0])  # which of the two is kept is open
    assert not followed(tied, tied, 2)[0]
    # The wrong subspace, which is invariant: only the bound on the rest can tell.
    swapped = np.diag([3.0, 1.0, 2.0, 0.5, 0.1, 0.1, 0.1])
    wrong = np.eye(7)[[0, 1]], np.array([3.0, 1.0]), np.eye(7)[[0, 1]]
    assert not given_triplets(*wrong).follow(swapped)
    assert given_triplets(*wrong).follow(swapped, 0.5)  # told a falsehood


def test_rounding_of_a_large_norm_proves_nothing():
    """A block whose squared norm is summed with an error larger than the square of the value that is missed."""
    matrix = np.zeros((520, 520))
    matrix[:512, :512] = 0.1
    top = 51.2
    matrix[515, 515], matrix[516, 516] = 3.0e-7 * top, 3.1e-7 * top
    left, values = np.zeros((2, 520)), np.array([top, 3.0e-7 * top])
    left[0, :512], left[1, 515] = 1 / np.sqrt(512), 1.0
    triplets = given_triplets(left, values, left)
    proved = triplets.follow(matrix)
    assert not proved or np.abs(triplets.multiply_out() - Rank(2).project(matrix)).max() <= 1e-10 * top


def test_triplets_are_of_one_matrix():
    state = Triplets(4, 3, 1).__getstate__()
    for wrong in ({"rank": 0}, {"rank": 4}, {"left": np.zeros((2, 4))}, {"values": np.zeros(2)}):
        with pytest.raises(CheckpointError, match="Triplets"):
            check(Triplets, state | wrong, None, lambda value: True)
    with pytest.raises(ValueError, match="shape"):
        Triplets(4, 3, 1).follow(np.zeros((3, 4)))
