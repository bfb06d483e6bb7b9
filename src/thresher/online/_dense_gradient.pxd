"""The gradient of a round whose estimate is dense."""

from thresher.online._running cimport RunningSums
from thresher.online._step cimport Measure


cdef class DenseGradient:
    cdef readonly RunningSums sums
    cdef readonly bint centred, standardized
    cdef readonly bint single  # whether products with the moves are made in float32
    cdef readonly bint by_groups  # few of them are not zero
    cdef double[::1] theta, pull  # (p,)
    cdef public bint stale  # pull is not that of the summary
    cdef double path  # how far theta has moved since pull was exact
    # To work on
    cdef double[::1] move, product  # (p,): a change of theta, and scatter times it
    cdef double[::1] gradient
    cdef double[::1] root, unit  # sigma and 1 / sigma (zero for a constant column), or ones
    cdef public bint copied  # whether the copy in float32 is that of the scatter matrix
    cdef float[:, ::1] copy  # (p, p), upper triangle, divided by the largest entry; None until it is needed
    cdef float[::1] move_single, product_single  # (p,)
    cdef double copy_scale

    cdef void follow_row(self) noexcept nogil
    cdef void fill_units(self) noexcept nogil
    cdef bint find(self) noexcept nogil
    cdef void fill_product(self) noexcept nogil
    cdef Measure measure(self) noexcept nogil
    cdef void apply(self, double length) noexcept nogil
    cdef double intercept(self) noexcept nogil
    cdef double size(self) noexcept nogil
    cdef void write(
        self, const double *pull, double along_sum, double along_shift, double *out
    ) noexcept nogil
    cdef void add_scatter(self, double *vector, double *out) noexcept nogil
    cdef void add_buffer(self, const double *vector, double *out) noexcept nogil
    cdef void copy_scatter(self) noexcept nogil
    cdef void add_scatter_single(self) noexcept nogil
