"""Gram x Rank or Groups, compiled: rounds that keep the whole gradient."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher.io.schema import Count, Is, Schema, Tuple, contents
from thresher.online._dense_gradient import DenseGradient
from thresher.online._dense_round import DenseRound
from thresher.online._subspace import Triplets
from thresher.online.gram_rounds import GramRounds
from thresher.online.step_size import StepSize
from thresher.sparsity.groups import Groups
from thresher.sparsity.rank import Rank
from thresher.summaries.gram import Gram

# From this many columns on, products of the Gram with a dense vector are bound by memory, and float32 pays.
SINGLE_FROM = 400


def _describes(rounds: "DenseRounds", kernel: Any) -> bool:
    """Whether a kernel is one of these rounds."""
    p, sparsity, triplets = rounds.summary.n_features, rounds.sparsity, kernel.triplets
    flags = kernel.gradient.centred, kernel.gradient.standardized
    if flags != (rounds.centred, rounds.standardized) or rounds.summary.dtype != np.float64:
        return False
    if isinstance(sparsity, Groups):
        return (
            (triplets is None and rounds._shape == (p,) and kernel.n_kept == sparsity.s)
            and kernel.n_groups == sparsity.n_groups
            and np.array_equal(kernel.groups, sparsity.index)
        )
    shape = sparsity.shape or (p, 1)
    return (
        (triplets is not None and rounds._shape == shape and kernel.n_kept == sparsity.r)
        and (triplets.left.shape[1], triplets.right.shape[1]) == shape
        and triplets.rank == min(sparsity.r, *shape)
    )


class DenseRounds(GramRounds):
    """Online hard thresholding of a matrix, or by groups: the iterates of `reference.run_round`.

    A step is one product of the moments with the move: p^2 for p columns, half of it read, and in float32
    where that pays. The projection onto ranks follows the singular vectors from step to step and proves that they are
    right (`online._subspace`), so a full decomposition is rare.

    Parameters
    ----------
    summary : Gram
        The summary, which this object fills.
    sparsity : Rank or Groups
        A rank needs its `shape`.
    centred, standardized : bool
        Second moments about the mean, and steps in units of the column scales.
    single : bool, optional
        Whether products with the moves are made in float32. By default where that pays.
    """

    _schema = Schema(
        lambda rounds: _describes(rounds, contents(rounds._round)),
        sparsity=Is(Rank, Groups, shared=True),
        _shape=Tuple(each=Count(1)),
        _round=Is(DenseRound),
    )

    def __init__(
        self,
        summary: Gram,
        sparsity: Rank | Groups,
        centred: bool,
        standardized: bool,
        single: bool | None = None,
    ) -> None:
        super().__init__(summary, centred, standardized)
        self.sparsity = sparsity
        if summary.state.scatter.dtype != np.float64:
            raise ValueError("Ranks and groups need co-moments in float64; Gram(n_features).merge(summary) has them.")
        p = summary.n_features
        groups: NDArray[Any] = np.zeros(0, np.intp)
        triplets, n_groups = None, 0
        if isinstance(sparsity, Rank):
            self._shape: tuple[int, ...] = sparsity.shape or (p, 1)
            triplets, kept = Triplets(*self._shape, sparsity.r), sparsity.r
        else:
            self._shape = (p,)
            groups, n_groups, kept = sparsity.index, sparsity.n_groups, sparsity.s
        single = triplets is not None and (p >= SINGLE_FROM if single is None else single)
        gradient = DenseGradient(p, self.centred, self.standardized, single, triplets is None)
        self._round = DenseRound(gradient, triplets, groups, n_groups, kept)

    @property
    def coef(self) -> Floats:
        """The estimate: a matrix, or a vector if there are groups. A live view."""
        return super().coef.reshape(self._shape)

    def follow_fold(self, moved: bool) -> None:
        """Take note of a possible fold of the summary, and whether its shift moved."""
        if self.summary.state.n_buffered == 0:
            self._round.at.stale, self._round.at.copied = True, False
        if moved:
            self._round.sums.read(self.summary)

    def _forget(self, summary_too: bool) -> None:
        self._round.at.stale = True
        if summary_too:
            self._round.at.copied = False
            self._round.sums.read(self.summary)

    def _project(self, coef: Floats, scale: Floats) -> Floats:
        unit = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
        scaled = (scale * coef).reshape(self._shape)
        if self.sparsity.measure(scaled) <= self.sparsity.s:
            return np.where(scale > 0.0, coef, 0.0)  # bit for bit
        return unit * self.sparsity.project(scaled).reshape(-1)

    def _is_refitted(self, step_size: StepSize) -> bool:
        return isinstance(self.sparsity, Groups)
