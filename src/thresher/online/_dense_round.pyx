"""Rounds of hard-thresholding steps on a dense estimate: a matrix of low rank, or whole groups of features."""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt
from libc.string cimport memcpy, memset

from thresher._utils.reductions cimport dot
from thresher.online._dense_gradient cimport DenseGradient
from thresher.online._step cimport Measure
from thresher.online._step_grid cimport GROWTH, N_POWER, ROUNDING, SHRINK, STABLE, n_taken, on_grid
from thresher.online._subspace cimport FEW_ITERATIONS, SLOW, Triplets, decompose, follow, keep_tangent, multiply_out
from thresher.online._ties cimport largest_magnitude, nth_largest, tie_band

from thresher.io.schema import Array, Count, Dict, Is, Number, Schema

# A move of less than the root of rounding, relatively, changes the loss by less than rounding.
cdef double UNFELT = 1e-8
# What is counted: steps; projections without a full decomposition; gradients computed again; steps after which the loss
# was higher; steps not taken because they overflow; certified steps that were shortened.
TALLIES = ("steps", "followed", "refreshed", "rises", "overflows", "shortened")


def _is_consistent(round):
    """Whether every feature has a group, or the estimate is a matrix."""
    p, groups, triplets = len(round.gradient.theta), round.groups, round.triplets
    if len(round.mode) != p or round.gradient.by_groups != (triplets is None):
        return False
    if triplets is None:
        return len(groups) == p and groups.max() < round.n_groups <= p
    return triplets.left.shape[1] * triplets.right.shape[1] == p and not len(groups) and not round.n_groups


