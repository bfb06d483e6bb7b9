"""Batches of proximal or dual averaging steps for several penalties and columns at once, on bare arrays."""

import numpy as np
from numpy.typing import NDArray

from thresher.kernels._compile import compiled, compiled_sums
from thresher.kernels.single_rows import is_sane, squared_length
from thresher.kernels.soft_threshold import soft

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Places in the counts: rows that wait for a batch, batches, those in this epoch, epochs before it, the chosen penalty.
WAITING, BATCHES, IN_EPOCH, EPOCH, CHOSEN = 0, 1, 2, 3, 4
N_COUNTS = 5
# Places in the totals: sum of squared residuals, their number, the largest squared length of a row.
SQUARES, N_ROWS, LENGTH = 0, 1, 2
N_TOTALS = 3
# Columns of the sums of an inferred column: of z x_r, z y and z^2, with z what the others leave of it.
ZX, ZY, ZZ = 0, 1, 2
N_SUMS = 3
# A row whose squared length is smaller is zero.
SHORT = 1e-300


@compiled
def run(
    X: Floats,
    y: Floats,
    waiting: Floats,
    waiting_y: Floats,
    counts: Integers,
    totals: Floats,
    grid: Floats,
    index: Integers,
    iterates: Floats,
    duals: Floats,
    spreads: Floats,
    scales: Floats,
    averages: Floats,
    centres: Floats,
    sums: Floats,
    products: Floats,
    step_size: float,
    power: float,
    radius: float,
) -> int:
    """Learn from rows; returns their number, or how many came before the one whose batch had absurd predictions.

    There is a problem (a row of `iterates`, `duals` and `spreads`) for each penalty, then one for each inferred column;
    in `scales`, `averages` and `centres` the first row stands for the response, the others for the inferred columns.
    Steps are dual averaging if there are duals. For proximal steps `centres` is `averages`.
    """
    batch_size, d = waiting.shape
    n_penalties, n_problems, radar = grid.shape[0], iterates.shape[0], duals.shape[0] > 0
    gradient, residuals = np.empty(d), np.empty((n_problems, batch_size))
    for i in range(X.shape[0]):
        slot = counts[WAITING]
        for j in range(d):
            waiting[slot, j] = X[i, j]
        waiting_y[slot] = y[i]
        counts[WAITING] = (slot + 1) % batch_size
        if slot + 1 < batch_size:
            continue
        if not _residuals(waiting, waiting_y, counts, totals, grid, index, iterates, scales, residuals):
            return i
        counts[BATCHES] += 1
        counts[IN_EPOCH] += 1
        t, chosen = float(counts[IN_EPOCH]), counts[CHOSEN]
        for problem in range(n_problems):
            own = -1 if problem < n_penalties else index[problem - n_penalties]
            penalty = grid[problem] if problem < n_penalties else grid[chosen]
            _mean_gradient(waiting, residuals, problem, gradient)
            if radar:
                centre = max(problem - n_penalties + 1, 0)
                shrink = 0.5 ** (0.5 * counts[EPOCH])
                step = step_size * shrink / np.sqrt(t)
                dual_step(
                    gradient, iterates, duals, spreads, problem, centres, centre, own, penalty, step, radius * shrink
                )
            else:
                step = step_size / t**power
                if step_size == 0.0 and totals[LENGTH] > SHORT:
                    step = 1.0 / (totals[LENGTH] * (1.0 + t / d) ** power)
                _proximal_step(gradient, iterates, problem, own, penalty, step)
        for place in range(averages.shape[0]):
            problem = chosen if place == 0 else n_penalties + place - 1
            for j in range(d):
                averages[place, j] += (iterates[problem, j] - averages[place, j]) / t
        if not radar or counts[EPOCH] > 0:
            _add_to_sums(waiting, waiting_y, index, centres, totals, sums, products)
        if radar and counts[BATCHES] == epoch_end(waiting, counts[EPOCH]):
            _next_epoch(counts, iterates, duals, spreads, averages, centres, n_penalties)
    return len(X)


@compiled_sums
def _along(X: Floats, i: int, coefs: Floats, k: int) -> float:
    """Row i of X times row k of coefs."""
    total = 0.0
    for j in range(X.shape[1]):
        total += X[i, j] * coefs[k, j]
    return total


@compiled
def _residuals(
    X: Floats,
    y: Floats,
    counts: Integers,
    totals: Floats,
    grid: Floats,
    index: Integers,
    iterates: Floats,
    scales: Floats,
    residuals: Floats,
) -> bool:
    """Residuals of all problems before the update, and the penalty that predicts best. False if one has diverged."""
    n = X.shape[0]
    for i in range(n):
        totals[LENGTH] = max(totals[LENGTH], squared_length(X, i))
        scales[0] += y[i] * y[i]
        for k in range(index.shape[0]):
            scales[1 + k] += X[i, index[k]] * X[i, index[k]]
    n_rows = (counts[BATCHES] + 1.0) * n
    least = np.inf
    for problem in range(iterates.shape[0]):
        place = problem - grid.shape[0]
        squares = 0.0
        for i in range(n):
            prediction = _along(X, i, iterates, problem)
            if not is_sane(prediction, n_rows, scales[max(place + 1, 0)], 0.0):
                return False
            residual = prediction - (y[i] if place < 0 else X[i, index[place]])
            residuals[problem, i] = residual
            squares += residual * residual
        if place < 0 and squares < least:
            least = squares
            counts[CHOSEN] = problem
    return True


