"""How much columns can mimic each other, k at a time."""

from dataclasses import dataclass

import numpy as np

from thresher._utils.arrays import Floats, Integers
from thresher._utils.checks import check_positive_integer
from thresher.summaries.gram import Gram

# The full spectrum costs O(d^3): a second or two at this size. Beyond it, bounds come from the entries alone.
LARGEST_SPECTRUM = 2000
N_STARTS = 6
N_ITERATIONS = 50


@dataclass(frozen=True)
class SparseEigenvalues:
    """Bounds (low, high) on the extreme eigenvalues of all k x k principal submatrices of the moments of x.

    Parameters
    ----------
    k : int
        Number of columns at a time, at most those that vary.
    n_columns : int
        Columns that vary; the others were left out.
    largest, smallest, condition : tuple of two floats
        Bounds on the largest one, on the smallest one and on their ratio; inf where nothing is known.
    """

    k: int
    n_columns: int
    largest: tuple[float, float]
    smallest: tuple[float, float]
    condition: tuple[float, float]


def sparse_eigenvalues(summary: Gram, k: int, centred: bool = True, standardized: bool = True) -> SparseEigenvalues:
    r"""How much the columns can mimic each other, k at a time: bounds on sparse eigenvalues.

    With G the (co)moments of x per unit of weight (correlations, if `standardized`), the largest and the
    smallest value of :math:`u^\top G u` over unit vectors u with at most k nonzeros. Equivalent to
    ``np.linalg.eigvalsh`` of all k x k principal submatrices, which nobody can afford; here two-sided bounds. Constant
    columns are left out.

    Parameters
    ----------
    summary : Gram
        The rows.
    k : int
        Nonzeros at a time; twice the sparsity is what guarantees of sparse regression speak of.
    centred : bool, default=True
        Moments about the mean, as for a model with an intercept, or about zero.
    standardized : bool, default=True
        Give every column a mean square of one.

    Notes
    -----
    The inner sides are eigenvalues of submatrices that were found by the truncated power method (Yuan and Zhang, 2013)
    from several starts: for the smallest, on mI - G. The outer sides are the better of two: the extreme
    eigenvalues of all of G (up to 2000 columns), and Gershgorin's discs, which for k x k submatrices have as radius the
    sum of the k - 1 largest off-diagonal entries of a row. One d x d temporary and O(d^3): a quarter of a
    second at d = 1000.

    References
    ----------
    X.-T. Yuan and T. Zhang (2013). Truncated power method for sparse eigenvalue problems. JMLR 14, 899-925.

    Examples
    --------
    >>> from thresher import Gram
    >>> X = [[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 1.0], [1.0, 1.0, -1.0]]
    >>> bounds = sparse_eigenvalues(Gram(3).absorb(X, [0.0] * 4), 2, centred=False)
    >>> low, high = bounds.largest  # columns 1 and 2 correlate most, at -1 / sqrt(2)
    >>> print(f"{low:.4f} {high:.4f}")
    1.7071 1.7071
    """
    k = check_positive_integer(k, "k")
    if summary.weight == 0.0:
        raise ValueError("The summary is empty: absorb rows with positive weight first.")
    scale = np.sqrt(summary.variance(centred))
    varies = np.flatnonzero(scale > 0.0)
    if not len(varies):
        raise ValueError("Every column is constant, so there is nothing to bound: absorb rows in which one varies.")
    k = min(k, len(varies))
    part = summary if len(varies) == summary.n_features else summary.select(varies)
    matrix = part.comoment() if centred else part.second_moment()
    divisor = scale[varies] if standardized else np.ones(len(varies))
    matrix /= divisor
    matrix /= summary.weight * divisor[:, None]
    return _bounds(matrix, k)


def _bounds(matrix: Floats, k: int) -> SparseEigenvalues:
    """Of a positive semidefinite matrix."""
    d, diagonal = len(matrix), matrix.diagonal().copy()
    radius, pairs = np.zeros(d), np.zeros(d)
    for start in range(0, d, 256):
        rows = np.abs(matrix[start : start + 256])
        rows[np.arange(len(rows)), np.arange(start, start + len(rows))] = 0.0
        pairs[start : start + 256] = rows.max(axis=1)
        if k > 1:
            radius[start : start + 256] = np.partition(rows, d - k + 1, axis=1)[:, d - k + 1 :].sum(axis=1)
    high, low = float((diagonal + radius).max()), float((diagonal - radius).min())

    found_high, found_low = float(diagonal.max()), float(diagonal.min())
    if k > 1:
        by_size = [diagonal, -diagonal, diagonal + radius, radius - diagonal, pairs]
        starts = {int(j) for sizes in by_size for j in np.argsort(-sizes, kind="stable")[:N_STARTS]}
        for j in sorted(starts):
            for sign, shift in ((1.0, 0.0), (-1.0, high)):
                support = _truncated_power(matrix, sign, shift, k, j)
                values = np.linalg.eigvalsh(matrix[np.ix_(support, support)])
                found_high, found_low = max(found_high, float(values[-1])), min(found_low, float(values[0]))

    if d <= LARGEST_SPECTRUM:
        spectrum = np.linalg.eigvalsh(matrix)
        high, low = min(high, float(spectrum[-1])), max(low, float(spectrum[0]))
    # Eigenvalues are good to a few units in the last place of the largest: every bound steps back by that much.
    rounding = float(d * np.finfo(np.float64).eps * high)
    found_high, found_low = found_high - rounding, max(found_low, 0.0) + rounding
    high, low = high + rounding, max(low - rounding, 0.0)
    return SparseEigenvalues(
        k=k,
        n_columns=d,
        largest=(found_high, high),
        smallest=(low, found_low),
        condition=(max(found_high / found_low, 1.0), high / low if low > 0.0 else np.inf),
    )


def _truncated_power(matrix: Floats, sign: float, shift: float, k: int, start: int) -> Integers:
    """The columns at which the truncated power method on shift I + sign matrix ends, from one column."""
    support, x, before = np.array([start], np.intp), np.ones(1), -np.inf
    for _ in range(N_ITERATIONS):
        y = sign * (x @ matrix[support])
        y[support] += shift * x
        value = float(x @ y[support])
        if value <= before + 1e-6 * abs(before):
            break
        before = value
        kept = np.argpartition(-np.abs(y), k - 1)[:k]
        length = float(np.linalg.norm(y[kept]))
        if length == 0.0:  # an orthogonal design
            break
        support, x = kept, y[kept] / length
    return support
