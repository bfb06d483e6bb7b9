"""What rivals that estimate a matrix do alike."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher._checks import check_summary
from thresher._memory import require_bytes
from thresher.estimators._matrix_rows import MatrixRows
from thresher.rivals._rival import StreamingRival
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]


class MatrixRival(MatrixRows, StreamingRival):
    """A streaming method for samples that are matrices, with one coefficient for each entry."""

    def _check(self, X: Any, y: Any, reset: bool) -> tuple[Any, Floats]:
        rows, responses, _ = self._check_rows(self._take_matrices(X, reset), y, None, reset, np.dtype(np.float64))
        return rows, responses

    def _check_against_features(self, n_features: int) -> None:
        self._check_shape_asked()

    def _zeros(self, n_features: int) -> Floats:
        return np.zeros(self._shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class MomentsRival(MatrixRival):
    """A method that knows the samples by their second moments, for matrices of a rank that is given.

    A subclass says what to make of the moments of all samples at once (`_solve`).
    """

    rank: int
    n_iter_: int
    _summary: Gram

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then solve for these samples, all at once.

        Parameters and return value are those of ``partial_fit``.
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            rows, responses = self._check(X, y, reset=True)
            self._check_against_features(rows.shape[1])
            return self._solve_anew(self._new_summary(rows.shape[1]).absorb(rows, responses))

    def fit_summary(self, summary: Gram) -> Self:
        """As ``fit`` on the samples, as rows of d1 d2 numbers, that the summary has seen; it is copied.

        Parameters
        ----------
        summary : Gram
            In float64. It does not know what `shape` the matrices had, so that must be set.

        Returns
        -------
        self
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            check_summary(summary, Gram)
            self._take_shape_for(summary)
            self._check_against_features(summary.n_features)
            self._forget_features(summary.n_features)
            return self._solve_anew(summary.copy())

    @abstractmethod
    def _solve(self) -> None:
        """Solve for the samples in the summary, from nothing."""

    def _solve_anew(self, summary: Gram) -> Self:
        self._begin(summary.n_features)
        self._start(summary.n_features)
        self._summary = summary
        self.n_samples_seen_ = summary.n_samples
        self._solve()
        return self

    def _start(self, n_features: int) -> None:
        self._summary = self._new_summary(n_features)
        self.n_iter_ = 0

    def _new_summary(self, n_features: int) -> Gram:
        require_bytes(
            12 * n_features**2,
            f"{type(self).__name__} with matrices of shape {self._shape} keeps second moments of {n_features:,} "
            "numbers and",
            "Use smaller matrices.",
        )
        return Gram(n_features, hold_rows=True)

    def _check_against_features(self, n_features: int) -> None:
        super()._check_against_features(n_features)
        if self.rank > min(self._shape):
            raise ValueError(
                f"rank={self.rank} exceeds the smaller side of the matrix; use at most {min(self._shape)}."
            )

    def _worse_than_zero(self, coef: Floats, intercept: float | None) -> bool:
        """Whether an estimate fits the samples worse than none does, beyond rounding; intercepts as in `Gram.loss`."""
        with np.errstate(over="ignore", invalid="ignore"):
            loss, at_zero = (self._summary.loss(theta.reshape(-1), intercept) for theta in (coef, np.zeros_like(coef)))
        return not loss <= at_zero * (1.0 + 1e-9)

    @property
    def _mean_square(self) -> float:
        """Mean square of the entries of the matrices."""
        return float(np.mean(self._summary.variance(centred=False)))
