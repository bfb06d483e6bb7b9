"""Choosing a size by cross-validation, exactly, without keeping a row."""

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher._checks import check_positive_integer
from thresher.selection.criteria import Chooser, Criterion, CriterionChooser, Method, Selection, smallest_minimiser
from thresher.selection.path import Family, Path

Floats = NDArray[np.float64]

# Cross-validation is costly: it is repeated when rows have grown by one in so many.
GROWTH = 4
# An initial batch with fewer rows per fold than this is too short to choose for good.
FEWEST = 20
# A fold, or all others, that weighs less than this share of all says nothing.
LEAST_SHARE = 1e-9


@dataclass(frozen=True)
class Folds(Method):
    r"""F-fold cross-validation over the whole path, from F fold summaries.

    Row t belongs to fold t mod F. The summary of all rows minus that of a fold is what training without the fold
    needs, and the fold's own summary gives the test error of every candidate: the numbers that refitting on the rows
    themselves gives. While the folds live, memory is F + 1 summaries and a row is folded twice. Then they are let go
    and the size stays, or is chosen in another way: at the end of the initial batch if there is one (``n_warmup > 0``;
    of at least 20 rows per fold), otherwise after `n_samples` rows, with a new choice whenever there are a quarter more
    until then.

    Parameters
    ----------
    n_folds : int, default=5
    n_samples : int, default=2000
        How long the folds live, if there is no initial batch.
    one_standard_error : bool, default=False
        Choose the smallest size whose error is within one standard error of the least.
    afterwards : Criterion, optional
        How to choose once the folds are let go, such as ``Ebic()``. By default the size stays.

    References
    ----------
    S. Yang and Q. Sun (2026), Section 6: choose s by cross-validation on the initial batch or in the early rounds.
    """

    n_folds: int = 5
    n_samples: int = 2000
    one_standard_error: bool = False
    afterwards: Criterion | None = None

    def __post_init__(self) -> None:
        if self.afterwards is not None and not isinstance(self.afterwards, Criterion):
            raise ValueError(f"afterwards must be a criterion such as Ebic(), got {self.afterwards!r}")
        if check_positive_integer(self.n_folds, "n_folds") < 2:
            raise ValueError(f"n_folds must be at least 2, got {self.n_folds!r}")
        check_positive_integer(self.n_samples, "n_samples")

    def chooser(self, n_warmup: int) -> Chooser:
        """A chooser with empty folds."""
        return FoldsChooser(self, max(n_warmup, FEWEST * self.n_folds) if n_warmup else self.n_samples)


class FoldsChooser(Chooser):
    """Fold summaries, until they are let go."""

    def __init__(self, method: Folds, n_most: int) -> None:
        self.method = method
        self.n_most = n_most
        self.folds: list[Any] = []
        self.n_seen = 0
        self.n_next = 1  # rows at which to cross-validate again
        self.over = False

    def absorb(self, summary: Any, *samples: Any) -> None:
        """Add each sample to its fold."""
        if self.over:
            return
        X, y, weights = samples
        n_folds = self.method.n_folds
        if not self.folds:
            self.folds = [summary.empty() for _ in range(n_folds)]
        for fold, own in enumerate(self.folds):
            first = (fold - self.n_seen) % n_folds
            if first < X.shape[0]:
                mine = slice(first, None, n_folds)
                own.absorb(X[mine], y[mine], None if weights is None else weights[mine])
        self.n_seen += X.shape[0]

    def check(self, summary: Any) -> None:
        """Raise if the summary has rows that no fold has."""
        if not self.over and self.n_seen != summary.n_samples:
            raise ValueError(
                "Cross-validation needs the rows, and this summary has seen others; use selection='ebic' for a summary."
            )

    def hurry(self) -> None:
        """Cross-validate at the next occasion."""
        self.n_next = 1

    def widened(self, n_features: int) -> Chooser:
        """The same with columns of zeros appended to every fold; this one must not go on."""
        result = copy(self)
        result.folds = [fold.grown(n_features) for fold in self.folds]
        return result

    def choose(self, family: Family, summary: Any) -> tuple[Path, Selection] | None:
        """Cross-validate every size that the path on all rows has."""
        if self.over:
            later = self.method.afterwards
            return None if later is None else CriterionChooser(later).choose(family, summary)
        if summary.n_samples < min(self.n_next, self.n_most):
            return None
        self.check(summary)
        path = family.path(summary)
        least = LEAST_SHARE * summary.weight
        used = [fold for fold in self.folds if least < fold.weight < summary.weight - least]
        if len(used) < 2:
            return path, family.fallback().select(path, summary.n_samples)
        errors = np.full((len(used), len(path.sizes)), np.inf)
        for error, fold in zip(errors, used, strict=True):
            without = family.path(summary.subtract(fold), int(path.sizes[-1]))
            error[: len(without.sizes)] = 2.0 * family.loss_elsewhere(without, fold)
        unit = max(float(errors[:, 0].max()), np.finfo(np.float64).tiny)  # so that squares stay in range
        with np.errstate(invalid="ignore"):
            criterion = errors.mean(axis=0)
            spread = unit * ((errors / unit).std(axis=0, ddof=1) / np.sqrt(len(used)))
        best = int(np.argmin(criterion))
        allowance = float(spread[best]) if self.method.one_standard_error else 0.0
        chosen = smallest_minimiser(path.sizes, criterion, allowance)
        self.n_next = summary.n_samples + summary.n_samples // GROWTH + 1
        if summary.n_samples >= self.n_most:
            self.over, self.folds = True, []
        return path, Selection("folds", path.sizes, criterion, spread, chosen, summary.n_samples)
