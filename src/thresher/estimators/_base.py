"""What every estimator has in common: parameters and rows are checked before any state changes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import chain
from operator import attrgetter, is_
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from thresher._utils.arrays import Floats
from thresher._utils.checks import check_range, check_summary, check_weights, refuse_masked
from thresher._utils.locks import LOCK, lock_of, locked
from thresher._utils.tolerances import TINY
from thresher._utils.warnings import warn_caller
from thresher.estimators._validation import is_plain
from thresher.io.checkpoint import Saving
from thresher.io.schema import Dict, Flag, Is, Maybe, Text, part
from thresher.online.samples import Rows, Samples
from thresher.summaries.entries import Entries
from thresher.summaries.gram import Gram
from thresher.summaries.multiresponse import MultiResponse

# Samples of a stream before its weights are judged.
FEWEST_TO_WARN = 20


@cache
def _reader(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """What reads all parameters of an estimator at once."""
    return attrgetter(*kind._parameter_constraints)


class _Unchanged:
    """A block that restores the attributes of an object if it fails; entered for every row, so no generator."""

    __slots__ = ("_before", "_failures", "_value")

    def __init__(self, value: Any, failures: type[BaseException]) -> None:
        self._value, self._failures = value, failures

    def __enter__(self) -> None:
        self._before = self._value.__dict__.copy()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and issubclass(kind, self._failures):
            self._value.__dict__ = self._before  # at once, for another thread may be reading


class Estimator(Saving, BaseEstimator):  # type: ignore[misc]
    """An estimator that is left exactly as it was by whatever it rejects."""

    _schema = part(
        lambda model: model._validate_params() is None,
        _sklearn_output_config=Maybe(Dict(Text(), keys=Text())),  # of set_output
    )
    # What is found out again when it is needed is not saved.
    _transient: ClassVar[tuple[str, ...]] = ("_checked_parameters", "_adopted", LOCK)

    def _unchanged_by_failure(self, failures: type[BaseException] = BaseException) -> "_Unchanged":
        """A block that leaves the model exactly as it was if it fails in one of these ways.

        Attributes are restored, not what they refer to: the block replaces what it changes or does not touch it.
        """
        return _Unchanged(self, failures)

    def _check_parameters(self) -> None:
        """Validate the parameters, unless they are the very objects that were validated before."""
        values = self._parameters()
        checked = getattr(self, "_checked_parameters", [])
        if len(checked) != len(values) or not all(map(is_, values, checked)):
            self._validate_params()
            self._checked_parameters = list(values)

    def _parameters(self) -> tuple[Any, ...]:
        """All parameters, in the order of their constraints."""
        return _reader(cast(Any, type(self)))(self)

    def _as_adopted(self) -> bool:
        """Whether the parameters are the very objects that took effect last."""
        return all(map(is_, self._parameters(), self.__dict__.get("_adopted", (None,))))

    def _forget_features(self, n_features: int) -> None:
        """Take columns by number, as scikit-learn does for arrays."""
        self.n_features_in_ = n_features
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.pop("_columns_by_name", None)

    def _check_rows(
        self, X: Any, y: Any, sample_weight: Any, reset: bool, dtype: np.dtype[Any], multi_output: bool = False
    ) -> Rows:
        """Checked rows, responses and weights. Sets or checks the features seen."""
        if reset:
            self.__dict__.pop("_columns_by_name", None)
        unnamed = reset or not hasattr(self, "feature_names_in_")
        plain = unnamed and is_plain(X, y, None if reset else self.n_features_in_, dtype, multi_output)
        if plain:
            rows, responses = X, y
            if reset:
                self._forget_features(X.shape[1])
        else:
            refuse_masked(X=X, y=y)
            if isinstance(X, list | tuple | np.ndarray) and np.asarray(X).dtype.kind in "US":
                raise ValueError("X holds strings; pass numbers.")
            try:
                rows, responses = validate_data(
                    self,
                    X,
                    y,
                    reset=reset,
                    accept_sparse="csr",
                    dtype=[np.float64, np.float32],
                    y_numeric=True,
                    multi_output=multi_output,
                )
            except ValueError as error:
                if "could not convert string to float" not in str(error):
                    raise
                raise ValueError(
                    f"X or y holds text: {error}. Encode such columns, with OneHotEncoder for example, or make them "
                    "categories and name the response: fit(frame, y='price')."
                ) from error
        responses = np.ascontiguousarray(responses, np.float64)
        weights = check_weights(sample_weight, rows.shape[0])
        if not plain or weights is not None:
            check_range(rows.data if issparse(rows) else rows, responses, weights, dtype)
        return Rows(rows, responses, weights)


class Streaming(Estimator, ABC):
    """An estimator that knows its samples by their summary, `summary_`."""

    _schema = part(summary_=Is(Gram, MultiResponse, Entries, shared=True), _warned_of_weights=Maybe(Flag()))
    _summary_type: ClassVar[Any]
    summary_: Any

    @locked
    def fit_summary(self, summary: Any) -> Self:
        """Fit from cross-products alone: as ``fit`` on the rows that the summary has seen.

        The summary is copied; ``partial_fit`` may go on from it.
        """
        with self._unchanged_by_failure():
            self._check_parameters()
            check_summary(summary, self._summary_type)
            self._take_summary(summary)
            self._start(self._own(summary))
            return self._settle()

    def _own(self, summary: Any) -> Any:
        """A copy to go on from. Rows that count less, or leave, are taken for as many as are effective now."""
        return summary.plain() if summary.forgets else summary.copy()

    @property
    def n_samples_seen_(self) -> int:
        """Rows, or observations, absorbed."""
        check_is_fitted(self, "summary_")
        return int(self.summary_.n_samples)

    def _partial_fit(self, *samples: Any, times: Any = None) -> Self:
        with lock_of(self):
            with self._unchanged_by_failure():
                self._check_parameters()
                first = not hasattr(self, "summary_")
                checked = self._check(*samples, reset=first)
                if first:
                    self._start(self._new_summary(checked))
                self._adopt_parameters()
                checked = self._timed(checked, times)
                plan = self._plan(len(checked))
            self._absorb(checked, plan)
            if checked.weights is not None:
                self._warn_of_weights(checked.weights, FEWEST_TO_WARN)
        return self

    def _timed(self, samples: Any, times: Any) -> Any:
        """The samples with their times in seconds, if they have any, which the summary must know what to do with."""
        if times is None and not self.summary_.forgets:
            return samples
        seconds = self.summary_.check_times(times, len(samples))
        return samples if seconds is None else replace(samples, times=seconds)

    @locked
    def _fit(self, *samples: Any, times: Any = None) -> Self:
        with self._unchanged_by_failure():
            self._check_parameters()
            checked = self._check(*samples, reset=True)
            if checked.weights is not None and not checked.weights.any():
                raise ValueError("All sample weights are zero; at least one must be positive.")
            self.__dict__.pop("_warned_of_weights", None)
            self._start(self._summarised(checked if times is None else replace(checked, times=times)))
            if checked.weights is not None:
                self._warn_of_weights(checked.weights, 2)
            return self._settle(checked)

    def _learn_blocks(self, blocks: Iterator[Any], learn: Callable[[Any], Any]) -> Self:
        """Learn from all blocks of a table, or from none if there is a bad one among them; the caller has the lock."""
        first, second = next(blocks), next(blocks, None)
        if second is None:  # one block is learned as a whole or not at all
            learn(first)
            return self
        before = deepcopy(self)
        try:
            for block in chain((first, second), blocks):
                learn(block)
        except Exception:
            self.__dict__ = vars(before) | {LOCK: lock_of(self)}  # at once, and others may be waiting for the lock
            raise
        return self

    def _warn_of_weights(self, weights: Floats, n_least: int) -> None:
        """Tell once that weights seem to be normalised: they count as repeats, so there are hardly any rows then.

        A stream is judged from `n_least` samples on. Whole numbers are taken for repeats.
        """
        n, total = self.summary_.n_samples, self.summary_.weight
        if n < n_least or total >= n / 2 or hasattr(self, "_warned_of_weights") or not (weights % 1.0).any():
            return
        if self.summary_.forgets:  # for another reason
            return
        self._warned_of_weights = True
        warn_caller(
            f"The weights of {n} rows sum to {total:.3g}. A weight of w counts a row w times, so the model is chosen "
            f"as if there were {total:.3g} rows. Multiply the weights by {n / max(total, TINY):.4g}, unless that is "
            "meant.",
            UserWarning,
        )

    # -- what a subclass provides ------------------------------------------------------------------------

    @abstractmethod
    def _check(self, *samples: Any, **reset: Any) -> Any:
        """Checked samples and weights. Sets (`reset`) or checks what is known of the columns."""

    @abstractmethod
    def _new_summary(self, samples: Any) -> Any:
        """An empty summary for such samples."""

    @abstractmethod
    def _summarised(self, samples: Any) -> Any:
        """A summary of these samples."""

    @abstractmethod
    def _take_summary(self, summary: Any) -> None:
        """Learn from a summary what else the data would have told."""

    @abstractmethod
    def _start(self, summary: Any) -> None:
        """Begin with a summary and no estimate."""

    @abstractmethod
    def _adopt_parameters(self) -> None:
        """Let parameters that were set since the last call take effect, on the same summary."""

    def _plan(self, n_samples: int) -> Any:
        """What `_absorb` needs to know for so many samples; raises what parameters may raise, before it begins."""
        return None

    @abstractmethod
    def _absorb(self, samples: Any, plan: Any) -> None:
        """Add checked samples; an interrupt falls between blocks, and finished blocks count."""

    @abstractmethod
    def _settle(self, samples: Samples | None = None) -> Self:
        """The estimate for all samples in the summary; cross-validation needs the samples, too."""


class StreamingRows(Streaming):
    """An estimator that learns from rows X with responses y."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from more rows.

        Parameters
        ----------
        X : array-like, dataframe or sparse matrix
            One row per sample, shaped as in the description of the class.
        y : array-like
            Responses.
        sample_weight : array-like of shape (n,), optional
            Non-negative; a weight of two counts a row twice.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, sample_weight)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn from these rows, all at once.

        Parameters and return value are those of ``partial_fit``.
        """
        return self._fit(X, y, sample_weight)

    def _summarised(self, samples: Rows) -> Any:
        summary = self._new_summary(samples)
        if samples.times is None and not summary.forgets:
            return summary.absorb_checked(samples.X, samples.y, samples.weights)
        times = summary.check_times(samples.times, len(samples))
        return summary.absorb_checked(samples.X, samples.y, samples.weights, times)

    def _take_summary(self, summary: Any) -> None:
        self._forget_features(summary.n_features)
