"""Gibbs sampling of sparse linear models from second moments.

Columns and y are in units in which each has sum of squares n, and r = c - G b is what the columns have in common with
the residuals. All that a draw of b_j needs to know of the data is r_j, and r changes only where some b_j does.
``posterior_reference.py`` has the same chain in NumPy, line by line.
"""

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport exp, sqrt
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport (
    random_standard_gamma,
    random_standard_normal,
    random_standard_uniform,
)

from thresher._utils.reductions cimport add_multiple, dot, largest_square
from thresher.summaries.moments cimport Moments

# Standardised columns that are kept for the next time: those of features in the model are needed in every sweep.
cdef Py_ssize_t KEPT = 1024
# Places that are less likely than the best one by a factor of exp(-FAR) are not considered.
cdef double FAR = 36.0
# Half the square of a t statistic up to which most features are zero.
cdef double LIKELY_ZERO = 2.0
# Features that are weighed at once.
cdef enum:
    LANES = 8


cdef class Columns:
    """Columns of second moments in units in which each has sum of squares n; the most recent ones are kept.

    Parameters
    ----------
    moments : Moments
    scale : ndarray of shape (d,)
        What columns are multiplied by; zero for constant ones.
    scale_y : float
        What y is multiplied by.
    """

    cdef Moments moments
    cdef readonly double weight  # n
    cdef readonly object products  # c, the products of the columns and y
    cdef const double[::1] scale, c
    cdef double[:, ::1] kept
    cdef Py_ssize_t[::1] place, owner  # of feature j in `kept`, or -1; the feature that is kept in a place, or -1
    cdef Py_ssize_t following  # the place that is overwritten next

    def __init__(self, Moments moments, scale, double scale_y):
        cdef Py_ssize_t d = moments.n_features, room = min(d, KEPT)
        if scale.shape != (d,):
            raise ValueError(f"there are {d} features, and scales of shape {scale.shape}")
        self.moments, self.weight, self.scale = moments, moments.weight, scale
        self.products = self.c = scale * (moments.products * scale_y)
        self.kept, self.place, self.owner = np.empty((room, d)), np.full(d, -1, np.intp), np.full(room, -1, np.intp)

    def residual(self, const double[::1] coef, double least):
        """The sum of squares of y - X b for a b with few nonzeros, or `least` if that is more."""
        cdef Py_ssize_t j, d = self.scale.shape[0]
        cdef double[::1] left = np.array(self.products)
        if coef.shape[0] != d:
            raise ValueError(f"there are {d} features, and {coef.shape[0]} coefficients")
        for j in range(d):
            if coef[j] != 0.0:
                add_multiple(-coef[j], self.column(j), &left[0], d)
        return max(self.weight - dot(&coef[0], &self.c[0], d) - dot(&coef[0], &left[0], d), least)

    cdef const double *column(self, Py_ssize_t j) noexcept nogil:
        """Column j; valid until the next one is asked for."""
        cdef Py_ssize_t i, at = self.place[j], d = self.scale.shape[0]
        cdef double own = self.scale[j]
        cdef double *line
        if at >= 0:
            return &self.kept[at, 0]
        at = self.following
        self.following = at + 1 if at + 1 < self.kept.shape[0] else 0
        if self.owner[at] >= 0:
            self.place[self.owner[at]] = -1
        self.place[j], self.owner[at] = at, j
        line = &self.kept[at, 0]
        self.moments.read(j, line)
        for i in range(d):
            line[i] *= own * self.scale[i]
        return line


