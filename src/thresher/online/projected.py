"""Gram x any set: rounds with a projection from elsewhere, in NumPy."""

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.interrupts import InterruptsDeferred
from thresher._utils.locks import lock_of
from thresher.io.schema import Array, Count, Dict, Is, Number, Schema, Tuple
from thresher.online.gram_rounds import GramRounds
from thresher.online.reference import RESTING, ROUNDING, SHRINK, on_grid, squared
from thresher.online.samples import Rows
from thresher.online.step_size import CERTIFIED, StepCount, StepSize, step_table
from thresher.sparsity.checked import CheckedSet
from thresher.summaries.gram import Gram

# A step that was shortened so often is not taken: an inexact projection may leave no step that lowers the loss.
MOST_TRIES = 20


def _no_steps() -> dict[str, int]:
    """What is counted: steps; those after which the loss was higher; those not taken because they overflow."""
    return dict.fromkeys(("steps", "rises", "overflows"), 0)


@dataclass
class Estimate:
    """Where rounds stand."""

    _schema = Schema(
        coef=Array("d"),
        intercept=Number(),
        last_step=Number(least=0.0),
        tallies=Dict(Count(), keys=("steps", "rises", "overflows")),
    )

    coef: Floats
    intercept: float = 0.0
    last_step: float = 0.0
    tallies: dict[str, int] = field(default_factory=_no_steps)


class ProjectedRounds(GramRounds):
    """Online projected gradient steps on a Gram, for any set: the iterates of `reference.run_round`.

    A step is one product of the moments with the estimate, 2 d^2 flops, and one call of the projection; a certified
    step takes two products, and two more whenever it is shortened.

    Parameters
    ----------
    summary : Gram
        The summary, which this object fills.
    projection : object
        The set, as `CheckedSet` describes it.
    shape : tuple of int
        Of the arrays that are projected.
    centred : bool
        Second moments about the mean.
    """

    _schema = Schema(
        lambda rounds: rounds.standardized is False and int(np.prod(rounds._shape)) == rounds.summary.n_features,
        sparsity=Is(CheckedSet),
        _shape=Tuple(each=Count(1)),
        _round=Is(Estimate),
    )
    _round: Estimate

    def __init__(self, summary: Gram, projection: Any, shape: tuple[int, ...], centred: bool) -> None:
        super().__init__(summary, centred, standardized=False)
        self.sparsity = CheckedSet(projection)
        self._shape = shape
        self._round = Estimate(self._project(np.zeros(summary.n_features), np.ones(summary.n_features)))

    @property
    def coef(self) -> Floats:
        """The estimate. A live view."""
        return self._round.coef.reshape(self._shape)

    def copied(self) -> "ProjectedRounds":
        """The same rounds on the same summary, with an estimate of their own."""
        result = copy(self)
        result._round = replace(self._round, coef=self._round.coef.copy(), tallies=dict(self._round.tallies))
        return result

    # -- moving ----------------------------------------------------------------------------------------

    def absorb(self, rows: Rows, steps: Floats, n_warmup: int = 0, round_size: int = 1) -> Self:
        """Absorb checked rows, with a round after every `round_size` of them past the first `n_warmup`."""
        first = self.n_rounds
        with InterruptsDeferred() as interrupts:
            for X, y, weights in self.summary.blocks(rows.X, rows.y, rows.weights):
                block, start = Rows(X, y, weights), 0
                while start < len(block):
                    warming = max(n_warmup - self.n_seen, 0)
                    end = min(start + (warming or max(round_size - self.n_pending, 1)), len(block))
                    piece, start = block.cut(start, end), end
                    with lock_of(self.summary):
                        self.summary.put(piece.X, piece.y, piece.weights)
                        self._fold_if_full()
                    if not warming:
                        self.n_pending += len(piece)
                    if self.n_pending >= round_size and not warming:
                        self._run(steps[min(self.n_rounds - first, len(steps) - 1)])
                    elif warming and not self.n_rounds:
                        self._update_intercept()
                interrupts.check()
        return self

    def run_round(self, step_size: StepSize, n_steps: StepCount) -> Self:
        """One round on the rows absorbed so far."""
        with InterruptsDeferred():
            self._run(step_table(step_size, self.n_rounds + 1, 1, n_steps)[0])
        return self

    def _run(self, steps: Floats) -> None:
        """One round: Algorithm 1, lines 4 to 6."""
        if self.summary.weight > 0.0:
            _Round(self, steps[~np.isnan(steps)]).run()
            self._update_intercept()
        self.count_round()

    # -- what the base class asks for ------------------------------------------------------------------

    def follow_fold(self, moved: bool) -> None:
        """Nothing is kept that depends on the buffer."""

    def _forget(self, summary_too: bool) -> None:
        """Nothing is kept from one round to the next but the estimate."""

    def _project(self, coef: Floats, scale: Floats) -> Floats:
        return self.sparsity.project(coef.reshape(self._shape)).reshape(-1)

    def _is_refitted(self, step_size: StepSize) -> bool:
        return False


