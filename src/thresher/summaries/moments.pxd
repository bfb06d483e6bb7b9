"""Second moments of a Gram about the mean or about zero."""

cdef class Moments:
    cdef readonly double weight, total
    cdef readonly object squares, products, dtype
    cdef object state
    cdef bint centred
    cdef double scale  # from the units in which sums are stored to those in which they are read
    cdef Py_ssize_t n_buffered
    cdef double[:, ::1] scatter  # None if it is in float32
    cdef float[:, ::1] scatter_single
    cdef double[:, ::1] buffer  # None if no rows wait in it
    cdef const double[::1] diagonal, cross  # `squares` and `products`
    cdef const double[::1] centring  # None if moments are about zero
    cdef const double[::1] shift_x, half  # None if they are about the mean

    cdef void read(self, Py_ssize_t j, double *out) noexcept nogil
