"""Rounds of thresholding steps on a Gram, at a cost that depends on s rather than on d.

The gradient is known exactly on the working set, and the certificate proves that nothing outside is chosen. There is a
round for each rule: the paper's step; the same followed by least squares on the support; reciprocal thresholding.
"""

import numpy as np

from libc.math cimport INFINITY, fabs, sqrt

from thresher.online._certificate cimport QUIET, TOO_MANY, Certificate, Found
from thresher.online._factor cimport Factor
from thresher.online._leap cimport leap
from thresher.online._running cimport RunningSums
from thresher.online._step cimport (
    Aim,
    Measure,
    aim,
    choose,
    fill_direction,
    fill_gradient,
    gather,
    is_perfect,
    measure_any,
    measure_change,
    resting_step,
    shrink,
    stiffness,
)
from thresher.online._step_grid cimport RESTING, ROUNDING, SHRINK, STABLE, n_taken, on_grid
from thresher.online._ties cimport tie_band
from thresher.online._working_set cimport WorkingSet

from thresher.io.schema import Array, Count, Dict, Is, Number, Schema, Text

# The bounds of the certificate shrink as rows come in: after this many rows they are tightened even where they hold.
cdef Py_ssize_t ROWS_PER_SCAN = 16
# With fewer steps there is nothing to save by a leap.
cdef Py_ssize_t FEWEST_TO_LEAP = 8
# A step of reciprocal thresholding is halved at most so often.
cdef int MOST_HALVINGS = 10
# From this many rows per round on, it is cheaper to build the working set again than to keep it up to date row by row.
cdef Py_ssize_t LONG_ROUND = 64

cdef enum Rule:
    HARD
    PURSUIT
    RECIPROCAL

RULES = ("hard", "pursuit", "reciprocal")
# What is counted: steps; those without any work of order d s; moved references; steps after which the loss was higher;
# steps not taken because they overflow; rounds that were one leap.
TALLIES = ("steps", "certified", "moved_references", "rises", "overflows", "leaps")


def _is_consistent(round):
    """Whether the pieces are of the same features, and the estimate is that of the working set, unless that is stale."""
    work, factor, coef = round.certificate.work, round.factor, round.coef
    pursuing = round.rule == "pursuit"
    if len(coef) != len(work.outside) or len(factor.place) != pursuing * len(coef):
        return False
    if len(factor.members) != pursuing * len(work.features):
        return False
    if factor.centred != round.certificate.centred or np.count_nonzero(coef) > round.certificate.sparsity:
        return False
    support = work.features[: work.n_kept]
    elsewhere = coef.copy()
    elsewhere[support] = 0.0
    return work.stale or (np.array_equal(coef[support], work.theta[: work.n_kept]) and not elsewhere.any())


