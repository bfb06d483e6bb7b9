"""The leading singular triplets of a matrix from those of a similar one, with a proof.

Block subspace iteration. For an orthonormal U (rows of `left`), the rows of U M are rotated until they are orthogonal;
then U M = S V' exactly, and M V - U S is the only residual. If its first r rows have norm e, and the r-th singular
value exceeds a bound on the (r+1)-th by a gap, the r-dimensional subspaces are within e / gap of the true ones (Wedin),
so U_r S_r V_r' is within 2 sigma_1 e / gap of the best approximation of rank r.

The (r+1)-th singular value of M is at most sqrt(s_{r+1}^2 + |M|_F^2 - sum_i s_i^2), the sum being over all rows that
are followed (Weyl, for M'M = (U M)'(U M) + the rest).
"""

import numpy as np

from libc.float cimport DBL_EPSILON
from libc.limits cimport INT_MAX
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm
from scipy.linalg.cython_lapack cimport dgesdd

from thresher._utils.reductions cimport add_multiple, dot, squared_residual

from thresher.io.schema import Array, Count, Flag, Schema

# The projection must equal that of a full decomposition this closely, relative to the largest singular value.
cdef double ACCURACY = 1e-10
# Triplets followed beyond the r that are wanted.
SPARE = 3
# Squared norms below this leave no room for squares of small singular values.
cdef double SMALL = 1e-250
# Rows count as orthogonal when their cosine is below this.
cdef double ORTHOGONAL = 1e-15


cdef class Triplets:
    """Room for the leading singular values of a d1 x d2 matrix and their vectors, which are rows here."""

    _schema = Schema(
        lambda at: len(at.values) <= min(at.left.shape[1], at.right.shape[1]),
        left=Array("n", "d1"),
        values=Array("n"),
        right=Array("n", "d2"),
        rank=Count(1, "n"),
        warm=Flag(),
    )

    def __init__(self, Py_ssize_t n_rows, Py_ssize_t n_cols, Py_ssize_t rank, Py_ssize_t spare=SPARE):
        cdef Py_ssize_t n = min(rank + spare, n_rows, n_cols)
        if rank < 1:
            raise ValueError("There must be at least one triplet.")
        self.rank = min(rank, n)
        self.left, self.values, self.right = np.zeros((n, n_rows)), np.zeros(n), np.zeros((n, n_cols))
        self._make_room()

    def _make_room(self):
        n = len(self.values)
        self.image, self.inside, self.corner = np.empty_like(self.left), np.empty_like(self.right), np.empty((n, n))

    def __getstate__(self):
        return {
            "rank": self.rank,
            "warm": self.warm,
            "left": np.asarray(self.left),
            "values": np.asarray(self.values),
            "right": np.asarray(self.right),
        }

    def __setstate__(self, state):
        self.rank, self.warm = state["rank"], state["warm"]
        self.left, self.values, self.right = state["left"], state["values"], state["right"]
        self._make_room()

    @property
    def shape(self):
        """(d1, d2)."""
        return self.left.shape[1], self.right.shape[1]

    def check(self, matrix):
        """Raise ValueError if a matrix has another shape."""
        if matrix.shape != self.shape:
            raise ValueError(f"The matrix has shape {matrix.shape}; expected {self.shape}.")

    def decompose(self, const double[:, ::1] matrix):
        """Find the leading triplets of a finite matrix by a full decomposition."""
        self.check(np.asarray(matrix))
        if not decompose(self, &matrix[0, 0]):
            raise np.linalg.LinAlgError("The singular values did not converge.")

    def follow(
        self,
        const double[:, ::1] matrix,
        double known_bound=INFINITY,
        int max_iterations=FEW_ITERATIONS,
        double slow=SLOW,
    ):
        """Move to the triplets of a similar matrix. True if the first r are proved right."""
        self.check(np.asarray(matrix))
        return follow(self, &matrix[0, 0], known_bound, max_iterations, slow)

    def multiply_out(self):
        """U_r S_r V_r', as a new array."""
        cdef double[:, ::1] out = np.empty(self.shape)
        multiply_out(self, &out[0, 0])
        return np.asarray(out)

    cdef bint is_whole(self) noexcept nogil:
        """Whether every matrix of this shape has at most this rank."""
        return self.rank == min(self.left.shape[1], self.right.shape[1])


