"""What sparse linear models offer once they are fitted: predictions, a path, a diagnosis, and how sure they are."""

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import ArrayLike, Floats, Integers
from thresher._utils.checks import SMALLEST, check_features, check_positive_integer, check_summary
from thresher._utils.feature_names import name_of
from thresher._utils.locks import locked
from thresher._utils.warnings import warn_caller
from thresher.estimators._base import FEWEST_TO_WARN, StreamingRows
from thresher.estimators._candidates import Candidates
from thresher.estimators._sparse_linear import SparseLinear
from thresher.estimators._tables import TableRows
from thresher.io.schema import Anything, Count, Flag, Is, Labels, Maybe, Tuple, part
from thresher.online.error_history import ErrorHistory
from thresher.online.prequential import Prequential
from thresher.online.samples import Rows
from thresher.selection.criteria import Criterion
from thresher.selection.ebic import Ebic
from thresher.selection.history import History, stability
from thresher.selection.subset_family import SubsetFamily
from thresher.solvers.posterior import Posterior, posterior
from thresher.sparsity.groups import Groups
from thresher.summaries._shifted import Sums
from thresher.summaries.gram import Gram

if TYPE_CHECKING:  # what few models are asked for is imported when they are
    from thresher.inference.diagnostics import Diagnosis
    from thresher.inference.intervals import Intervals
    from thresher.inference.model_summary import ModelSummary


