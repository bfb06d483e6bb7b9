"""Rounds whose size is chosen from the data, and a short memory of how they went."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher._interrupts import InterruptsDeferred
from thresher.rounds.step_size import StepCount, StepSize
from thresher.selection.criteria import Chooser, Selection
from thresher.selection.path import Family

Floats = NDArray[np.float64]


# Summaries of the support are kept at milestones this factor apart, back to this share of the samples.
PARTS_APART, OLDEST_PART = 1.2, 0.125


def next_milestone(n_seen: int, block: int, parts: int = 20) -> int:
    """The sample after which to look again: one in `parts` more, or before that where the buffer is empty last."""
    after = n_seen + 1 + n_seen // parts
    return after if after < n_seen + block else after // block * block


def _cut(samples: list[Any], start: int, end: int) -> list[Any]:
    return [None if part is None else part[start:end] for part in samples]


@dataclass(frozen=True, eq=False)
class Milestone:
    """How things stood after some samples.

    Attributes
    ----------
    n_samples, n_rounds : int
        Samples and rounds until then.
    size : int
        The size in use.
    support : ndarray of int
        Places of the nonzero coefficients; none are kept of a matrix.
    values : ndarray
        Those coefficients.
    part : summary or None
        The summary of the features in the support; kept for some of the recent milestones.
    """

    n_samples: int
    n_rounds: int
    size: int
    support: NDArray[np.intp]
    values: Floats
    part: Any


class SelectingRounds:
    """Rounds at a size that is chosen anew at every milestone, or at a fixed one.

    A milestone falls at the end of the first round that has seen one in `parts` more samples than the last milestone
    (a little earlier where that spares it a full buffer), and at the end of the warm-up: after t samples there were
    O(log t). There, the rounds go on from the candidate of the chosen size, if the family sees fit; between milestones
    they move as rounds do. Milestones depend on counts alone, so results do not depend on how the stream is cut.

    Parameters
    ----------
    summary : summary
        Filled by the rounds.
    family : Family
        The models to choose from.
    size : int
        The size to begin with.
    chooser : Chooser or None
        Who chooses; None keeps the size.
    parts : int, default=20
        From one milestone to the next there is one more sample for every `parts`.
    """

    def __init__(
        self, summary: Any, family: Family, size: int, chooser: Chooser | None = None, parts: int = 20
    ) -> None:
        self.summary = summary
        self.family = family
        self.size = size
        self.chooser = chooser
        self.parts = parts
        self.inner = family.new_rounds(summary, size)
        self.selection: Selection | None = None
        self.milestones: list[Milestone] = []
        self._next = 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def absorb(self, *data: Any) -> Self:
        """Absorb samples as the rounds within do; the last three arguments are steps, n_warmup and round_size."""
        *samples, steps, n_warmup, round_size = data
        first, start, stop = self.inner.n_rounds, 0, samples[-2].shape[0]
        with InterruptsDeferred():
            while True:
                if self._due(n_warmup):
                    self._pass_milestone()
                if start == stop:
                    return self
                end = min(stop, start + self._until_due(n_warmup, round_size)) if stop > start + 1 else stop
                before = self.inner.n_seen
                try:
                    self.inner.absorb(
                        *(_cut(samples, start, end) if end - start < stop else samples),
                        steps[self.inner.n_rounds - first :] if len(steps) > 1 else steps,
                        n_warmup,
                        round_size,
                    )
                finally:  # an interrupt leaves part of the samples out
                    end = start + self.inner.n_seen - before
                    self.summary = getattr(self.inner, "summary", self.summary)  # a matrix may have grown
                    if self.chooser is not None and self.chooser.watches and end > start:
                        with InterruptsDeferred(whole=True):
                            self.chooser.absorb(self.summary, *_cut(samples, start, end))
                start = end

    def absorb_row(self, *data: Any) -> Self:
        """Absorb one row, as `absorb` does, without what only many rows need."""
        *row, steps, n_warmup, round_size = data
        if self.chooser is not None and self.chooser.watches:
            return self.absorb(*data)
        with InterruptsDeferred():
            if self._due(n_warmup):
                self._pass_milestone()
            self.inner.absorb_row(*row, steps, n_warmup, round_size)
            if self._due(n_warmup):
                self._pass_milestone()
        return self

    def _due(self, n_warmup: int) -> bool:
        n_seen = self.inner.n_seen
        due = n_seen >= self._next and n_seen >= n_warmup
        return bool(due and (self.inner.n_pending == 0 or n_seen == n_warmup))

    def _until_due(self, n_warmup: int, round_size: int | None) -> int:
        """Samples until the next milestone, or until the next round if their sizes change on the way."""
        n_seen, target = int(self.inner.n_seen), max(self._next, n_warmup)
        if target <= n_warmup:
            return max(target - n_seen, 1)
        past = max(n_warmup - n_seen, 0)  # samples that no round counts
        length = round_size or self.inner.round_length(None)
        until_round = past + max(length - self.inner.n_pending, 1)
        if round_size is None:
            return int(until_round)
        behind = max(target - n_seen - until_round, 0)
        return int(until_round + -(-behind // round_size) * round_size)

    def _pass_milestone(self) -> None:
        with InterruptsDeferred(whole=True):
            if self.summary.weight > 0.0:
                self._choose()
            self._record()

    def _choose(self) -> None:
        choice = None if self.chooser is None else self.chooser.choose(self.family, self.summary)
        if choice is None:
            return
        path, self.selection = choice
        size = self.selection.chosen
        changed = size != self.size
        if changed:
            self.inner = self.family.new_rounds(self.summary, size).adopt(self.inner)
            self.size = size
        self.family.start(self.inner, path, size, changed)

    def _record(self) -> None:
        n_seen = self.inner.n_seen
        self._next = next_milestone(n_seen, self.summary.block_size, self.parts)
        coef = self.inner.coef.reshape(-1) if self.family.memorable else np.zeros(0)
        support = np.flatnonzero(coef)
        # A few parts, from the last seven eighths of the samples, so that memory is O(s^2).
        held = [i for i, m in enumerate(self.milestones) if m.part is not None]
        for i in held:
            if self.milestones[i].n_samples < n_seen * OLDEST_PART:
                self.milestones[i] = replace(self.milestones[i], part=None)
        part = None
        if len(support) and hasattr(self.summary, "select"):
            last = self.milestones[held[-1]].n_samples if held else 0
            if n_seen >= PARTS_APART * last:
                part = self.summary.select(support)
        self.milestones.append(Milestone(n_seen, self.inner.n_rounds, self.size, support, coef[support], part))

    def widened(self, n_features: int, size: int) -> "SelectingRounds":
        """The same rounds with columns of zeros appended, at a size that is not smaller; these must not go on."""
        result = copy(self)
        result.summary, result.size = self.summary.grown(n_features), size
        result.inner = self.inner.widened(result.summary, size)
        result.chooser = None if self.chooser is None else self.chooser.widened(n_features)
        return result

    def run_round(self, step_size: StepSize, n_steps: StepCount) -> Self:
        """One round on the samples absorbed so far, and the milestone if one is due."""
        with InterruptsDeferred():
            try:
                self.inner.run_round(step_size, n_steps)
            finally:  # an interrupt falls after the round
                if self._due(0):
                    self._pass_milestone()
        return self

    def settle(self, step_size: StepSize, n_steps: StepCount, tol: float, max_rounds: int) -> bool:
        """Choose on this one summary, then rounds until nothing moves."""
        if self.chooser is not None:
            self.chooser.hurry()
        self._choose()
        settled = bool(self.inner.settle(step_size, n_steps, tol, max_rounds))
        if self.chooser is None and isinstance(step_size, str):
            settled = self._try_candidate(step_size, n_steps, tol, max_rounds, settled)
        self._record()
        return settled

    def _try_candidate(
        self, step_size: StepSize, n_steps: StepCount, tol: float, max_rounds: int, settled: bool
    ) -> bool:
        """Settle from the family's candidate as well, and stay where the loss is lower."""
        candidate = self.family.candidate(self.summary, self.size)
        if candidate is None:
            return settled
        first = self.inner.coef.copy()
        loss = self.family.loss(self.summary, first)
        self.inner.start_from(candidate)
        again = bool(self.inner.settle(step_size, n_steps, tol, max_rounds))
        if self.family.loss(self.summary, self.inner.coef) < loss * (1.0 - 1e-12):
            return again
        self.inner.start_from(first)
        return settled

    def adopt(self, other: "SelectingRounds") -> Self:
        """Go on from other rounds on the same summary; a chooser of another kind looks at the next occasion."""
        self.milestones, self._next = other.milestones, other._next
        if self.chooser is not None:
            alike = type(self.family) is type(other.family)
            if alike and other.chooser is not None and other.chooser.method == self.chooser.method:
                self.chooser, self.selection = other.chooser, other.selection
            else:
                self.chooser.check(self.summary)
                self._next = 1
            self.size = min(other.size if alike else 1, self.family.largest(self.summary))
            self.inner = self.family.new_rounds(self.summary, self.size)
        self.inner.adopt(other.inner)
        return self
