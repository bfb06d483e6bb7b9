"""A whole round of short steps as one polynomial.

While the support holds, K steps of one size eta are linear: with q = g / sigma^2 on the support and
B = (G / weight) / sigma^2 there,

    theta_K - theta_0 = -eta sum_{k<K} (I - eta B)^k q = -sum_j c_j B^j q,   c_j = (-1)^j C(K, j + 1) eta^(j + 1).

For steps far below 1 / L, the terms fall so fast that a few of them give the sum to the last bit: K = 20 steps cost as
much as eight. Their sizes also bound how far any of the K iterates is from theta_0, which is what it takes to prove
that none of them leaves the support.
"""

from libc.math cimport INFINITY, fabs, sqrt

from thresher._utils.reductions cimport add_multiple, scaled_square
from thresher.online._certificate cimport Certificate
from thresher.online._running cimport RunningSums
from thresher.online._step cimport Measure, bend_direction, fill_direction, fill_gradient
from thresher.online._ties cimport tie_band
from thresher.online._working_set cimport WorkingSet

# The second term must be below this share of the first: then no digits are lost to alternating signs.
cdef double LARGEST_RATIO = 0.1
# Terms below this share of the sum do not change it.
cdef double NEGLIGIBLE = 1e-18


cdef bint leap(Certificate certificate, double eta, Py_ssize_t n_steps) noexcept nogil:
    """Take all steps of a round at once, if they are short and provably leave the support alone; whether it did."""
    if eta == 0.0 or certificate.work.n_kept < certificate.sparsity:
        return False
    return _leap(certificate, certificate.work, certificate.sums, certificate.centred, eta, n_steps)


cdef bint _leap(
    Certificate certificate, WorkingSet work, RunningSums sums, bint centred, double eta, Py_ssize_t n_steps
) noexcept nogil:
    cdef Py_ssize_t j, k, size = work.size, n_kept = work.n_kept
    cdef double *direction = &work.direction[0]
    cdef double slack = fill_gradient(work, sums, centred), coefficient = n_steps * eta, bend, term
    cdef Measure first = fill_direction(work, sums, centred)
    # Bounds on |theta_k - theta_0| for every k <= K, in the metric and in data space
    cdef double way = coefficient * sqrt(first.slope), effort = coefficient * sqrt(first.bend)
    cdef double key, lowest = INFINITY, largest = 0.0, pull = certificate.reach + certificate.width * slack
    for k in range(size):
        work.target[k] = work.theta[k] - coefficient * direction[k]
        work.product[k] = -coefficient * work.along[k]
    for j in range(1, n_steps):
        for k in range(n_kept):  # the next power of B
            direction[k] = work.inverse[k] * work.bend[k]
        bend = bend_direction(work, sums, centred)
        coefficient *= -eta * (n_steps - j) / (j + 1)
        add_multiple(-coefficient, direction, &work.target[0], n_kept)
        add_multiple(-coefficient, &work.along[0], &work.product[0], size)
        term = fabs(coefficient) * sqrt(scaled_square(&work.root[0], direction, n_kept))
        if j == 1 and not term <= LARGEST_RATIO * way:
            return False
        way += term
        effort += fabs(coefficient) * sqrt(bend)
        if term <= NEGLIGIBLE * way:
            break

    for k in range(n_kept):
        key = work.root[k] * fabs(work.theta[k])
        lowest, largest = min(lowest, key), max(largest, key)
    for k in range(n_kept, size):
        pull = max(pull, work.unit[k] * fabs(work.gradient[k]))
    pull = certificate.bound_scale * (eta * (pull + certificate.width * effort))
    if not pull < lowest - way - 2.0 * tie_band(lowest, largest + way):
        return False
    for k in range(n_kept):
        work.theta[k] = work.target[k]
    for k in range(size):
        work.drift[k] += work.product[k]
    return True
