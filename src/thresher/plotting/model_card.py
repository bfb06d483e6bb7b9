"""What a fitted sparse model found, as plain values: for a table on a terminal, for a page, for machines."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from thresher.estimators._linear import SummaryLinear


@dataclass(frozen=True)
class Feature:
    """A selected feature.

    Attributes
    ----------
    name : str
    coefficient : float
        In the units of the data.
    standardized : float or None
        By how many standard deviations the response changes when the feature changes by one of its own.
    lower, upper : float or None
        Ends of a 95 % confidence interval, if there is one.
    """

    name: str
    coefficient: float
    standardized: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class ModelCard:
    """A fitted sparse model in a few numbers.

    Attributes
    ----------
    n_rows, n_columns : int
    sparsity : int
        The size in use; the features kept may be fewer.
    chosen_by : str or None
        How the size was chosen; None if it was given.
    intercept : float
    noise : float or None
        Standard deviation of the response about the model.
    r2 : float or None
        Share of the variance of the response that the model explains, on the rows it was fitted to.
    features : tuple of Feature
        Largest first.
    """

    n_rows: int
    n_columns: int
    sparsity: int
    chosen_by: str | None
    intercept: float
    noise: float | None
    r2: float | None
    features: tuple[Feature, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as dictionaries and lists."""
        return asdict(self)


def model_card(model: SummaryLinear) -> ModelCard:
    """Describe a fitted model; from its summary, so no rows are needed.

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.plotting.model_card import model_card
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> model = SparseRegressor().partial_fit(*SparseLinearStream(30, 3, signal=1.0, seed=4).draw(500))
    >>> [feature.name for feature in model_card(model).features]
    ['x1', 'x2', 'x0']
    """
    names = model._names_of(np.arange(model.n_features_in_)) or [f"x{j}" for j in range(model.n_features_in_)]
    summary, centred = model.summary_, bool(model.fit_intercept)
    spread_y = math.sqrt(summary.response_variance(centred))
    scale = np.sqrt(summary.variance(centred))
    noise = _noise(model)
    bounds = _bounds(model)
    coef, features = model.coef_, []
    for j in sorted(np.flatnonzero(coef), key=lambda j: -abs(coef[j]) * scale[j]):
        standardized = float(coef[j] * scale[j] / spread_y) if spread_y > 0.0 else None
        features.append(Feature(names[j], float(coef[j]), standardized, *bounds.get(int(j), (None, None))))
    left = 2.0 * summary.loss(coef, None if centred else 0.0)
    return ModelCard(
        n_rows=model.n_samples_seen_,
        n_columns=model.n_features_in_,
        sparsity=model.sparsity_,
        chosen_by=model.selection_.method if hasattr(model, "selection_") else None,
        intercept=model.intercept_,
        noise=noise,
        r2=1.0 - left / spread_y**2 if spread_y > 0.0 else None,
        features=tuple(features),
    )


def card_facts(card: ModelCard) -> dict[str, str]:
    """The numbers of a card that are not about single features, as text."""
    chosen = f"at most {card.sparsity}, chosen by {card.chosen_by}" if card.chosen_by else f"at most {card.sparsity}"
    facts = {
        "Rows": f"{card.n_rows:,}",
        "Features": f"{len(card.features)} of {card.n_columns:,} ({chosen})",
        "Intercept": f"{card.intercept:.6g}",
    }
    if card.noise is not None:
        facts["Noise"] = f"{card.noise:.4g} (standard deviation)"
    if card.r2 is not None:
        facts["R2 on these rows"] = f"{card.r2:.4f}"
    return facts


def number(value: float | None, how: str) -> str:
    """A number, or a dash if there is none."""
    return "–" if value is None else format(value, how)  # noqa: RUF001


def interval(lower: float | None, upper: float | None) -> str:
    """Two ends, or a dash if there are none."""
    return "–" if lower is None or upper is None else f"{lower:.4g} to {upper:.4g}"  # noqa: RUF001


def _noise(model: SummaryLinear) -> float | None:
    try:
        return math.sqrt(model.noise_variance())
    except ValueError:  # no degrees of freedom
        return None


def _bounds(model: SummaryLinear) -> dict[int, tuple[float, float]]:
    """Confidence bounds by feature, where the rows tell."""
    if not len(model.support_):
        return {}
    try:
        found = model.confidence_intervals()
    except ValueError:
        return {}
    ends = zip(found.features, found.lower, found.upper, strict=True)
    return {int(j): (float(low), float(high)) for j, low, high in ends if math.isfinite(low) and math.isfinite(high)}