cdef void multiply(
    const double *a, bint a_turned, const double *b, bint b_turned, double *out,
    Py_ssize_t n_rows, Py_ssize_t n_cols, Py_ssize_t n_between, double factor, double kept,
) noexcept nogil:
    """out = factor a b + kept out, each stored by rows; a and b transposed if they are turned."""
    # To Fortran everything is transposed, so it computes b' a'.
    cdef int m = <int> n_rows, n = <int> n_cols, k = <int> n_between
    cdef int stride_a = m if a_turned else k, stride_b = k if b_turned else n
    cdef char turn_a = b"T" if a_turned else b"N", turn_b = b"T" if b_turned else b"N"
    dgemm(
        &turn_b, &turn_a, &n, &m, &k, &factor, <double *> b, &stride_b, <double *> a, &stride_a, &kept, out, &n
    )


cdef bint orthonormalise(double *rows, Py_ssize_t n, Py_ssize_t d) noexcept nogil:
    """Gram and Schmidt, twice, in place; what depends on earlier rows becomes zero. False if it overflows."""
    cdef Py_ssize_t i, j, k
    cdef int _
    cdef double size, per
    cdef double *row
    for i in range(n):
        row = rows + i * d
        for _ in range(2):
            size = sqrt(dot(row, row, d))
            if not size < INFINITY:
                return False
            if size == 0.0:
                break
            for j in range(d):
                row[j] /= size
            for k in range(i):
                add_multiple(-dot(row, rows + k * d, d), rows + k * d, row, d)
        size = sqrt(dot(row, row, d))
        if size > 0.5:  # twice is enough, unless nothing was left
            for j in range(d):
                row[j] /= size
        else:
            memset(row, 0, d * sizeof(double))
    return True


cdef void turn(double *a, double *b, double c, double s, Py_ssize_t d) noexcept nogil:
    """Rotate two rows in their plane."""
    cdef Py_ssize_t j
    cdef double x, y
    for j in range(d):
        x, y = a[j], b[j]
        a[j] = c * x - s * y
        b[j] = s * x + c * y


cdef void rotate_to_orthogonal(Triplets at) noexcept nogil:
    """One-sided Jacobi: rotate pairs of rows of `right` until they are orthogonal, and `left` along with them."""
    cdef Py_ssize_t a, b, n = at.values.shape[0], d1 = at.left.shape[1], d2 = at.right.shape[1]
    cdef int _
    cdef double aa, bb, ab, size, zeta, t, c, s, worst
    cdef double *one
    cdef double *other
    for _ in range(30):
        worst = 0.0
        for a in range(n):
            for b in range(a + 1, n):
                one, other = &at.right[a, 0], &at.right[b, 0]
                aa, bb, ab = dot(one, one, d2), dot(other, other, d2), dot(one, other, d2)
                size = sqrt(aa) * sqrt(bb)
                if not fabs(ab) > ORTHOGONAL * size:
                    continue
                worst = max(worst, fabs(ab) / size)
                zeta = (bb - aa) / (2.0 * ab)
                t = (1.0 if zeta >= 0.0 else -1.0) / (fabs(zeta) + sqrt(1.0 + zeta * zeta))
                c = 1.0 / sqrt(1.0 + t * t)
                s = c * t
                turn(one, other, c, s, d2)
                turn(&at.left[a, 0], &at.left[b, 0], c, s, d1)
        if worst <= 10.0 * ORTHOGONAL:
            break


cdef void swap_rows(double *a, double *b, Py_ssize_t d) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(d):
        a[j], b[j] = b[j], a[j]


