"""Second moments of a Gram about the mean or about zero: what solvers read."""

import numpy as np
from numpy.typing import NDArray

from thresher.summaries._shifted import State, sums

Floats = NDArray[np.float64]


class Moments:
    """The second moments of all rows that a Gram has seen, valid until it changes.

    Attributes
    ----------
    weight : float
        Sum of the weights.
    squares : ndarray of shape (d,)
        Sum w x_j^2 of each feature, about its mean or about zero; exactly zero for a constant one.
    products : ndarray of shape (d,)
        Sum w x_j y.
    total : float
        Sum w y^2: the residual sum of squares of no features.
    dtype : dtype
        How the Gram stores products of features.
    """

    def __init__(self, state: State, centred: bool) -> None:
        self._state, self._sums, self._centred = state, sums(state), centred
        self.weight = self._sums.weight
        self.squares = self._sums.squares(centred)
        self.products = self._sums.products_y(centred)
        self.total = self._sums.squares_y(centred)
        self.dtype = state.scatter.dtype
        self._half = self._sums.sum_x + 0.5 * self.weight * self._sums.shift_x
        self._centring = self._sums.centring()
        self._known: dict[int, Floats] = {}

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.squares)

    def column(self, j: int) -> Floats:
        """Sum w x_j x of feature j with all features; O(d), more for rows not yet folded. Read once."""
        known = self._known.get(j)
        if known is None:
            known = self._known[j] = self._read(j)
        return known

    def _read(self, j: int) -> Floats:
        state, d, shift_x = self._state, len(self.squares), self._sums.shift_x
        column = np.empty(d)
        column[j:] = state.scatter[j, j:d]
        column[:j] = state.scatter[:j, j]
        if state.n_buffered:
            buffer = state.buffer[: state.n_buffered]
            column += buffer[:, j] @ buffer
        if self._centred:
            column -= self._centring * self._centring.item(j)
        else:
            column += shift_x[j] * self._half
            column += self._half[j] * shift_x
        column[j] = self.squares[j]  # float64 whatever the storage
        return column
