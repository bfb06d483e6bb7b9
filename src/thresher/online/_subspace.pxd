"""The leading singular triplets of a matrix."""

cdef extern from *:
    """
    /* How many iterations a small matrix is worth, and the share of the residual that each may leave, before a full
       decomposition is cheaper. */
    #define FEW_ITERATIONS 8
    #define SLOW 0.3
    """
    const int FEW_ITERATIONS
    const double SLOW


cdef class Triplets:
    cdef readonly Py_ssize_t rank  # r, which are wanted; n are followed
    cdef public bint warm  # whether left, values and right hold a decomposition
    cdef readonly double[:, ::1] left  # (n, d1)
    cdef readonly double[::1] values  # (n,)
    cdef readonly double[:, ::1] right  # (n, d2)
    # To work on
    cdef double[:, ::1] image, inside  # (n, d1), (n, d2)
    cdef double[:, ::1] corner  # (n, n)

    cdef bint is_whole(self) noexcept nogil


cdef bint follow(
    Triplets at, const double *matrix, double known_bound, int max_iterations, double slow
) noexcept nogil
cdef bint decompose(Triplets at, const double *matrix) noexcept nogil
cdef void multiply_out(Triplets at, double *out) noexcept nogil
cdef void keep_tangent(Triplets at, double *matrix) noexcept nogil
cdef void multiply(
    const double *a, bint a_turned, const double *b, bint b_turned, double *out,
    Py_ssize_t n_rows, Py_ssize_t n_cols, Py_ssize_t n_between, double factor, double kept,
) noexcept nogil
