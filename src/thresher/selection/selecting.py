"""Rounds whose size is chosen from the data, and a short memory of how they went."""

from copy import copy
from typing import Any, Self

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.interrupts import InterruptsDeferred
from thresher.io.schema import Count, Either, Is, List, Nothing, Of, Schema
from thresher.online.completion import EntriesRounds
from thresher.online.dense import DenseRounds
from thresher.online.projected import ProjectedRounds
from thresher.online.samples import Samples
from thresher.online.sparse import SparseRounds
from thresher.online.step_size import StepCount, StepSize
from thresher.selection.criteria import Criterion, Method, Selection
from thresher.selection.cross_validation import CrossValidationChooser
from thresher.selection.family import RoundsFamily, RoundsSource
from thresher.selection.history import Record, follows, note
from thresher.summaries.entries import Entries
from thresher.summaries.gram import Gram


class SelectingRounds:
    """Rounds at a size that is chosen at fixed sample counts, or at a given one.

    A choice falls at the end of the first round that has seen one in `parts` more samples than at the last one, and at
    the end of the warm-up: after t samples there were O(log t). Choices depend on counts alone, so results do not
    depend on how the stream is cut.

    Parameters
    ----------
    summary : summary
        Filled by the rounds.
    family : RoundsFamily
        The models to choose from; a RoundsSource is enough if the size is given.
    size : int
        The size to begin with.
    method : Method or None
        How to choose; None keeps the size.
    n_warmup : int, default=0
        Samples before the first round.
    parts : int, default=20
        From one choice to the next there is one more sample for every `parts`.
    """

    _schema = Schema(
        lambda rounds: rounds.inner.summary is rounds.summary,
        lambda rounds: rounds.family.fits(rounds.inner, rounds.size),
        lambda rounds: rounds._next <= rounds.inner.n_seen * (1 + 1 / rounds.parts) + 1,
        lambda rounds: follows(rounds.history, rounds.inner.n_seen, getattr(rounds.summary, "n_features", None)),
        lambda rounds: rounds.selection is None or rounds.selection.n_samples <= rounds.inner.n_seen,
        lambda rounds: (rounds.method is None) == (rounds.chooser is None),
        lambda rounds: rounds.chooser is None or rounds.chooser.fits(rounds.summary),
        summary=Is(Gram, Entries, shared=True),
        family=Of(RoundsSource),
        size=Count(),
        method=Of(Method) | None,
        chooser=Either(Is(CrossValidationChooser), Of(Criterion), Nothing()),
        parts=Count(1),
        inner=Is(SparseRounds, DenseRounds, EntriesRounds, ProjectedRounds),
        selection=Is(Selection, shared=True) | None,
        history=List(Is(Record)),
        _next=Count(1),
    )

    def __init__(
        self,
        summary: Any,
        family: RoundsFamily | RoundsSource,
        size: int,
        method: Method | None = None,
        n_warmup: int = 0,
        parts: int = 20,
    ) -> None:
        self.summary = summary
        self.family: Any = family
        self.size = size
        self.method = method
        self.chooser = None if method is None else method.chooser(n_warmup)
        self.parts = parts
        self.inner = family.new_rounds(summary, size)
        self.selection: Selection | None = None
        self.history: list[Record] = []
        self._next = 1

    def start_near(self, coef: Floats) -> Self:
        """Begin at an estimate. Where the size is chosen, it is that of the estimate until then."""
        if self.chooser is not None:
            self.size = min(self.family.size_of(coef), self.family.largest(self.summary))
            self.inner = self.family.new_rounds(self.summary, self.size)
        self.inner.start_near(coef)
        return self

    def absorb(self, samples: Samples, steps: Floats, n_warmup: int, round_size: int | None) -> Self:
        """Absorb samples as the rounds within do."""
        first, start, stop = self.inner.n_rounds, 0, len(samples)
        with InterruptsDeferred():
            while True:
                if self._due(n_warmup):
                    self._choose_and_note()
                if start >= stop:
                    return self
                end = min(stop, start + self._until_due(n_warmup, round_size)) if stop > start + 1 else stop
                before = self.inner.n_seen
                try:
                    self.inner.absorb(
                        samples.cut(start, end),
                        steps[self.inner.n_rounds - first :] if len(steps) > 1 else steps,
                        n_warmup,
                        round_size,
                    )
                finally:  # an interrupt leaves part of the samples out
                    end = start + self.inner.n_seen - before
                    self.summary = self.inner.summary  # a matrix may have grown
                    if self.chooser is not None and self.chooser.needs_rows and end > start:
                        with InterruptsDeferred(whole=True):
                            self.chooser.absorb(self.summary, samples.cut(start, end))
                start = end

    def _due(self, n_warmup: int) -> bool:
        n_seen = self.inner.n_seen
        due = n_seen >= self._next and n_seen >= n_warmup
        return bool(due and (self.inner.n_pending == 0 or n_seen == n_warmup))

    def _until_due(self, n_warmup: int, round_size: int | None) -> int:
        """Samples until the next choice, or until the next round if their sizes change on the way."""
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

    def _choose_and_note(self) -> None:
        with InterruptsDeferred(whole=True):
            if self.summary.weight > 0.0:
                self._choose()
            self._note()

    def _choose(self) -> None:
        choice = None if self.chooser is None else self.chooser.choose(self.family, self.summary)
        if choice is None:
            return
        path, self.selection = choice
        size = self.selection.chosen
        if size != self.size:
            self.inner = self.family.new_rounds(self.summary, size).adopt(self.inner)
            self.size = size
        self.family.start(self.inner, path, size)

    def _note(self) -> None:
        n_seen = self.inner.n_seen
        self._next = n_seen + 1 + n_seen // self.parts
        coef = self.inner.coef.reshape(-1) if self.family.memorable else np.zeros(0)
        support = np.flatnonzero(coef)
        note(self.history, self.summary, self.size, support, coef[support])

    def widened(self, n_features: int, size: int) -> "SelectingRounds":
        """The same rounds with columns of zeros appended, at a size that is not smaller; these must not go on."""
        result = copy(self)
        result.summary, result.size = self.summary.grown(n_features), size
        result.inner = self.family.new_rounds(result.summary, size).adopt(self.inner)
        result.chooser = None if self.chooser is None else self.chooser.widened(n_features)
        return result

    def run_round(self, step_size: StepSize, n_steps: StepCount) -> Self:
        """One round on the samples absorbed so far, and the choice if one is due; before it, if there was none yet."""
        with InterruptsDeferred():
            if self.chooser is not None and self.selection is None:
                self._choose_and_note()
            try:
                self.inner.run_round(step_size, n_steps)
            finally:  # an interrupt falls after the round
                if self._due(0):
                    self._choose_and_note()
        return self

    def settle(self, step_size: StepSize, n_steps: StepCount, tol: float, max_rounds: int) -> bool:
        """Choose on this one summary, then rounds until nothing moves."""
        if self.chooser is not None:
            self.chooser.force()
        self._choose()
        settled = bool(self.inner.settle(step_size, n_steps, tol, max_rounds))
        self._note()
        return settled

    def adopt(self, other: "SelectingRounds") -> Self:
        """Go on from other rounds on the same summary; a chooser of another kind looks at the next occasion."""
        self.history, self._next = other.history, other._next
        if self.chooser is not None:
            if other.method == self.method:
                self.chooser, self.selection = other.chooser, other.selection
            else:
                self.chooser.check(self.summary)
                self._next = 1
            self.size = min(other.size, self.family.largest(self.summary))
            self.inner = self.family.new_rounds(self.summary, self.size)
        self.inner.adopt(other.inner)
        return self
