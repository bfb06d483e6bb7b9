"""From the rows so far to the constants of the paper's theorems: what is guaranteed for Algorithm 1."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher import theory
from thresher._utils.arrays import ArrayLike, Floats
from thresher._utils.checks import check_positive_integer
from thresher.inference.sparse_eigenvalues import sparse_eigenvalues
from thresher.summaries.gram import Gram

# Steps this much shorter than the longest allowed count as that one: rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Guarantee:
    """The constants of Theorems 1 and 2 for some rows.

    Attributes
    ----------
    s_star, s : int
        Size of the truth that is assumed, and projection size.
    alpha, smoothness : float
        Bounds on the least and the largest curvature between points of size s: at least alpha, at most L.
    kappa : float
        smoothness / alpha; inf if alpha is zero.
    eta : float
        The step size.
    minimum_size : int or None
        The smallest s that is large enough; None if there is none.
    critical_steps : float
        K_0; NaN if s is too small.
    n_steps : int
        K.
    delta : float
        Contraction of the squared error per round; NaN if there is none.
    n_samples : int
        Rows that the constants come from.
    reason : str
        Why the theorems do not apply; empty if they do.
    """

    s_star: int
    s: int
    alpha: float
    smoothness: float
    kappa: float
    eta: float
    minimum_size: int | None
    critical_steps: float
    n_steps: int
    delta: float
    n_samples: int
    reason: str

    @property
    def applies(self) -> bool:
        """Whether the theorems apply, if these constants also hold for the rows to come."""
        return not self.reason

    def error_bound(self, t: ArrayLike, *, squared_error: float, sigma_x: float) -> Floats:
        """Bound on the expected squared error after t more rounds of one row, from an estimate with `squared_error`.

        `sigma_x` is the constant of the noise; ``theory.noise_constant`` gives one.
        """
        if not self.applies:
            raise ValueError(f"The theorems do not apply: {self.reason}")
        return theory.online_error_bound(
            t,
            squared_error=squared_error,
            delta=self.delta,
            s=self.s,
            alpha=self.alpha,
            sigma_x=sigma_x,
            t0=self.n_samples,
            closed_form=False,
        )

    def __str__(self) -> str:
        least = "none" if self.minimum_size is None else f"{self.minimum_size}"
        lines = [
            f"rows {self.n_samples}, s* = {self.s_star}, s = {self.s} (least s: {least})",
            f"alpha = {self.alpha:.4g}, L = {self.smoothness:.4g}, kappa = {self.kappa:.4g}, eta = {self.eta:.4g}",
            f"K = {self.n_steps} (K0 = {self.critical_steps:.3g}), delta = {self.delta:.3g}",
            "the theorems apply" if self.applies else f"the theorems do not apply: {self.reason}",
        ]
        return "\n".join(lines)


def guarantee(
    summary: Gram,
    s_star: int,
    *,
    s: int | None = None,
    eta: float | None = None,
    n_steps: int | None = None,
    shape: tuple[int, int] | None = None,
) -> Guarantee:
    """What the paper's theorems guarantee for Algorithm 1 on rows like these.

    Curvatures are bounded from the summary: for vectors at level 2s, by ``sparse_eigenvalues``; for matrices, by the
    extreme eigenvalues of the whole second moment, as nothing better is known that can be computed. The bounds are on
    the safe side. With fewer rows than columns alpha is usually zero, and nothing is guaranteed.

    The theorems want these constants in every round. They come from the rows so far, so this is a statement about
    streams whose moments stay as they are.

    Parameters
    ----------
    summary : Gram
        The rows so far; those of matrices have d1 d2 columns.
    s_star : int
        Nonzero entries, or rank, of the truth.
    s : int, optional
        Projection size. By default the smallest that is large enough.
    eta : float, optional
        Step size, at most 1/L. By default 1/L.
    n_steps : int, optional
        Steps per round. By default the fewest that contract.
    shape : tuple of int, optional
        (d1, d2), for ranks instead of sparse vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import Gram
    >>> from thresher.inference.guarantees import guarantee
    >>> X = np.random.default_rng(0).standard_normal((20_000, 12))
    >>> found = guarantee(Gram(12).absorb(X, np.zeros(20_000)), 2)
    >>> print(found)
    rows 20000, s* = 2, s = 3 (least s: 3)
    alpha = 0.9576, L = 1.033, kappa = 1.079, eta = 0.9677
    K = 1 (K0 = -1.01), delta = 0.158
    the theorems apply
    """
    sides = (summary.n_features,) if shape is None else tuple(check_positive_integer(side, "shape") for side in shape)
    if int(np.prod(sides)) != summary.n_features:
        raise ValueError(f"The summary has {summary.n_features} features; shape={shape} has another product.")
    most = min(sides)
    if check_positive_integer(s_star, "s_star") > most:
        raise ValueError(f"s_star = {s_star} exceeds {most}, the largest size that there is.")
    spectrum = _Curvatures(summary, shape is not None)
    least = _least_size(spectrum, s_star, eta, most)
    size = min(most, least or most) if s is None else check_positive_integer(s, "s")
    if not s_star <= size <= most:
        raise ValueError(f"s must be between s_star = {s_star} and {most}, got {size}.")
    alpha, smoothness = spectrum.at(size)
    step = eta if eta is not None else 1.0 / smoothness
    reason = ""
    if alpha <= 0.0:
        reason = "the least curvature is not bounded away from zero; more rows, or fewer columns, are needed."
    elif step * smoothness > 1.0 + ROUNDING:
        reason = f"eta = {step:.4g} exceeds 1/L = {1.0 / smoothness:.4g}."
    elif size < theory.minimum_size(s_star, eta=step, alpha=alpha, smoothness=smoothness):
        reason = "s is not above s*/(eta alpha)^2."
    critical, delta, steps = np.nan, np.nan, n_steps or 1
    if not reason:
        constants: dict[str, Any] = {"s": size, "s_star": s_star, "eta": step, "alpha": alpha, "smoothness": smoothness}
        critical = theory.critical_steps(**constants)
        enough = theory.minimum_steps(**constants)
        steps = enough if n_steps is None else check_positive_integer(n_steps, "n_steps")
        if steps < enough:
            reason = f"K = {steps} steps do not contract; it takes {enough}."
        else:
            delta = theory.contraction(steps, **constants)
    kappa = smoothness / alpha if alpha > 0.0 else np.inf
    return Guarantee(
        s_star, size, alpha, smoothness, kappa, step, least, critical, steps, delta, summary.n_samples, reason
    )


class _Curvatures:
    """Bounds on the curvature between two points of a size."""

    def __init__(self, summary: Gram, ranks: bool) -> None:
        self.summary, self.ranks = summary, ranks
        self.known: dict[int, tuple[float, float]] = {}

    def at(self, size: int) -> tuple[float, float]:
        """Alpha and L: differences of two such points have twice the size."""
        d = self.summary.n_features
        level = d if self.ranks else min(2 * size, d)
        if level not in self.known:
            found = sparse_eigenvalues(self.summary, level, centred=False, standardized=False)
            varies = found.n_columns == d  # a column of zeros has no curvature
            self.known[level] = found.smallest[0] if varies else 0.0, found.largest[1]
        return self.known[level]


def _least_size(curvatures: _Curvatures, s_star: int, eta: float | None, most: int) -> int | None:
    """The smallest s that is above s*/(eta alpha)^2 with the curvatures at level 2s, which get worse as s grows."""
    size = s_star
    while size <= most:
        alpha, smoothness = curvatures.at(size)
        step = 1.0 / smoothness if eta is None else eta
        if alpha <= 0.0 or step * smoothness > 1.0 + ROUNDING:
            return None
        enough = theory.minimum_size(s_star, eta=step, alpha=alpha, smoothness=smoothness)
        if enough <= size:
            return size
        size = enough  # with a larger size the condition only gets harder
    return None
