"""Second moments of the kept features, weighted by squared residuals: what standard errors need if noise varies."""

from dataclasses import dataclass, field

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher.io.schema import Array, Number, Schema
from thresher.summaries._window import Waiting


@dataclass
class ResidualMoments:
    r"""Sum w e^2 z z' with z = (1, x_S - origin), over the rows since the support S was last changed.

    The covariance of least squares on S is, whatever the variance of the noise depends on,

    .. math:: A^{-1} B A^{-1}, \quad A = \sum w z z^\top, \quad B = \sum w e^2 z z^\top

    (White, 1980). A is in the Gram. B is kept here, from the errors of predictions made before the rows were learned:
    O(s^2) memory and O(s^2) for each row.

    References
    ----------
    H. White (1980). A heteroskedasticity-consistent covariance matrix estimator and a direct test for
    heteroskedasticity. Econometrica 48(4), 817-838.
    """

    _schema = Schema(
        lambda moments: len(moments.matrix) == len(moments.support) + 1,
        support=Array("support", dtype="i8", least=0, ascending=True, shared=True),
        origin=Array("support"),
        matrix=Array("size", "size", least=-np.inf, most=np.inf, nan=True),
        weight=Number(least=0.0),
    )
    support: Integers = field(default_factory=lambda: np.zeros(0, np.intp))
    origin: Floats = field(default_factory=lambda: np.zeros(0))
    matrix: Floats = field(default_factory=lambda: np.zeros((1, 1)))  # (s + 1, s + 1), the first for the intercept
    weight: float = 0.0  # of the rows

    def follow(self, support: Integers, origin: Floats) -> None:
        """Begin again if this is another support; `origin` is what rows are to be taken about."""
        if not np.array_equal(support, self.support):
            size = len(support) + 1
            self.support, self.origin, self.matrix, self.weight = support, origin, np.zeros((size, size)), 0.0

    def fade(self, factor: float) -> None:
        """Let all rows so far count `factor` times as much."""
        self.matrix, self.weight = factor * self.matrix, factor * self.weight

    def add(self, waiting: Waiting, shift_x: Floats, error: Floats) -> None:
        """Add rows about the shift of a summary, with the errors of their predictions, times sqrt(w)."""
        rows, _, root = waiting
        n = len(root)
        z = np.empty((n, len(self.support) + 1))
        z[:, 0] = root
        # The buffer is about the shift of the summary, which may have moved since.
        z[:, 1:] = rows[:, self.support] + np.outer(root, shift_x[self.support] - self.origin)
        size = np.divide(error, root, out=np.zeros(n), where=root > 0.0)
        z *= size[:, None]
        self.matrix += z.T @ z
        self.weight += float(root @ root)
