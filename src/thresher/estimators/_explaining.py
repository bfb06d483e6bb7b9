"""What a sparse model can say about itself: its path, its health, and how sure it is."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from thresher._checks import check_features, check_positive_integer
from thresher.diagnostics import Diagnosis, diagnose
from thresher.inference import Intervals, debiased_intervals, noise_variance, split_intervals
from thresher.selection.ebic import Ebic

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoefficientPath:
    """The models of every size.

    Attributes
    ----------
    sparsity : ndarray of shape (n,)
        Sizes, from zero.
    coef : ndarray of shape (n, n_features)
    intercept, loss : ndarray of shape (n,)
        Loss is half the mean squared residual over all rows so far.
    criterion : ndarray of shape (n,)
        The extended BIC of each.
    """

    sparsity: NDArray[np.intp]
    coef: Floats
    intercept: Floats
    loss: Floats
    criterion: Floats


class Explaining:
    """Questions to a fitted `SparseRegressor`; all are answered from the current summary, at any time."""

    summary_: Any
    coef_: Floats
    sparsity_: int
    milestones_: list[Any]
    drifts_: bool
    n_samples_seen_: int
    n_features_in_: int
    _rounds: Any
    _solved: Any

    def path(self, max_sparsity: int | None = None) -> CoefficientPath:
        """The models of every size, by forward selection on the rows so far.

        By default the features of the best model are then eliminated one by one, if a better one lies on that way: what
        ``sparsity="auto"`` chooses from.

        Parameters
        ----------
        max_sparsity : int, optional
            The largest size, for forward selection alone. By default the path ends when larger models are clearly worse
            by the extended BIC.

        Returns
        -------
        CoefficientPath
        """
        check_is_fitted(self, "coef_")
        most = None if max_sparsity is None else check_positive_integer(max_sparsity, "max_sparsity")
        path = self._rounds.family.path(self.summary_, most)
        method = self._solved.method if isinstance(self._solved.method, Ebic) else Ebic()
        return CoefficientPath(
            sparsity=path.sizes,
            coef=np.array([path.coef(size) for size in path.sizes]),
            intercept=np.array([path.intercept(size) for size in path.sizes]),
            loss=path.loss,
            criterion=method.criterion(path),
        )

    @property
    def overall_coef_(self) -> Floats:
        """The coefficients that fit all rows best, counted alike: with pursuit, least squares on the support.

        `coef_` may be shrunk where few rows carry a feature, and follows a stream that changes.
        """
        check_is_fitted(self, "coef_")
        coef: Floats = self._rounds.inner.coef.flatten()
        return coef

    @property
    def overall_intercept_(self) -> float:
        """The intercept that goes with `overall_coef_`."""
        check_is_fitted(self, "coef_")
        return float(np.ravel(self._rounds.inner.intercept)[0]) if self._solved.centred else 0.0

    def noise_variance(self) -> float:
        """The variance of the noise: residual sum of squares over n less the coefficients and the intercept."""
        check_is_fitted(self, "coef_")
        return noise_variance(self.summary_, self.overall_coef_, self._solved.centred)

    def diagnose(self) -> Diagnosis:
        """What could be wrong: too few rows, conditioning, near-twins, constant columns, noise, a world that changes.

        Returns
        -------
        Diagnosis
            Prints as text, shows as a table in notebooks; ``to_dict()`` for machines.
        """
        check_is_fitted(self, "coef_")
        recent = [m for m in self.milestones_ if 2 * m.n_samples >= self.n_samples_seen_]
        supports = [(m.n_rounds, m.support) for m in recent]
        coef = self.overall_coef_
        supports.append((int(self._rounds.n_rounds), np.flatnonzero(coef)))
        names = getattr(self, "feature_names_in_", None)
        return diagnose(
            self.summary_,
            coef,
            max(int(np.count_nonzero(coef)), 1),
            self._solved.centred,
            self._solved.standardized,
            None if names is None else list(names),
            supports,
            self.drifts_ if self._solved.follow else None,
        )

    def support_stability(self) -> Floats:
        """How often each feature was kept over the rounds so far, recent ones counting more: round t counts for t.

        Returns
        -------
        ndarray of shape (n_features,)
            Between 0 (never) and 1 (always).
        """
        check_is_fitted(self, "coef_")
        if self._solved.groups is None:
            stability: Floats = self._rounds.stability
            return stability
        # Rounds of groups keep no count; milestones do.
        weights = np.array([m.n_rounds for m in self.milestones_], float)
        kept = np.zeros((len(weights), self.n_features_in_))
        for row, milestone in zip(kept, self.milestones_, strict=True):
            row[milestone.support] = 1.0
        share: Floats = weights @ kept / max(float(weights.sum()), 1.0)
        return share

    def confidence_intervals(
        self,
        level: float = 0.95,
        method: str = "debiased",
        features: ArrayLike | None = None,
        split_at: int | None = None,
    ) -> Intervals:
        """Intervals for coefficients, one at a time.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage of each interval.
        method : {"debiased", "split"}, default="debiased"
            ``"debiased"`` corrects for having chosen the support from the same rows and gives an interval for any
            feature; it needs many rows, s log d well below the root of n. ``"split"`` takes the support as it was after
            `split_at` rows and uses only the rows after: exact, for the coefficients of the best linear
            prediction from that support.
        features : array-like of int or of feature names, optional
            Which coefficients. By default those of the support.
        split_at : int, optional
            Row count at which ``"split"`` freezes the support: as it was noted last at or before it, which partial_fit
            does whenever there are a fifth more rows. By default half of the rows.

        Returns
        -------
        Intervals
        """
        check_is_fitted(self, "coef_")
        if method not in ("debiased", "split"):
            raise ValueError(f"method must be 'debiased' or 'split', got {method!r}")
        index = None if features is None else self._feature_numbers(features)
        if method == "debiased":
            index = np.flatnonzero(self.overall_coef_) if index is None else index
            names = self._names_of(index)
            return debiased_intervals(
                self.summary_, self.overall_coef_, index, level, self._solved.centred, names=names
            )
        at = self.n_samples_seen_ // 2 if split_at is None else check_positive_integer(split_at, "split_at")
        frozen = [m for m in self.milestones_ if m.n_samples <= at and m.part is not None]
        if not frozen:
            raise ValueError(
                f"Splitting needs a support from before row {at}, and there is none. partial_fit notes the support "
                "whenever there are a fifth more rows, and forgets what is older than an eighth of them; give a larger "
                "split_at, stream the rows instead of fit, or use method='debiased'."
            )
        then = frozen[-1]
        later = self.summary_.select(then.support).subtract(then.part)
        result = split_intervals(
            later, level, self._solved.centred, features=then.support, names=self._names_of(then.support)
        )
        return result if index is None else result.only(index)

    def _feature_numbers(self, features: ArrayLike) -> NDArray[np.intp]:
        given = np.atleast_1d(np.asarray(features))
        if given.dtype.kind not in "USO":
            return check_features(given, self.n_features_in_)
        known = {str(name): j for j, name in enumerate(getattr(self, "feature_names_in_", ()))}
        missing = [str(name) for name in given if str(name) not in known]
        if missing:
            raise ValueError(f"Unknown feature {missing[0]!r}; use column numbers, or names that X had.")
        return np.array([known[str(name)] for name in given], np.intp)

    def _names_of(self, index: NDArray[np.intp]) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names[index]]
