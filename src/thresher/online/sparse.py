"""Gram x Cardinality, compiled and lazily certified: the fast truth."""

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import padded
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.memory import require_bytes
from thresher.online import _sparse_round as sparse_round
from thresher.online import _sparse_stream as sparse_stream
from thresher.online._certificate import LAST_STEP, SPARE
from thresher.online._factor import Factor
from thresher.online._problem import HARD, PURSUIT, RECIPROCAL, Problem
from thresher.online._sparse_round import N_TALLIES
from thresher.online._step import N_SLOT_ROWS
from thresher.online._working_set import OUTSIDE, SIZE, STALE, WorkingSet
from thresher.online.progress import Progress
from thresher.online.running import RunningSums
from thresher.online.samples import Rows
from thresher.online.step_size import StepSize, step_table
from thresher.sparsity.cardinality import Cardinality
from thresher.summaries._shifted import block_sums
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]

# What is counted, in the order of the kernels' array.
TALLIES = ("steps", "certified", "moved_references", "rises", "overflows", "leaps")

RULES = {"hard": HARD, "pursuit": PURSUIT, "reciprocal": RECIPROCAL}


def _capacity(sparsity: int, n_features: int) -> int:
    """How many features a working set holds: whole vector registers of them."""
    return -(-min(2 * sparsity + SPARE, n_features) // 8) * 8


def _require_room(capacity: int, block: int, sparsity: int) -> None:
    """Raise MemoryError if a working set would not fit."""
    require_bytes(
        8 * capacity * (capacity + block), f"A working set for sparsity {sparsity}", "Use a smaller sparsity."
    )


def _load_zeros(work: WorkingSet, first: int, n_wanted: int) -> None:
    """Fill a working set up to `n_wanted` with columns from `first` on, all of them zero: rounds rely on its size."""
    start = int(work.counts[SIZE])
    loaded = slice(start, min(n_wanted, start + work.wide.shape[1] - first))
    n = max(loaded.stop - start, 0)
    for array in (work.slots, work.local, work.local.T, work.rows):
        array[:, loaded] = 0.0  # features that were there before may have left something
    work.features[loaded] = np.arange(first, first + n)
    work.wide[OUTSIDE, first : first + n] = 0.0
    work.counts[SIZE] = start + n


class SparseRounds(Progress):
    """Online hard thresholding of a Gram: the iterates of `reference.run_round`, at the speed of the Gram.

    A round costs O(d + K s^2) while the certificate holds, which is nearly always, and O(d s) more for each step
    where it does not; folding the row into the Gram costs d^2 and dominates. Memory beyond the Gram is O(d + s^2).

    Parameters
    ----------
    gram : Gram
        The summary, which this object fills.
    sparsity : int
        The s of P_s, at most the number of features. Zero keeps nothing.
    centred, standardized : bool
        Second moments about the mean, and steps in units of the column scales.
    bound_scale : float
        Multiplies the certificate's bound: infinity looks at all features in every step.
    rule : {"hard", "pursuit", "reciprocal"}
        How the estimate moves: the paper's step; the same followed by least squares on the support; reciprocal
        thresholding.
    """

    def __init__(
        self,
        gram: Gram,
        sparsity: int,
        centred: bool,
        standardized: bool,
        bound_scale: float = 1.0,
        rule: str = "hard",
    ) -> None:
        super().__init__()
        if sparsity != 0:
            Cardinality(sparsity)  # checks it
        d = gram.n_features
        capacity, block = _capacity(sparsity, d), len(gram.state.buffer)
        _require_room(capacity, block, sparsity)
        self.gram = gram
        self.problem = Problem(int(sparsity), bool(centred), bool(standardized), float(bound_scale), RULES[rule])
        self.coef = np.zeros(d)
        self._intercept = np.zeros(1)
        self._work = WorkingSet(
            wide=np.zeros((3, d)),
            slots=np.zeros((N_SLOT_ROWS, capacity)),
            features=np.zeros(capacity, np.int64),
            chosen=np.zeros(capacity, np.int64),
            local=np.zeros((capacity, capacity)),
            rows=np.zeros((block, capacity)),
            counts=np.zeros(3, np.int64),
        )
        self._work.wide[OUTSIDE] = 1.0
        room = capacity if rule == "pursuit" else 0
        self._factor = Factor(
            upper=np.zeros((room + 1, room + 1)),
            vectors=np.zeros((2, room + 1)),
            members=np.zeros(room, np.int64),
            place=np.zeros(d if room else 0, np.int64),
            counts=np.zeros(1, np.int64),
        )
        self._numbers = np.zeros(4)
        self._tallies = np.zeros(N_TALLIES, np.int64)
        self._running = RunningSums(d)
        self._n_followed = -1  # rows of the summary that the working set describes

    @property
    def summary(self) -> Gram:
        """The Gram."""
        return self.gram

    @property
    def intercept(self) -> float:
        """The best intercept as of the last round; zero if not centred."""
        return float(self._intercept[0])

    @property
    def n_seen(self) -> int:
        """Rows in the summary."""
        return self.gram.n_samples

    @property
    def last_step(self) -> float:
        """The step size of the last step taken; zero before the first."""
        return float(self._numbers[LAST_STEP])

    @property
    def tallies(self) -> dict[str, int]:
        """How the steps went."""
        return dict(zip(TALLIES, self._tallies.tolist(), strict=True))

    def absorb(self, rows: Rows, steps: Floats, n_warmup: int = 0, round_size: int = 1) -> Self:
        """Absorb checked rows, with a round after every `round_size` of them past the first `n_warmup`."""
        first = self.n_rounds
        with InterruptsDeferred() as interrupts:
            for block in self.gram.blocks(rows.X, rows.y, rows.weights):
                self.run_block(block, self.steps_left(steps, first), n_warmup, round_size)
                self.follow_fold(self.gram.fold_if_full())
                interrupts.check()
        return self

    def run_block(
        self, block: tuple[Floats, Floats, Floats | None], steps: Floats, n_warmup: int = 0, round_size: int = 1
    ) -> None:
        """Absorb checked rows that the buffer of the summary has room for, with their rounds."""
        self._follow_summary()
        rows = self._running.begin(self.gram, block)
        sparse_stream.run_rows(
            self._running.arrays(self.gram),
            self._work,
            self._factor,
            self.coef,
            self._intercept,
            *rows,
            steps,
            int(n_warmup),
            int(round_size),
            self.problem,
            self._numbers,
            self._tallies,
            self._progress,
        )
        self._running.end(self.gram)
        self._n_followed = self.gram.n_samples

    def follow_fold(self, moved: bool) -> None:
        """Take note of a possible fold of the summary, and whether its shift moved."""
        if moved:
            self._work.counts[STALE] = 1
            self._running.read(self.gram)

    def run_round(self, step_size: StepSize, n_steps: int) -> Self:
        """One round on the rows absorbed so far."""
        steps = step_table(step_size, self.n_rounds + 1, 1, n_steps)
        self._follow_summary()
        with InterruptsDeferred():
            sparse_round.run_round(
                self._running.arrays(self.gram),
                self._work,
                self._factor,
                self.coef,
                steps,
                0,
                self.problem,
                self._numbers,
                self._tallies,
            )
            self.count_round()
            self._update_intercept()
        return self

    def _update_intercept(self) -> None:
        if self.problem.centred:
            self._intercept[0] = self.gram.best_intercept(self.coef)

    def settle(self, step_size: StepSize, n_steps: int, tol: float, max_rounds: int) -> bool:
        """Rounds on this one summary until a round moves nothing by more than `tol`, relatively.

        While the support holds, rounds converge to least squares on it, so the limit is put in place at once;
        the next round shows whether it is a fixed point. Reciprocal thresholding at a given step shrinks what it keeps
        and has another limit, which only rounds find. False if `max_rounds` were not enough.
        """
        refits = isinstance(step_size, str) or self.problem.rule != RECIPROCAL
        scale = np.sqrt(self.gram.variance(self.problem.centred))
        for _ in range(max_rounds):
            before = self.coef.copy()
            self.run_round(step_size, n_steps)
            moved = np.max(scale * np.abs(self.coef - before))
            if moved <= tol * np.max(scale * np.abs(self.coef)):
                return True
            if refits and np.array_equal(self.coef != 0.0, before != 0.0):
                self._refit(scale)
        return False

    def _refit(self, scale: Floats) -> None:
        """Least squares on the support (the shortest solution, in units of the scales, if not unique)."""
        support = np.flatnonzero((self.coef != 0.0) & (scale > 0.0))
        if not len(support):
            return
        # As rounds see it: what is stored in float32 has a diagonal in float32, and the limit must be one of theirs.
        matrix, sums = block_sums(self.gram.state, support)
        sums.recentre(matrix, sums, self.problem.centred)
        vector = sums.products_y(self.problem.centred)
        unit = 1.0 / scale[support]
        solution = np.linalg.lstsq(unit[:, None] * matrix * unit, unit * vector, rcond=1e-12)[0]
        self.coef[support] = unit * solution
        self._work.counts[STALE] = 1
        self._update_intercept()

    def adopt(self, other: Any) -> Self:
        """Go on from the estimate of other rounds on the same summary; what does not fit is projected."""
        problem, coef = self.problem, other.coef.reshape(-1)
        scale = np.sqrt(self.gram.variance(problem.centred)) if problem.standardized else 1.0
        if problem.sparsity:
            self.coef = np.where(Cardinality(problem.sparsity).project(scale * coef) != 0.0, coef, 0.0)
        self._update_intercept()
        self._progress[:] = other._progress
        self._numbers[LAST_STEP] = other.last_step
        if isinstance(other, SparseRounds):
            self._tallies[:] = other._tallies
        return self

    def widened(self, gram: Gram, sparsity: int) -> "SparseRounds":
        """The same rounds on a summary with columns of zeros appended, at a sparsity that is not smaller.

        They go on as if the columns had been there all along: nothing is computed again, every array gets zeros
        appended. These rounds must not go on, for what does not depend on the columns is shared. O(d + s^2).
        """
        result = copy(self)
        d, block = gram.n_features, len(gram.state.buffer)
        work, factor, capacity = self._work, self._factor, _capacity(sparsity, d)
        if capacity > len(work.features):
            _require_room(capacity, block, sparsity)
        room = capacity if self.problem.rule == PURSUIT else 0
        result.gram, result.problem = gram, self.problem._replace(sparsity=int(sparsity))
        result.coef = padded(self.coef, d)
        result._running = self._running.widened(d)
        result._work = work._replace(
            wide=padded(work.wide, 3, d),
            slots=padded(work.slots, N_SLOT_ROWS, capacity),
            features=padded(work.features, capacity),
            chosen=padded(work.chosen, capacity),
            local=padded(work.local, capacity, capacity),
            rows=padded(work.rows, block, capacity),
            counts=work.counts.copy(),
        )
        result._work.wide[OUTSIDE, len(self.coef) :] = 1.0
        _load_zeros(result._work, len(self.coef), min(int(sparsity) + SPARE, d))
        result._factor = factor._replace(
            upper=padded(factor.upper, room + 1, room + 1),
            vectors=padded(factor.vectors, 2, room + 1),
            members=padded(factor.members, room),
            place=padded(factor.place, d if room else 0),
        )
        return result

    def start_from(self, coef: Floats) -> Self:
        """Go on from another estimate, with at most s nonzero coefficients."""
        self.coef[:] = coef
        self._work.counts[STALE] = 1
        self._update_intercept()
        return self

    def _follow_summary(self) -> None:
        """Start over from the summary if rows were absorbed by somebody else."""
        if self._n_followed != self.gram.n_samples:
            self._work.counts[STALE] = 1
            self._running.read(self.gram)
            self._n_followed = self.gram.n_samples
