"""The pieces of one hard-thresholding step on the working set.

One step of Algorithm 1 is theta <- P_s(theta - eta g(theta)). In the metric of the column scales it is
theta_j - eta g_j / sigma_j^2, keeping the largest sigma_j |theta_j|; without standardisation sigma_j = 1.
"""

from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, fabs, sqrt

from thresher._utils.reductions cimport add_multiple, dot, scaled_square
from thresher.online._certificate cimport Tilt, curvature, tilt
from thresher.online._running cimport RunningSums, variance
from thresher.online._ties cimport nth_largest, tie_band
from thresher.online._working_set cimport WorkingSet

# A residual sum of squares below this share of that of no features is zero.
cdef double PERFECT = 1e-12


cdef void gather(WorkingSet work, RunningSums sums, bint centred, bint standardized) noexcept nogil:
    """Gather what a round needs to know of each feature in the working set."""
    cdef Py_ssize_t j, k
    cdef double square
    for k in range(work.size):
        j = work.features[k]
        work.pull[k] = work.at_reference[j]
        work.sum_x[k] = sums.sum_x[j]
        work.shift[k] = sums.shift_x[j]
        square = variance(sums, j, centred) if standardized else 1.0
        work.inverse[k] = 1.0 / square if square >= DBL_MIN else 0.0
        work.root[k] = sqrt(square)
        work.unit[k] = sqrt(work.inverse[k])


cdef double fill_gradient(WorkingSet work, RunningSums sums, bint centred) noexcept nogil:
    """The gradient on the working set. Returns sqrt(D' G D / weight), the slack of the certificate."""
    cdef Py_ssize_t k, size = work.size
    cdef double *away = &work.move[0]  # free to be used here
    cdef double per = 1.0 / sums.weight
    cdef Tilt at
    for k in range(size):
        away[k] = work.theta[k] - work.reference[k]
    at = tilt(sums, dot(&work.theta[0], &work.sum_x[0], size), dot(&work.theta[0], &work.shift[0], size), centred)
    for k in range(size):
        work.gradient[k] = (work.pull[k] + work.drift[k] + work.shift[k] * at.alpha + work.sum_x[k] * at.beta) * per
    return sqrt(
        curvature(
            sums,
            dot(away, &work.drift[0], size),
            dot(away, &work.sum_x[0], size),
            dot(away, &work.shift[0], size),
            centred,
        )
    )


cdef double bend_direction(WorkingSet work, RunningSums sums, bint centred) noexcept nogil:
    """along = A q and bend = G q / weight for the direction q. Returns q' G q / weight."""
    cdef Py_ssize_t k, n_kept = work.n_kept
    cdef double weight = sums.weight, per = 1.0 / sums.weight
    cdef double along_sum = dot(&work.direction[0], &work.sum_x[0], n_kept)
    cdef double along_shift = dot(&work.direction[0], &work.shift[0], n_kept)
    cdef double alpha = 0.0 if centred else along_sum + weight * along_shift
    cdef double beta = -along_sum / weight if centred else along_shift
    work.multiply(&work.direction[0], &work.along[0], n_kept)
    for k in range(work.size):
        work.bend[k] = (work.along[k] + work.shift[k] * alpha + work.sum_x[k] * beta) * per
    return max(dot(&work.direction[0], &work.bend[0], n_kept), 0.0)


cdef Measure fill_direction(WorkingSet work, RunningSums sums, bint centred) noexcept nogil:
    """The direction q = g / sigma^2 of a step on the support, with A q and G q.

    Returns |theta|^2 in the metric, q . g and q' G q / weight.
    """
    cdef Py_ssize_t k, n_kept = work.n_kept
    cdef Measure found
    for k in range(n_kept):
        work.direction[k] = work.inverse[k] * work.gradient[k]
    for k in range(n_kept, work.size):
        work.direction[k] = 0.0
    found.length = scaled_square(&work.root[0], &work.theta[0], n_kept)
    found.slope = dot(&work.direction[0], &work.gradient[0], n_kept)
    found.bend = bend_direction(work, sums, centred)
    return found


cdef Aim aim(WorkingSet work, double eta) noexcept nogil:
    """Where a gradient step of size eta leads, before projection."""
    cdef Py_ssize_t k
    cdef Aim found
    found.lowest, found.highest, found.largest = INFINITY, -1.0, 0.0
    for k in range(work.size):
        work.target[k] = work.theta[k] - eta * (work.inverse[k] * work.gradient[k])
        work.key[k] = work.root[k] * fabs(work.target[k])
    for k in range(work.n_kept):
        found.lowest = min(found.lowest, work.key[k])
        found.largest = max(found.largest, work.key[k])
    for k in range(work.n_kept, work.size):
        found.highest = max(found.highest, work.key[k])
    found.largest = max(found.largest, found.highest)
    return found


cdef double choose(WorkingSet work, Py_ssize_t sparsity, double largest) noexcept nogil:
    """Mark the slots of the s largest keys: the projection, when nothing outside can be chosen.

    Returns the smallest key among them. Ties go to the lowest feature.
    """
    cdef Py_ssize_t k, best, size = work.size, n = min(sparsity, size)
    cdef double *ordered = &work.move[0]  # free to be used here
    cdef double cut, band, lowest = INFINITY
    for k in range(size):
        ordered[k] = work.key[k]
    cut = nth_largest(ordered, size, n)
    band = tie_band(cut, largest)
    for k in range(size):
        work.chosen[k] = work.key[k] > cut + band
        n -= work.chosen[k]
    while n > 0:
        best = -1
        for k in range(size):
            if not work.chosen[k] and work.key[k] >= cut - band:
                if best < 0 or work.features[k] < work.features[best]:
                    best = k
        if best < 0:
            break
        work.chosen[best] = 1
        n -= 1
    for k in range(size):
        if work.chosen[k]:
            lowest = min(lowest, work.key[k])
    return lowest