cdef void sort_and_normalise(Triplets at) noexcept nogil:
    """values = norms of the rows of `right`, in decreasing order."""
    cdef Py_ssize_t i, j, k, best, n = at.values.shape[0], d1 = at.left.shape[1], d2 = at.right.shape[1]
    cdef double *row
    for i in range(n):
        at.values[i] = sqrt(dot(&at.right[i, 0], &at.right[i, 0], d2))
    for i in range(n):
        best = i
        for k in range(i + 1, n):
            if at.values[k] > at.values[best]:
                best = k
        if best != i:
            at.values[i], at.values[best] = at.values[best], at.values[i]
            swap_rows(&at.left[i, 0], &at.left[best, 0], d1)
            swap_rows(&at.right[i, 0], &at.right[best, 0], d2)
        if at.values[i] > 0.0:
            row = &at.right[i, 0]
            for j in range(d2):
                row[j] /= at.values[i]


cdef double bound_on_next(Triplets at, double total, double rounding) noexcept nogil:
    """An upper bound on the (r+1)-th singular value of a matrix with squared norm `total`.

    All sums of squares are right to the share `rounding` of the total.
    """
    cdef Py_ssize_t i
    cdef double rest = total
    for i in range(at.values.shape[0]):
        rest -= at.values[i] * at.values[i]
    rest = max(rest, 0.0) + 2.0 * rounding * total
    if at.rank < at.values.shape[0]:
        rest += at.values[at.rank] * at.values[at.rank]
    return sqrt(rest)


cdef double left_over(Triplets at, const double *matrix) noexcept nogil:
    """|M - U_r S_r V_r'|_F, entry by entry."""
    cdef Py_ssize_t i, j, d2 = at.right.shape[1]
    cdef double total = 0.0
    cdef double *row = &at.inside[0, 0]
    for j in range(at.left.shape[1]):
        memcpy(row, matrix + j * d2, d2 * sizeof(double))
        for i in range(at.rank):
            add_multiple(-at.values[i] * at.left[i, j], &at.right[i, 0], row, d2)
        total += dot(row, row, d2)
    return sqrt(total)


cdef bint follow(
    Triplets at, const double *matrix, double known_bound, int max_iterations, double slow
) noexcept nogil:
    """Move the triplets of a similar matrix to those of this one. True if the first r are proved right.

    `known_bound` is any other upper bound on the next singular value, infinity if there is none. Gives up after
    `max_iterations`, or when one leaves more than the share `slow` of the residual.
    """
    cdef Py_ssize_t i, n = at.values.shape[0], d1 = at.left.shape[1], d2 = at.right.shape[1]
    cdef double total = 0.0, rounding = DBL_EPSILON * (8.0 + d1 + d2), before = INFINITY, residual, bound, gap
    cdef double *left = &at.left[0, 0]
    cdef double *right = &at.right[0, 0]
    cdef double *image = &at.image[0, 0]
    cdef int iteration
    for i in range(d1):  # by rows: the rounding error is below (d1 + d2) eps of the total
        total += dot(matrix + i * d2, matrix + i * d2, d2)
    if not SMALL < total < INFINITY:  # or squares would vanish
        return False
    for iteration in range(max_iterations + 1):
        multiply(right, False, matrix, True, image, n, d1, d2, 1.0, 0.0)
        if iteration > 0:
            residual = 0.0
            for i in range(at.rank):
                residual += squared_residual(image + i * d1, at.values[i], left + i * d1, d1)
            residual = sqrt(residual)
            bound = min(bound_on_next(at, total, rounding), known_bound)
            gap = at.values[at.rank - 1] - bound
            if residual <= 0.5 * ACCURACY * gap:
                return True
            # Almost nothing is left over: then any approximation of that quality is the best one, to twice it.
            if bound * bound <= 8.0 * rounding * total and left_over(at, matrix) <= 0.25 * ACCURACY * at.values[0]:
                return True
            if gap <= 0.0 or not residual <= slow * before or iteration == max_iterations:
                return False
            before = residual
        memcpy(left, image, n * d1 * sizeof(double))
        if not orthonormalise(left, n, d1):
            return False
        multiply(left, False, matrix, False, right, n, d2, d1, 1.0, 0.0)
        rotate_to_orthogonal(at)
        sort_and_normalise(at)
    return False