cdef class SparseRound:
    """Everything that rounds on one Gram work on.

    A step of zero asks for the certified step: the minimiser of the loss along the gradient on the support, as in
    normalised iterative hard thresholding, shrunk until eta <= |move|^2 / (move' G move). That is the descent lemma's
    condition, so the loss does not rise.
    """

    _schema = Schema(
        _is_consistent,
        certificate=Is(Certificate),
        factor=Is(Factor),
        coef=Array("d"),
        rule=Text(*RULES),
        intercept=Number(),
        last_step=Number(least=0.0),
        tallies=Dict(Count(), TALLIES),
    )

    cdef readonly RunningSums sums
    cdef readonly WorkingSet work
    cdef readonly Certificate certificate
    cdef Factor factor
    cdef int rule
    cdef double[::1] _coef
    cdef public double intercept, last_step
    cdef public Py_ssize_t steps, certified, moved_references, rises, overflows, leaps
    # Within a round: the slack of the certificate, negative while the gradient is not known, and whether that is only
    # a bound; the largest step worth trying; a bound on the eigenvalues on the support, negative while not known
    cdef double slack, ceiling, stiff
    cdef bint loose
    # Within a step: the gradient's slope and bend on the support; what the step does; whether it changes the support;
    # whether it took no work of order d s; whether the working set was filled for a whole new support
    cdef Measure direction, effect
    cdef bint changed, cheap, again, exhausted

    def __init__(self, n_features, block, capacity, sparsity, centred, standardized, bound_scale, rule):
        cdef bint pursuing = rule == "pursuit"
        self.sums, self.work = RunningSums(n_features), WorkingSet(n_features, capacity, block)
        self.factor = Factor(n_features if pursuing else 0, capacity if pursuing else 0, centred)
        self.certificate = Certificate(self.sums, self.work, sparsity, centred, standardized, bound_scale)
        self.rule, self._coef = RULES.index(rule), np.zeros(n_features)

    def __getstate__(self):
        return {
            "certificate": self.certificate,
            "factor": self.factor,
            "coef": self.coef,
            "rule": RULES[self.rule],
            "intercept": self.intercept,
            "last_step": self.last_step,
            "tallies": self.tallies,
        }

    def __setstate__(self, state):
        self.certificate, self.factor = <Certificate?> state["certificate"], <Factor?> state["factor"]  # not None
        self._coef = state["coef"]
        self.rule, self.intercept, self.last_step = RULES.index(state["rule"]), state["intercept"], state["last_step"]
        self.tallies = state["tallies"]
        self.sums, self.work = self.certificate.sums, self.certificate.work

    def check_support(self):
        """Make sure that the working set has room for the estimate."""
        if np.count_nonzero(self._coef) > max(self.certificate.sparsity, 0):
            raise ValueError("The estimate has more features than the sparsity.")

    @property
    def coef(self):
        """The estimate, a live view."""
        return np.asarray(self._coef)

    @property
    def tallies(self):
        """How the steps went."""
        return dict(zip(TALLIES, (getattr(self, name) for name in TALLIES)))

    @tallies.setter
    def tallies(self, counts):
        for name in TALLIES:
            setattr(self, name, counts[name])

    def begin(self, summary, X=None, y=None, weights=None):
        """Look at the arrays of a summary, for rows that its buffer has room for, if any."""
        if y is None:
            self.sums.attach(summary)
        else:
            self.sums.begin(summary, X, y, weights)
        if self.sums.buffer.shape[0] > self.work.rows.shape[0]:
            raise ValueError("The rounds are of another summary.")

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
        self.sums.check_rows(X, y, w)
        with nogil:
            for i in range(X.shape[0]):
                self.sums.add_row(&X[i, 0], y[i], w[i] if weighted else 1.0)
                if not self.work.stale:
                    self.work.follow_row(self.sums)
                    if self.rule == PURSUIT:
                        self.factor.add_row(self.sums)
                if self.sums.n_samples > n_warmup:
                    n_pending += 1
                    if n_pending >= round_size and steps.shape[0] > 0:
                        self.run(&steps[min(n_rounds, steps.shape[0] - 1), 0], steps.shape[1])
                        self.fill_intercept(self.work.n_kept)
                        n_rounds += 1
                        n_pending = 0
                        if round_size >= LONG_ROUND:
                            self.work.stale = True
                elif not started:
                    self.fill_intercept(0)  # the mean
        return n_rounds, n_pending

    def run_round(self, const double[::1] steps):
        """One round on the rows absorbed so far, with these K steps."""
        with nogil:
            self.run(&steps[0], steps.shape[0])
            self.fill_intercept(self.work.n_kept)

    cdef void run(self, const double *steps, Py_ssize_t n_steps) noexcept nogil:
        """One round: Algorithm 1, lines 4 to 6."""
        cdef Py_ssize_t k
        cdef bint fresh = self.work.stale or self.work.n_kept == 0
        n_steps = n_taken(steps, n_steps)
        if self.sums.weight == 0.0 or self.certificate.sparsity == 0:
            return
        if fresh:
            self.certificate.rebase(&self._coef[0], False)
        self.gather()
        if (
            fresh
            or self.sums.n_buffered % ROWS_PER_SCAN == 0
            or not self.certificate.holds(self.certificate.reach, self.certificate.width)
        ):
            self.certificate.scan_outside()
        self.ceiling, self.stiff, self.slack, self.loose = INFINITY, -1.0, -1.0, False
        if self.rule == HARD:
            self.run_hard(steps, n_steps)
        elif self.rule == PURSUIT:
            self.run_pursuit(steps, n_steps, fresh)
        else:
            self.run_reciprocal(steps, n_steps)
        for k in range(self.work.n_kept):
            self._coef[self.work.features[k]] = self.work.theta[k]

    cdef void run_hard(self, const double *steps, Py_ssize_t n_steps) noexcept nogil:
        """The paper's round."""
        cdef Py_ssize_t k
        cdef double eta
        cdef bint equal = n_steps >= FEWEST_TO_LEAP
        for k in range(1, n_steps):
            equal &= steps[k] == steps[0]
        if equal and leap(self.certificate, steps[0], n_steps):
            self.steps += n_steps
            self.certified += n_steps
            self.leaps += 1
            self.last_step = steps[0]
            return
        self.slack = -1.0
        for k in range(n_steps):
            eta = self.find_step(steps[k], False)
            if eta > 0.0:
                self.count_step(eta)
                self.move(eta)

    cdef void run_pursuit(self, const double *steps, Py_ssize_t n_steps, bint fresh) noexcept nogil:
        """Theta is least squares on the support at the start and after each step that changes the support.

        A step that does not change it ends the round.
        """
        cdef Py_ssize_t k
        cdef double eta
        cdef bint fitted = self.work.n_kept > 0
        if fresh:
            self.factor.clear()
        if fitted:
            self.refit(fresh)
        for k in range(n_steps):
            if fitted:
                self.find_gradient()
                if is_perfect(self.work, self.sums, self.certificate.centred):
                    return
            eta = self.find_step(steps[k], fitted)
            if eta == 0.0:
                continue
            self.count_step(eta)
            if fitted and not self.changed:
                return
            self.move(eta)
            self.refit(False)
            fitted = True

    cdef void run_reciprocal(self, const double *steps, Py_ssize_t n_steps) noexcept nogil:
        """Reciprocal thresholding, which shrinks what is kept by an amount that vanishes for the large ones.

        The descent lemma does not cover it: a certified step is halved until the loss falls, and not taken if it does
        not.
        """
        cdef Py_ssize_t k
        cdef double eta
        for k in range(n_steps):
            eta = self.find_falling_step(steps[k])
            if eta > 0.0:
                self.count_step(eta)
                self.move(eta)

    cdef void gather(self) noexcept nogil:
        gather(self.work, self.sums, self.certificate.centred, self.certificate.standardized)

    cdef void refit(self, bint fresh) noexcept nogil:
        """Least squares on the support."""
        if self.factor.refit(self.sums, self.work, &self._coef[0], fresh):
            self.gather()
        self.stiff, self.slack = -1.0, -1.0

    cdef void find_gradient(self) noexcept nogil:
        """Find the gradient on the working set, if it is not known."""
        if self.slack < 0.0:
            self.slack, self.loose = fill_gradient(self.work, self.sums, self.certificate.centred), False

    cdef void look(self) noexcept nogil:
        """Find the gradient on the working set and the direction of the next step."""
        self.find_gradient()
        self.direction = fill_direction(self.work, self.sums, self.certificate.centred)

    cdef double first_try(self, bint at_rest) noexcept nogil:
        """The step that minimises the loss along the gradient on the support; another where that feels no pull."""
        cdef double eta = self.direction.slope / self.direction.bend if self.direction.bend > 0.0 else 0.0
        cdef bint centred = self.certificate.centred
        if self.stiff < 0.0:
            self.stiff = stiffness(self.work, self.sums, centred)
        if at_rest or eta * (eta * self.direction.slope) <= RESTING * (RESTING * self.direction.length):
            eta = resting_step(self.work, self.sums, self.certificate.sparsity, centred)
        if self.stiff > 0.0:
            eta = min(eta, STABLE / self.stiff)
        return min(on_grid(eta), self.ceiling)

    cdef double find_step(self, double given, bint at_rest) noexcept nogil:
        """The step to take, `given` or certified, with its targets and what they do to the loss; zero for none."""
        cdef double eta
        cdef bint rejected
        self.begin_step()
        while True:
            self.look()
            eta, rejected = given if given > 0.0 else self.first_try(at_rest), False
            while self.project(eta):
                if eta == 0.0:
                    return 0.0  # the gradient vanishes everywhere
                if self.changed:
                    self.effect = measure_change(self.work, self.sums, eta, self.certificate.centred)
                else:
                    self.effect.length = eta * (eta * self.direction.slope)
                    self.effect.slope = -eta * self.direction.slope
                    self.effect.bend = eta * (eta * self.direction.bend)
                if self.overflowed():
                    return 0.0
                if given > 0.0:
                    self.rises += self.effect.slope + 0.5 * self.effect.bend > 1e-9 * fabs(self.effect.slope)
                    return eta
                if eta * self.effect.bend <= self.effect.length * (1.0 + ROUNDING):
                    if rejected:  # the same exchange would be tried and rejected again within this round
                        self.ceiling = eta
                    return eta
                eta, rejected = on_grid(min(SHRINK * eta, self.effect.length / self.effect.bend)), True

    cdef double find_falling_step(self, double given) noexcept nogil:
        """As `find_step`, for reciprocal thresholding."""
        cdef double eta, gain
        cdef int n_halved
        self.begin_step()
        while True:
            self.look()
            eta, n_halved = given if given > 0.0 else self.first_try(False), 0
            while self.project(eta):
                if eta == 0.0:
                    return 0.0
                self.effect = measure_any(self.work, self.sums, self.certificate.centred)
                if self.overflowed():
                    return 0.0
                gain = -(self.effect.slope + 0.5 * self.effect.bend)
                if given > 0.0:
                    self.rises += -gain > 1e-9 * fabs(self.effect.slope)
                    return eta
                if gain > ROUNDING * (fabs(self.effect.slope) + self.effect.bend):
                    return eta
                if n_halved == MOST_HALVINGS:
                    return 0.0
                eta, n_halved = 0.5 * eta, n_halved + 1

    cdef void begin_step(self) noexcept nogil:
        self.cheap, self.exhausted = True, False
        self.again = self.certificate.bound_scale == INFINITY

    cdef bint overflowed(self) noexcept nogil:
        """Whether a step would overflow, and is not taken."""
        cdef bint beyond = not fabs(self.effect.slope) + self.effect.bend < INFINITY
        self.overflows += beyond
        return beyond

    cdef bint project(self, double eta) noexcept nogil:
        """Find where a step of size eta leads. False if it has to be looked for again, in a larger working set."""
        cdef Aim found = aim(self.work, eta)
        cdef double lowest = found.lowest, band = tie_band(found.lowest, found.largest), bound
        self.changed = (
            self.rule == RECIPROCAL
            or self.work.n_kept < min(self.certificate.sparsity, self.work.size)
            or not found.highest + band < lowest
        )
        if self.changed:
            lowest = choose(self.work, self.certificate.sparsity, found.largest)
            if self.rule == RECIPROCAL:
                lowest = shrink(self.work)  # which must be certain as well
            band = tie_band(lowest, found.largest)
        if self.exhausted or self.work.size == self.work.outside.shape[0]:
            return True
        lowest -= 2.0 * band
        bound = self.certificate.reach + self.certificate.width * self.slack
        if not bound > 0.0 or self.certificate.bound_scale * (eta * bound) < lowest:
            return True
        if self.loose:  # look again with the exact slack
            self.slack = -1.0
            return False
        return self.nothing_outside(lowest / eta if eta > 0.0 else 0.0)

    cdef bint nothing_outside(self, double limit) noexcept nogil:
        """Whether no feature outside pulls harder than `limit`; those that may are in the working set then."""
        cdef Found found = self.certificate.widen(&self._coef[0], self.slack, limit, self.again)
        if found == QUIET:
            return True
        if found == TOO_MANY:
            self.cheap, self.exhausted, self.again = False, self.again, True
            self.moved_references += 1
        self.gather()
        self.slack = -1.0
        return False

    cdef void count_step(self, double eta) noexcept nogil:
        self.last_step = eta
        self.steps += 1
        self.certified += self.cheap

    cdef void move(self, double eta) noexcept nogil:
        """Move to the targets of a step that was found."""
        cdef Py_ssize_t k
        cdef bint exchanged = False
        if not self.changed:
            for k in range(self.work.n_kept):
                self.work.theta[k] = self.work.target[k]
            for k in range(self.work.size):
                self.work.drift[k] -= eta * self.work.along[k]
                self.work.gradient[k] -= eta * self.work.bend[k]
            self.slack, self.loose = self.slack + eta * sqrt(self.direction.bend), True  # triangle inequality
            return
        for k in range(self.work.size):
            self.work.theta[k] = self.work.target[k] if self.work.chosen[k] else 0.0
            self.work.drift[k] += self.work.product[k]
            self._coef[self.work.features[k]] = self.work.theta[k]
            self.work.chosen[k] = self.work.theta[k] != 0.0
            exchanged |= self.work.chosen[k] != (k < self.work.n_kept)
        self.work.keep_chosen(self.sums.n_buffered)
        self.gather()
        self.stiff, self.slack = -1.0, -1.0
        if exchanged:
            self.ceiling = INFINITY

    cdef void fill_intercept(self, Py_ssize_t n_kept) noexcept nogil:
        """The intercept that minimises the loss, for an estimate on the first slots."""
        cdef Py_ssize_t j, k
        if not self.certificate.centred or self.sums.weight == 0.0:
            return
        self.intercept = self.sums.shift_y + self.sums.sum_y / self.sums.weight
        for k in range(n_kept):
            j = self.work.features[k]
            self.intercept -= (self.sums.shift_x[j] + self.sums.sum_x[j] / self.sums.weight) * self._coef[j]
