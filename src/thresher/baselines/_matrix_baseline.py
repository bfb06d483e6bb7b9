"""What baselines that estimate a matrix have in common."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from thresher._utils.memory import require_bytes
from thresher.baselines._baseline import StreamingBaseline
from thresher.estimators._matrix_rows import MatrixRows
from thresher.summaries.gram import Gram

Floats = NDArray[np.float64]


class MatrixBaseline(MatrixRows, StreamingBaseline):
    """A streaming method for samples that are matrices, with one coefficient for each entry."""

    def _check(self, X: Any, y: Any, reset: bool) -> tuple[Any, Floats]:
        rows = self._check_rows(self._take_matrices(X, reset), y, None, reset, np.dtype(np.float64))
        return rows.X, rows.y

    def _check_against_features(self, n_features: int) -> None:
        self._check_shape_asked()

    def _zeros(self, n_features: int) -> Floats:
        return np.zeros(self._shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class MomentsBaseline(MatrixBaseline):
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
            self._begin(rows.shape[1])
            self._start(rows.shape[1])
            self._summary.absorb(rows, responses)
            self.n_samples_seen_ = self._summary.n_samples
            self._solve()
        return self

    @abstractmethod
    def _solve(self) -> None:
        """Solve for the samples in the summary, from nothing."""

    def _start(self, n_features: int) -> None:
        require_bytes(
            12 * n_features**2,
            f"{type(self).__name__} with matrices of shape {self._shape} keeps second moments of {n_features:,} "
            "numbers and",
            "Use smaller matrices.",
        )
        self._summary = Gram(n_features, hold_rows=True)
        self.n_iter_ = 0

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
