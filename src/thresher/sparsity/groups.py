"""Sparsity by groups: coefficients that belong together are kept or dropped together."""

from copy import copy

import numpy as np
from numpy.typing import NDArray

from thresher._utils.arrays import ArrayLike, Floats, Integers
from thresher._utils.checks import check_positive_integer
from thresher.io.schema import Array, Count, Labels, Schema
from thresher.sparsity._common import largest, relative_concavity


class Groups:
    r"""The set of vectors (or matrices, by rows) that are nonzero in at most s groups, and its projection.

    ``project`` solves :math:`\min_\phi \|\phi - \theta\|_2` over the set: it keeps the s groups of largest
    Euclidean norm. With one feature per group it is ``Cardinality``. Ties, to ten digits, go to the group that comes
    first. O(d) time.

    Parameters
    ----------
    labels : array-like of shape (d,)
        The group of each feature: integers or strings, in any order.
    s : int
        Number of groups to keep; all of them, if there are fewer.

    References
    ----------
    Online Generalized Sparse Regression, Lemma (multi_step_descent), with groups in place of entries.

    Examples
    --------
    >>> from thresher import Groups
    >>> groups = Groups(["colour", "colour", "size", "age"], 1)
    >>> groups.project([2.0, -2.0, 2.5, 1.0])
    array([ 2., -2.,  0.,  0.])
    >>> groups.measure([0.0, 1.0, 2.0, 0.0])
    2
    >>> groups.names
    array(['colour', 'size', 'age'], dtype='<U6')
    """

    _schema = Schema(
        lambda groups: len(np.unique(groups.index)) == groups.n_groups >= 1,
        s=Count(1),
        names=Labels("groups", "iubUSO", (str, int, bytes)),
        index=Array("d", dtype="i8", least=0, below="groups", shared=True),  # with `keeping`
    )

    def __init__(self, labels: ArrayLike, s: int) -> None:
        self.s = check_positive_integer(s, "s")
        array = np.asarray(labels)
        if array.ndim != 1 or not len(array) or array.dtype.kind not in "iubUSO":
            raise ValueError(
                f"labels must be a one-dimensional sequence of integers or strings, got shape {array.shape} and "
                f"dtype {array.dtype}; give one label per feature."
            )
        try:
            names, first, index = np.unique(array, return_index=True, return_inverse=True)
        except TypeError as error:
            raise ValueError("labels mix types that cannot be compared; use all integers or all strings.") from error
        order = np.argsort(first)  # groups are numbered as they appear
        self.names = names[order]
        self.index: NDArray[np.int64] = np.argsort(order)[index].astype(np.int64)

    def keeping(self, s: int) -> "Groups":
        """The same groups, another number of them to keep."""
        result = copy(self)
        result.s = check_positive_integer(s, "s")
        return result

    @property
    def n_groups(self) -> int:
        """How many different groups there are."""
        return len(self.names)

    def members(self, group: int) -> Integers:
        """The columns of a group, ascending."""
        return np.flatnonzero(self.index == group)

    @property
    def by_size(self) -> list[tuple[Integers, Integers]]:
        """Groups with the same number of columns together: their numbers, and their columns, a row for each."""
        sizes = np.bincount(self.index)
        order = np.argsort(self.index, kind="stable")
        members = np.split(order, np.cumsum(sizes)[:-1])
        return [
            (numbers, np.array([members[g] for g in numbers]))
            for numbers in (np.flatnonzero(sizes == size) for size in np.unique(sizes))
        ]

    def norms(self, theta: ArrayLike) -> Floats:
        """The Euclidean norm of each group, in the order of `names`."""
        rows = self._rows(np.asarray(theta, np.float64))
        top = np.zeros(self.n_groups)
        np.maximum.at(top, self.index, np.abs(rows).max(axis=1, initial=0.0))
        unit = np.divide(1.0, top, out=np.zeros_like(top), where=top > 0.0)  # so that squares stay in range
        squares = ((rows * unit[self.index, None]) ** 2).sum(axis=1)
        norms: Floats = top * np.sqrt(np.bincount(self.index, squares, self.n_groups))
        return norms

    def project(self, theta: ArrayLike) -> Floats:
        """The closest array with at most s groups different from zero, as a new array."""
        theta = np.asarray(theta, np.float64)
        keep = largest(self.norms(theta), self.s)[self.index]
        return np.where(keep if theta.ndim == 1 else keep[:, None], theta, 0.0)

    def restrict(self, direction: ArrayLike, theta: ArrayLike) -> Floats:
        """The part of `direction` along which theta can move without leaving the set.

        Groups outside the support of theta become zero. At theta = 0 the s largest groups are taken.
        """
        direction, theta = np.asarray(direction, np.float64), np.asarray(theta, np.float64)
        if not theta.any():
            return self.project(direction)
        keep = (self.norms(theta) > 0.0)[self.index]
        return np.where(keep if theta.ndim == 1 else keep[:, None], direction, 0.0)

    def measure(self, theta: ArrayLike) -> int:
        """The number of groups different from zero."""
        return int(np.count_nonzero(self.norms(theta)))

    def concavity(self, s_star: int) -> float:
        """The relative concavity sqrt(s*/s)/2 of the projection with respect to s* groups."""
        return relative_concavity(self.s, s_star, "s")

    def _rows(self, theta: Floats) -> Floats:
        if theta.ndim not in (1, 2) or len(theta) != len(self.index):
            raise ValueError(f"theta has shape {theta.shape}; there are {len(self.index)} labels, one per row.")
        return theta.reshape(len(theta), -1)

    def __repr__(self) -> str:
        return f"Groups({len(self.index)} features in {self.n_groups} groups, s={self.s})"