cdef bint decompose(Triplets at, const double *matrix) noexcept nogil:
    """The leading triplets by a full decomposition. The matrix must be finite.

    False if there was no memory, or if LAPACK found no solution.
    """
    cdef int d1 = <int> at.left.shape[1], d2 = <int> at.right.shape[1], side = min(d1, d2), size = -1, failed = 0
    cdef Py_ssize_t i, j
    cdef double wanted
    cdef char job = b"S"
    cdef int *pivots = <int *> malloc(8 * side * sizeof(int))
    cdef double *room = NULL
    cdef double *copy
    cdef double *u
    cdef double *vt
    cdef double *s
    # By columns, as LAPACK reads it, this is M' = V S U'.
    dgesdd(&job, &d2, &d1, NULL, &d2, NULL, NULL, &d2, NULL, &side, &wanted, &size, pivots, &failed)
    if failed == 0 and pivots != NULL and wanted < INT_MAX:
        size = <int> wanted
        room = <double *> malloc((<size_t> d1 * d2 + <size_t> (d1 + d2 + 1) * side + size) * sizeof(double))
    if room == NULL:
        free(pivots)
        return False
    copy = room
    u = copy + <size_t> d1 * d2
    vt = u + <size_t> d2 * side
    s = vt + <size_t> d1 * side
    memcpy(copy, matrix, <size_t> d1 * d2 * sizeof(double))
    dgesdd(&job, &d2, &d1, copy, &d2, s, u, &d2, vt, &side, s + side, &size, pivots, &failed)
    if failed == 0:
        for i in range(at.values.shape[0]):
            at.values[i] = s[i]
            memcpy(&at.right[i, 0], u + i * d2, d2 * sizeof(double))
            for j in range(d1):
                at.left[i, j] = vt[j * side + i]
    free(room)
    free(pivots)
    return failed == 0


cdef void multiply_out(Triplets at, double *out) noexcept nogil:
    """out = U_r S_r V_r'."""
    cdef Py_ssize_t i, j, r = at.rank, d1 = at.left.shape[1], d2 = at.right.shape[1]
    cdef double *scaled = &at.inside[0, 0]
    for i in range(r):
        for j in range(d2):
            scaled[i * d2 + j] = at.values[i] * at.right[i, j]
    multiply(&at.left[0, 0], True, scaled, False, out, d1, d2, r, 1.0, 0.0)


cdef void keep_tangent(Triplets at, double *matrix) noexcept nogil:
    """Leave of a matrix Z, in place, what is tangent to the matrices of rank r: UU'Z + ZVV' - UU'ZVV'."""
    cdef Py_ssize_t r = at.rank, d1 = at.left.shape[1], d2 = at.right.shape[1]
    cdef double *left = &at.left[0, 0]
    cdef double *right = &at.right[0, 0]
    cdef double *inside = &at.inside[0, 0]
    cdef double *outside = &at.image[0, 0]
    cdef double *corner = &at.corner[0, 0]
    if at.is_whole():
        return
    multiply(left, False, matrix, False, inside, r, d2, d1, 1.0, 0.0)  # U'Z
    multiply(matrix, False, right, True, outside, d1, r, d2, 1.0, 0.0)  # ZV
    multiply(inside, False, right, True, corner, r, r, d2, 1.0, 0.0)
    multiply(left, True, corner, False, outside, d1, r, r, -1.0, 1.0)  # (I - UU')ZV
    multiply(left, True, inside, False, matrix, d1, d2, r, 1.0, 0.0)
    multiply(outside, False, right, False, matrix, d1, d2, r, 1.0, 1.0)
