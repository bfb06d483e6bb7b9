"""Choosing a size by how well each predicted rows before it saw them."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.selection.criteria import Chooser, Method, Selection
from thresher.selection.path import Family, Path

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Prequential(Method):
    r"""Test, then train: candidates of every size predict the rows of the next period, then all are fitted anew.

    A period ends at a milestone of the stream. The squared errors of all candidates over the period follow exactly from
    the difference of two small summaries of the features on the path, so that no row is kept and memory is one Gram and
    O(s^2). Errors of earlier periods count less, by a factor of `discount` per period. Until a period has been scored,
    and so for ``fit`` on a batch, the information criterion chooses.

    Parameters
    ----------
    discount : float, default=0.9
    one_standard_error : bool, default=False
        Choose the smallest size whose error is within one standard error of the least. Periods are the sample, and
        the error is that of the difference to the best size.

    References
    ----------
    A. P. Dawid (1984). Statistical theory: the prequential approach. Journal of the Royal Statistical Society A 147(2).
    """

    discount: float = 0.9
    one_standard_error: bool = False

    def __post_init__(self) -> None:
        if not (isinstance(self.discount, Real) and 0.0 < self.discount <= 1.0):
            raise ValueError(f"discount must be above 0 and at most 1, got {self.discount!r}")

    def chooser(self, n_warmup: int) -> Chooser:
        """A chooser that has seen nothing."""
        return _PrequentialChooser(self)


class _PrequentialChooser(Chooser):
    def __init__(self, method: Prequential) -> None:
        self.method = method
        self.path: Path | None = None
        self.then: Any = None  # what the summary was when the path was made, on the features of the path
        self.errors: list[Floats] = []  # total squared error of every size, one array per period
        self.weights: list[float] = []

    def choose(self, family: Family, summary: Any) -> tuple[Path, Selection]:
        """Score the candidates of the last period, choose, and make new ones."""
        if self.path is not None:
            self._score(family, self.path, summary)
        path = family.path(summary)
        self.path, self.then = path, family.part(path, summary)
        if not self.weights:
            return path, family.fallback().select(path, summary.n_samples)
        errors, weights = self._table(len(path.sizes))
        unit = max(float(errors[:, 0].max()), np.finfo(np.float64).tiny)  # so that squares stay in range
        errors, total = errors / unit, weights.sum()
        criterion = errors.sum(axis=0) / total
        best = int(np.argmin(criterion))
        spread = np.zeros(len(path.sizes))
        if len(weights) > 1:
            excess = errors - errors[:, [best]] - np.outer(weights, criterion - criterion[best])
            spread = np.sqrt((excess**2).sum(axis=0)) / total
        close = criterion <= criterion[best] + spread * self.method.one_standard_error
        chosen = int(path.sizes[np.argmax(close | (criterion <= criterion[best] * (1.0 + 1e-12)))])
        return path, Selection("prequential", path.sizes, unit * criterion, unit * spread, chosen, summary.n_samples)

    def _score(self, family: Family, path: Path, summary: Any) -> None:
        period = family.part(path, summary).subtract(self.then)
        if period.weight > 0.0:
            self.errors.append(2.0 * period.weight * family.loss_of_part(path, period))
            self.weights.append(period.weight)
        # Periods that hardly count any more are let go, so memory does not grow.
        while len(self.weights) > 1 and self.method.discount ** len(self.weights) < 1e-3:
            del self.errors[0], self.weights[0]

    def _table(self, n_sizes: int) -> tuple[Floats, Floats]:
        """Discounted errors by period and size; a size that a period did not have takes the largest it had."""
        discount = self.method.discount ** np.arange(len(self.weights) - 1, -1, -1)
        table = np.zeros((len(self.weights), n_sizes))
        for row, error in zip(table, self.errors, strict=True):
            n = min(n_sizes, len(error))
            row[:n], row[n:] = error[:n], error[n - 1]
        return discount[:, None] * table, discount * np.array(self.weights)
