"""Which memory predicts best now: a mixture of the levels, and a gate that decides whether it is used at all."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from thresher._utils.arrays import Floats
from thresher.drift._score import score
from thresher.drift.settings import BLOCK, DOUBT, ENOUGH, EVIDENCE_HALF_LIFE, N_LEVELS, PRIOR, ROUNDING
from thresher.io.schema import Array, Count, Flag, Number, Schema


@dataclass(eq=False)
class Mixing:
    """Weights of the levels by how well each predicted, `horizon` rows ahead, with a share that is always returned.

    Weights follow the fixed share rule, so that the mixture does nearly as well as the best level on every stretch of
    rows. The gate opens when the mixture has predicted better than all rows did, by some standard errors of the
    accumulated difference, and closes when it has not been better of late. While it is closed, the estimate is that of
    all rows.

    References
    ----------
    M. Herbster and M. K. Warmuth (1998). Tracking the best expert. Machine Learning 32, 151-178.
    """

    _schema = Schema(
        lambda mixing: len(mixing.weights) == N_LEVELS,
        lambda mixing: abs(mixing.weights.sum() - 1.0) < 1e-6,
        lambda mixing: len(mixing.losses) == N_LEVELS + 1,
        weights=Array("levels", least=0.0, most=1.0),
        losses=Array("experts", least=-1.0),
        past=Array("lag", "levels", "terms"),
        at=Count(below="lag"),
        advantage=Number(),
        squares=Number(least=0.0),
        is_open=Flag(),
    )
    weights: Floats
    losses: Floats  # mean squared errors of the levels and of the mixture; negative before there are any
    past: Floats  # (lag, levels, s + 1): coefficients of the last blocks, a ring
    at: int = 0  # the oldest of them
    advantage: float = 0.0
    squares: float = 0.0
    is_open: bool = False

    @classmethod
    def new(cls, coef: Floats, horizon: int) -> "Mixing":
        """Without evidence."""
        return cls(PRIOR.copy(), np.full(N_LEVELS + 1, -1.0), repeated(coef, horizon))

    def restart(self, coef: Floats) -> None:
        """Let rows be predicted by these coefficients, as there are no earlier ones of the same features."""
        self.past, self.at = np.repeat(coef[None], len(self.past), axis=0), 0

    def reopen(self) -> None:
        """After a break: leave all rows behind."""
        self.weights[:-1], self.weights[-1] = PRIOR[:-1] / PRIOR[:-1].sum(), 0.0
        self.advantage = max(self.advantage, ENOUGH * sqrt(self.squares + DOUBT))
        self.is_open = True

    @property
    def noise(self) -> float:
        """The variance of the noise: the smallest mean squared error; zero before any row was scored."""
        least = float(self.losses.min())
        return max(least, ROUNDING) if least >= 0.0 else 0.0

    def score(self, rows: Floats, errors: Floats) -> None:
        """Predict a block of rows; `errors` become those of the mixture."""
        advantage, squares = score(rows, self.past[self.at], self.weights, self.losses, errors)
        decay = 2.0 ** (-len(rows) / EVIDENCE_HALF_LIFE)
        self.advantage = decay * self.advantage + advantage
        self.squares = decay * decay * self.squares + squares
        if self.is_open:
            self.is_open = self.advantage > 0.0
        else:
            self.is_open = self.advantage > ENOUGH * sqrt(self.squares + DOUBT)

    def remember(self, coef: Floats) -> None:
        """Coefficients that will predict rows later."""
        self.past[self.at] = coef
        self.at = (self.at + 1) % len(self.past)

    def effective_rows(self, n_rows: Floats) -> float:
        """How many rows the mixture rests on, where its levels rest on so many: the harmonic mean."""
        return 1.0 / float((self.weights / np.maximum(n_rows, 1.0)).sum())


def blocks_in(horizon: int) -> int:
    """How many blocks earlier predictions are made: the horizon is rounded up."""
    return -(-horizon // BLOCK)


def repeated(coef: Floats, horizon: int) -> Floats:
    """These coefficients for each block of the horizon."""
    return np.repeat(coef[None], blocks_in(horizon), axis=0)