cdef class DenseRound:
    """Everything that rounds on one Gram work on.

    A step of zero asks for the certified step: one over the largest curvature tangent to the set, shortened until
    eta <= |move|^2 / (move' G move). That is the descent lemma's condition, so the loss does not rise.

    Parameters
    ----------
    gradient : DenseGradient
    triplets : Triplets or None
        Room for the singular vectors of the estimate, if it is a matrix.
    groups : array of int
        The group of each feature, if it is not a matrix.
    n_groups, n_kept : int
        How many groups there are, and how many are kept.
    """

    _schema = Schema(
        _is_consistent,
        gradient=Is(DenseGradient),
        triplets=Is(Triplets) | None,
        groups=Array("grouped", dtype="i8", least=0),
        n_groups=Count(),
        n_kept=Count(1),
        mode=Array("p"),
        stiffness=Number(0.0, INFINITY),
        weight_then=Number(least=0.0),
        intercept=Number(),
        last_step=Number(least=0.0),
        tallies=Dict(Count(), TALLIES),
    )

    cdef readonly DenseGradient at
    cdef Triplets triplets
    cdef Py_ssize_t[::1] groups  # (p,)
    cdef Py_ssize_t n_groups, n_kept
    cdef double[::1] mode  # (p,): the direction of largest curvature found so far, in the metric
    # The curvature that steps are made for, and the weight of the rows when it was estimated
    cdef double stiffness, weight_then
    cdef public double intercept, last_step
    cdef public Py_ssize_t steps, followed, refreshed, rises, overflows, shortened
    # To work on
    cdef double[::1] target, projected  # (p,), in the metric
    cdef double[::1] norms, ranked  # (n_groups,)
    cdef Py_ssize_t[::1] chosen  # (n_groups,)

    def __init__(self, DenseGradient gradient not None, Triplets triplets, groups, n_groups, n_kept):
        self.at, self.triplets = gradient, triplets
        self.mode = np.zeros(len(gradient.theta))
        groups = np.ascontiguousarray(groups, np.intp)
        if n_kept < 1 or (
            len(groups) != len(self.mode) or not 0 <= groups.min() <= groups.max() < n_groups
            if triplets is None
            else triplets.shape[0] * triplets.shape[1] != len(self.mode)
        ):
            raise ValueError("The pieces of the round do not fit.")
        self._set_groups(groups, n_groups, n_kept)

    def _set_groups(self, groups, Py_ssize_t n_groups, Py_ssize_t n_kept):
        """Make the arrays that every round fills."""
        cdef Py_ssize_t p = len(self.at.theta)
        self.groups, self.n_groups, self.n_kept = groups, n_groups, n_kept
        self.target, self.projected = np.zeros((2, p))
        self.norms, self.ranked = np.zeros((2, n_groups if self.at.by_groups else 0))
        self.chosen = np.zeros(len(self.norms), np.intp)

    def __getstate__(self):
        return {
            "gradient": self.at,
            "triplets": self.triplets,
            "groups": np.asarray(self.groups),
            "n_groups": self.n_groups,
            "n_kept": self.n_kept,
            "mode": np.asarray(self.mode),
            "stiffness": self.stiffness,
            "weight_then": self.weight_then,
            "intercept": self.intercept,
            "last_step": self.last_step,
            "tallies": self.tallies,
        }

    def __setstate__(self, state):
        self.at, self.triplets, self.mode = <DenseGradient?> state["gradient"], state["triplets"], state["mode"]
        self.stiffness, self.weight_then = state["stiffness"], state["weight_then"]
        self.intercept, self.last_step, self.tallies = state["intercept"], state["last_step"], state["tallies"]
        self._set_groups(state["groups"], state["n_groups"], state["n_kept"])

    @property
    def coef(self):
        """The estimate, a live view."""
        return np.asarray(self.at.theta)

    @property
    def sums(self):
        """The running sums of the rows."""
        return self.at.sums

    @property
    def tallies(self):
        """How the steps went."""
        return dict(zip(TALLIES, (getattr(self, name) for name in TALLIES)))

    @tallies.setter
    def tallies(self, counts):
        for name in TALLIES:
            setattr(self, name, counts[name])

    # -- rows in, estimates out ------------------------------------------------------------------------

    def begin(self, summary, X=None, y=None, weights=None):
        """Look at the arrays of a summary, for rows that its buffer has room for, if any."""
        self.at.begin(summary, X, y, weights)

    def run_rows(
        self,
        const double[:, ::1] X,
        const double[::1] y,
        weights,
        const double[:, ::1] steps,
        Py_ssize_t n_warmup,
        Py_ssize_t round_size,
        Py_ssize_t n_pending,
        bint started,
    ):
        """Absorb rows, with a round after every `round_size` of them past the warm-up.

        `steps` has a row of K step sizes for each round that falls in this block, one row for all, or none if there is
        no round. `started` says whether there were rounds before. Returns how many rounds there were, and how
        many rows wait for the next.
        """
        cdef const double[::1] w = y if weights is None else weights
        cdef Py_ssize_t i, n_rounds = 0
        cdef bint weighted = weights is not None
        self.at.sums.check_rows(X, y, w)
        with nogil:
            for i in range(X.shape[0]):
                self.at.sums.add_row(&X[i, 0], y[i], w[i] if weighted else 1.0)
                self.at.follow_row()
                if self.at.sums.n_samples > n_warmup:
                    n_pending += 1
                    if n_pending >= round_size and steps.shape[0] > 0:
                        self.run(&steps[min(n_rounds, steps.shape[0] - 1), 0], steps.shape[1])
                        self.fill_intercept()
                        n_rounds += 1
                        n_pending = 0
                elif not started:
                    self.fill_intercept()  # the mean
        return n_rounds, n_pending

    def run_round(self, const double[::1] steps):
        """One round on the rows absorbed so far, with these K steps."""
        with nogil:
            self.run(&steps[0], steps.shape[0])
            self.fill_intercept()

    cdef void fill_intercept(self) noexcept nogil:
        if self.at.centred and self.at.sums.weight > 0.0:
            self.intercept = self.at.intercept()

    # -- piece by piece, for rounds that share their products ------------------------------------------

    def absorb_row(self, const double[::1] x, double y):
        """Absorb a row, and make ready for steps."""
        if x.shape[0] != self.mode.shape[0] or self.at.sums.n_buffered >= self.at.sums.buffer.shape[0]:
            raise ValueError("The row has another number of features, or the buffer is full.")
        self.at.sums.add_row(&x[0], y, 1.0)
        self.at.follow_row()
        self.at.fill_units()

    def propose_move(self, double eta):
        """The move that a step of this size makes, or None if it overflows."""
        self.find_gradient()
        return np.asarray(self.at.move) if self.propose(eta) else None

    def take_move(self, double eta, product):
        """Take the step that was proposed, given the product of the second moments with its move."""
        np.asarray(self.at.product)[:] = product
        cdef Measure effect = self.at.measure()
        if not self.overflowed(effect):
            self.accept(eta, effect, False)

    # -- a round ---------------------------------------------------------------------------------------

    cdef void run(self, const double *steps, Py_ssize_t n_steps) noexcept nogil:
        """One round: Algorithm 1, lines 4 to 6."""
        cdef Py_ssize_t k
        cdef double eta, weight = self.at.sums.weight
        cdef bint automatic
        cdef Measure effect
        if weight == 0.0:
            return
        self.at.fill_units()
        for k in range(n_taken(steps, n_steps)):
            self.find_gradient()
            eta, automatic = steps[k], steps[k] == 0.0
            if automatic:
                if not weight < GROWTH * self.weight_then:
                    self.estimate_stiffness()
                if self.stiffness == 0.0:
                    self.weight_then = 0.0
                    break  # nothing pulls, or nothing bends
                # For groups the longest stable step, which exchanges them most easily, at the price of a second product
                # when it is rejected.
                eta = on_grid((STABLE if self.at.by_groups else 1.0) / self.stiffness)
            while self.propose(eta):
                self.at.fill_product()
                effect = self.at.measure()
                if self.overflowed(effect):
                    break
                if automatic and eta * effect.bend > effect.length * (1.0 + ROUNDING):
                    eta = on_grid(min(SHRINK * eta, effect.length / effect.bend))
                    if eta * self.stiffness < 1.0:  # it was underestimated: look again in the next step
                        self.stiffness, self.weight_then = 1.0 / eta, 0.0
                    self.shortened += 1
                    continue
                self.accept(eta, effect, automatic)
                break

    cdef void find_gradient(self) noexcept nogil:
        self.refreshed += self.at.find()

    cdef bint overflowed(self, Measure effect) noexcept nogil:
        """Whether a step would overflow, and is not taken."""
        cdef bint beyond = not fabs(effect.slope) + effect.bend < INFINITY
        self.overflows += beyond
        return beyond

    cdef bint aim(self, double eta) noexcept nogil:
        """target = theta - eta g in the metric. False if that overflows."""
        cdef Py_ssize_t i, p = self.mode.shape[0]
        cdef double *target = &self.target[0]
        cdef const double *theta = &self.at.theta[0]
        cdef const double *gradient = &self.at.gradient[0]
        cdef const double *root = &self.at.root[0]
        cdef const double *unit = &self.at.unit[0]
        for i in range(p):
            target[i] = root[i] * theta[i] - eta * (unit[i] * gradient[i])
        return dot(target, target, p) < INFINITY

    cdef bint propose(self, double eta) noexcept nogil:
        """Where a step of that size leads, and the move there. False if that overflows."""
        cdef Py_ssize_t i
        if not self.aim(eta):
            self.overflows += 1
            return False
        self.followed += self.project()
        for i in range(self.mode.shape[0]):
            self.at.move[i] = self.at.unit[i] * self.projected[i] - self.at.theta[i]
        return True

    cdef void accept(self, double eta, Measure effect, bint automatic) noexcept nogil:
        """Take the step that was proposed and measured."""
        cdef Py_ssize_t i
        cdef bint felt = effect.length > UNFELT * (UNFELT * self.at.size())
        self.rises += not automatic and felt and effect.slope + 0.5 * effect.bend > 1e-9 * fabs(effect.slope)
        for i in range(self.mode.shape[0]):
            self.at.theta[i] = self.at.unit[i] * self.projected[i]
        self.at.apply(effect.length)
        self.last_step = eta
        self.steps += 1

    cdef void estimate_stiffness(self) noexcept nogil:
        """The largest curvature of the loss tangent to the set, by power iteration from the last estimate.

        Too small an estimate is harmless: steps are certified, and below twice the true inverse they are stable.
        """
        cdef Py_ssize_t i, p = self.mode.shape[0]
        cdef double *mode = &self.mode[0]
        cdef double *move = &self.at.move[0]
        cdef const double *unit = &self.at.unit[0]
        cdef const double *gradient = &self.at.gradient[0]
        cdef const double *sum_x = &self.at.sums.sum_x[0]
        cdef const double *shift = &self.at.sums.shift_x[0]
        cdef double pull = 0.0, last = largest_magnitude(mode, p), largest = 0.0, size, slope
        cdef bint at_zero = self.at.size() == 0.0
        cdef int _
        if not self.aim(0.0):
            return
        for i in range(p):
            pull = max(pull, fabs(unit[i] * gradient[i]))
        for i in range(p):
            if last > 0.0:
                mode[i] /= last
            if pull > 0.0:
                slope = (unit[i] * gradient[i]) / pull
                mode[i] += slope  # what pulls now must not be orthogonal to the start
                if at_zero:  # the directions that the gradient opens
                    self.target[i] = slope
        self.project()
        for _ in range(N_POWER):
            self.restrict(mode)
            size = largest_magnitude(mode, p)
            if not 0.0 < size < INFINITY:
                memset(mode, 0, p * sizeof(double))
                break
            for i in range(p):
                mode[i] /= size  # so that squares stay in range
            size = sqrt(dot(mode, mode, p))
            for i in range(p):
                mode[i] /= size
                move[i] = unit[i] * mode[i]
            self.at.fill_product()
            largest = max(largest, self.at.measure().bend)
            self.at.write(&self.at.product[0], dot(sum_x, move, p), dot(shift, move, p), mode)
            for i in range(p):
                mode[i] *= unit[i]
        self.stiffness, self.weight_then = largest, self.at.sums.weight

    # -- the set ---------------------------------------------------------------------------------------

    cdef bint project(self) noexcept nogil:
        """projected = the projection of the target, which must be finite. True if it took no full decomposition."""
        cdef Py_ssize_t i
        cdef bint cheap
        cdef double *target = &self.target[0]
        if self.at.by_groups:
            self.choose_groups()
            for i in range(self.mode.shape[0]):
                self.projected[i] = target[i] if self.chosen[self.groups[i]] else 0.0
            return True
        if self.triplets.is_whole():
            memcpy(&self.projected[0], target, self.mode.shape[0] * sizeof(double))
            return True
        cheap = self.triplets.warm and follow(self.triplets, target, INFINITY, FEW_ITERATIONS, SLOW)
        if not cheap:
            self.triplets.warm = decompose(self.triplets, target)
        multiply_out(self.triplets, &self.projected[0])
        return cheap

    cdef void choose_groups(self) noexcept nogil:
        """Mark the groups of the target with the largest norms; ties go to the first."""
        cdef Py_ssize_t i, g, room = self.n_kept
        cdef double cut, band, largest = 0.0
        for g in range(self.n_groups):
            self.norms[g] = 0.0
        for i in range(self.mode.shape[0]):
            self.norms[self.groups[i]] += self.target[i] * self.target[i]
        for g in range(self.n_groups):
            self.norms[g] = self.ranked[g] = sqrt(self.norms[g])
            self.chosen[g] = self.n_kept >= self.n_groups
            largest = max(largest, self.norms[g])
        if self.n_kept >= self.n_groups:
            return
        cut = nth_largest(&self.ranked[0], self.n_groups, self.n_kept)
        band = tie_band(cut, largest)
        for g in range(self.n_groups):
            self.chosen[g] = self.norms[g] > cut + band
            room -= self.chosen[g]
        for g in range(self.n_groups):
            if room > 0 and not self.chosen[g] and self.norms[g] >= cut - band:
                self.chosen[g] = 1
                room -= 1

    cdef void restrict(self, double *vector) noexcept nogil:
        """Leave of a vector what is tangent to the set at the last projected point: for groups, the kept ones."""
        cdef Py_ssize_t i
        if not self.at.by_groups:
            keep_tangent(self.triplets, vector)
            return
        for i in range(self.mode.shape[0]):
            if not self.chosen[self.groups[i]]:
                vector[i] = 0.0
