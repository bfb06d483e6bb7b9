"""Gram x Cardinality, compiled and lazily certified: the fast truth."""

from typing import Any

import numpy as np

from thresher._utils.arrays import Floats
from thresher._utils.memory import require_bytes
from thresher.io.schema import Count, Is, Schema, Text, contents
from thresher.online._certificate import SPARE
from thresher.online._sparse_round import RULES, SparseRound
from thresher.online.gram_rounds import GramRounds
from thresher.online.step_size import StepSize
from thresher.sparsity.cardinality import Cardinality
from thresher.summaries.gram import Gram

__all__ = ["RULES", "SparseRounds"]


def _capacity(sparsity: int, n_features: int) -> int:
    """How many features a working set holds: whole vector registers of them."""
    return int(-(-min(2 * sparsity + SPARE, n_features) // 8) * 8)


def _describes(rounds: "SparseRounds", kernel: Any) -> bool:
    """Whether a kernel is one of these rounds."""
    ours = rounds.sparsity, rounds.centred, rounds.standardized, rounds.rule
    bound, d = kernel.certificate, rounds.summary.n_features
    return bool(
        (bound.sparsity, bound.centred, bound.standardized, kernel.rule) == ours
        and len(bound.work.features) >= _capacity(rounds.sparsity, d)
        and len(bound.work.rows) >= len(rounds.summary.state.buffer)
    )


class SparseRounds(GramRounds):
    """Online hard thresholding of a Gram: the iterates of `reference.run_round`, at the speed of the Gram.

    A round costs O(d + K s^2) while the certificate holds, which is nearly always, and O(d s) more for each step
    where it does not; folding the row into the Gram costs d^2 and dominates. Memory beyond the Gram is O(d + s^2).

    Parameters
    ----------
    summary : Gram
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

    _schema = Schema(
        lambda rounds: _describes(rounds, contents(rounds._round)),
        sparsity=Count(),
        rule=Text(*RULES),
        _round=Is(SparseRound),
    )

    def __init__(
        self,
        summary: Gram,
        sparsity: int,
        centred: bool,
        standardized: bool,
        bound_scale: float = 1.0,
        rule: str = "hard",
    ) -> None:
        super().__init__(summary, centred, standardized)
        if sparsity != 0:
            Cardinality(sparsity)  # checks it
        self.sparsity, self.rule = int(sparsity), rule
        d, block = summary.n_features, len(summary.state.buffer)
        capacity = _capacity(self.sparsity, d)
        require_bytes(
            8 * capacity * (capacity + block), f"A working set for sparsity {sparsity}", "Use a smaller sparsity."
        )
        self._round = SparseRound(d, block, capacity, sparsity, centred, standardized, float(bound_scale), rule)

    def follow_fold(self, moved: bool) -> None:
        """Take note of a possible fold of the summary, and whether its shift moved."""
        if moved:
            self._forget(summary_too=True)

    def _forget(self, summary_too: bool) -> None:
        self._round.check_support()
        self._round.work.stale = True
        if summary_too:
            self._round.sums.read(self.summary)

    def _project(self, coef: Floats, scale: Floats) -> Floats:
        if not self.sparsity:
            return np.zeros_like(coef)
        return np.where(Cardinality(self.sparsity).project(scale * coef) != 0.0, coef, 0.0)

    def _is_refitted(self, step_size: StepSize) -> bool:
        # Reciprocal thresholding at a given step shrinks what it keeps and has another limit, which only rounds find.
        return isinstance(step_size, str) or self.rule != "reciprocal"
