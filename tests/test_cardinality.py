import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oracles import keep_largest
from thresher import Cardinality

vectors = arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e3, 1e3).map(lambda v: round(v, 3)))


@given(theta=vectors, s=st.integers(1, 12))
def test_projection_is_optimal_and_idempotent(theta, s):
    projected = Cardinality(s).project(theta)
    np.testing.assert_array_equal(projected, keep_largest(theta, s))
    np.testing.assert_array_equal(Cardinality(s).project(projected), projected)
    # What is lost is the least that can be lost: all but the s largest squares.
    least = np.sort(theta**2)[: max(len(theta) - s, 0)].sum()
    np.testing.assert_allclose(((theta - projected) ** 2).sum(), least)
    assert Cardinality(s).measure(projected) <= s


def test_ties_go_to_the_lowest_index_whatever_the_rounding():
    theta = np.array([0.5, 1.0, -1.0 - 1e-14, 1.0 + 1e-14, 2.0])
    np.testing.assert_array_equal(np.flatnonzero(Cardinality(3).project(theta)), [1, 2, 4])


@given(
    y=arrays(np.float64, 12, elements=st.floats(-5, 5)),
    z=arrays(np.float64, 12, elements=st.floats(-5, 5)),
    s_star=st.integers(1, 6),
    more=st.integers(0, 6),
)
def test_relative_concavity_is_never_exceeded(y, z, s_star, more):
    """Lemma (multi_step_descent): <Y - P(Z), Z - P(Z)> <= gamma |Y - P(Z)|^2 for s*-sparse Y."""
    set_ = Cardinality(s_star + more)
    y = keep_largest(y, s_star)
    p = set_.project(z)
    left, right = (y - p) @ (z - p), set_.concavity(s_star) * ((y - p) @ (y - p))
    assert left <= right + 1e-9 * (1.0 + right)


def test_relative_concavity_is_attained():
    """Equality for Z constant on s + s* entries and Y on the part that was dropped."""
    s, s_star = 9, 4
    z = np.r_[np.ones(s), np.ones(s_star)]
    p = Cardinality(s).project(z)
    y = np.r_[np.zeros(s), np.full(s_star, np.sqrt(s / s_star))]
    ratio = (y - p) @ (z - p) / ((y - p) @ (y - p))
    np.testing.assert_allclose(ratio, Cardinality(s).concavity(s_star))


@pytest.mark.parametrize("s", [0, -3, 1.5, True])
def test_bad_s_is_refused(s):
    with pytest.raises(ValueError, match="positive integer"):
        Cardinality(s)


@pytest.mark.parametrize("s_star", [0, 5])
def test_concavity_needs_s_star_within_s(s_star):
    with pytest.raises(ValueError, match="s_star"):
        Cardinality(4).concavity(s_star)