class SummaryLinear(SparseLinear, TableRows):
    """A sparse linear model of all rows that a Gram has seen; all questions are answered from it, at any time."""

    _schema = part(
        lambda model: model.n_features_in_ == model.summary_.n_features,
        lambda model: (model._solved.groups is None) or len(model._solved.groups.index) == model.n_features_in_,
        n_features_in_=Count(1),
        feature_names_in_=Maybe(Labels("n_features_in_")),
        summary_=Is(Gram, shared=True),
        _growing=Maybe(Flag()),
        _columns_by_name=Maybe(Flag()),
        _warned_of=Maybe(Count()),
        _warned_of_vanishing=Maybe(Flag()),
        _grouped=Maybe(Tuple(Anything(), Is(Groups, shared=True))),
    )
    _summary_type = Gram
    summary_: Gram
    n_features_in_: int
    sparsity: int | str
    fit_intercept: bool
    dtype: str
    groups: ArrayLike | None
    _sampled: tuple[int, int, int, bool, Posterior] | None
    # Computed when it is read, so not part of what is saved.
    _transient: ClassVar[tuple[str, ...]] = (*StreamingRows._transient, "_sampled")
    # Whether columns may still appear, so that it is no mistake to ask for more features than there are.
    _growing: bool = False

    @property
    @abstractmethod
    def selection_history_(self) -> History:
        """What was chosen when, while rows came in."""

    @property
    @abstractmethod
    def _family(self) -> SubsetFamily:
        """The models to choose from."""

    @property
    @abstractmethod
    def _scored(self) -> Prequential:
        """How well rows were predicted before they were learned."""

    @property
    @locked
    def prequential_r2_(self) -> float | None:
        """Share of the variance explained on rows predicted before they were learned; None before there are any."""
        check_is_fitted(self, "summary_")
        return self._scored.r2

    @property
    @locked
    def prequential_history_(self) -> ErrorHistory:
        """Errors on rows predicted before they were learned, by parts of the stream. Empty after ``fit``."""
        check_is_fitted(self, "summary_")
        return self._scored.history(self.summary_.n_samples)

    @property
    def _sparse_coef(self) -> Floats:
        """Coefficients that are zero outside the support."""
        return self.coef_

    @property
    def _sparse_intercept(self) -> float:
        """The intercept that belongs to them."""
        return self.intercept_

    @property
    def _chosen_by(self) -> str | None:
        """What chose the size; None if it was given."""
        return self.selection_.method if hasattr(self, "selection_") else None

    @property
    def selected_groups_(self) -> NDArray[Any]:
        """Labels of the groups that are kept, in the order in which they first appear."""
        check_is_fitted(self, "summary_")
        groups = self._family.groups
        if groups is None:
            raise AttributeError("selected_groups_ needs groups; this model was fitted without.")
        names: NDArray[Any] = groups.names[groups.norms(self._sparse_coef) > 0.0]
        return names

    def predict(self, X: Any) -> Floats:
        """Predicted responses.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix of shape (n, n_features), or Arrow table
            Columns of an Arrow table are found by name; others are ignored. A frame of pandas or polars is such a
            table if the model was fitted to one.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "summary_")
        if not self._predicted_by_name(X):
            return super().predict(X)
        now = self._coefficients()
        return np.concatenate([self._predict(rows, *now) for rows in self._table_to_predict(X)])

    @locked
    def path(self, max_sparsity: int | None = None) -> Candidates:
        """The models of every size, by forward selection, backward elimination and swaps on the rows so far.

        Parameters
        ----------
        max_sparsity : int, optional
            The largest size. By default the path ends when larger models are clearly worse by the extended BIC.

        Returns
        -------
        Candidates
            Prints as a table; ``to_frame()`` for a data frame.
        """
        check_is_fitted(self, "summary_")
        check_summary(self.summary_, Gram)
        most = None if max_sparsity is None else check_positive_integer(max_sparsity, "max_sparsity")
        selection = getattr(self, "selection", None)
        criterion = selection if isinstance(selection, Criterion) else Ebic()
        path = self._family.path(self.summary_, most, criterion)
        fits = [path.fit(size) for size in path.sizes]
        return Candidates(
            sizes=path.sizes,
            coef=np.array([fit.coef(self.n_features_in_) for fit in fits]),
            intercept=np.array([fit.intercept for fit in fits]),
            loss=path.loss,
            criterion=criterion.criterion(path),
            names=None if (names := self._names_of(np.arange(self.n_features_in_))) is None else tuple(names),
        )

    @locked
    def noise_variance(self) -> float:
        """The variance of the noise: residual sum of squares over n less the coefficients and the intercept."""
        from thresher.inference.intervals import noise_variance

        return noise_variance(self.summary_, self._sparse_coef, self._family.centred)

    @locked
    def diagnose(self) -> "Diagnosis":
        """What could be wrong: too few rows, conditioning, near-twins, constant columns, noise, an unstable support.

        A model without an intercept is told to have one if the mean of y exceeds the standard deviation of y.

        Returns
        -------
        Diagnosis
            Prints as text, shows as a table in notebooks; ``to_dict()`` for machines.
        """
        from thresher.estimators._missing_intercept import missing_intercept
        from thresher.inference.diagnostics import Diagnosis, diagnose

        coef, n = self._sparse_coef, self.n_samples_seen_
        since = n - self.summary_.horizon if self.summary_.forgets else n / 2
        recent = [record for record in self.selection_history_ if record.n_samples >= since]
        names = getattr(self, "feature_names_in_", None)
        found = diagnose(
            self.summary_,
            coef,
            max(int(np.count_nonzero(coef)), 1),
            self._family.centred,
            None if names is None else list(names),
            [*((record.n_samples, record.support) for record in recent), (n, np.flatnonzero(coef))],
            self._scored.residual_moments,
            not isinstance(self.sparsity, str),
        )
        missing = missing_intercept(self.summary_, self._family.centred)
        return found if missing is None else Diagnosis((*found.findings, missing))

    @locked
    def summary(self, level: float = 0.95) -> "ModelSummary":
        """The fitted model as a table: coefficients with their errors and intervals, and a diagnosis.

        While coefficients follow recent rows, because the stream has changed, they have no intervals.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage of each interval.

        Returns
        -------
        ModelSummary
            Prints as text, shows as HTML in notebooks; ``to_frame()`` for a data frame, ``to_dict()`` for machines.

        Examples
        --------
        >>> from thresher import SparseRegressor
        >>> from thresher.io.sources.synthetic import SparseLinearStream
        >>> model = SparseRegressor().partial_fit(*SparseLinearStream(30, 3, signal=1.0, seed=4).draw(500))
        >>> [term.name for term in model.summary().terms]
        ['(intercept)', 'x1', 'x2', 'x0']
        """
        from thresher.inference.intervals import check_level
        from thresher.inference.model_summary import ModelSummary

        check_is_fitted(self, "summary_")
        check_level(level)
        return ModelSummary(
            title=type(self).__name__,
            n_samples=self.n_samples_seen_,
            n_features=self.n_features_in_,
            prequential_r2=self._scored.r2,
            prequential_n_samples=self._scored.n_samples,
            level=level,
            findings=self.diagnose().findings,
            **self._explained(level),
        )

    def _explained(self, level: float) -> dict[str, Any]:
        """Fields of the summary that are about the coefficients in use."""
        from thresher.inference.model_summary import terms_of

        coef, summary, centred = self._sparse_coef, self.summary_, self._family.centred
        intervals = noise = sampled = None
        try:
            noise = math.sqrt(self.noise_variance())
            if self._family.groups is None:
                intervals = self.confidence_intervals(level, "posterior")
                sampled = self._sample_against_references()
            else:
                intervals = self.confidence_intervals(level)
        except ValueError:  # too few rows to tell, which the table says
            pass
        total, selection = summary.response_variance(centred), getattr(self, "selection_", None)
        chosen_by = self._chosen_by
        left = 2.0 * summary.loss(coef, None if centred else 0.0)
        terms = terms_of(summary, coef, self._sparse_intercept, centred, intervals, self._all_names(), sampled)
        return {
            "selection": chosen_by,
            "criterion": selection.value if selection is not None and selection.method == chosen_by else None,
            "r2": 1.0 - left / total if total > 0.0 else None,
            "n_kept": int(np.count_nonzero(coef)),
            "noise": noise,
            "intervals": "none" if intervals is None else intervals.method,
            "terms": terms,
            "n_effective": summary.weight if summary.forgets else None,
        }

    @locked
    def _sample(self) -> Posterior:
        """The posterior of all rows so far, computed once until there are more."""
        summary, centred = self.summary_, self._family.centred
        seed = int(getattr(self, "random_state", 0))
        key = summary.n_samples, summary.n_features, seed, centred
        now = self.__dict__.get("_sampled")
        if now is None or now[:-1] != key:
            now = self._sampled = (*key, posterior(summary, fit_intercept=centred, random_state=seed))
        return now[-1]

    def _sample_against_references(self) -> Posterior:
        """The same, of a design without the reference levels of categories, which have coefficient zero then.

        With all levels, other sets of them would explain the same, and the posterior would be spread over these.
        """
        from thresher.inference.categories import find_categories, reference_levels

        summary, centred = self.summary_, self._family.centred
        references = reference_levels(summary, find_categories(summary), centred, np.flatnonzero(self._sparse_coef))
        if not len(references):
            return self._sample()
        others = np.setdiff1d(np.arange(summary.n_features), references)
        part = posterior(summary.select(others), fit_intercept=centred, random_state=getattr(self, "random_state", 0))
        return part.among(others, summary.n_features)

    def support_stability(self) -> Floats:
        """How often each feature was kept while rows came in, recent rows counting more: row t counts for t.

        Returns
        -------
        ndarray of shape (n_features,)
            Between 0 (never) and 1 (always).
        """
        check_is_fitted(self, "summary_")
        return stability(self.selection_history_, self.n_samples_seen_, self.n_features_in_)

    @locked
    def confidence_intervals(
        self,
        level: float = 0.95,
        method: str = "debiased",
        features: ArrayLike | None = None,
        split_at: int | None = None,
    ) -> "Intervals":
        """Intervals for coefficients, one at a time.

        Parameters
        ----------
        level : float, default=0.95
            Nominal coverage of each interval.
        method : {"debiased", "posterior", "split"}, default="debiased"
            ``"posterior"`` averages over models (``thresher.posterior``). It is the one for features that were kept by
            the same rows, and the one that ``summary`` prints; it does not know groups. ``"debiased"`` corrects for
            having chosen the support from the same rows and gives an interval for any feature; it needs many rows,
            s log d well below the root of n. ``"split"`` takes the support as it was after `split_at` rows and uses
            only the rows after: exact, for the coefficients of the best linear prediction from that support.
        features : array-like of int or of feature names, optional
            Which coefficients. By default those of the support.
        split_at : int, optional
            Row count at which ``"split"`` freezes the support: as it was chosen last at or before it. A fifth more rows
            make a new choice available. By default half of the rows.

        Returns
        -------
        Intervals
            Prints as a table; ``to_frame()`` for a data frame, ``to_dict()`` for machines. Once drift was detected,
            they are about all rows, counted equally, while `coef_` follows recent rows; a warning says so.
        """
        from thresher.inference.intervals import (
            check_level,
            debiased_intervals,
            posterior_intervals,
            split_intervals,
        )
        from thresher.inference.robust import widening

        check_is_fitted(self, "summary_")
        check_level(level)
        if method not in ("debiased", "posterior", "split"):
            raise ValueError(f"method must be 'debiased', 'posterior' or 'split', got {method!r}")
        self._warn_of_drift()
        index = None if features is None else self._feature_numbers(features)
        coef, centred = self._sparse_coef, self._family.centred
        if method != "split":
            index = np.flatnonzero(coef) if index is None else index
            names = self._names_of(index)
            if method == "posterior":
                now = self._sample_against_references()
                found = posterior_intervals(self.summary_, now, index, level, centred, names=names)
            else:
                found = debiased_intervals(self.summary_, coef, index, level, centred, names=names)
            return found.widened(widening(self.summary_, self._scored.residual_moments, centred, index))
        if self.summary_.forgets:
            raise ValueError("method='split' needs rows that count equally, and this model forgets; use 'debiased'.")
        at = self.n_samples_seen_ // 2 if split_at is None else check_positive_integer(split_at, "split_at")
        frozen = [record for record in self.selection_history_ if record.n_samples <= at and record.part is not None]
        if not frozen:
            raise ValueError(
                f"Splitting needs a support from before row {at}, and there is none. partial_fit keeps the support "
                "whenever there are a fifth more rows, and forgets what is older than an eighth of them; give a larger "
                "split_at, stream the rows instead of fit, or use method='debiased'."
            )
        then = frozen[-1]
        later = self.summary_.select(then.support).subtract(then.part)
        result = split_intervals(later, level, centred, features=then.support, names=self._names_of(then.support))
        return result if index is None else result.only(index)

    def _warn_of_drift(self) -> None:
        """Warn if `coef_` follows recent rows, so that intervals are not about it."""

    def _checked_groups(self, n_features: int) -> Groups | None:
        """Groups with a label for every column, or an error that says what is wrong with the parameter."""
        if self.groups is None:
            return None
        labels, groups = getattr(self, "_grouped", (None, None))
        if groups is None or labels is not self.groups:
            try:
                groups = Groups(self.groups, 1)
            except ValueError as error:
                raise ValueError(f"groups: {error}") from error
            self._grouped = self.groups, groups
        if len(groups.index) != n_features:
            raise ValueError(
                f"groups has {len(groups.index)} labels and X has {n_features} columns; give one per column."
            )
        return groups

    def _given_size(self, groups: Groups | None) -> int | None:
        """The number of features, or groups, to keep; None if it is to be chosen."""
        if isinstance(self.sparsity, str):
            return None
        most = self.summary_.n_features if groups is None else groups.n_groups
        if self.sparsity > most and self.sparsity != getattr(self, "_warned_of", None) and not self._growing:
            self._warned_of = self.sparsity
            what = "columns" if groups is None else "groups"
            warn_caller(f"sparsity={self.sparsity} exceeds the number of {what}; using {most}.", UserWarning)
        return int(min(self.sparsity, most))

    def _warn_of_vanishing(self, sums: Sums) -> None:
        """Tell once of a response or of columns whose squares vanish, so that they count as constant."""
        if hasattr(self, "_warned_of_vanishing"):
            return
        small = np.flatnonzero((sums.sum_x != 0.0) & (sums.sum_xx < sums.weight * SMALLEST**2))
        what = "The response" if sums.sum_y != 0.0 and sums.sum_yy < sums.weight * SMALLEST**2 else ""
        if not what and len(small):
            first = name_of(int(small[0]), getattr(self, "feature_names_in_", None))
            what = f"Column {first}{' and others' if len(small) > 1 else ''}"
        if what:
            self._warned_of_vanishing = True
            warn_caller(f"{what} varies by less than {SMALLEST:g}, so its squares vanish; rescale it.", UserWarning)

    def _check(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Rows:
        dtype = np.dtype(self.dtype) if reset else self.summary_.dtype
        return self._check_rows(X, y, sample_weight, reset, dtype)

    def _storage(self) -> np.dtype[Any]:
        return np.dtype(self.dtype)

    def _new_summary(self, rows: Rows) -> Gram:
        return Gram(rows.X.shape[1], self.dtype)

    # -- columns that appear while rows do -----------------------------------------------------------------

    @abstractmethod
    def _widen(self, n_features: int) -> None:
        """Append columns that were zero in every row so far; all that was learned stays."""

    @locked
    def _learn(self, rows: Rows, names: NDArray[Any] | None = None) -> None:
        """``partial_fit`` on rows that were checked elsewhere; columns beyond those known are new, if without names."""
        d = rows.X.shape[1]
        if d != getattr(self, "n_features_in_", 0) or not self._as_adopted():
            with self._unchanged_by_failure():
                self._check_parameters()
                if not hasattr(self, "summary_"):
                    self._growing = names is None
                    if names is None:
                        self._forget_features(d)
                    else:
                        self.n_features_in_, self.feature_names_in_ = d, names
                    self._start(self._new_summary(rows))
                elif d > self.n_features_in_:
                    if self.groups is not None:
                        raise ValueError("groups has a label for each column; with groups, no column may come later.")
                    self._widen(d)
                self._adopt_parameters()
                rows = self._timed(rows, rows.times)
                self._plan(len(rows))  # raises before columns are appended
        else:
            rows = self._timed(rows, rows.times)
        self._absorb(rows, self._plan(len(rows)))
        if rows.weights is not None:
            self._warn_of_weights(rows.weights, FEWEST_TO_WARN)

    # -- names ---------------------------------------------------------------------------------------------

    def _feature_numbers(self, features: ArrayLike) -> Integers:
        given = np.atleast_1d(np.asarray(features))
        if given.dtype.kind not in "USO":
            return check_features(given, self.n_features_in_)
        known = {str(name): j for j, name in enumerate(getattr(self, "feature_names_in_", ()))}
        missing = [str(name) for name in given if str(name) not in known]
        if missing:
            raise ValueError(f"Unknown feature {missing[0]!r}; use column numbers, or names that X had.")
        return np.array([known[str(name)] for name in given], np.intp)

    def _all_names(self) -> list[str]:
        """The names of all features; x0, x1, ... if they have none."""
        names = getattr(self, "feature_names_in_", None)
        return [name_of(j, names) for j in range(self.n_features_in_)]

    def _names_of(self, index: Integers) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names[index]]
