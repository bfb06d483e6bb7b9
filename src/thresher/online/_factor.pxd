"""Least squares on the support."""

from thresher.online._running cimport RunningSums
from thresher.online._working_set cimport WorkingSet


cdef class Factor:
    cdef bint centred
    cdef public double[:, ::1] upper  # (C + 1, C + 1)
    cdef public Py_ssize_t[::1] members  # (C,), features in the order in which they entered
    cdef public Py_ssize_t n_members
    cdef Py_ssize_t[::1] place  # (d,), one plus the place among the members, or zero
    cdef double[::1] column, solution  # (C + 1,), to work on

    cdef void clear(self) noexcept nogil
    cdef void add_row(self, RunningSums sums) noexcept nogil
    cdef void remove(self, Py_ssize_t m) noexcept nogil
    cdef void enter(self, RunningSums sums, WorkingSet work, Py_ssize_t slot, double smallest_share) noexcept nogil
    cdef void follow_support(self, RunningSums sums, WorkingSet work, bint rebuilt) noexcept nogil
    cdef bint refit(self, RunningSums sums, WorkingSet work, double *coef, bint rebuilt) noexcept nogil
