"""The leading singular triplets of a matrix from those of a similar one, with a proof.

Block subspace iteration. For an orthonormal U (rows of `left`), the rows of U M are rotated until they are
orthogonal; then U M = S V' exactly, and M V - U S is the only residual. If its first r rows have norm e, and the
r-th singular value exceeds a bound on the (r+1)-th by a gap, the r-dimensional subspaces are within e / gap of
the true ones (Wedin), so U_r S_r V_r' is within 2 sigma_1 e / gap of the best approximation of rank r.

The (r+1)-th singular value of M is at most sqrt(s_{r+1}^2 + |M|_F^2 - sum_i s_i^2), the sum being over all rows that
are followed (Weyl, for M'M = (U M)'(U M) + the rest).
"""

import numpy as np
from numpy.typing import NDArray

from thresher._utils.compile import compiled, compiled_sums

Floats = NDArray[np.float64]

# The projection must equal that of a full decomposition this closely, relative to the largest singular value.
ACCURACY = 1e-10
# How many iterations a small matrix is worth, and the share of the residual that each may leave, before
# a full decomposition is cheaper.
MAX_ITERATIONS, SLOW = 8, 0.3
# Rows followed beyond the r that are asked for.
SPARE = 3
# Squared norms below this leave no room for squares of small singular values.
SMALL = 1e-250
EPSILON = np.finfo(np.float64).eps
# Rows count as orthogonal when their cosine is below this.
ORTHOGONAL = 1e-15


@compiled_sums
def dot(a: Floats, b: Floats) -> float:
    """A . b."""
    total = 0.0
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@compiled
def orthonormalise(rows: Floats) -> bool:
    """Gram and Schmidt, twice, in place; what depends on earlier rows becomes zero. False if it overflows."""
    for i in range(rows.shape[0]):
        row = rows[i]
        size = 0.0
        for _ in range(2):
            size = np.sqrt(dot(row, row))
            if not size < np.inf:
                return False
            if size == 0.0:
                break
            for j in range(row.shape[0]):
                row[j] /= size
            for k in range(i):
                along = dot(row, rows[k])
                for j in range(row.shape[0]):
                    row[j] -= along * rows[k, j]
        size = np.sqrt(dot(row, row))
        if size > 0.5:  # twice is enough, unless nothing was left
            for j in range(row.shape[0]):
                row[j] /= size
        else:
            row[:] = 0.0
    return True


@compiled
def rotate_to_orthogonal(rows: Floats, left: Floats) -> None:
    """One-sided Jacobi: rotate pairs of rows until they are orthogonal, and `left` along with them."""
    n = rows.shape[0]
    for _ in range(30):
        worst = 0.0
        for a in range(n):
            for b in range(a + 1, n):
                aa, bb, ab = dot(rows[a], rows[a]), dot(rows[b], rows[b]), dot(rows[a], rows[b])
                size = np.sqrt(aa) * np.sqrt(bb)
                if not abs(ab) > ORTHOGONAL * size:
                    continue
                worst = max(worst, abs(ab) / size)
                zeta = (bb - aa) / (2.0 * ab)
                t = (1.0 if zeta >= 0.0 else -1.0) / (abs(zeta) + np.sqrt(1.0 + zeta * zeta))
                c = 1.0 / np.sqrt(1.0 + t * t)
                s = c * t
                turn(rows[a], rows[b], c, s)
                turn(left[a], left[b], c, s)
        if worst <= 10.0 * ORTHOGONAL:
            break


@compiled
def turn(a: Floats, b: Floats, c: float, s: float) -> None:
    """Rotate two rows in their plane."""
    for j in range(a.shape[0]):
        x, y = a[j], b[j]
        a[j] = c * x - s * y
        b[j] = s * x + c * y


@compiled
def sort_and_normalise(left: Floats, values: Floats, right: Floats) -> None:
    """Values = norms of the rows of `right`, in decreasing order."""
    n = values.shape[0]
    for i in range(n):
        values[i] = np.sqrt(dot(right[i], right[i]))
    for i in range(n):
        best = i
        for k in range(i + 1, n):
            if values[k] > values[best]:
                best = k
        if best != i:
            values[i], values[best] = values[best], values[i]
            for rows in (left, right):
                for j in range(rows.shape[1]):
                    rows[i, j], rows[best, j] = rows[best, j], rows[i, j]
        if values[i] > 0.0:
            for j in range(right.shape[1]):
                right[i, j] /= values[i]