@compiled
def _mean_gradient(X: Floats, residuals: Floats, problem: int, gradient: Floats) -> None:
    n = X.shape[0]
    for j in range(X.shape[1]):
        gradient[j] = residuals[problem, 0] * X[0, j]
    for i in range(1, n):
        for j in range(X.shape[1]):
            gradient[j] += residuals[problem, i] * X[i, j]
    for j in range(X.shape[1]):
        gradient[j] /= n


@compiled
def _proximal_step(gradient: Floats, iterates: Floats, problem: int, own: int, penalty: float, step: float) -> None:
    threshold = step * penalty
    for j in range(gradient.shape[0]):
        iterates[problem, j] = soft(iterates[problem, j] - step * gradient[j], threshold)
    if own >= 0:
        iterates[problem, own] = 0.0


@compiled
def dual_step(
    gradient: Floats,
    iterates: Floats,
    duals: Floats,
    spreads: Floats,
    problem: int,
    centres: Floats,
    centre: int,
    own: int,
    penalty: float,
    step: float,
    radius: float,
) -> None:
    """The minimiser of step <dual, theta> + |theta - centre|_p^2 / (2 radius^2 (p - 1)) in a ball about the centre.

    With u = theta - centre and 1/p + 1/q = 1, the gradient of |u|_p^2 / 2 is |u|_p^(2-p) |u|^(p-1) sign(u), whose
    inverse is the same with q. So u = - step radius^2 (p - 1) |dual|_q^(2-q) |dual|^(q-1) sign(dual), of length
    step radius^2 (p - 1) |dual|_q, and if that is longer than the radius, u is scaled to it.
    """
    d = gradient.shape[0]
    q = dual_exponent(d)  # p - 1 = 1 / (q - 1)
    steepest = largest = 0.0
    for j in range(d):
        if j == own:
            continue
        slope = gradient[j] + penalty * np.sign(iterates[problem, j])
        steepest = max(steepest, abs(slope))
        duals[problem, j] += slope
        largest = max(largest, abs(duals[problem, j]))
    spreads[problem] += steepest * steepest
    if not largest > 0.0:
        for j in range(d):
            iterates[problem, j] = centres[centre, j]
        return
    total = 0.0
    for j in range(d):
        share = abs(duals[problem, j]) / largest
        # The (q-1)-st powers wait in the gradient, which is not needed any more.
        gradient[j] = _odd_power(share, q // 2)
        total += gradient[j] * share
    norm = largest * total ** (1.0 / q)
    if step == 0.0:
        # Dual averaging has regret psi_max / step + sum step radius^2 |slope|_q^2 / 2 with psi_max = (q - 1) / 2,
        # least at this step; |slope|_q^2 <= d^(2/q) |slope|_inf^2 = e |slope|_inf^2.
        step = np.sqrt((q - 1.0) / (np.e * spreads[problem])) / radius
    length = min(step * radius * radius * norm / (q - 1.0), radius)
    longest = length * total ** (1.0 / q - 1.0)
    for j in range(d):
        iterates[problem, j] = centres[centre, j] - np.sign(duals[problem, j]) * (longest * gradient[j])


@compiled
def dual_exponent(d: int) -> int:
    """The even number from 2 log(d) on: powers of it are products."""
    return int(2 * max(np.ceil(np.log(d)), 1.0))


@compiled
def _odd_power(base: float, half: int) -> float:
    """Base to the power 2 half - 1."""
    result, square, left = base, base * base, half - 1
    while left:
        if left & 1:
            result *= square
        square *= square
        left >>= 1
    return result


@compiled
def epoch_end(X: Floats, epoch: int) -> int:
    """The number of batches after which an epoch ends."""
    n, d = X.shape
    return int(3 * 2**epoch * np.ceil(np.log(max(d, 2)) / n))


@compiled
def _next_epoch(
    counts: Integers,
    iterates: Floats,
    duals: Floats,
    spreads: Floats,
    averages: Floats,
    centres: Floats,
    n_penalties: int,
) -> None:
    counts[EPOCH] += 1
    counts[IN_EPOCH] = 0
    for place in range(averages.shape[0]):
        for j in range(averages.shape[1]):
            centres[place, j] = averages[place, j]
            averages[place, j] = 0.0
    for problem in range(iterates.shape[0]):
        spreads[problem] = 0.0
        place = max(problem - n_penalties + 1, 0)
        for j in range(iterates.shape[1]):
            duals[problem, j] = 0.0
            iterates[problem, j] = centres[place, j]


@compiled
def _add_to_sums(
    X: Floats, y: Floats, index: Integers, coefs: Floats, totals: Floats, sums: Floats, products: Floats
) -> None:
    """Add a batch to the noise, judged by the first row of `coefs`, and to the sums of each inferred column."""
    for i in range(X.shape[0]):
        residual = y[i] - _along(X, i, coefs, 0)
        totals[SQUARES] += residual * residual
        totals[N_ROWS] += 1.0
        for k in range(index.shape[0]):
            own = X[i, index[k]]
            left = own - _along(X, i, coefs, k + 1)
            sums[k, ZX] += left * own
            sums[k, ZY] += left * y[i]
            sums[k, ZZ] += left * left
            for j in range(X.shape[1]):
                products[k, j] += left * X[i, j]
