"""Best subset selection from a summary."""

cdef class Basis:
    cdef public list order
    cdef public double residual

    cpdef bint add_best(self) except -1
    cpdef Py_ssize_t freedom(self, tuple units=*) except -1
    cpdef object best_swap(self)
    cpdef Basis truncated(self, Py_ssize_t size)
    cpdef Basis restarted(self, tuple units)