cdef Measure measure_move(WorkingSet work, RunningSums sums, bint centred) noexcept nogil:
    """What a move does to the loss, given A times it."""
    cdef Py_ssize_t size = work.size
    cdef const double *move = &work.move[0]
    cdef Measure found
    found.length = scaled_square(&work.root[0], move, size)
    found.slope = dot(move, &work.gradient[0], size)
    found.bend = curvature(
        sums,
        dot(move, &work.product[0], size),
        dot(move, &work.sum_x[0], size),
        dot(move, &work.shift[0], size),
        centred,
    )
    return found


cdef Measure measure_change(WorkingSet work, RunningSums sums, double eta, bint centred) noexcept nogil:
    """The move of a step that changes the support, and what it does to the loss.

    Away from the slots that enter or leave, the move is -eta times the direction, so A times it is known but for those
    few columns.
    """
    cdef Py_ssize_t k
    for k in range(work.size):
        work.product[k] = -eta * work.along[k]
        work.move[k] = (work.target[k] if work.chosen[k] else 0.0) - work.theta[k]
    for k in range(work.size):
        if work.chosen[k] != (k < work.n_kept):
            add_multiple(work.move[k] + eta * work.direction[k], &work.local[k, 0], &work.product[0], work.size)
    return measure_move(work, sums, centred)


cdef Measure measure_any(WorkingSet work, RunningSums sums, bint centred) noexcept nogil:
    """As `measure_change`, for targets that are not a gradient step away."""
    cdef Py_ssize_t k
    for k in range(work.size):
        work.move[k] = (work.target[k] if work.chosen[k] else 0.0) - work.theta[k]
    work.multiply(&work.move[0], &work.product[0], work.size)
    return measure_move(work, sums, centred)


cdef double shrink(WorkingSet work) noexcept nogil:
    """Reciprocal thresholding of the targets: z (1 + sqrt(1 - (tau / z)^2)) / 2, tau the largest that is not chosen.

    Returns tau.
    """
    cdef Py_ssize_t k
    cdef double share, tau = 0.0
    for k in range(work.size):
        if not work.chosen[k]:
            tau = max(tau, work.key[k])
    for k in range(work.size):
        if work.chosen[k] and work.key[k] > 0.0:
            share = tau / work.key[k]
            work.target[k] *= 0.5 * (1.0 + sqrt(max(1.0 - share * share, 0.0)))
    return tau


cdef bint is_perfect(WorkingSet work, RunningSums sums, bint centred) noexcept nogil:
    """Whether theta leaves nothing of y but rounding, given the gradient: y'y - theta'h + weight theta'g is left."""
    cdef Py_ssize_t k
    cdef double weight = sums.weight, sum_y = sums.sum_y, h, left, total
    cdef double along_y = sums.shift_y, along_shift = sum_y + weight * sums.shift_y
    total = left = sums.sum_yy + (sum_y + along_shift) * sums.shift_y
    if centred:
        total = left = sums.sum_yy - sum_y * (sum_y / weight)
        along_y, along_shift = -sum_y / weight, 0.0
    for k in range(work.n_kept):
        h = sums.cross[work.features[k]] + work.sum_x[k] * along_y + work.shift[k] * along_shift
        left -= work.theta[k] * (h - weight * work.gradient[k])
    return left <= PERFECT * total


cdef double stiffness(WorkingSet work, RunningSums sums, bint centred) noexcept nogil:
    """The largest row sum of |G_kl| / (weight sigma_k sigma_l) on the support, which bounds its eigenvalues."""
    cdef Py_ssize_t k, m
    cdef double a, b, weight = sums.weight, worst = 0.0
    cdef double *row = &work.move[0]  # free to be used here
    for k in range(work.n_kept):
        # G_kl = A_kl + a sum_x_l + b shift_l, as in curvature()
        a = -work.sum_x[k] / weight if centred else work.shift[k]
        b = 0.0 if centred else work.sum_x[k] + weight * work.shift[k]
        for m in range(work.n_kept):
            row[m] = fabs(work.local[k, m] + a * work.sum_x[m] + b * work.shift[m])
        worst = max(worst, work.unit[k] * dot(&work.unit[0], row, work.n_kept))
    return worst / weight


cdef double resting_step(WorkingSet work, RunningSums sums, Py_ssize_t sparsity, bint centred) noexcept nogil:
    """A step to try when the support feels no pull: |v|^2 / (v' G v) for v = theta.

    At theta = 0, v is the gradient of the s features that pull hardest; the working set must hold them.
    """
    cdef Py_ssize_t k
    cdef double largest = 0.0
    cdef Measure found
    if work.n_kept == 0:
        for k in range(work.size):
            work.key[k] = work.unit[k] * fabs(work.gradient[k])
            largest = max(largest, work.key[k])
        choose(work, sparsity, largest)
        for k in range(work.size):
            work.move[k] = work.inverse[k] * work.gradient[k] if work.chosen[k] else 0.0
    else:
        for k in range(work.size):
            work.move[k] = work.theta[k]
    work.multiply(&work.move[0], &work.product[0], work.n_kept if work.n_kept else work.size)
    found = measure_move(work, sums, centred)
    return found.length / found.bend if found.bend > 0.0 else 0.0
