"""Columns that are the levels of one category: their sum is one in every row, so an intercept makes them collinear."""

from collections.abc import Sequence

import numpy as np

from thresher._utils.arrays import Integers
from thresher.summaries.gram import Gram

# What a mean of products of zeros and ones may be off by rounding.
ROUNDING = 1e-9


def find_categories(summary: Gram) -> list[Integers]:
    """Runs of adjacent columns that are the levels of one category, found from second moments alone.

    Columns of zeros and ones have E x^2 = E x; levels of one category never occur together, so E x_j x_k = 0; and each
    row has one of them, so their means add up to one. As ``pandas.get_dummies`` lays them out. Columns of zeros may
    stand between them. O(d) for each such column.

    Examples
    --------
    >>> from thresher import Gram
    >>> X = [[1.0, 0.0, 0.0, 2.0], [0.0, 1.0, 0.0, 3.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 5.0]]
    >>> find_categories(Gram(4).absorb(X, [0.0] * 4))
    [array([0, 1, 2])]
    """
    mean, square = summary.mean_x, summary.variance(centred=False)
    indicator = (np.abs(square - mean) <= ROUNDING) & (mean > 0.0) & (mean < 1.0)
    moments, found = summary.moments(centred=False), []
    run: list[int] = []
    for j in range(summary.n_features):
        if square[j] == 0.0:  # a level that has not come up yet, perhaps
            continue
        if not indicator[j]:
            run = []
            continue
        together = moments.column(j) / summary.weight
        while run and (np.abs(together[run]) > ROUNDING).any():
            run = run[1:]
        run = [*run, j]
        if abs(float(mean[run].sum()) - 1.0) <= ROUNDING:
            found.append(np.array(run, np.intp))
            run = []
    return found


def reference_levels(summary: Gram, categories: Sequence[Integers], centred: bool, taken: Integers) -> Integers:
    """For each category, its reference level: the most frequent of those that are not `taken`.

    Coefficients of the other levels are differences from it. A category of which all levels are taken has none.
    Without an intercept, the levels of one category are not collinear, and the first has none.
    """
    mean, found = summary.mean_x, []
    for levels in categories[0 if centred else 1 :]:
        free = levels[~np.isin(levels, taken)]
        if len(free):
            found.append(free[np.argmax(mean[free])])
    return np.array(found, np.intp)
