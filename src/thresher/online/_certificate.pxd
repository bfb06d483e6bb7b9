"""Proof that a projection stays within the working set."""

from thresher.online._running cimport RunningSums
from thresher.online._working_set cimport WorkingSet

cdef enum Found:
    QUIET  # no feature outside can be chosen
    LOADED  # some could, and are in the set now
    TOO_MANY  # so many could that the reference moved


cdef struct Tilt:
    double alpha, beta


cdef class Certificate:
    cdef RunningSums sums
    cdef WorkingSet work
    cdef Py_ssize_t sparsity
    cdef bint centred, standardized
    cdef double bound_scale
    # Bounds on |g_j(r)| / sigma_j and sqrt(G_jj / weight) / sigma_j outside the working set
    cdef double reach, width
    cdef double[::1] scratch  # (d,)

    cdef Tilt reference_tilt(self) noexcept nogil
    cdef bint holds(self, double reach, double width) noexcept nogil
    cdef void fill_strength(self, double slack) noexcept nogil
    cdef void scan_outside(self) noexcept nogil
    cdef Found rule_out(self, double slack, double limit) noexcept nogil
    cdef void rebase(self, const double *coef, bint whole) noexcept nogil
    cdef Found widen(self, const double *coef, double slack, double limit, bint again) noexcept nogil


cdef Tilt tilt(RunningSums sums, double along_sum, double along_shift, bint centred) noexcept nogil
cdef double curvature(
    RunningSums sums, double quadratic, double along_sum, double along_shift, bint centred
) noexcept nogil
