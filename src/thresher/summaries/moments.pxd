"""Second moments of a Gram about the mean or about zero."""

cdef class Moments:
    cdef readonly double weight, total
    cdef readonly object squares, products, dtype
    cdef bint centred
    cdef Py_ssize_t n_buffered
    cdef double[:, ::1] scatter  # None if it is in float32
    cdef float[:, ::1] scatter_single
    cdef double[:, ::1] buffer
    cdef const double[::1] shift_x, half, centring, diagonal

    cdef void read(self, Py_ssize_t j, double *out) noexcept nogil
