"""The picture of a stream that changes: coefficients over time, and how many recent rows they rest on."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thresher._utils.arrays import ArrayLike
from thresher.plotting._style import feature_names, standard_scale
from thresher.plotting.history_displays import CoefficientsDisplay, traced


class DriftDisplay(CoefficientsDisplay):
    """Coefficients in use as rows came in, the recent rows that they rest on as a band, and where drift was detected.

    The band shows the effective number of rows as a share of all rows so far, in the lowest quarter of the picture.

    Parameters
    ----------
    n_samples : array-like of shape (m,)
        Row counts.
    coef : array-like of shape (m, k)
        Coefficients of some features at each.
    names : sequence of str
        Their names.
    effective_rows : array-like of shape (m,)
        How many rows the coefficients rest on.
    detected : array-like of bool, shape (m,)
        Whether recent rows were followed.
    standardized : bool, default=False
        Whether coefficients are in standard deviations of the response per one of the feature.
    target : str, default="y"
        What the response is called.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
    lines_ : list of matplotlib lines
        Of the coefficients, in the order of `names`.
    band_ : matplotlib collection
        Of the effective rows.
    changes_ : list of int
        Row counts at which drift was detected, marked by vertical lines.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.plotting import DriftDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 10))
    >>> y = np.where(np.arange(4000) < 2000, 1.0, -1.0) * X[:, 3] + rng.standard_normal(4000)
    >>> display = DriftDisplay.from_estimator(SparseRegressor().partial_fit(X, y))
    >>> display.names[1], [2000 < change < 2500 for change in display.changes_]
    ('x3', [True])
    """

    title: ClassVar[str] = "Coefficients in a stream that changes"
    caption: ClassVar[str] = "Band at the foot: how many rows coefficients rest on, as a share of all rows so far."
    early: ClassVar[float] = 0.0

    def __init__(
        self,
        n_samples: ArrayLike,
        coef: ArrayLike,
        names: Sequence[str],
        effective_rows: ArrayLike,
        detected: ArrayLike,
        standardized: bool = False,
        target: str = "y",
    ) -> None:
        self.effective_rows = np.asarray(effective_rows, float)
        self.detected = np.asarray(detected, bool)
        began = np.flatnonzero(self.detected & ~np.concatenate([[False], self.detected[:-1]]))
        changes = [int(n) for n in np.asarray(n_samples)[began]]
        super().__init__(n_samples, coef, names, standardized, changes, target)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, standardized: bool = True, n_features: int = 12, target: str = "y", ax: Any = None
    ) -> Self:
        """Draw a fitted `SparseRegressor`, from its ``drift_history_``.

        Parameters
        ----------
        estimator : SparseRegressor
        standardized : bool, default=True
            Draw effects in standard deviations (those of all rows so far), which can be compared.
        n_features : int, default=12
            How many features to draw: the largest now, in units of their column scales, then the largest ever.
        target : str, default="y"
            What the response is called.
        ax : matplotlib axes, optional
        """
        check_is_fitted(estimator, "summary_")
        history = getattr(estimator, "drift_history_", ())
        if not history:
            raise ValueError(f"There is no history of drift: {_why_none(estimator)}")
        scale = standard_scale(estimator)
        features, coef = traced(history, estimator.coef_, scale, n_features)
        rows = [record.effective_rows if record.detected else record.n_samples for record in history]
        return cls(
            [record.n_samples for record in history],
            coef * (scale[features] if standardized else 1.0),
            feature_names(estimator, features),
            rows,
            [record.detected for record in history],
            standardized,
            target,
        ).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        super().plot(ax=ax)
        ax, colours = self.ax_, self.palette_
        ax.set_xscale("linear")
        self.changes_ = self.changes
        # A quarter more room at the foot, for the band.
        low, high = ax.get_ylim()
        low -= (high - low) / 3.0
        ax.set_ylim(low, high)
        share = np.minimum(self.effective_rows / np.maximum(self.n_samples, 1), 1.0)
        top = low + 0.2 * (high - low) * share
        self.band_ = ax.fill_between(self.n_samples, low, top, color=colours.accent, alpha=0.2, linewidth=0, step="mid")
        return self


def _why_none(estimator: Any) -> str:
    if estimator.summary_.forgets:
        return "drift is not looked for with half_life or window. CoefficientsDisplay draws the coefficients."
    if not hasattr(estimator, "drift_history_"):
        return f"only SparseRegressor looks for drift, and this is a {type(estimator).__name__}."
    if estimator.drift is None:
        return "the model has drift=None; stream the rows through partial_fit with drift='auto'."
    return "stream the rows through partial_fit, some hundreds or more."
