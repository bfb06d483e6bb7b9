"""Proof that the projection stays within the working set, without looking at all d features.

The problem is min over s-sparse theta of (theta' G theta - 2 theta' h) / (2 weight), where G and h are the second
moments of the rows: about the mean with an intercept (`centred`), about zero without. With the shifted sums of
`summaries._shifted`, A = scatter and b = cross over all rows, its gradient is

    weight g_j = (A theta - b)_j + shift_j alpha + sum_x_j beta                                  (1)

with two numbers alpha, beta that depend on theta. With standardisation lengths are measured in the metric of the column
scales, sigma_j^2 = G_jj / weight. For every feature j, theta = r + D and any positive semi-definite G, Cauchy-Schwarz
in data space gives

    |g_j(theta)| <= |g_j(r)| + sqrt(G_jj / weight) sqrt(D' G D / weight)                         (2)

When eta times the right-hand side, over sigma_j, is below the smallest kept magnitude for every j outside the working
set, none of them can be chosen. Features that (2) cannot rule out are loaded into the set; if they are many, the
reference moves to theta, which makes (2) exact.
"""

import numpy as np

from libc.float cimport DBL_MIN
from libc.math cimport INFINITY, fabs, sqrt

from thresher.online._running cimport RunningSums, variance
from thresher.online._ties cimport nth_largest, tie_band
from thresher.online._working_set cimport WorkingSet

from thresher.io.schema import Count, Flag, Is, Number, Schema

# How many features the bound may fail to rule out before it is cheaper to move the reference.
cdef enum:
    MAX_SUSPECTS = 12
# Features beyond the support that a moved reference loads.
cdef Py_ssize_t N_SPARE = 16
SPARE = N_SPARE
# `reach` and `width` are set this much above the maxima they stand for, so that they hold for some rows.
cdef double HEADROOM = 1.02
# Squares outside these are not trusted.
cdef double SMALL = 1e-290, LARGE = 1e300


cdef Tilt tilt(RunningSums sums, double along_sum, double along_shift, bint centred) noexcept nogil:
    """(alpha, beta) of (1) for a theta with sum_x . theta and shift . theta given."""
    cdef Tilt found
    if centred:
        found.alpha, found.beta = 0.0, -(along_sum - sums.sum_y) / sums.weight
    else:
        found.beta = along_shift - sums.shift_y
        found.alpha = along_sum - sums.sum_y + sums.weight * found.beta
    return found


cdef double curvature(
    RunningSums sums, double quadratic, double along_sum, double along_shift, bint centred
) noexcept nogil:
    """v' G v / weight for a v with v' A v, sum_x . v and shift . v given."""
    if centred:
        quadratic -= along_sum * (along_sum / sums.weight)
    else:
        quadratic += (2.0 * along_sum + sums.weight * along_shift) * along_shift
    return max(quadratic / sums.weight, 0.0)


