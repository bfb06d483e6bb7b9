"""The working set of a sparse round."""

from thresher.online._running cimport RunningSums


cdef class WorkingSet:
    # Of all d features
    cdef public double[::1] at_reference  # A r - b
    cdef public double[::1] outside  # 1.0 for features outside the working set, 0.0 inside
    cdef double[::1] strength  # what a feature outside could pull with, at most
    # Of the features in the set, slot by slot, from round to round
    cdef public Py_ssize_t[::1] features
    cdef public double[::1] theta, reference, drift  # theta, r and A (theta - r)
    cdef public double[:, ::1] local  # (C, C): A
    cdef public double[:, ::1] rows  # (B, C): the rows in the buffer
    cdef public Py_ssize_t size, n_kept  # slots in use, of which the first n_kept are the support
    cdef public bint stale  # the arrays do not describe the summary any more
    # Slot by slot, filled in every round
    cdef double[::1] pull, sum_x, shift  # A r - b, sum_x and shift of the feature
    cdef double[::1] root, unit, inverse  # sigma_j, 1 / sigma_j and its square (zero for a constant column), or ones
    cdef double[::1] gradient
    cdef double[::1] target, key  # theta_j - eta g_j / sigma_j^2, and sigma_j |target_j|
    cdef Py_ssize_t[::1] chosen  # whether the projection keeps it
    cdef double[::1] direction, along, bend  # q: g_j / sigma_j^2 on the support, A q and G q / weight
    cdef double[::1] move, product  # a change of theta, and A times it

    cdef void follow_row(self, RunningSums sums) noexcept nogil
    cdef void load(self, RunningSums sums, Py_ssize_t feature) noexcept nogil
    cdef void swap(self, Py_ssize_t n_buffered, Py_ssize_t a, Py_ssize_t b) noexcept nogil
    cdef void evict(self, Py_ssize_t n_buffered, Py_ssize_t k) noexcept nogil
    cdef void keep_chosen(self, Py_ssize_t n_buffered) noexcept nogil
    cdef void reload(self, RunningSums sums, const double *coef) noexcept nogil
    cdef void move_reference(self, RunningSums sums) noexcept nogil
    cdef void multiply(self, const double *vector, double *out, Py_ssize_t n) noexcept nogil