@compiled
def squared_norm(matrix: Floats) -> float:
    """|M|_F^2, summed by rows: the rounding error is below (d1 + d2) eps of it."""
    total = 0.0
    for i in range(matrix.shape[0]):
        total += dot(matrix[i], matrix[i])
    return total


@compiled
def bound_on_next(total: float, values: Floats, n_kept: int, rounding: float) -> float:
    """An upper bound on the (n_kept + 1)-th singular value of a matrix with squared norm `total`.

    All sums of squares are right to the share `rounding` of the total.
    """
    rest = total
    for i in range(values.shape[0]):
        rest -= values[i] * values[i]
    rest = max(rest, 0.0) + 2.0 * rounding * total
    if n_kept < values.shape[0]:
        rest += values[n_kept] * values[n_kept]
    return float(np.sqrt(rest))


@compiled
def left_over(matrix: Floats, left: Floats, values: Floats, right: Floats, n_kept: int) -> float:
    """|M - U_r S_r V_r'|_F, entry by entry."""
    total, row = 0.0, np.empty(matrix.shape[1])
    for j in range(matrix.shape[0]):
        row[:] = matrix[j]
        for i in range(n_kept):
            factor = values[i] * left[i, j]
            for k in range(row.shape[0]):
                row[k] -= factor * right[i, k]
        total += dot(row, row)
    return float(np.sqrt(total))


@compiled
def follow(
    matrix: Floats,
    left: Floats,
    values: Floats,
    right: Floats,
    n_kept: int,
    known_bound: float,
    max_iterations: int,
    slow: float,
) -> bool:
    """Move the triplets of a similar matrix to those of this one. True if the first n_kept are proved right.

    `known_bound` is any other upper bound on the next singular value, infinity if there is none. Gives up after
    `max_iterations`, or when one leaves more than the share `slow` of the residual.
    """
    total = squared_norm(matrix)
    if not (total > SMALL and total < np.inf):  # or squares would vanish
        return False
    rounding = EPSILON * (8.0 + matrix.shape[0] + matrix.shape[1])
    before = np.inf
    for iteration in range(max_iterations + 1):
        image = np.dot(right, matrix.T)
        if iteration > 0:
            squared = 0.0
            for i in range(n_kept):
                for j in range(image.shape[1]):
                    away = image[i, j] - values[i] * left[i, j]
                    squared += away * away
            residual = np.sqrt(squared)
            bound = min(bound_on_next(total, values, n_kept, rounding), known_bound)
            gap = values[n_kept - 1] - bound
            if residual <= 0.5 * ACCURACY * gap:
                return True
            # Almost nothing is left over: then any approximation of that quality is the best one, to twice it.
            if bound * bound <= 8.0 * rounding * total and left_over(matrix, left, values, right, n_kept) <= (
                0.25 * ACCURACY * values[0]
            ):
                return True
            if gap <= 0.0 or not residual <= slow * before or iteration == max_iterations:
                return False
            before = residual
        left[:] = image
        if not orthonormalise(left):
            return False
        right[:] = np.dot(left, matrix)
        rotate_to_orthogonal(right, left)
        sort_and_normalise(left, values, right)
    return False


@compiled
def decompose(matrix: Floats, left: Floats, values: Floats, right: Floats) -> None:
    """The leading triplets by a full decomposition. The matrix must be finite."""
    u, s, vt = np.linalg.svd(matrix, False)
    for i in range(values.shape[0]):
        values[i] = s[i]
        for j in range(left.shape[1]):
            left[i, j] = u[j, i]
        for j in range(right.shape[1]):
            right[i, j] = vt[i, j]


@compiled
def multiply_out(left: Floats, values: Floats, right: Floats, n_kept: int, out: Floats) -> None:
    """Out = U_r S_r V_r'."""
    for j in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[j, k] = 0.0
        for i in range(n_kept):
            factor = values[i] * left[i, j]
            for k in range(out.shape[1]):
                out[j, k] += factor * right[i, k]


@compiled
def keep_tangent(left: Floats, right: Floats, n_kept: int, matrix: Floats) -> None:
    """Leave of a matrix Z, in place, what is tangent to the matrices of rank r: UU'Z + ZVV' - UU'ZVV'."""
    left, right = left[:n_kept], right[:n_kept]
    inside = np.dot(left, matrix)  # U'Z
    outside = np.dot(matrix, right.T)  # ZV
    outside -= np.dot(left.T, np.dot(inside, right.T))  # (I - UU')ZV
    matrix[:] = np.dot(left.T, inside) + np.dot(outside, right)