cdef class Certificate:
    """Bound (2) for the features outside a working set."""

    _schema = Schema(
        lambda bound: len(bound.sums.sum_x) == len(bound.work.outside),
        lambda bound: bound.work.n_kept <= bound.sparsity <= min(len(bound.work.features), len(bound.work.outside)),
        sums=Is(RunningSums),
        work=Is(WorkingSet),
        sparsity=Count(),
        centred=Flag(),
        standardized=Flag(),
        bound_scale=Number(0.0, INFINITY),
        reach=Number(0.0, INFINITY),
        width=Number(0.0, INFINITY),
    )

    def __init__(
        self,
        RunningSums sums not None,
        WorkingSet work not None,
        Py_ssize_t sparsity,
        bint centred,
        bint standardized,
        double bound_scale,
    ):
        self.sums, self.work = sums, work
        self.sparsity, self.centred, self.standardized = sparsity, centred, standardized
        self.bound_scale = bound_scale
        self.scratch = np.zeros(len(work.outside))

    def __getstate__(self):
        return {
            "sums": self.sums,
            "work": self.work,
            "sparsity": self.sparsity,
            "centred": self.centred,
            "standardized": self.standardized,
            "bound_scale": self.bound_scale,
            "reach": self.reach,
            "width": self.width,
        }

    def __setstate__(self, state):
        self.sums, self.work = <RunningSums?> state["sums"], <WorkingSet?> state["work"]  # not None
        self.sparsity = state["sparsity"]
        self.centred, self.standardized = state["centred"], state["standardized"]
        self.bound_scale, self.reach, self.width = state["bound_scale"], state["reach"], state["width"]
        self.scratch = np.zeros(len(self.work.outside))

    def bounds(self, double slack):
        """Bound (2) over sigma_j for every feature, with slack = sqrt(D' G D / weight)."""
        self.fill_strength(slack)
        return np.array(self.work.strength)

    cdef Tilt reference_tilt(self) noexcept nogil:
        """(alpha, beta) of the gradient at the reference point."""
        cdef Py_ssize_t k
        cdef double along_sum = 0.0, along_shift = 0.0
        for k in range(self.work.size):
            along_sum += self.work.reference[k] * self.sums.sum_x[self.work.features[k]]
            along_shift += self.work.reference[k] * self.sums.shift_x[self.work.features[k]]
        return tilt(self.sums, along_sum, along_shift, self.centred)

    cdef bint holds(self, double reach, double width) noexcept nogil:
        """Whether |g_j(r)| <= reach sigma_j and sqrt(G_jj / weight) <= width sigma_j for every feature outside.

        Squares are compared, so that the loops need neither roots nor divisions; where they would overflow or vanish,
        the answer is no.
        """
        cdef double weight = self.sums.weight, g, about, limit
        cdef double squared = reach * (reach * weight), widest = width * width * weight, farthest = reach * weight
        cdef double mean = -1.0 / weight if self.centred else 0.0, zero = 0.0 if self.centred else 1.0
        cdef Tilt at = self.reference_tilt()
        cdef Py_ssize_t j, d = self.work.outside.shape[0]
        cdef long n_beyond = 0
        cdef const double *sum_x = &self.sums.sum_x[0]
        cdef const double *sum_xx = &self.sums.sum_xx[0]
        cdef const double *shift = &self.sums.shift_x[0]
        cdef const double *outside = &self.work.outside[0]
        cdef const double *at_reference = &self.work.at_reference[0]
        if self.standardized:
            for j in range(d):
                g = outside[j] * (at_reference[j] + shift[j] * at.alpha + sum_x[j] * at.beta)
                about = mean * (sum_x[j] * sum_x[j]) + zero * ((2.0 * sum_x[j] + weight * shift[j]) * shift[j])
                limit = squared * (sum_xx[j] + about)
                n_beyond += (g * g > limit) | (limit > LARGE) | ((limit < SMALL) & (g != 0.0))
            return n_beyond == 0
        if not widest < LARGE:
            return False
        for j in range(d):
            g = outside[j] * (at_reference[j] + shift[j] * at.alpha + sum_x[j] * at.beta)
            about = mean * (sum_x[j] * sum_x[j]) + zero * ((2.0 * sum_x[j] + weight * shift[j]) * shift[j])
            n_beyond += (fabs(g) > farthest) | (sum_xx[j] + about > widest)
        return n_beyond == 0

    cdef void fill_strength(self, double slack) noexcept nogil:
        """The strength of every feature: bound (2) over sigma_j, with slack = sqrt(D' G D / weight)."""
        cdef Tilt at = self.reference_tilt()
        cdef Py_ssize_t j
        cdef double g, scale
        for j in range(self.work.outside.shape[0]):
            g = self.work.at_reference[j] + self.sums.shift_x[j] * at.alpha + self.sums.sum_x[j] * at.beta
            g = fabs(g) / self.sums.weight
            scale = variance(self.sums, j, self.centred)
            if not self.standardized:
                self.work.strength[j] = g + sqrt(scale) * slack
            elif scale >= DBL_MIN:
                self.work.strength[j] = g / sqrt(scale) + slack
            else:
                self.work.strength[j] = 0.0

    cdef void scan_outside(self) noexcept nogil:
        """Set `reach` and `width`."""
        cdef Py_ssize_t j
        cdef double reach = 0.0, width = 0.0
        self.fill_strength(0.0)
        for j in range(self.work.outside.shape[0]):
            reach = max(reach, self.work.outside[j] * self.work.strength[j])
            if not self.standardized:
                width = max(width, variance(self.sums, j, self.centred))
        self.reach = HEADROOM * reach
        self.width = 1.0 if self.standardized else HEADROOM * sqrt(width)

    cdef Found rule_out(self, double slack, double limit) noexcept nogil:
        """Apply (2) feature by feature; load those it cannot keep below `limit`, if they are few."""
        # In the metric, (2) reads |g_j(r)| / sigma_j + slack, so what is left outside has a known reach.
        cdef double reach = limit / self.bound_scale - slack
        cdef bint known = self.standardized and reach > 0.0
        cdef Py_ssize_t i, j, n = 0, room = min(<Py_ssize_t> MAX_SUSPECTS, self.work.features.shape[0] - self.work.size)
        cdef Py_ssize_t[MAX_SUSPECTS] suspects
        if known and self.holds(reach, 1.0):
            self.reach = min(self.reach, reach)
            return QUIET
        self.fill_strength(slack)
        for j in range(self.work.outside.shape[0]):
            if self.work.outside[j] == 1.0 and not self.bound_scale * self.work.strength[j] < limit:
                if n == room:
                    return TOO_MANY
                suspects[n] = j
                n += 1
        for i in range(n):
            self.work.load(self.sums, suspects[i])
        if known:
            self.reach = reach
        elif n > 0:
            self.scan_outside()
        return LOADED if n else QUIET

    cdef void rebase(self, const double *coef, bint whole) noexcept nogil:
        """Move the reference to the estimate; fill the set, or its usual part, with what pulls hardest."""
        cdef Py_ssize_t j, k, d = self.work.outside.shape[0], room
        cdef double cut = INFINITY, band = 0.0, strongest = 0.0
        cdef double *strength = &self.work.strength[0]
        cdef double *wanted = &self.scratch[0]
        if self.work.stale:
            self.work.reload(self.sums, coef)
        self.work.move_reference(self.sums)
        self.fill_strength(0.0)
        for k in range(self.work.n_kept):
            strength[self.work.features[k]] = -1.0  # in anyway, so out of the contest
        room = min(self.work.features.shape[0], d)
        if not whole:
            room = min(room, self.sparsity + N_SPARE)
        room -= self.work.n_kept
        if room > 0:
            for j in range(d):
                wanted[j] = strength[j]
                strongest = max(strongest, strength[j])
            cut = nth_largest(wanted, d, room)
            band = tie_band(cut, strongest)
        for j in range(d):
            wanted[j] = room > 0 and strength[j] > cut + band
            room -= wanted[j] == 1.0
        for j in range(d):  # ties go to the lowest index
            if room > 0 and wanted[j] == 0.0 and strength[j] >= max(cut - band, 0.0):
                wanted[j] = 1.0
                room -= 1
        for k in range(self.work.size - 1, self.work.n_kept - 1, -1):
            if wanted[self.work.features[k]] == 0.0:
                self.work.evict(self.sums.n_buffered, k)
        for j in range(d):
            if wanted[j] == 1.0 and self.work.outside[j] == 1.0:
                self.work.load(self.sums, j)

    cdef Found widen(self, const double *coef, double slack, double limit, bint again) noexcept nogil:
        """Bring into the working set whatever (2) cannot keep below `limit`.

        If it is too much, the reference moves: a first time to make (2) exact, and when asked `again` with room for a
        whole new support, so that nothing outside can be chosen any more.
        """
        cdef Found found = self.rule_out(slack, limit)
        if found == TOO_MANY:
            self.rebase(coef, again)
            self.scan_outside()
        return found