class _Round:
    """One round, on a summary that does not change meanwhile."""

    def __init__(self, rounds: ProjectedRounds, steps: Floats) -> None:
        self.summary, self.sparsity = rounds.summary, rounds.sparsity
        self.at, self.shape, self.steps = rounds._round, rounds._shape, steps
        self.intercept = None if rounds.centred else 0.0
        self.at_zero = self.gradient(np.zeros(self.shape))

    def run(self) -> None:
        """All steps; the estimate changes at the end, or not at all if the projection fails."""
        theta, tallies, eta = self.at.coef.reshape(self.shape), dict(self.at.tallies), self.at.last_step
        g = self.gradient(theta)
        for step in self.steps:
            taken = self.certified_step(theta, g) if step == CERTIFIED else self.step(theta, g, float(step))
            if taken is None:
                tallies["overflows"] += step != CERTIFIED
                break
            new, eta = taken
            ahead, move = self.gradient(new), new - theta
            change = float(0.5 * np.vdot(g + ahead, move))  # of the loss, which is quadratic
            felt = squared(move) > RESTING * (RESTING * squared(theta))
            tallies["rises"] += bool(felt and change > ROUNDING * abs(float(np.vdot(g, move))))
            tallies["steps"] += 1
            theta, g = new, ahead
        self.at.coef[:], self.at.tallies, self.at.last_step = theta.reshape(-1), tallies, eta

    def step(self, theta: Floats, g: Floats, eta: float) -> tuple[Floats, float] | None:
        """The paper's step, eq. (OHT); None if it overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            target = theta - eta * g
            if not np.isfinite(squared(target)):
                return None
        return self.sparsity.project(target), eta

    def certified_step(self, theta: Floats, g: Floats) -> tuple[Floats, float] | None:
        """A step with eta <= |move|^2 / (move' G move) after which the loss is not higher; None if there is none.

        The first try minimises the loss along the gradient, restricted to where theta may move. The second condition
        follows from the first if the projection is exact, and protects from those that are not.
        """
        direction = self.sparsity.restrict(g, theta)
        length, bend = squared(direction), self.curvature(direction)
        eta = length / bend if bend > 0.0 else 0.0
        if theta.any() and eta * eta * length <= RESTING * (RESTING * squared(theta)):  # it rests within the set
            bend = self.curvature(theta)
            eta = squared(theta) / bend if bend > 0.0 else 0.0
        eta = on_grid(eta) if np.isfinite(eta) and eta > 0.0 else 0.0
        for _ in range(MOST_TRIES if eta > 0.0 else 0):
            new = self.sparsity.project(theta - eta * g)
            move = new - theta
            length, bend, slope = squared(move), self.curvature(move), float(np.vdot(g, move))
            short = eta * bend <= length * (1.0 + ROUNDING)
            if short and slope + 0.5 * bend <= ROUNDING * abs(slope):
                return new, eta
            eta = on_grid(0.5 * eta if short else min(SHRINK * eta, length / bend))
        return None

    def gradient(self, theta: Floats) -> Floats:
        """Of the loss, at the best intercept if there is one."""
        return self.summary.gradient(theta.reshape(-1), self.intercept).reshape(self.shape)

    def curvature(self, v: Floats) -> float:
        """V' G v."""
        return float(np.vdot(v, self.gradient(v) - self.at_zero))
