"""Which other features explain what the followed ones do not, in recent rows: O(d) memory."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dgemv

from thresher._utils.arrays import Floats, Integers, padded
from thresher.drift.settings import ENTER, MOST_AT_ONCE, SCREEN_HALF_LIFE
from thresher.io.schema import Array, Number, Schema
from thresher.summaries._shifted import shifted_columns
from thresher.summaries.gram import Gram


@dataclass(eq=False)
class Screen:
    """Decaying sums of the products of all features with the prediction errors.

    A feature that has begun to matter is correlated with the errors of the model without it. With a d x d matrix of
    recent rows one could select features afresh; this needs d numbers, and finds the strongest ones.
    """

    _schema = Schema(
        products=Array("d"),
        origin=Array("d"),
        weight=Number(least=0.0),
        squares=Number(least=0.0),
        error=Number(),
        squared_error=Number(least=0.0),
    )
    products: Floats  # sum of w e (x - origin)
    origin: Floats
    weight: float = 0.0
    squares: float = 0.0  # sum of squared weights
    error: float = 0.0
    squared_error: float = 0.0

    @classmethod
    def new(cls, n_features: int) -> "Screen":
        """Sums of nothing."""
        return cls(np.zeros(n_features), np.zeros(n_features))

    def widened(self, n_features: int) -> "Screen":
        """The same with more columns, which were zero so far."""
        origin = padded(self.origin, n_features)
        products = padded(self.products, n_features)
        return Screen(products, origin, self.weight, self.squares, self.error, self.squared_error)

    def add(self, summary: Gram, errors: Floats) -> None:
        """Add the rows in the buffer of a summary, with the errors of their predictions, times sqrt(w)."""
        state, n = summary.state, len(errors)
        decay = 2.0 ** (-n / SCREEN_HALF_LIFE)
        root = state.buffer_root[:n]
        weight, error = float(root @ root), float(root @ errors)
        # From the old origin to the shift that the buffer is about.
        self.products += self.error * (self.origin - state.shift_x)
        self.products *= decay
        # By the BLAS that folds rows: threads of another one would stand in its way.
        self.products += dgemv(1.0, state.buffer[:n].T, errors)
        self.origin = state.shift_x.copy()
        self.weight = decay * self.weight + weight
        self.squares = decay * decay * self.squares + weight
        self.error = decay * self.error + error
        self.squared_error = decay * self.squared_error + float(errors @ errors)

    def candidates(self, summary: Gram, followed: Integers) -> list[int]:
        """Features to follow besides: correlated with the errors, the strongest first, each given those before it."""
        if not (self.weight > 0.0 and self.squared_error > 0.0):
            return []
        sums = summary.sums()
        found: list[int] = []
        scale = np.sqrt(sums.squares(True))
        unit = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 1e-150)
        # Correlations with the errors, all in units of the variance of all rows.
        products = (self.products - self.error * (sums.mean_x - self.origin)) * unit * np.sqrt(sums.weight)
        limit = ENTER * np.log(max(len(products), 2)) * self.squared_error * self.squares / self.weight
        products[followed] = 0.0
        while len(found) < MOST_AT_ONCE:
            j = int(np.argmax(np.abs(products)))
            if not products[j] ** 2 > limit:
                break
            column = shifted_columns(summary.state, np.array([j], np.intp))[0] - sums.centring()[j] * sums.centring()
            products = products - unit * column * unit[j] * products[j]
            found.append(j)
            products[followed] = products[found] = 0.0
        return found
