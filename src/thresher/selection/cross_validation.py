"""Choosing a size by cross-validation, exactly, without keeping a row."""

import sys
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher._utils.checks import check_partner, check_positive_integer
from thresher._utils.warnings import warn_caller
from thresher.io.schema import Count, Flag, Is, List, Of, Schema
from thresher.online.samples import Rows, Samples
from thresher.selection.criteria import Chooser, Method, Selection, smallest_minimiser
from thresher.selection.family import Family
from thresher.solvers.path import Path
from thresher.summaries.gram import Gram
from thresher.summaries.multiresponse import MultiResponse

Hashes = NDArray[np.uint64]

# Cross-validation is costly: it is repeated when rows have grown by one in so many.
GROWTH = 4
# An initial batch with fewer rows per fold than this is too small to split.
FEWEST = 2
# A fold, or all others, that weighs less than this share of all says nothing.
LEAST_SHARE = 1e-9
# Sums of weights, taken in another order, agree to this share.
SAME = 1e-9
# Rows that are hashed at a time, so that temporaries stay small.
STRIPE = 256


def _mixed(values: Hashes) -> Hashes:
    """The last steps of splitmix64 (Steele, Lea and Flood, 2014): every bit depends on every other."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def folds_by_hash(X: Any, y: Floats, n_folds: int) -> NDArray[np.intp]:
    """The fold of each row, by a hash of its values: the same for equal rows; columns of zeros change nothing."""
    result = np.empty(len(y), np.intp)
    for start in range(0, len(y), STRIPE):
        piece = Rows(X, y).cut(start, start + STRIPE)
        values = np.column_stack([piece.y, piece.dense()]) + 0.0  # a zero has no sign
        number = np.arange(1, values.shape[1] + 1, dtype=np.uint64)
        factor = _mixed(number * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)
        of_row = _mixed(values.view(np.uint64) * factor).sum(axis=1, dtype=np.uint64)
        result[start : start + STRIPE] = _mixed(of_row) % np.uint64(n_folds)
    return result


@dataclass(frozen=True)
class CrossValidation(Method):
    r"""F-fold cross-validation over the whole path, from F fold summaries.

    A hash of its values decides which fold a row belongs to. So copies of a row are in the same fold, and neither the
    order of the rows nor a weight in place of copies changes the choice; folds are about equally large.

    The summary of all rows minus that of a fold is what training without the fold needs, and the fold's own summary
    gives the test error of every candidate: the numbers that refitting on the rows themselves gives. Until the size is
    final, memory is F + 1 summaries and a row is folded twice. It is final at the end of the initial batch if there is
    one (``n_warmup > 0``; of at least 2 rows per fold), otherwise after `n_samples` rows, with a new choice whenever
    there are a quarter more rows until then.

    Parameters
    ----------
    n_folds : int, default=5
    n_samples : int, default=2000
        After how many rows the size is final, if there is no initial batch.
    one_standard_error : bool, default=False
        Choose the smallest size whose error is within one standard error of the least.

    References
    ----------
    S. Yang and Q. Sun (2026), Section 6: choose s by cross-validation on the initial batch or in the early rounds.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import CrossValidation, SparseRegressor
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> y = 3.0 * X[:, 4] - 2.0 * X[:, 7] + X[:, 0]
    >>> SparseRegressor(selection=CrossValidation(n_folds=3, one_standard_error=True)).fit(X, y).support_
    array([0, 4, 7])
    """

    _schema = Schema(n_folds=Count(2), n_samples=Count(1), one_standard_error=Flag())
    n_folds: int = 5
    n_samples: int = 2000
    one_standard_error: bool = False

    def __post_init__(self) -> None:
        if check_positive_integer(self.n_folds, "n_folds") < 2:
            raise ValueError(f"n_folds must be at least 2, got {self.n_folds!r}")
        check_positive_integer(self.n_samples, "n_samples")

    def chooser(self, n_warmup: int) -> Chooser:
        """A chooser with empty folds."""
        if 0 < n_warmup < FEWEST * self.n_folds:
            warn_caller(
                f"An initial batch of n_warmup={n_warmup} rows is too small to split into {self.n_folds} folds; the "
                f"size is chosen in the first {self.n_samples} rows instead.",
                UserWarning,
            )
            n_warmup = 0
        return CrossValidationChooser(self, n_warmup or self.n_samples)


class CrossValidationChooser(Chooser):
    """Fold summaries, while the size may still change."""

    _schema = Schema(
        lambda chooser: len(chooser.folds) in (0, chooser.method.n_folds) and not (chooser.over and chooser.folds),
        lambda chooser: chooser.over or chooser.n_seen == sum(fold.n_samples for fold in chooser.folds),
        method=Of(CrossValidation),
        n_most=Count(1, sys.maxsize),
        folds=List(Is(Gram, MultiResponse)),
        n_seen=Count(),
        n_next=Count(1),
        over=Flag(),
    )
    needs_rows = True

    def __init__(self, method: CrossValidation, n_most: int) -> None:
        self.method = method
        self.n_most = n_most
        self.folds: list[Any] = []
        self.n_seen = 0
        self.n_next = 1  # rows at which to cross-validate again
        self.over = False

    def fits(self, summary: Any) -> bool:
        """Whether every fold is a part of the summary, and no row is in none."""
        sizes = [name for name in ("n_features", "n_responses", "dtype") if hasattr(summary, name)]
        same = all(
            type(fold) is type(summary) and all(getattr(fold, name) == getattr(summary, name) for name in sizes)
            for fold in self.folds
        )
        if not same or self.n_seen > summary.n_samples or self.over:
            return same and self.over
        for fold in self.folds:
            summary.subtract(fold)  # raises ValueError if it is not a part
        return bool(self.n_seen == summary.n_samples and self.n_next <= 2 * summary.n_samples + 1)

    def absorb(self, summary: Any, samples: Samples) -> None:
        """Add each row to its fold."""
        if self.over:
            return
        assert isinstance(samples, Rows)
        X, y, weights = samples.X, samples.y, samples.weights
        n_folds = self.method.n_folds
        if not self.folds:
            self.folds = [summary.empty() for _ in range(n_folds)]
        number = folds_by_hash(X, y, n_folds)
        for fold, own in enumerate(self.folds):
            mine = np.flatnonzero(number == fold)
            if len(mine):
                own.absorb_checked(X[mine], y[mine], None if weights is None else weights[mine])
        self.n_seen += X.shape[0]

    def take(self, summary: Any, folds: Sequence[Any]) -> None:
        """Go on from folds that others have made of the rows of a summary."""
        if len(folds) != self.method.n_folds:
            raise ValueError(f"There are {len(folds)} folds, and n_folds={self.method.n_folds} was asked for.")
        for fold in folds:
            check_partner(summary, fold, "use as folds", "n_features")
        for name in ("n_samples", "weight"):
            parts, whole = sum(getattr(fold, name) for fold in folds), getattr(summary, name)
            if abs(parts - whole) > SAME * whole:
                raise ValueError(f"The folds have a {name} of {parts:g} together and the summary {whole:g}.")
        self.folds, self.n_seen = [fold.copy() for fold in folds], summary.n_samples

    def check(self, summary: Any) -> None:
        """Raise if the summary has rows that no fold has."""
        if not self.over and self.n_seen != summary.n_samples:
            raise ValueError(
                "Cross-validation needs the rows, and this summary has seen others; give the size as a number, or use "
                "selection='ebic' if the estimator has it."
            )

    def force(self) -> None:
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
            return None
        if summary.n_samples < min(self.n_next, self.n_most):
            return None
        self.check(summary)
        path = family.path(summary)
        least = LEAST_SHARE * summary.weight
        used = [fold for fold in self.folds if least < fold.weight < summary.weight - least]
        if len(used) < 2:
            return path, family.fallback.select(path, summary.n_samples)
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
        return path, Selection("cv", path.sizes, criterion, spread, chosen, summary.n_samples)