cdef class Chain:
    """A Markov chain of models, and sums over its draws.

    Parameters
    ----------
    columns : Columns
    shares : ndarray of shape (K,)
        n tau_k^2 / (1 + n tau_k^2) for each scale tau_k of the prior: 1/16, 1/8, 1/4, 1/2, then 1 - 1/4^m for m = 1, 2,
        ..., at least two of these. For such scales one exponential gives those of all.
    concentration : ndarray of shape (K + 1,)
        Parameters of the Dirichlet prior of the shares of zeros and of each scale.
    freedom, least : float
        Degrees of freedom of the residuals of no features; the least sum of squares of residuals.
    start : ndarray of shape (d,)
        The first model, in units of the columns.
    generator : numpy.random.Generator
    direction : ndarray of shape (d,), optional
        A linear function of b whose variance is wanted.

    Attributes
    ----------
    coef, left : ndarray of shape (d,)
        The present b, and r = c - G b.
    origin : ndarray of int
        The scale from which b_j comes, counted from 1; 0 if b_j is zero.
    variance : float
        The present sigma^2.
    n_draws : int
        Draws that count.
    mean, square, inclusion : ndarray of shape (d,)
        Sums over them of E b_j, E b_j^2 and P(b_j != 0), each given all others.
    drawn, drawn_left : ndarray of shape (d,)
        Sums of b and of r.
    explained, noise : float
        Sums of b'G b and of sigma^2.
    level, swing : float
        Mean of direction'b, and sum of squares about it.
    """

    cdef Columns columns
    cdef readonly object coef, left, origin, mean, square, inclusion, drawn, drawn_left
    cdef readonly Py_ssize_t n_draws
    cdef readonly double explained, noise, level, swing, variance
    cdef double freedom, least, surely_zero
    cdef double[::1] b, r, sum_mean, sum_square, sum_inclusion, sum_b, sum_r
    cdef double[::1] weight, in_use  # of zero and of all scales: probability, and how many b_j come from it
    cdef double[::1] term  # of zero and of all scales, for LANES features: what they weigh
    cdef double[LANES] z, total, along, spread  # of these features, and sums over what they weigh
    cdef double[::1] free, until  # whether b_j is zero and may become another; cumulated weights of places
    cdef const double[::1] share, concentration, direction
    cdef Py_ssize_t[::1] scale_of, near
    cdef object generator
    cdef bitgen_t *random

    def __init__(
        self,
        Columns columns,
        shares,
        concentration,
        double freedom,
        double least,
        const double[::1] start,
        generator,
        direction=None,
    ):
        cdef Py_ssize_t j, d = columns.scale.shape[0], n_scales = len(shares)
        if start.shape[0] != d or n_scales < 6 or len(concentration) != n_scales + 1:
            raise ValueError("the first model, the scales or the prior have the wrong shape")
        self.columns, self.share, self.concentration = columns, shares, concentration
        self.direction = np.zeros(d) if direction is None else direction
        if self.direction.shape[0] != d:
            raise ValueError("the direction has the wrong shape")
        self.freedom, self.least, self.generator = freedom, least, generator
        self.random = <bitgen_t *> PyCapsule_GetPointer(generator.bit_generator.capsule, "BitGenerator")
        self.coef, self.left, self.origin = np.zeros(d), columns.products.copy(), np.zeros(d, np.intp)
        self.mean, self.square, self.inclusion = np.zeros(d), np.zeros(d), np.zeros(d)
        self.drawn, self.drawn_left = np.zeros(d), np.zeros(d)
        self.b, self.r, self.scale_of = self.coef, self.left, self.origin
        self.sum_mean, self.sum_square, self.sum_inclusion = self.mean, self.square, self.inclusion
        self.sum_b, self.sum_r = self.drawn, self.drawn_left
        self.weight, self.in_use = np.empty(n_scales + 1), np.zeros(n_scales + 1)
        self.term = np.empty(LANES * (n_scales + 1))
        self.in_use[0] = d
        self.free, self.until, self.near = np.sign(columns.scale), np.empty(d), np.empty(d, np.intp)
        for j in range(d):
            if start[j] != 0.0 and columns.scale[j] > 0.0:
                self._put(j, n_scales, start[j])
        self.variance = self._residual() / max(freedom - (d - self.in_use[0]), 1.0)

    def run(self, Py_ssize_t n_sweeps, Py_ssize_t n_moves, bint count):
        """Go on for some sweeps over all features, each followed by some changes of place.

        A sweep draws the shares pi of zeros and of all scales given how many b_j come from them, every b_j given all
        others, some places, and sigma^2 given b. `count` says whether draws are added to the sums.
        """
        cdef Py_ssize_t sweep, j, i, n_active, d = self.b.shape[0]
        with self.generator.bit_generator.lock, nogil:
            for sweep in range(n_sweeps):
                self._draw_shares()
                self._sweep(count)
                n_active = d - <Py_ssize_t> self.in_use[0]
                for i in range(n_moves if n_active > 0 else 0):
                    # Any one of them with the same probability, so that a move is as likely to be tried as its reverse.
                    j = self._active(<Py_ssize_t> (random_standard_uniform(self.random) * n_active))
                    self._move(j)
                self._draw_variance()
                if count:
                    self._count()

    cdef void _draw_shares(self) noexcept nogil:
        """pi ~ Dirichlet(concentration + how many come from each), times the root of 1 - share.

        The probability that b_j is zero falls with u. So it is at least `surely_zero` for u up to LIKELY_ZERO.
        """
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.weight.shape[0]):
            self.weight[k] = random_standard_gamma(self.random, self.concentration[k] + self.in_use[k])
            total += self.weight[k]
        self.weight[0] /= total
        for k in range(1, self.weight.shape[0]):
            self.weight[k] *= sqrt(1.0 - self.share[k - 1]) / total
        self.z[0] = sqrt(LIKELY_ZERO)
        self._weigh(1.0)
        self.surely_zero = self.term[0] / self.total[0] * (1.0 - 1e-12)

    cdef void _draw_variance(self) noexcept nogil:
        """sigma^2 ~ (RSS + sum b_j^2 / tau_j^2) / chi^2, with as many degrees of freedom as there are terms."""
        cdef Py_ssize_t j, d = self.b.shape[0]
        cdef double n = self.columns.weight, total = 0.0, share
        for j in range(d):
            if self.scale_of[j] > 0:
                share = self.share[self.scale_of[j] - 1]
                total += self.b[j] * self.b[j] * ((1.0 - share) / share)
        total = n * total + self._residual()
        self.variance = total / (2.0 * random_standard_gamma(self.random, 0.5 * (self.freedom + d - self.in_use[0])))

    cdef double _residual(self) noexcept nogil:
        """The sum of squares of y - X b, which is y'y - b'c - b'r."""
        cdef Py_ssize_t d = self.b.shape[0]
        cdef double along = dot(&self.b[0], &self.columns.c[0], d) + dot(&self.b[0], &self.r[0], d)
        return max(self.columns.weight - along, self.least)

    cdef void _count(self) noexcept nogil:
        """Add this draw to the sums."""
        cdef Py_ssize_t d = self.b.shape[0]
        cdef double value, change
        self.n_draws += 1
        add_multiple(1.0, &self.b[0], &self.sum_b[0], d)
        add_multiple(1.0, &self.r[0], &self.sum_r[0], d)
        self.explained += dot(&self.b[0], &self.columns.c[0], d) - dot(&self.b[0], &self.r[0], d)
        self.noise += self.variance
        value = dot(&self.b[0], &self.direction[0], d)
        change = value - self.level
        self.level += change / self.n_draws
        self.swing += change * (value - self.level)

    cdef void _put(self, Py_ssize_t j, Py_ssize_t k, double value) noexcept nogil:
        """Let b_j be `value`, which comes from scale k."""
        self.in_use[self.scale_of[j]] -= 1.0
        self.in_use[k] += 1.0
        self.scale_of[j] = k
        self.free[j] = 1.0 if k == 0 else 0.0
        if value != self.b[j]:
            add_multiple(self.b[j] - value, self.columns.column(j), &self.r[0], self.b.shape[0])
            self.b[j] = value

    cdef void _put_drawn(self, Py_ssize_t j, Py_ssize_t k, double z) noexcept nogil:
        """Draw b_j given its scale: normal with mean share z and variance sigma^2 share / n."""
        cdef double share = self.share[k - 1]
        cdef double spread = sqrt(self.variance * share / self.columns.weight)
        self._put(j, k, share * z + spread * random_standard_normal(self.random))

    cdef void _sweep(self, bint count) noexcept nogil:
        """Draw every b_j given all others: z = r_j / n + b_j is normal about b_j with variance sigma^2 / n."""
        cdef Py_ssize_t j = 0, i, stop, d = self.b.shape[0]
        cdef const double *r = &self.r[0]
        cdef const double *b = &self.b[0]
        cdef const double *scale = &self.columns.scale[0]
        cdef double per_row = 1.0 / self.columns.weight, rate = 0.5 * self.columns.weight / self.variance, z, uniform
        if count:
            while j < d:
                i, stop = j, min(j + LANES, d)
                for i in range(j, stop):
                    self.z[i - j] = r[i] * per_row + b[i]
                self._weigh(rate)
                for i in range(j, stop):
                    if scale[i] > 0.0:
                        self._count_given(i, i - j)
                        if self._draw(i, i - j, random_standard_uniform(self.random)):
                            break  # r has changed, so the others are weighed again
                j = i + 1
        else:
            for j in range(d):
                if scale[j] > 0.0:
                    z = r[j] * per_row + b[j]
                    uniform = random_standard_uniform(self.random)
                    if z * z * rate > LIKELY_ZERO or uniform >= self.surely_zero:
                        self.z[0] = z
                        self._weigh(rate)
                        self._draw(j, 0, uniform)
                    elif self.scale_of[j] > 0:
                        self._put(j, 0, 0.0)

    cdef void _weigh(self, double rate) noexcept nogil:
        """What zero and each scale weigh, for several z at once.

        With u = n z^2 / (2 sigma^2) they weigh weight_k exp(u share_k), but for a factor weight_k exp(-u (1 - share_k)).
        """
        cdef Py_ssize_t k, i, last = self.share.shape[0]
        cdef double *term = self._exponentials(rate)
        cdef double *total = &self.total[0]
        cdef double *along = &self.along[0]
        cdef double *spread = &self.spread[0]
        cdef double weight, share, part
        for i in range(LANES):
            total[i], along[i], spread[i] = 0.0, 0.0, 0.0
        for k in range(last + 1):
            weight, share = self.weight[k], self.share[k - 1] if k > 0 else 0.0
            for i in range(LANES):
                term[i] *= weight
                part = term[i] * share
                total[i] += term[i]
                along[i] += part
                spread[i] += part * share
            term += LANES
        for i in range(LANES):
            if not total[i] > 0.0:  # beyond all scales
                total[i] = along[i] = spread[i] = self.term[LANES * last + i] = 1.0

    cdef double *_exponentials(self, double rate) noexcept nogil:
        """exp(-u (1 - share)) of zero, whose share is 0, and of all scales, for several u at once."""
        cdef Py_ssize_t k, i, last = self.share.shape[0]
        cdef double *term = &self.term[0]
        cdef double *power = term + LANES * last
        cdef double *sixteenth = term + LANES * 6
        cdef double rest = 1.0 - self.share[last - 1]
        cdef double half
        for i in range(LANES):
            power[i] = exp(-(self.z[i] * self.z[i] * rate) * rest)
        for k in range(last - 1, 4, -1):
            for i in range(LANES):
                half = power[i] * power[i]
                power[i - LANES] = half * half
            power -= LANES
        for i in range(LANES):  # now power is exp(-u / 4)
            half = power[i] * power[i]
            term[4 * LANES + i] = half
            term[3 * LANES + i] = half * power[i]
            term[2 * LANES + i] = half * power[i] * (sixteenth[i] * sixteenth[i])
            term[LANES + i] = half * power[i] * (sixteenth[i] * sixteenth[i]) * sixteenth[i]
            term[i] = half * half
        return term

    cdef void _count_given(self, Py_ssize_t j, Py_ssize_t lane) noexcept nogil:
        """Add to the sums what b_j is given all others."""
        cdef double z = self.z[lane], per = 1.0 / self.total[lane]
        self.sum_inclusion[j] += 1.0 - self.term[lane] * per
        self.sum_mean[j] += z * (self.along[lane] * per)
        self.sum_square[j] += (z * z * self.spread[lane] + self.variance / self.columns.weight * self.along[lane]) * per

    cdef bint _draw(self, Py_ssize_t j, Py_ssize_t lane, double uniform) noexcept nogil:
        """Draw b_j from what was weighed; whether it has changed."""
        cdef Py_ssize_t k = 0, last = self.share.shape[0]
        cdef double left = uniform * self.total[lane] - self.term[lane]
        while left >= 0.0 and k < last:
            k += 1
            left -= self.term[LANES * k + lane]
        if k > 0:
            self._put_drawn(j, k, self.z[lane])
        elif self.scale_of[j] > 0:
            self._put(j, 0, 0.0)
        else:
            return False
        return True

    cdef Py_ssize_t _active(self, Py_ssize_t rank) noexcept nogil:
        """The feature of this rank, from 0, among those that are not zero."""
        cdef Py_ssize_t j
        for j in range(self.b.shape[0]):
            if self.scale_of[j] > 0:
                if rank == 0:
                    return j
                rank -= 1
        return 0

    cdef void _move(self, Py_ssize_t j) noexcept nogil:
        """Draw the place of b_j again, among its own and those of all zeros: similar columns change places.

        Given its scale and all other coefficients, place i has probability proportional to
        exp(n z_i^2 share / (2 sigma^2)), with z_i = r_i / n once b_j is zero.
        """
        cdef Py_ssize_t i, n_near = 0, k = self.scale_of[j], d = self.b.shape[0]
        cdef double top, least, rate, value, total = 0.0
        cdef const double *r = &self.r[0]
        cdef const double *free = &self.free[0]
        self._put(j, 0, 0.0)
        self.near[0] = j  # where it goes if there is no other, as r is not finite
        top = largest_square(free, r, d)
        rate = self.share[k - 1] / (2.0 * self.columns.weight * self.variance)
        least = top - FAR / rate
        for i in range(d):
            value = r[i] * r[i]
            if value >= least and free[i] > 0.0:
                total += exp(rate * (value - top))
                self.near[n_near], self.until[n_near] = i, total
                n_near += 1
        total *= random_standard_uniform(self.random)
        i = 0
        while i + 1 < n_near and self.until[i] <= total:
            i += 1
        i = self.near[i]
        self._put_drawn(i, k, r[i] / self.columns.weight)
