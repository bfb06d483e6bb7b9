"""Estimates of every size, as users see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import Floats
from thresher._utils.feature_names import name_of
from thresher._utils.printable import printable
from thresher._utils.text_table import data_frame, text_table


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """The estimates of every size, features or ranks, from one summary. Prints as a table.

    Attributes
    ----------
    sizes : ndarray of int
        The sizes, ascending by one: numbers of features from zero, or ranks from one.
    loss : ndarray
        What the estimator minimises, for each: half the mean squared residual over all samples so far.
    criterion : ndarray
        What decides between them.
    coef : sequence of ndarray
        The coefficients of each, shaped as those of the estimator.
    intercept : ndarray, optional
        The intercept of each model with few features.
    names : tuple of str, optional
        The names of the features.

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.io.sources.synthetic import SparseLinearStream
    >>> model = SparseRegressor().fit(*SparseLinearStream(30, 3, signal=1.0, seed=4).draw(500))
    >>> model.path(4)
    size    loss  criterion  change
    0      1.296    476.348
    1      0.776    227.964  +x1
    2     0.5336    48.3974  +x2
    3     0.4634   -14.6143  +x0     <- best
    4     0.4605   -10.4829  +x19
    """

    sizes: NDArray[np.intp]
    loss: Floats
    criterion: Floats
    coef: Sequence[Floats] | Floats
    intercept: Floats | None = None
    names: tuple[str, ...] | None = None

    @property
    def best(self) -> int:
        """The size with the least criterion."""
        return int(self.sizes[np.argmin(self.criterion)])

    def supports(self) -> list[NDArray[np.intp]]:
        """The features of each model with few features."""
        if self.intercept is None:
            raise AttributeError("Only models with few features have supports; these are matrices.")
        return [np.flatnonzero(coef) for coef in self.coef]

    def __repr__(self) -> str:
        heads = ["size", "loss", "criterion"]
        marks = ["<- best" if size == self.best else "" for size in self.sizes]
        cells = [
            [str(size), f"{a:.4g}", f"{b:.6g}"]
            for size, a, b in zip(self.sizes, self.loss, self.criterion, strict=True)
        ]
        if self.intercept is not None:
            heads.append("change")
            for line, change in zip(cells, self._changes(), strict=True):
                line.append(change)
        return text_table([*heads, ""], [[*line, mark] for line, mark in zip(cells, marks, strict=True)], (0, 3, 4))

    def _changes(self) -> list[str]:
        """What each model has that the one before had not, and the other way round."""
        found, before = [], np.zeros(0, np.intp)
        for support in self.supports():
            came, left = np.setdiff1d(support, before), np.setdiff1d(before, support)
            found.append(" ".join([*(f"+{self._name(j)}" for j in came), *(f"-{self._name(j)}" for j in left)]))
            before = support
        return found

    def _name(self, j: int) -> str:
        return printable(name_of(j, self.names))

    def to_frame(self) -> Any:
        """The table as a pandas data frame, indexed by size; with a column of coefficients for every feature used."""
        columns: dict[str, Any] = {"size": self.sizes, "loss": self.loss, "criterion": self.criterion}
        if self.intercept is not None:
            used = np.unique(np.concatenate(self.supports()))
            coef = np.asarray(self.coef)
            columns["intercept"] = self.intercept
            columns |= {name_of(j, self.names): coef[:, j] for j in used}
        return data_frame(columns, "size")
