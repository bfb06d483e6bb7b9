"""The pieces of one hard-thresholding step on the working set."""

from thresher.online._running cimport RunningSums
from thresher.online._working_set cimport WorkingSet


cdef struct Measure:
    double length  # |move|^2 in the metric
    double slope  # move . g
    double bend  # move' G move / weight


cdef struct Aim:
    double lowest  # the smallest key on the support
    double highest  # the largest key among the spare features
    double largest  # the largest of all


cdef void gather(WorkingSet work, RunningSums sums, bint centred, bint standardized) noexcept nogil
cdef double fill_gradient(WorkingSet work, RunningSums sums, bint centred) noexcept nogil
cdef double bend_direction(WorkingSet work, RunningSums sums, bint centred) noexcept nogil
cdef Measure fill_direction(WorkingSet work, RunningSums sums, bint centred) noexcept nogil
cdef Aim aim(WorkingSet work, double eta) noexcept nogil
cdef double choose(WorkingSet work, Py_ssize_t sparsity, double largest) noexcept nogil
cdef Measure measure_move(WorkingSet work, RunningSums sums, bint centred) noexcept nogil
cdef Measure measure_change(WorkingSet work, RunningSums sums, double eta, bint centred) noexcept nogil
cdef Measure measure_any(WorkingSet work, RunningSums sums, bint centred) noexcept nogil
cdef double shrink(WorkingSet work) noexcept nogil
cdef bint is_perfect(WorkingSet work, RunningSums sums, bint centred) noexcept nogil
cdef double stiffness(WorkingSet work, RunningSums sums, bint centred) noexcept nogil
cdef double resting_step(WorkingSet work, RunningSums sums, Py_ssize_t sparsity, bint centred) noexcept nogil
